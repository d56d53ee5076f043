# ruff: noqa: F811
import asyncio
import contextlib
import queue
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor

from tests.grading.bank import right, wrong


def refuse(frames, depth):
    if frames < 0 or depth < 1:
        raise ValueError(f"frames={frames}, depth={depth}")


@right("a queue, the caller consumes")
def two_stage_loop(produce, consume, frames, depth=2):
    refuse(frames, depth)
    waiting, stop, failed, errors, results = queue.Queue(depth), threading.Event(), object(), [], []

    def make():
        try:
            for k in range(frames):
                if stop.is_set():
                    return
                waiting.put(produce(k))
        except BaseException as error:
            errors.append(error)
            waiting.put(failed)

    maker = threading.Thread(target=make)
    maker.start()
    try:
        for _ in range(frames):
            frame = waiting.get()
            if frame is failed:
                break
            results.append(consume(frame))
    except BaseException as error:
        errors.append(error)
    stop.set()
    with contextlib.suppress(queue.Empty):
        while True:
            waiting.get_nowait()
    maker.join()
    if errors:
        raise errors[0]
    return results


@right("two threads and a condition")
def two_stage_loop(produce, consume, frames, depth=2):
    refuse(frames, depth)
    lock, ready, results, errors = threading.Condition(), deque(), [], []

    def stage(work):
        try:
            for k in range(frames):
                if not work(k):
                    return
        except BaseException as error:
            with lock:
                errors.append(error)
                lock.notify_all()

    def make(k):
        with lock:
            lock.wait_for(lambda: errors or len(ready) < depth)
            if errors:
                return False
        frame = produce(k)
        with lock:
            ready.append(frame)
            lock.notify_all()
        return True

    def use(k):
        with lock:
            lock.wait_for(lambda: errors or ready)
            if errors:
                return False
            frame = ready.popleft()
            lock.notify_all()
        results.append(consume(frame))
        return True

    threads = [threading.Thread(target=stage, args=(work,)) for work in (make, use)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


@right("a pool of one thread consumes, a window of futures")
def two_stage_loop(produce, consume, frames, depth=2):
    refuse(frames, depth)
    pending, results, failed = deque(), [], []

    def use(frame):
        if failed:
            return None
        try:
            return consume(frame)
        except BaseException as error:
            failed.append(error)
            raise

    with ThreadPoolExecutor(1) as pool:
        try:
            for k in range(frames):
                pending.append(pool.submit(use, produce(k)))
                if len(pending) > depth:
                    results.append(pending.popleft().result())
            results += [future.result() for future in pending]
        except BaseException as error:
            failed.append(error)
            raise failed[0] from None
    return results


@right("a pool of one thread produces, futures ahead")
def two_stage_loop(produce, consume, frames, depth=2):
    refuse(frames, depth)
    results, ahead, stopped = [], deque(), False

    def make(k):
        return None if stopped else (produce(k),)

    with ThreadPoolExecutor(max_workers=1) as pool:
        numbers = iter(range(frames))
        for _ in range(frames):
            if not ahead:
                ahead.append(pool.submit(make, next(numbers)))
            (frame,) = ahead.popleft().result()
            while len(ahead) < depth and (number := next(numbers, None)) is not None:
                ahead.append(pool.submit(make, number))
            try:
                results.append(consume(frame))
            except BaseException:
                stopped = True
                raise
    return results


@right("asyncio and a queue")
def two_stage_loop(produce, consume, frames, depth=2):
    refuse(frames, depth)

    async def main():
        waiting, results = asyncio.Queue(depth), []

        async def make():
            for k in range(frames):
                await waiting.put(await asyncio.to_thread(produce, k))

        async def use():
            for _ in range(frames):
                frame = await waiting.get()
                results.append(await asyncio.to_thread(consume, frame))

        await asyncio.gather(make(), use())
        return results

    return asyncio.run(main())


@right("semaphores, the caller produces")
def two_stage_loop(produce, consume, frames, depth=2):
    refuse(frames, depth)
    places, made = threading.Semaphore(depth + 1), threading.Semaphore(0)
    frames_made, results, errors = [], [], []

    def use():
        for _ in range(frames):
            made.acquire()
            if errors:
                break
            places.release()
            try:
                results.append(consume(frames_made[len(results)]))
            except BaseException as error:
                errors.append(error)
                places.release()
                break

    user = threading.Thread(target=use, daemon=True)
    user.start()
    for k in range(frames):
        places.acquire()
        if errors:
            break
        try:
            frames_made.append(produce(k))
        except BaseException as error:
            errors.append(error)
            made.release()
            break
        made.release()
    user.join()
    if errors:
        raise errors[0]
    return results


# --- not side by side -------------------------------------------------------------------------------------------------


@wrong("IN_TURN", points=9)
def two_stage_loop(produce, consume, frames, depth=2):
    refuse(frames, depth)
    return [consume(produce(k)) for k in range(frames)]


@wrong("IN_TURN", points=9)
def two_stage_loop(produce, consume, frames, depth=2):
    refuse(frames, depth)
    results = []
    with ThreadPoolExecutor(2) as pool:
        for k in range(frames):
            frame = pool.submit(produce, k).result()
            results.append(pool.submit(consume, frame).result())
    return results


@wrong("ALL_MADE_FIRST", points=7)
def two_stage_loop(produce, consume, frames, depth=2):
    refuse(frames, depth)
    waiting, errors = queue.Queue(), []

    def make():
        try:
            for k in range(frames):
                waiting.put(produce(k))
        except BaseException as error:
            errors.append(error)

    maker = threading.Thread(target=make)
    maker.start()
    maker.join()
    if errors:
        raise errors[0]
    return [consume(waiting.get()) for _ in range(frames)]


@wrong("ALL_MADE_FIRST")
def two_stage_loop(produce, consume, frames, depth=2):
    refuse(frames, depth)
    made = [produce(k) for k in range(frames)]
    with ThreadPoolExecutor(1) as pool:
        return list(pool.map(consume, made))


@wrong("SEVERAL_AT_ONCE")
def two_stage_loop(produce, consume, frames, depth=2):
    refuse(frames, depth)
    with ThreadPoolExecutor(depth + 1) as pool:
        return list(pool.map(lambda k: consume(produce(k)), range(frames)))


@wrong("SEVERAL_AT_ONCE")
def two_stage_loop(produce, consume, frames, depth=2):
    refuse(frames, depth)
    with ThreadPoolExecutor(depth) as pool:
        return [future.result() for future in [pool.submit(consume, produce(k)) for k in range(frames)]]


# --- no bounds, or others ---------------------------------------------------------------------------------------------


def loop_with(depth_of):
    def run(produce, consume, frames, depth=2):
        refuse(frames, depth)
        waiting, stop, failed, errors, results = queue.Queue(depth_of(depth)), threading.Event(), object(), [], []

        def make():
            try:
                for k in range(frames):
                    if stop.is_set():
                        return
                    waiting.put(produce(k))
            except BaseException as error:
                errors.append(error)
                waiting.put(failed)

        maker = threading.Thread(target=make)
        maker.start()
        try:
            for _ in range(frames):
                frame = waiting.get()
                if frame is failed:
                    break
                results.append(consume(frame))
        except BaseException as error:
            errors.append(error)
        stop.set()
        while not waiting.empty():
            waiting.get_nowait()
        maker.join()
        if errors:
            raise errors[0]
        return results

    return run


@wrong("QUEUE_UNBOUNDED", points=10)
def two_stage_loop(produce, consume, frames, depth=2):
    return loop_with(lambda depth: 0)(produce, consume, frames, depth)


@wrong("DEPTH_IGNORED", points=11)
def two_stage_loop(produce, consume, frames, depth=2):
    return loop_with(lambda depth: 2)(produce, consume, frames, depth)


@wrong("DEPTH_OFF", points=11)
def two_stage_loop(produce, consume, frames, depth=2):
    return loop_with(lambda depth: 2 * depth)(produce, consume, frames, depth)


@wrong("DEPTH_IGNORED")
def two_stage_loop(produce, consume, frames, depth=2):
    refuse(frames, depth)
    results = []
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(produce, 0) if frames else None
        for k in range(frames):
            frame = coming.result()
            if k + 1 < frames:
                coming = pool.submit(produce, k + 1)
            results.append(consume(frame))
    return results


@wrong("IN_TURN")
def two_stage_loop(produce, consume, frames, depth=2):
    refuse(frames, depth)
    places, results = threading.Semaphore(depth), []
    waiting, errors = queue.Queue(), []

    def make():
        for k in range(frames):
            places.acquire()
            if errors:
                return
            try:
                waiting.put((produce(k), None))
            except BaseException as error:
                waiting.put((None, error))
                return

    maker = threading.Thread(target=make)
    maker.start()
    try:
        for _ in range(frames):
            frame, error = waiting.get()
            if error is not None:
                raise error
            results.append(consume(frame))
            places.release()  # only now
    except BaseException as error:
        errors.append(error)
        places.release()
        raise
    finally:
        maker.join()
    return results


# --- frames and results -----------------------------------------------------------------------------------------------


@wrong("OUT_OF_ORDER")
def two_stage_loop(produce, consume, frames, depth=2):
    refuse(frames, depth)
    stack = [produce(k) for k in range(frames)]
    return [consume(stack.pop()) for _ in range(frames)]


@wrong("OUT_OF_ORDER")
def two_stage_loop(produce, consume, frames, depth=2):
    refuse(frames, depth)
    results = deque()
    for k in range(frames):
        results.appendleft(consume(produce(k)))
    return list(results)


@wrong("FRAMES_RETURNED")
def two_stage_loop(produce, consume, frames, depth=2):
    refuse(frames, depth)
    waiting, shown = queue.Queue(depth), []

    def make():
        for k in range(frames):
            waiting.put(produce(k))

    maker = threading.Thread(target=make)
    maker.start()
    for _ in range(frames):
        frame = waiting.get()
        consume(frame)
        shown.append(frame)
    maker.join()
    return shown


@wrong("FRAME_TAKEN_FOR_THE_END")
def two_stage_loop(produce, consume, frames, depth=2):
    refuse(frames, depth)
    waiting, results, stop = queue.Queue(depth), [], threading.Event()

    def make():
        try:
            for k in range(frames):
                if stop.is_set():
                    return
                waiting.put(produce(k))
        except BaseException as error:
            waiting.put(error)

    maker = threading.Thread(target=make)
    maker.start()
    try:
        for _ in range(frames):
            frame = waiting.get()
            if isinstance(frame, BaseException):
                raise frame
            results.append(consume(frame))
    finally:
        stop.set()
        while not waiting.empty():
            waiting.get()
        maker.join()
    return results


@wrong("FRAME_TAKEN_FOR_THE_END")
def two_stage_loop(produce, consume, frames, depth=2):
    refuse(frames, depth)
    waiting, results = queue.Queue(depth), []

    def make():
        for k in range(frames):
            waiting.put(produce(k))
        waiting.put(None)

    maker = threading.Thread(target=make, daemon=True)
    maker.start()
    while (frame := waiting.get()) is not None:
        results.append(consume(frame))
    maker.join()
    return results


@wrong("FRAME_TAKEN_FOR_THE_END")
def two_stage_loop(produce, consume, frames, depth=2):
    refuse(frames, depth)
    waiting, results = queue.Queue(depth), []

    def make():
        for k in range(frames):
            waiting.put(produce(k))
        waiting.put("stop")

    maker = threading.Thread(target=make)
    maker.start()
    frame = waiting.get()
    while frame != "stop":
        results.append(consume(frame))
        frame = waiting.get()
    maker.join()
    return results


@wrong("NEVER_COMES_BACK", points=0)
def two_stage_loop(produce, consume, frames, depth=2):
    refuse(frames, depth)
    waiting, results = queue.Queue(depth), []

    def make():
        for k in range(frames):
            waiting.put(produce(k))

    def use():
        while True:
            results.append(consume(waiting.get()))

    threads = [threading.Thread(target=make), threading.Thread(target=use)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


# --- errors -----------------------------------------------------------------------------------------------------------


@wrong("HANGS_ON_ERROR")
def two_stage_loop(produce, consume, frames, depth=2):
    refuse(frames, depth)
    waiting = queue.Queue(depth)

    def make():
        for k in range(frames):
            waiting.put(produce(k))

    maker = threading.Thread(target=make)
    maker.start()
    try:
        return [consume(waiting.get()) for _ in range(frames)]
    finally:
        maker.join()


@wrong("HANGS_ON_ERROR")
def two_stage_loop(produce, consume, frames, depth=2):
    refuse(frames, depth)
    waiting, stop = queue.Queue(depth), threading.Event()

    def make():
        for k in range(frames):
            if stop.is_set():
                return
            waiting.put(produce(k))  # an error here is never told

    maker = threading.Thread(target=make, daemon=True)
    maker.start()
    try:
        return [consume(waiting.get()) for _ in range(frames)]
    finally:
        stop.set()
        while not waiting.empty():
            waiting.get()
        maker.join()


@wrong("ERROR_LOST")
def two_stage_loop(produce, consume, frames, depth=2):
    refuse(frames, depth)
    waiting, results, done = queue.Queue(depth), [], object()

    def make():
        try:
            for k in range(frames):
                waiting.put(produce(k))
        finally:
            waiting.put(done)

    def use():
        while (frame := waiting.get()) is not done:
            results.append(consume(frame))

    threads = [threading.Thread(target=work, daemon=True) for work in (make, use)]
    for thread in threads:
        thread.start()
    threads[1].join()
    return results


@wrong("ERROR_LOST")
def two_stage_loop(produce, consume, frames, depth=2):
    refuse(frames, depth)
    waiting, results, done = queue.Queue(depth), [], object()

    def make():
        try:
            for k in range(frames):
                waiting.put(produce(k))
        except Exception as error:
            print(error)
        waiting.put(done)

    maker = threading.Thread(target=make)
    maker.start()
    while (frame := waiting.get()) is not done:
        try:
            results.append(consume(frame))
        except Exception as error:
            print(error)
    maker.join()
    return results


@wrong("ERROR_CHANGED")
def two_stage_loop(produce, consume, frames, depth=2):
    try:
        return loop_with(lambda depth: depth)(produce, consume, frames, depth)
    except ValueError:
        raise
    except Exception as error:
        raise RuntimeError("a stage failed") from error


@wrong("ERROR_CHANGED")
def two_stage_loop(produce, consume, frames, depth=2):
    refuse(frames, depth)

    async def main():
        waiting, results = asyncio.Queue(depth), []

        async def make():
            for k in range(frames):
                await waiting.put(await asyncio.to_thread(produce, k))

        async def use():
            for _ in range(frames):
                results.append(await asyncio.to_thread(consume, await waiting.get()))

        async with asyncio.TaskGroup() as group:
            group.create_task(make())
            group.create_task(use())
        return results

    return asyncio.run(main())


@wrong("LATER_ERROR_WINS", points=12)
def two_stage_loop(produce, consume, frames, depth=2):
    refuse(frames, depth)
    waiting, stop, failed, error_of, results = queue.Queue(depth), threading.Event(), object(), {}, []

    def make():
        try:
            for k in range(frames):
                if stop.is_set():
                    return
                waiting.put(produce(k))
        except BaseException as error:
            error_of["any"] = error
            waiting.put(failed)

    maker = threading.Thread(target=make)
    maker.start()
    try:
        for _ in range(frames):
            frame = waiting.get()
            if frame is failed:
                break
            results.append(consume(frame))
    except BaseException as error:
        error_of["any"] = error
    stop.set()
    while not waiting.empty():
        waiting.get()
    maker.join()
    if error_of:
        raise error_of["any"]
    return results


@wrong("LATER_ERROR_WINS")
def two_stage_loop(produce, consume, frames, depth=2):
    refuse(frames, depth)
    pending, results = deque(), []
    with ThreadPoolExecutor(1) as pool:
        for k in range(frames):
            pending.append(pool.submit(consume, produce(k)))
            if len(pending) > depth:
                results.append(pending.popleft().result())
        return results + [future.result() for future in pending]


@wrong("GOES_ON_AFTER_ERROR", points=12)
def two_stage_loop(produce, consume, frames, depth=2):
    refuse(frames, depth)
    waiting, failed, errors, results = queue.Queue(depth), object(), [], []

    def make():
        for k in range(frames):
            try:
                waiting.put(produce(k))
            except BaseException as error:
                errors.append(error)
                waiting.put(failed)
                return

    maker = threading.Thread(target=make)
    maker.start()
    for _ in range(frames):
        frame = waiting.get()
        if frame is failed:
            break
        if errors:
            continue  # only empties the queue
        try:
            results.append(consume(frame))
        except BaseException as error:
            errors.append(error)
    maker.join()
    if errors:
        raise errors[0]
    return results


@wrong("THREAD_LEFT", points=12)
def two_stage_loop(produce, consume, frames, depth=2):
    refuse(frames, depth)
    waiting, failed, results = queue.Queue(depth), object(), []

    def make():
        try:
            for k in range(frames):
                waiting.put((produce(k), None))
        except BaseException as error:
            waiting.put((failed, error))

    threading.Thread(target=make, daemon=True).start()
    for _ in range(frames):
        frame, error = waiting.get()
        if frame is failed:
            raise error
        results.append(consume(frame))
    return results


@wrong("THREAD_LEFT")
def two_stage_loop(produce, consume, frames, depth=2):
    refuse(frames, depth)
    pool, pending, results, failed = ThreadPoolExecutor(1), deque(), [], []

    def use(frame):
        if failed:
            return None
        try:
            return consume(frame)
        except BaseException as error:
            failed.append(error)
            raise

    try:
        for k in range(frames):
            pending.append(pool.submit(use, produce(k)))
            if len(pending) > depth:
                results.append(pending.popleft().result())
        return results + [future.result() for future in pending]
    except BaseException as error:
        failed.append(error)
        raise failed[0] from None


@wrong("NOT_REFUSED", points=12)
def two_stage_loop(produce, consume, frames, depth=2):
    return loop_with(lambda depth: depth)(produce, consume, frames, max(depth, 1)) if frames >= 0 else []


@wrong("OTHER_ERROR", points=12)
def two_stage_loop(produce, consume, frames, depth=2):
    assert frames >= 0 and depth >= 1
    return loop_with(lambda depth: depth)(produce, consume, frames, depth)


@wrong("GENERATOR", points=0)
def two_stage_loop(produce, consume, frames, depth=2):
    refuse(frames, depth)
    for k in range(frames):
        yield consume(produce(k))


@wrong(says="None came back", points=0)
def two_stage_loop(produce, consume, frames, depth=2):
    refuse(frames, depth)
    for k in range(frames):
        consume(produce(k))


@wrong(says="raised TypeError", points=0)
def two_stage_loop(produce, consume, frames, depth=2):
    refuse(frames, depth)
    return [consume(produce()) for _ in range(frames)]


@wrong(says="A result may be None too")
def two_stage_loop(produce, consume, frames, depth=2):
    results = loop_with(lambda depth: depth)(produce, consume, frames, depth)
    return [result for result in results if result is not None]


@wrong(says="with frames=1, depth=1 the code raised IndexError")
def two_stage_loop(produce, consume, frames, depth=2):
    refuse(frames, depth)
    results = loop_with(lambda depth: depth)(produce, consume, frames, depth)
    return results if results[1] else results
