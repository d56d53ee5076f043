"""Checks of `kv_cache_bytes`: plain arithmetic, on models that exist and on random ones."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from course.grading.bench import Bench, Seat
from course.grading.check import Check, Finding
from course.grading.checks.cost import outcome
from course.grading.checks.hello import lazy
from course.grading.mistakes import Mistake
from course.grading.mistakes.any_exercise import NOT_REFUSED, OTHER_ERROR
from course.grading.mistakes.lesson_08 import (
    CACHE_ELEMENTS,
    CACHE_IN_BITS,
    CACHE_KEYS_ONLY,
    CACHE_NOT_SPLIT,
    CACHE_ONE_LAYER,
    CACHE_ONE_SEQUENCE,
    CACHE_SQUARED,
)
from course.grading.plain import real_number, type_in_words
from course.spec.inference import kv_cache_bytes

NAMES = ("layers", "kv_heads", "head_width", "tokens", "batch", "dtype_bytes", "tp")
Case = tuple[int, ...]  # in the order of NAMES; one that stops after `tokens` leaves the others out

ALONE: tuple[Case, ...] = ((4, 4, 32, 64), (2, 1, 16, 0), (32, 8, 128, 8192, 4, 2, 1), (3, 5, 7, 11, 13, 4, 1))
SPLIT: tuple[Case, ...] = ((80, 8, 128, 4096, 16, 2, 8), (3, 6, 7, 11, 5, 4, 3), (126, 8, 128, 131072, 1, 1, 4))
IMPOSSIBLE: tuple[Case, ...] = (
    (4, 3, 32, 64, 1, 2, 2),
    (4, 8, 32, 64, 1, 2, 0),
    (4, 8, 32, -1, 1, 2, 1),
    (0, 8, 32, 64, 1, 2, 1),
    (4, 8, 32, 64, 1, 2, 16),
)


def _random() -> tuple[Case, ...]:
    source = random.Random("caches")
    cases = []
    for _ in range(20):
        tp = source.choice((1, 2, 3, 4, 8))
        sizes = (source.randint(1, 128), tp * source.randint(1, 16), source.choice((32, 64, 96, 128)))
        cases.append((*sizes, source.randint(1, 10**6), source.randint(1, 512), source.choice((1, 2, 4)), tp))
    return tuple(cases)


def _named(case: Case) -> dict[str, int]:
    return dict(zip(NAMES, case, strict=False))


def _shown(case: Case) -> str:
    return f"kv_cache_bytes({', '.join(f'{name}={value}' for name, value in _named(case).items())})"


def _filled(case: Case) -> Case:
    return (*case, *(1, 2, 1)[len(case) - 4 :])


Formula = Callable[[int, int, int, int, int, int, int], float]

_GUESSES: tuple[tuple[Mistake, Formula], ...] = (
    (CACHE_KEYS_ONLY, lambda layers, h, d, t, b, size, tp: layers * h // tp * d * t * b * size),
    (CACHE_ONE_LAYER, lambda layers, h, d, t, b, size, tp: 2 * h // tp * d * t * b * size),
    (CACHE_ONE_SEQUENCE, lambda layers, h, d, t, b, size, tp: 2 * layers * h // tp * d * t * size),
    (CACHE_NOT_SPLIT, lambda layers, h, d, t, b, size, tp: 2 * layers * h * d * t * b * size),
    (CACHE_IN_BITS, lambda layers, h, d, t, b, size, tp: 2 * layers * h // tp * d * t * b * size / 8),
    (CACHE_IN_BITS, lambda layers, h, d, t, b, size, tp: 16 * layers * h // tp * d * t * b * size),
    (CACHE_ELEMENTS, lambda layers, h, d, t, b, size, tp: 2 * layers * h // tp * d * t * b),
    (CACHE_SQUARED, lambda layers, h, d, t, b, size, tp: 2 * layers * h // tp * d * t * t * b * size),
    (CACHE_SQUARED, lambda layers, h, d, t, b, size, tp: 2 * layers * h // tp * t * t * b * size),
)


def _probe(learner: Any, cases: tuple[Case, ...], seat: Seat) -> Any:
    return [learner(**_named(case)) for case in cases]


def _probe_refusals(learner: Any, cases: tuple[Case, ...], seat: Seat) -> Any:
    return [outcome(lambda case=case: learner(**_named(case))) for case in cases]  # type: ignore[misc]


def _compared(bench: Bench, cases: tuple[Case, ...], all_cases: tuple[Case, ...]) -> Finding | None:
    for case, value in zip(cases, bench.run(_probe, cases, n=1).values[0], strict=True):
        number, want = real_number(value), kv_cache_bytes(**_named(case))
        if number is None:
            got = f"{_shown(case)} returned {type_in_words(value)}"
            return Finding(got, "a number of bytes", "Return one number.", lazy(value))
        if number != want:
            advice = "Write down what one token leaves in one layer, then multiply."
            return Finding(f"{_shown(case)} returned {number:.9g}", f"{want}", advice, _mistake(bench, all_cases))
    return None


def _mistake(bench: Bench, cases: tuple[Case, ...]) -> Mistake | None:
    numbers = [real_number(value) for value in bench.run(_probe, cases, n=1).values[0]]
    for mistake, guess in _GUESSES:
        if all(number == guess(*_filled(case)) for number, case in zip(numbers, cases, strict=True)):
            return mistake
    return None


def _alone(bench: Bench) -> Finding | None:
    return _compared(bench, ALONE, ALONE)


def _split(bench: Bench) -> Finding | None:
    return _compared(bench, SPLIT, SPLIT)


def _many(bench: Bench) -> Finding | None:
    return _compared(bench, _random(), SPLIT)


def _refuses(bench: Bench) -> Finding | None:
    for case, (error, value) in zip(IMPOSSIBLE, bench.run(_probe_refusals, IMPOSSIBLE, n=1).values[0], strict=True):
        if not error:
            return Finding(f"{_shown(case)} returned {type_in_words(value)}", "", "", NOT_REFUSED)
        if error != "ValueError":
            return Finding(f"{_shown(case)} raised {error}", "", "", OTHER_ERROR)
    return None


WHOLE, SHARED = "the cache of one rank that has all heads", "shared out over tp ranks"

CHECKS = {
    "kv_cache_bytes": (
        Check(WHOLE, 2, _alone, "the bytes of all keys and values"),
        Check(SHARED, 1, _split, "the bytes a rank", needs=WHOLE),
        Check("twenty random models", 1, _many, "the same", needs=SHARED),
        Check("the impossible is refused", 1, _refuses, "a ValueError", needs=WHOLE),
    )
}
