"""Checks of `peak_activations`: the most that one stage holds at a time."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from course.grading.bench import Bench, Seat
from course.grading.check import Check, Finding
from course.grading.checks.hello import lazy
from course.grading.mistakes import Mistake
from course.grading.mistakes.lesson_07 import (
    BACKWARDS_COUNTED,
    COUNTED_TOO_LATE,
    LEFT_AT_END,
    LONGEST_RUN,
    NEVER_FREED,
    WARM_UP_ONLY,
)
from course.grading.plain import real_number, type_in_words

NAME = "peak_activations"
Actions = tuple[tuple[str, int], ...]


def _of(text: str) -> Actions:
    return tuple((word[0], int(word[1:])) for word in text.split())


BY_HAND: tuple[Actions, ...] = (
    _of("F0 F1 B0 F2 B1 F3 B2 B3"),
    _of("F0 B0 F1 F2 F3 B1 B3 B2"),
    _of("F0 F1 B0 F2 F3 B1 F4 F5 B2 B3 B4 B5"),
    _of("F0 F1 F2 F3 B3 B2 B1 B0"),
    _of("F0 B0"),
    _of("F0 F1 F2 B0 B1 F3 F4 B2 F5 B3 B4 B5"),
)
NOTHING: tuple[Actions, ...] = ((),)


def _random() -> tuple[Actions, ...]:
    """Thirty lists in which microbatches leave in any order."""
    source, cases = random.Random("peak"), list[Actions]()
    for _ in range(30):
        m, held, actions = source.randint(1, 12), list[int](), list[tuple[str, int]]()
        ahead = list(range(m))
        while ahead or held:
            if ahead and (not held or source.random() < 0.5):
                held.append(ahead.pop(0))
                actions.append(("F", held[-1]))
            else:
                actions.append(("B", held.pop(source.randrange(len(held)))))
        cases.append(tuple(actions))
    return tuple(cases)


def peak(actions: Actions) -> int:
    """The oracle."""
    return max(_course(actions), default=0)


def _course(actions: Actions) -> list[int]:
    """How many are held after each action."""
    held, course = 0, []
    for kind, _ in actions:
        held += 1 if kind == "F" else -1
        course.append(held)
    return course


def _runs(actions: Actions, kind: str = "F") -> list[int]:
    return [len(list(run)) for found, run in groupby(k for k, _ in actions) if found == kind]


_GUESSES: tuple[tuple[Mistake, Callable[[Actions], int]], ...] = (
    (NEVER_FREED, lambda actions: sum(kind == "F" for kind, _ in actions)),
    (BACKWARDS_COUNTED, len),
    (LEFT_AT_END, lambda actions: 0),
    (LONGEST_RUN, lambda actions: max(_runs(actions))),
    (WARM_UP_ONLY, lambda actions: _runs(actions)[0]),
    (WARM_UP_ONLY, lambda actions: _runs(actions)[0] - 1),
    (COUNTED_TOO_LATE, lambda actions: peak(actions) - 1),
    (COUNTED_TOO_LATE, lambda actions: peak(actions) + 1),
    (COUNTED_TOO_LATE, lambda actions: max((held for held, a in zip(_course(actions), actions, strict=True)
                                            if a[0] == "B"), default=0)),
    (COUNTED_TOO_LATE, lambda actions: max(0, *_course(actions)[1::2])),
)  # fmt: skip


def _probe(learner: Any, cases: tuple[Actions, ...], seat: Seat) -> Any:
    return [learner(list(actions)) for actions in cases]


def _compared(bench: Bench, cases: tuple[Actions, ...]) -> Finding | None:
    values = bench.run(_probe, cases, n=1).values[0]
    numbers = [real_number(value) for value in values]
    for actions, value, number in zip(cases, values, numbers, strict=True):
        call = f"{NAME}([{_shown(actions)}])"
        if number is None:
            return Finding(f"{call} returned {type_in_words(value)}", "an int", "Return one number.", lazy(value))
        if number != peak(actions):
            advice = "Write under each action how many are held after it."
            return Finding(f"{call} returned {number:g}", f"{peak(actions)}", advice, _mistake(cases, numbers))
    return None


def _shown(actions: Actions) -> str:
    return " ".join(f"{kind}{k}" for kind, k in actions)


def _mistake(cases: Sequence[Actions], numbers: Sequence[float | None]) -> Mistake | None:
    asked = [(actions, number) for actions, number in zip(cases, numbers, strict=True) if actions]
    return next((m for m, guess in _GUESSES if asked and all(guess(a) == number for a, number in asked)), None)


def _by_hand(bench: Bench) -> Finding | None:
    return _compared(bench, BY_HAND)


def _many(bench: Bench) -> Finding | None:
    return _compared(bench, _random())


def _nothing(bench: Bench) -> Finding | None:
    return _compared(bench, NOTHING)


HAND = "six lists counted by hand"

CHECKS = {
    NAME: (
        Check(HAND, 2, _by_hand, "the most microbatches between their forward and their backward"),
        Check("thirty random lists", 2, _many, "the same", needs=HAND),
        Check("an empty list", 1, _nothing, "0", needs=HAND),
    )
}
