"""Checks of `attainable`: the lower of two limits, on machines with numbers that give each mistake away."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

from course.grading.bench import Bench, Seat, Trouble
from course.grading.check import Check, Finding
from course.grading.checks.alone import asked, raised, refusals
from course.grading.checks.hello import lazy
from course.grading.mistakes import Mistake
from course.grading.mistakes.lesson_01 import (
    ROOF_BITS,
    ROOF_DIVIDES,
    ROOF_FLAT,
    ROOF_FRACTION,
    ROOF_LARGER,
    ROOF_NO_OVERLAP,
    ROOF_RIDGE,
    ROOF_SLOPE_ONLY,
    ROOF_SUM,
)
from course.grading.plain import real_number, type_in_words

Case = tuple[float, float, float]

# Left of the ridge, right of it, and with ints.
BY_HAND: tuple[Case, ...] = ((0.5, 100e9, 20e9), (25.0, 100e9, 20e9), (2, 64 * 10**9, 8 * 10**9), (0.25, 3e12, 2e12))
CORNERS: tuple[Case, ...] = ((5.0, 100e9, 20e9), (0.0, 100e9, 20e9), (0, 5, 7))
IMPOSSIBLE: tuple[Case, ...] = ((-1.0, 100e9, 20e9), (1.0, -100e9, 20e9), (1.0, 100e9, -20e9), (-1.0, 100e9, -20e9))


def roof(intensity: float, peak_flops: float, bandwidth: float) -> float:
    """The oracle."""
    return min(peak_flops, intensity * bandwidth)


def _random() -> tuple[Case, ...]:
    source = random.Random("roofline")
    return tuple(
        (10 ** source.uniform(-2, 3), 10 ** source.uniform(9, 15), 10 ** source.uniform(9, 13)) for _ in range(30)
    )


def _probe(learner: Any, cases: tuple[Case, ...], seat: Seat) -> Any:
    return [learner(*case) for case in cases]


_GUESSES: tuple[tuple[Mistake, Callable[[float, float, float], float]], ...] = (
    (ROOF_LARGER, lambda i, peak, bandwidth: max(peak, i * bandwidth)),
    (ROOF_DIVIDES, lambda i, peak, bandwidth: min(peak, bandwidth / i)),
    (ROOF_DIVIDES, lambda i, peak, bandwidth: bandwidth / i),
    (ROOF_FLAT, lambda i, peak, bandwidth: peak),
    (ROOF_SLOPE_ONLY, lambda i, peak, bandwidth: i * bandwidth),
    (ROOF_SUM, lambda i, peak, bandwidth: peak + i * bandwidth),
    (ROOF_NO_OVERLAP, lambda i, peak, bandwidth: 1 / (1 / peak + 1 / (i * bandwidth))),
    (ROOF_RIDGE, lambda i, peak, bandwidth: peak / bandwidth),
    (ROOF_RIDGE, lambda i, peak, bandwidth: min(i, peak / bandwidth)),
    (ROOF_FRACTION, lambda i, peak, bandwidth: min(1.0, i * bandwidth / peak)),
    (ROOF_BITS, lambda i, peak, bandwidth: min(peak, i * bandwidth * 8)),
    (ROOF_BITS, lambda i, peak, bandwidth: min(peak, i * bandwidth / 8)),
)


def _compared(bench: Bench, cases: tuple[Case, ...]) -> Finding | None:
    values = asked(bench, _probe, cases)
    if isinstance(values, Trouble):
        return Finding(f"for one of {', '.join(map(_called, cases[:3]))} {raised(values)}", "", values.advice)
    for case, value in zip(cases, values, strict=True):
        number = real_number(value)
        if number is None:
            return Finding(f"{_called(case)} returned {type_in_words(value)}", "a number", "", lazy(value))
        want = roof(*case)
        if not math.isclose(number, want, rel_tol=1e-5, abs_tol=1e-12):
            advice = "Work out both limits for this case, in FLOP per second."
            return Finding(f"{_called(case)} returned {number:.6g}", f"{want:.6g}", advice, _mistake(bench))
    return None


def _called(case: Case) -> str:
    return f"attainable({', '.join(f'{number:.4g}' for number in case)})"


def _mistake(bench: Bench) -> Mistake | None:
    cases = (*BY_HAND, *_random())
    numbers = []
    for some in (BY_HAND, _random()):
        values = asked(bench, _probe, some)
        if isinstance(values, Trouble):
            return None
        numbers += [real_number(value) for value in values]
    for mistake, guess in _GUESSES:
        pairs = zip(numbers, [guess(*case) for case in cases], strict=True)
        if all(number is not None and math.isclose(number, want, rel_tol=1e-5) for number, want in pairs):
            return mistake
    return None


def _by_hand(bench: Bench) -> Finding | None:
    return _compared(bench, BY_HAND)


def _many(bench: Bench) -> Finding | None:
    return _compared(bench, _random())


def _corners(bench: Bench) -> Finding | None:
    return _compared(bench, CORNERS)


def _impossible(bench: Bench) -> Finding | None:
    return refusals(bench, "attainable", IMPOSSIBLE)


_HAND = "four cases worked out by hand"

CHECKS = {
    "attainable": (
        Check(_HAND, 2, _by_hand, "the lower of the two limits, in FLOP per second"),
        Check("thirty random machines", 2, _many, "the same", needs=_HAND),
        Check("where both limits meet, and intensity 0", 1, _corners, "the height of the roof there", needs=_HAND),
        Check("a negative argument is refused", 1, _impossible, "ValueError"),
    )
}
