# ruff: noqa: F811
from collections import deque

from course.spec.schedule import Action
from course.spec.schedule import interleaved_1f1b as library
from tests.grading.bank import right, wrong


def check(stages, microbatches, chunks):
    if min(stages, microbatches, chunks) < 1 or microbatches % stages:
        raise ValueError("microbatches must be a multiple of stages")


def in_turns(forwards, backwards, warm_up):
    actions = list(forwards[:warm_up])
    for f, b in zip(forwards[warm_up:], backwards, strict=False):
        actions += [f, b]
    return actions + list(backwards[len(forwards) - warm_up :])


def in_rounds(p, m, v):
    forwards = [("F", r + i, c) for r in range(0, m, p) for c in range(v) for i in range(p)]
    backwards = [("B", r + i, c) for r in range(0, m, p) for c in reversed(range(v)) for i in range(p)]
    return forwards, backwards


@right("numbered, with divmod")
def interleaved_1f1b(stages, microbatches, chunks):
    check(stages, microbatches, chunks)
    total = microbatches * chunks

    def action(kind, j):
        round_, rest = divmod(j, stages * chunks)
        chunk, place = divmod(rest, stages)
        return kind, round_ * stages + place, chunk if kind == "F" else chunks - 1 - chunk

    lists = []
    for rank in range(stages):
        warm_up = min(total, (chunks - 1) * stages + 2 * (stages - 1 - rank))
        actions = [action("F", j) for j in range(warm_up)]
        for j in range(total - warm_up):
            actions += [action("F", warm_up + j), action("B", j)]
        lists.append(actions + [action("B", j) for j in range(total - warm_up, total)])
    return lists


@right("whole orders first, then put together; Actions")
def interleaved_1f1b(stages, microbatches, chunks):
    check(stages, microbatches, chunks)
    forwards, backwards = in_rounds(stages, microbatches, chunks)
    result = []
    for rank in range(stages):
        w = min(len(forwards), (chunks - 1) * stages + 2 * (stages - 1 - rank))
        actions = in_turns(forwards, backwards, w)
        result.append(tuple(Action(*a) for a in actions))
    return tuple(result)


@right("two queues and a limit, words")
def interleaved_1f1b(stages, microbatches, chunks):
    check(stages, microbatches, chunks)
    lists = []
    for rank in range(stages):
        ahead, back = map(deque, in_rounds(stages, microbatches, chunks))
        most = (chunks - 1) * stages + 2 * (stages - 1 - rank) + 1
        words, held = [], 0
        while back:
            kind, k, c = ahead.popleft() if ahead and held < most else back.popleft()
            held += 1 if kind == "F" else -1
            words.append(f"{kind}{k}.{c}")
        lists.append(words)
    return lists


@right("words, without the chunk where it is 0")
def interleaved_1f1b(stages, microbatches, chunks):
    check(stages, microbatches, chunks)
    return [[repr(action) for action in actions] for actions in library(stages, microbatches, chunks)]


@wrong("ONE_CHUNK_ONLY", points=2)
def interleaved_1f1b(stages, microbatches, chunks):
    check(stages, microbatches, chunks)
    return library(stages, microbatches, 1)


@wrong("PIECE_NOT_CHUNK", points=2)
def interleaved_1f1b(stages, microbatches, chunks):
    check(stages, microbatches, chunks)
    lists = library(stages, microbatches, chunks)
    return [[(a.kind, a.microbatch, a.chunk * stages + rank) for a in actions] for rank, actions in enumerate(lists)]


@wrong("CHUNKS_UPWARD", points=4)
def interleaved_1f1b(stages, microbatches, chunks):
    check(stages, microbatches, chunks)
    forwards, _ = in_rounds(stages, microbatches, chunks)
    backwards = [("B", k, c) for _, k, c in forwards]
    total = len(forwards)
    return [
        in_turns(forwards, backwards, min(total, (chunks - 1) * stages + 2 * (stages - 1 - rank)))
        for rank in range(stages)
    ]


@wrong("CHUNK_BY_CHUNK", points=4)
def interleaved_1f1b(stages, microbatches, chunks):
    check(stages, microbatches, chunks)
    forwards = [("F", k, c) for c in range(chunks) for k in range(microbatches)]
    backwards = [("B", k, c) for c in reversed(range(chunks)) for k in range(microbatches)]
    total = len(forwards)
    return [
        in_turns(forwards, backwards, min(total, (chunks - 1) * microbatches + 2 * (stages - 1 - rank)))
        for rank in range(stages)
    ]


@wrong("THROUGH_ALL_CHUNKS", points=4)
def interleaved_1f1b(stages, microbatches, chunks):
    check(stages, microbatches, chunks)
    forwards = [("F", k, c) for k in range(microbatches) for c in range(chunks)]
    backwards = [("B", k, c) for k in range(microbatches) for c in reversed(range(chunks))]
    total = len(forwards)
    return [
        in_turns(forwards, backwards, min(total, (chunks - 1) * stages + 2 * (stages - 1 - rank)))
        for rank in range(stages)
    ]


def warmed(stages, microbatches, chunks, warm_up):
    forwards, backwards = in_rounds(stages, microbatches, chunks)
    return [in_turns(forwards, backwards, min(len(forwards), warm_up(rank))) for rank in range(stages)]


@wrong("PLAIN_WARM_UP")
def interleaved_1f1b(stages, microbatches, chunks):
    check(stages, microbatches, chunks)
    return warmed(stages, microbatches, chunks, lambda rank: stages - 1 - rank)


@wrong("PLAIN_WARM_UP")
def interleaved_1f1b(stages, microbatches, chunks):
    check(stages, microbatches, chunks)
    return warmed(stages, microbatches, chunks, lambda rank: (chunks - 1) * stages + stages - 1 - rank)


@wrong("PLAIN_WARM_UP")
def interleaved_1f1b(stages, microbatches, chunks):
    check(stages, microbatches, chunks)
    return warmed(stages, microbatches, chunks, lambda rank: 2 * (stages - 1 - rank))


@wrong("WARM_UP_TOO_LONG")
def interleaved_1f1b(stages, microbatches, chunks):
    check(stages, microbatches, chunks)
    return warmed(stages, microbatches, chunks, lambda rank: (chunks - 1) * stages + 2 * (stages - 1 - rank) + 1)


@wrong("WARM_UP_TOO_SHORT")
def interleaved_1f1b(stages, microbatches, chunks):
    check(stages, microbatches, chunks)
    return warmed(stages, microbatches, chunks, lambda rank: (chunks - 1) * stages + 2 * max(0, stages - 2 - rank))


@wrong("SAME_WARM_UP")
def interleaved_1f1b(stages, microbatches, chunks):
    check(stages, microbatches, chunks)
    return warmed(stages, microbatches, chunks, lambda rank: (chunks - 1) * stages + 2 * (stages - 1))


@wrong("MISSING_BACKWARD")
def interleaved_1f1b(stages, microbatches, chunks):
    check(stages, microbatches, chunks)
    return [actions[:-1] for actions in library(stages, microbatches, chunks)]


@wrong("BACKWARD_FIRST")
def interleaved_1f1b(stages, microbatches, chunks):
    check(stages, microbatches, chunks)
    lists = []
    for rank in range(stages):
        forwards, backwards = in_rounds(stages, microbatches, chunks)
        w = min(len(forwards), (chunks - 1) * stages + 2 * (stages - 1 - rank))
        actions = forwards[:w]
        for f, b in zip(forwards[w:], backwards, strict=False):
            actions += [b, f]
        lists.append(actions + backwards[len(forwards) - w :])
    return lists


@wrong("ONE_LIST", points=1)
def interleaved_1f1b(stages, microbatches, chunks):
    check(stages, microbatches, chunks)
    return library(stages, microbatches, chunks)[0]


@wrong("MICROBATCHES_FROM_ONE", points=2)
def interleaved_1f1b(stages, microbatches, chunks):
    check(stages, microbatches, chunks)
    lists = library(stages, microbatches, chunks)
    return [[(a.kind, a.microbatch + 1, a.chunk) for a in actions] for actions in lists]


@wrong(says="chunks 0 to 1", points=2)
def interleaved_1f1b(stages, microbatches, chunks):
    check(stages, microbatches, chunks)
    lists = library(stages, microbatches, chunks)
    return [[(a.kind, a.microbatch, a.chunk + 1) for a in actions] for actions in lists]


@wrong("NOT_REFUSED", points=12)
def interleaved_1f1b(stages, microbatches, chunks):
    return library(stages, microbatches, chunks)


@wrong("GENERATOR", points=0)
def interleaved_1f1b(stages, microbatches, chunks):
    yield from library(stages, microbatches, chunks)


@wrong(says="with the action (0, 'F', 0) in it", points=1)
def interleaved_1f1b(stages, microbatches, chunks):
    check(stages, microbatches, chunks)
    return [[(a.microbatch, a.kind, a.chunk) for a in actions] for actions in library(stages, microbatches, chunks)]


@wrong("SAME_WARM_UP")
def interleaved_1f1b(stages, microbatches, chunks):
    check(stages, microbatches, chunks)
    return warmed(stages, microbatches, chunks, lambda rank: microbatches * chunks)


@wrong(says="in interleaved_1f1b(4, 4, 3), stage 2 holds the activations of 12", points=9)
def interleaved_1f1b(stages, microbatches, chunks):
    check(stages, microbatches, chunks)
    everything = microbatches == stages  # as Megatron does it
    return warmed(
        stages,
        microbatches,
        chunks,
        lambda rank: microbatches * chunks if everything else (chunks - 1) * stages + 2 * (stages - 1 - rank),
    )
