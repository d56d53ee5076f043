"""Running a learner's two-stage loop under watch: what came back, who was called when, which threads are left.

Everything here runs in the rank. The stages belong to the grader: they note each call, and wait for each other at
chosen frames, so that what is judged is the order of events. Times only bound how long one waits in vain.
What is asked of the loop stands in `two_stages`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

PATIENCE = 5.0  # seconds after which a loop counts as hung
IN_VAIN = 2.0  # seconds to wait for something that a right answer does at once
A_MOMENT = 0.25  # seconds to see whether something happens that must not
FRAMES = 30
MANY = 400
FAILS = 3  # the frame at which an error is raised
WITHOUT_RESULT = (2, 5)  # of the odd objects: consume returns None for these


class Oops(Exception):
    """The error that a stage raises."""


class Stages:
    """The two functions handed to the loop. `begun`: the frames that each was called for; `most`: how many at once."""

    def __init__(self) -> None:
        self.begun: dict[str, list[Any]] = {"produce": [], "consume": []}
        self.most = {"produce": 0, "consume": 0}
        self._inside = {"produce": 0, "consume": 0}
        self._lock = threading.Condition()
        self.at: dict[tuple[str, Any], Callable[[], None]] = {}  # what else happens in a call: (stage, frame) -> do

    def produce(self, k: int) -> Any:
        self._during("produce", k)
        return ("frame", k)

    def consume(self, frame: Any) -> Any:
        k = frame[1] if type(frame) is tuple and len(frame) == 2 else frame
        self._during("consume", k)
        return ("result", k)

    def _during(self, stage: str, k: Any) -> None:
        with self._lock:
            self.begun[stage].append(k)
            self._inside[stage] += 1
            self.most[stage] = max(self.most[stage], self._inside[stage])
            self._lock.notify_all()
        try:
            self.at.get((stage, k), lambda: None)()
        finally:
            with self._lock:
                self._inside[stage] -= 1
                self._lock.notify_all()

    def wait_for(self, stage: str, k: int, seconds: float = IN_VAIN) -> bool:
        """Whether `stage` is called for frame k, now or within these seconds."""
        with self._lock:
            return self._lock.wait_for(lambda: k in self.begun[stage], seconds)

    def wait_for_idle(self, stage: str, k: int) -> None:
        """Wait until `stage` was called for frame k and is done with it."""
        with self._lock:
            self._lock.wait_for(lambda: k in self.begun[stage] and not self._inside[stage], IN_VAIN)


def watched(loop: Callable[..., Any], *arguments: Any, planned: BaseException | None = None) -> dict[str, Any]:
    """How the call ended: {"end": "returned", "raised", "changed" or "hung", "value": ..., "left": threads}.

    `planned`: the error that is to come out. An error that nobody planned is raised here.
    """
    before, box = set(threading.enumerate()), {}

    def call() -> None:
        try:
            box["value"] = loop(*arguments)
        except BaseException as error:
            box["error"] = error

    caller = threading.Thread(target=call, daemon=True)
    caller.start()
    caller.join(PATIENCE)
    if caller.is_alive():
        return {"end": "hung", "value": None, "left": 0}
    error = box.get("error")
    if error is not None and planned is None:
        raise error
    left = [thread for thread in threading.enumerate() if thread not in before]
    for thread in left:
        thread.join(A_MOMENT)
    end = "returned" if error is None else "raised" if error is planned else "changed"
    said = "" if error is None else f"{type(error).__name__}: {error}"
    return {"end": end, "value": box.get("value"), "said": said, "left": sum(thread.is_alive() for thread in left)}


def all_frames(loop: Any, frames: int, depth: int | None) -> dict[str, Any]:
    """Without errors or waiting: the results, and who was called for what."""
    stages = Stages()
    arguments = (stages.produce, stages.consume, frames) + (() if depth is None else (depth,))
    return {**watched(loop, *arguments), **stages.begun}


def run_ahead(loop: Any, depth: int) -> dict[str, Any]:
    """How many frames were begun while frame 0 was consumed, and whether a stage worked on two at once.

    "late": the last frame that a bounded queue has no place for was made before frame 0 was consumed.
    """
    stages, seen = Stages(), {"ahead": 0, "late": False}

    def first_made() -> None:
        stages.wait_for("produce", 1, A_MOMENT)  # it must not be

    def first_consumed() -> None:
        stages.wait_for("produce", depth)
        if stages.wait_for("produce", depth + 2, A_MOMENT):
            stages.wait_for("produce", FRAMES - 1, A_MOMENT)
        seen["ahead"] = len(stages.begun["produce"])

    def one_too_many() -> None:
        seen["late"] = not stages.wait_for("consume", 0)

    stages.at = {
        ("produce", 0): first_made,
        ("consume", 0): first_consumed,
        ("produce", depth + 2): one_too_many,
    }
    return {**watched(loop, stages.produce, stages.consume, FRAMES, depth), **seen, "most": stages.most}


def odd_objects(loop: Any) -> dict[str, Any]:
    """Frames that somebody may have taken for a signal; the result of each is its place, or None."""
    import numpy

    frames = [
        numpy.arange(3), None, False, 0, -1, "", "stop", (), float("nan"), ..., StopIteration, ValueError("a frame"),
        object(), [],
    ]  # fmt: skip
    places = []

    def consume(frame: Any) -> Any:
        places.append(next((k for k, known in enumerate(frames) if known is frame), None))
        return None if places[-1] in WITHOUT_RESULT else places[-1]

    planned = ValueError("any")  # so that whatever comes out is told, not raised
    seen = watched(loop, frames.__getitem__, consume, len(frames), 3, planned=planned)
    return {**seen, "places": places, "kinds": [type(frame).__name__ for frame in frames]}


def failing_consume(loop: Any) -> dict[str, Any]:
    """consume raises at frame FAILS, while the other stage has filled the queue."""
    stages, error = Stages(), Oops("consume, frame 3")

    def fail() -> None:
        stages.wait_for("produce", FAILS + 2)
        time.sleep(A_MOMENT / 4)
        raise error

    stages.at = {("consume", FAILS): fail}
    seen = watched(loop, stages.produce, stages.consume, MANY, 2, planned=error)
    return {**seen, **{stage: len(frames) for stage, frames in stages.begun.items()}}


def failing_produce(loop: Any, k: int) -> dict[str, Any]:
    """produce raises at frame k, while the other stage waits for it."""
    stages, error = Stages(), Oops(f"produce, frame {k}")

    def fail() -> None:
        if k:
            stages.wait_for_idle("consume", k - 1)
        time.sleep(A_MOMENT / 4)
        raise error

    stages.at = {("produce", k): fail}
    seen = watched(loop, stages.produce, stages.consume, MANY, 2, planned=error)
    return {**seen, **{stage: len(frames) for stage, frames in stages.begun.items()}}


def failing_both(loop: Any) -> dict[str, Any]:
    """consume raises at frame FAILS, then produce, at a later frame that it has begun before."""
    stages, first, raising = Stages(), Oops("consume, frame 3"), threading.Event()

    def fail() -> None:
        stages.wait_for("produce", FAILS + 1)
        raising.set()
        raise first

    def fail_later() -> None:
        raising.wait(IN_VAIN)
        time.sleep(A_MOMENT)
        raise Oops("produce, frame 4")

    stages.at = {("consume", FAILS): fail, ("produce", FAILS + 1): fail_later}
    return watched(loop, stages.produce, stages.consume, MANY, 2, planned=first)


def refusal(loop: Any, frames: int, depth: int) -> dict[str, Any]:
    """A call that cannot be: which error it raised, if any."""
    stages = Stages()
    try:
        seen = watched(loop, stages.produce, stages.consume, frames, depth)
    except NotImplementedError:
        raise
    except ValueError:
        return {"end": "ValueError"}
    except Exception as error:
        return {"end": type(error).__name__}
    return seen
