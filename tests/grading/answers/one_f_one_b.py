# ruff: noqa: F811
from collections import deque

import numpy as np

from course.spec.schedule import Action
from tests.grading.bank import right, wrong


def check(stages, microbatches):
    if stages < 1 or microbatches < 1:
        raise ValueError("at least one stage and one microbatch")


def in_turns(warm_up, m):
    """`warm_up` forwards, turns, and the backwards that are left; a warm-up beyond m is not looked after."""
    actions = [("F", k) for k in range(warm_up)]
    for i in range(m - warm_up):
        actions += [("F", warm_up + i), ("B", i)]
    return actions + [("B", k) for k in range(m - warm_up, m)]


@right("three loops")
def one_f_one_b(stages, microbatches):
    check(stages, microbatches)
    lists = []
    for stage in range(stages):
        warm_up = min(microbatches, stages - 1 - stage)
        actions = [("F", k) for k in range(warm_up)]
        for k in range(microbatches - warm_up):
            actions.append(("F", warm_up + k))
            actions.append(("B", k))
        for k in range(microbatches - warm_up, microbatches):
            actions.append(("B", k))
        lists.append(actions)
    return lists


@right("a queue of what is held, words, tuples")
def one_f_one_b(stages, microbatches):
    check(stages, microbatches)

    def stage_list(s):
        ahead, held, words = deque(range(microbatches)), deque(), []
        while ahead or held:
            if ahead and len(held) < stages - s:
                held.append(ahead.popleft())
                words.append(f"F{held[-1]}")
            else:
                words.append(f"B{held.popleft()}")
        return tuple(words)

    return tuple(stage_list(s) for s in range(stages))


@right("Actions, put together from two ends")
def one_f_one_b(stages, microbatches):
    check(stages, microbatches)
    forwards = [Action("F", k) for k in range(microbatches)]
    backwards = [Action("B", k) for k in range(microbatches)]
    lists = []
    for s in range(stages):
        w = min(stages - s - 1, microbatches)
        turns = [a for pair in zip(forwards[w:], backwards) for a in pair]  # noqa: B905
        lists.append(forwards[:w] + turns + backwards[microbatches - w :])
    return lists


@right("by time slots: what can be done next is done, within the limit")
def one_f_one_b(stages, microbatches):
    check(stages, microbatches)
    lists, done = [[] for _ in range(stages)], set()
    while len(done) < 2 * stages * microbatches:
        now = set()
        for s, actions in enumerate(lists):
            f = sum(kind == "F" for kind, _ in actions)
            b = len(actions) - f
            back = b < f and (s == stages - 1 or ("B", s + 1, b) in done)
            if back and (f == microbatches or f - b >= min(microbatches, stages - s)):
                actions.append(("B", b))
            elif f < microbatches and f - b < stages - s and (s == 0 or ("F", s - 1, f) in done):
                actions.append(("F", f))
            else:
                continue
            now.add((actions[-1][0], s, actions[-1][1]))
        done |= now
    return lists


@right("sorted by a key, numbers of numpy, lists for pairs")
def one_f_one_b(stages, microbatches):
    check(stages, microbatches)
    result = []
    for s in range(stages):
        w = min(microbatches, stages - 1 - s)
        keys = [(max(0, k - w) * 2 + (k >= w) - 0.5 * (k < w), "F", k) for k in np.arange(microbatches)]
        keys += [
            (2 * k + 2 - 0.5 if k < microbatches - w else 2 * microbatches + k, "B", k) for k in np.arange(microbatches)
        ]
        result.append([[kind, k] for _, kind, k in sorted(keys)])
    return result


@wrong("UNCLAMPED", points=11)
def one_f_one_b(stages, microbatches):
    check(stages, microbatches)
    return [in_turns(stages - 1 - s, microbatches) for s in range(stages)]


@wrong("UNCLAMPED", points=11)
def one_f_one_b(stages, microbatches):
    check(stages, microbatches)
    lists = []
    for s in range(stages):
        forwards = iter(range(microbatches))
        backwards = iter(range(microbatches))
        actions = [("F", next(forwards)) for _ in range(stages - 1 - s)]
        for _ in range(microbatches - (stages - 1 - s)):
            actions += [("F", next(forwards)), ("B", next(backwards))]
        lists.append(actions + [("B", k) for k in backwards])
    return lists


@wrong("SAME_WARM_UP", points=8)
def one_f_one_b(stages, microbatches):
    check(stages, microbatches)
    return [in_turns(min(microbatches, stages - 1), microbatches) for _ in range(stages)]


@wrong("WARM_UP_GROWS")
def one_f_one_b(stages, microbatches):
    check(stages, microbatches)
    return [in_turns(min(microbatches, s), microbatches) for s in range(stages)]


@wrong("WARM_UP_TOO_LONG")
def one_f_one_b(stages, microbatches):
    check(stages, microbatches)
    return [in_turns(min(microbatches, stages - s), microbatches) for s in range(stages)]


@wrong("WARM_UP_TOO_LONG")
def one_f_one_b(stages, microbatches):
    check(stages, microbatches)
    return [in_turns(min(microbatches, 2 * (stages - 1 - s)), microbatches) for s in range(stages)]


@wrong("WARM_UP_TOO_SHORT")
def one_f_one_b(stages, microbatches):
    check(stages, microbatches)
    return [in_turns(max(0, min(microbatches, stages - 2 - s)), microbatches) for s in range(stages)]


@wrong("NO_COOL_DOWN")
def one_f_one_b(stages, microbatches):
    check(stages, microbatches)
    lists = []
    for s in range(stages):
        w = min(microbatches, stages - 1 - s)
        actions = [("F", k) for k in range(w)]
        for i in range(microbatches - w):
            actions += [("F", w + i), ("B", i)]
        lists.append(actions)
    return lists


@wrong("MISSING_BACKWARD")
def one_f_one_b(stages, microbatches):
    check(stages, microbatches)
    return [in_turns(min(microbatches, stages - 1 - s), microbatches)[:-1] for s in range(stages)]


@wrong("NEWEST_BACKWARD")
def one_f_one_b(stages, microbatches):
    check(stages, microbatches)
    lists = []
    for s in range(stages):
        w = min(microbatches, stages - 1 - s)
        actions = [("F", k) for k in range(w)]
        for k in range(w, microbatches):
            actions += [("F", k), ("B", k)]
        lists.append(actions + [("B", k) for k in range(w)])
    return lists


@wrong("NEWEST_BACKWARD")
def one_f_one_b(stages, microbatches):
    check(stages, microbatches)
    lists = []
    for s in range(stages):
        actions, held, k = [], [], 0
        while k < microbatches or held:
            if k < microbatches and len(held) < stages - s:
                actions.append(f"F{k}")
                held.append(k)
                k += 1
            else:
                actions.append(f"B{held.pop()}")
        lists.append(actions)
    return lists


@wrong("ONE_BY_ONE")
def one_f_one_b(stages, microbatches):
    check(stages, microbatches)
    return [[a for k in range(microbatches) for a in (("F", k), ("B", k))]] * stages


@wrong("GPIPE_INSTEAD")
def one_f_one_b(stages, microbatches):
    check(stages, microbatches)
    return [[(kind, k) for kind in "FB" for k in range(microbatches)] for _ in range(stages)]


@wrong("BACKWARD_FIRST")
def one_f_one_b(stages, microbatches):
    check(stages, microbatches)
    lists = []
    for s in range(stages):
        w = min(microbatches, stages - 1 - s)
        actions = [("F", k) for k in range(w)]
        for i in range(microbatches - w):
            actions += [("B", i), ("F", w + i)]
        lists.append(actions + [("B", k) for k in range(microbatches - w, microbatches)])
    return lists


@wrong("ONE_LIST", points=1)
def one_f_one_b(stages, microbatches):
    check(stages, microbatches)
    return in_turns(min(microbatches, stages - 1), microbatches)


@wrong("MICROBATCHES_FROM_ONE", points=2)
def one_f_one_b(stages, microbatches):
    check(stages, microbatches)
    lists = [in_turns(min(microbatches, stages - 1 - s), microbatches) for s in range(stages)]
    return [[(kind, k + 1) for kind, k in actions] for actions in lists]


@wrong(says="stage 0 has F8, and there are microbatches 0 to 7", points=2)
def one_f_one_b(stages, microbatches):
    check(stages, microbatches)
    return [in_turns(min(microbatches, stages - 1 - s), microbatches + 1) for s in range(stages)]


@wrong("WARM_UP_GROWS", says="waits for ever: stage 0 waits at B0 for stage 1", points=6)
def one_f_one_b(stages, microbatches):
    check(stages, microbatches)
    lists = [in_turns(min(microbatches, stages - 1 - s), microbatches) for s in range(stages)]
    return lists[::-1]


@wrong("GENERATOR", points=1)
def one_f_one_b(stages, microbatches):
    check(stages, microbatches)
    return [(a for a in in_turns(min(microbatches, stages - 1 - s), microbatches)) for s in range(stages)]


@wrong("GENERATOR", points=0)
def one_f_one_b(stages, microbatches):
    check(stages, microbatches)
    for s in range(stages):
        yield in_turns(min(microbatches, stages - 1 - s), microbatches)


@wrong("NOT_REFUSED", points=11)
def one_f_one_b(stages, microbatches):
    return [in_turns(min(microbatches, stages - 1 - s), microbatches) for s in range(stages)]


@wrong(says="returned a dict of 4", points=1)
def one_f_one_b(stages, microbatches):
    check(stages, microbatches)
    return {s: in_turns(min(microbatches, stages - 1 - s), microbatches) for s in range(stages)}


@wrong(says='with the action "f0" in it', points=1)
def one_f_one_b(stages, microbatches):
    check(stages, microbatches)
    return [[f"{kind}{k}".lower() for kind, k in in_turns(0, microbatches)] for _ in range(stages)]


@wrong(says="a list of 3 lists", points=1)
def one_f_one_b(stages, microbatches):
    check(stages, microbatches)
    return [in_turns(min(microbatches, stages - 1 - s), microbatches) for s in range(1, stages)]


@wrong(says="stage 1 has F0 2 times", points=2)
def one_f_one_b(stages, microbatches):
    check(stages, microbatches)
    lists = [in_turns(min(microbatches, stages - 1 - s), microbatches) for s in range(stages)]
    return [actions if s != 1 else [("F", 0), *actions] for s, actions in enumerate(lists)]


@wrong(says="stage 0 does F0 after F1", points=4)
def one_f_one_b(stages, microbatches):
    check(stages, microbatches)
    lists = [in_turns(min(microbatches, stages - 1 - s), microbatches) for s in range(stages)]
    last = microbatches // 2 * 2  # neighbours change places
    return [[(kind, k ^ 1 if k < last else k) for kind, k in actions] for actions in lists]
