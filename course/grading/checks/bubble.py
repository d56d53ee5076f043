"""Checks of `bubble_fraction`: the idle share of a step, in closed form."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

from course.grading.bench import Bench, Seat
from course.grading.check import Check, Finding
from course.grading.checks.alone import refusals
from course.grading.checks.hello import lazy
from course.grading.mistakes import Mistake
from course.grading.mistakes.lesson_07 import (
    BUSY_SHARE,
    CHUNKS_IGNORED,
    CHUNKS_LENGTHEN,
    IN_PERCENT,
    OF_IDEAL_TIME,
    ONE_STEP_LONGER,
    STAGES_NOT_STEPS,
)
from course.grading.plain import real_number, type_in_words

NAME = "bubble_fraction"
Case = tuple[int, ...]

PLAIN: tuple[Case, ...] = ((4, 8), (3, 4), (8, 32), (2, 1), (5, 2), (16, 8))
EDGES: tuple[Case, ...] = ((1, 4), (6, 1), (1, 1))
CHUNKED: tuple[Case, ...] = ((4, 8, 2), (8, 32, 4), (2, 2, 3), (3, 9, 1), (1, 4, 2))
IMPOSSIBLE: tuple[Case, ...] = ((0, 4), (4, 0), (-1, 4), (4, 8, 0))


def _random() -> tuple[Case, ...]:
    source = random.Random("bubble")
    return tuple((source.randint(2, 64), source.randint(1, 512)) for _ in range(20))


def share(p: int, m: int, v: int = 1) -> float:
    """The oracle: (p-1) of (v m + p - 1) slots are empty."""
    return (p - 1) / (v * m + p - 1)


_GUESSES: tuple[tuple[Mistake, Callable[[int, int, int], float]], ...] = (
    (OF_IDEAL_TIME, lambda p, m, v: (p - 1) / m),
    (OF_IDEAL_TIME, lambda p, m, v: (p - 1) / (v * m)),
    (ONE_STEP_LONGER, lambda p, m, v: (p - 1) / (v * m + p)),
    (ONE_STEP_LONGER, lambda p, m, v: (p - 1) / (m + p)),
    (STAGES_NOT_STEPS, lambda p, m, v: p / (v * m + p)),
    (STAGES_NOT_STEPS, lambda p, m, v: p / (v * m + p - 1)),
    (STAGES_NOT_STEPS, lambda p, m, v: p / (m + p)),
    (STAGES_NOT_STEPS, lambda p, m, v: p / (m + p - 1)),
    (BUSY_SHARE, lambda p, m, v: v * m / (v * m + p - 1)),
    (BUSY_SHARE, lambda p, m, v: m / (m + p - 1)),
    (IN_PERCENT, lambda p, m, v: 100 * share(p, m, v)),
    (IN_PERCENT, lambda p, m, v: 100 * share(p, m)),
)
_WITH_CHUNKS: tuple[tuple[Mistake, Callable[[int, int, int], float]], ...] = (
    (CHUNKS_IGNORED, lambda p, m, v: share(p, m)),
    (OF_IDEAL_TIME, lambda p, m, v: share(p, m) / v),
    (CHUNKS_LENGTHEN, lambda p, m, v: (p * v - 1) / (m + p * v - 1)),
    (CHUNKS_LENGTHEN, lambda p, m, v: (p - 1) * v / (m + (p - 1) * v)),
    (CHUNKS_LENGTHEN, lambda p, m, v: (p - 1) * v / (m + p - 1)),
    (CHUNKS_LENGTHEN, lambda p, m, v: (p - 1) / (m / v + p - 1)),
    (CHUNKS_LENGTHEN, lambda p, m, v: (p * v - 1) / (m * v + p * v - 1)),
)


def _probe(learner: Any, cases: tuple[Case, ...], seat: Seat) -> Any:
    return [learner(*case) for case in cases]


def _compared(bench: Bench, cases: tuple[Case, ...]) -> Finding | None:
    values = bench.run(_probe, cases, n=1).values[0]
    numbers = [real_number(value) for value in values]
    for case, value, number in zip(cases, values, numbers, strict=True):
        call = f"{NAME}({', '.join(map(str, case))})"
        if number is None:
            return Finding(f"{call} returned {type_in_words(value)}", "a number", "Return one number.", lazy(value))
        if not _same(number, share(*case)):
            guesses = _GUESSES + _WITH_CHUNKS * (cases is CHUNKED)
            mistake = next((m for m, guess in guesses if _explains(guess, cases, numbers)), None)
            advice = "Draw this pipeline: a row a stage, a square a forward. Count the squares, and the empty ones."
            return Finding(f"{call} returned {number:.6g}", f"{share(*case):.6g}", advice, mistake)
    return None


def _explains(guess: Callable[[int, int, int], float], cases: tuple[Case, ...], numbers: list[float | None]) -> bool:
    pairs = zip(cases, numbers, strict=True)
    return all(n is not None and _same(n, guess(*case, *(1,) * (3 - len(case)))) for case, n in pairs)


def _same(number: float, want: float) -> bool:
    return math.isclose(number, want, rel_tol=1e-6, abs_tol=1e-9)


def _by_hand(bench: Bench) -> Finding | None:
    return _compared(bench, PLAIN)


def _many(bench: Bench) -> Finding | None:
    return _compared(bench, _random())


def _edges(bench: Bench) -> Finding | None:
    return _compared(bench, EDGES)


def _chunked(bench: Bench) -> Finding | None:
    return _compared(bench, CHUNKED)


def _impossible(bench: Bench) -> Finding | None:
    return refusals(bench, NAME, IMPOSSIBLE)


HAND = "six pipelines worked out by hand"

CHECKS = {
    NAME: (
        Check(HAND, 2, _by_hand, "idle time over the time of the whole step"),
        Check("twenty random pipelines", 1, _many, "the same", needs=HAND),
        Check("one stage, one microbatch", 1, _edges, "0 for one stage", needs=HAND),
        Check("several chunks a device", 1, _chunked, "a share with shorter filling and draining", needs=HAND),
        Check("the impossible is refused", 1, _impossible, "a ValueError"),
    )
}
