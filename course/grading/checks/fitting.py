"""Checks of `fit_alpha_beta`: the line of least relative squares through measured points."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

from course.grading.bench import Bench, Seat
from course.grading.check import Check, Finding
from course.grading.checks.cost import outcome, refused
from course.grading.checks.hello import lazy
from course.grading.mistakes import Mistake
from course.grading.mistakes.lesson_03 import (
    ABSOLUTE_SQUARES,
    BETA_RETURNED,
    LOG_FIT,
    OTHER_WEIGHTS,
    SMALLEST_IS_ALPHA,
    SWAPPED,
    TWO_POINTS,
)
from course.grading.plain import ArrayData, TensorData, real_number, type_in_words

Points = tuple[tuple[float, float], ...]
Pair = tuple[float, float]

SIZES = tuple(1024 * 4**k for k in range(9))  # 1 kB to 64 MB
EXACT: tuple[Points, ...] = tuple(
    tuple((nbytes, alpha + nbytes / bandwidth) for nbytes in SIZES)
    for alpha, bandwidth in ((50e-6, 1e9), (2e-3, 30e6), (4e-6, 40e9))
)
FEW: tuple[Points, ...] = (((1000, 3e-5), (9_000_000, 7e-3)), ((0, 1e-4), (1000, 1.1e-4), (1000, 1.3e-4)))
IMPOSSIBLE: tuple[tuple[str, Points], ...] = (
    ("no points", ()),
    ("one point", ((1000, 1e-4),)),
    ("two points of one size", ((1000, 1e-4), (1000, 2e-4))),
    ("a time of 0", ((1000, 0.0), (2000, 1e-4), (4000, 2e-4))),
    ("a negative time", ((1000, -1e-4), (2000, 1e-4), (4000, 2e-4))),
    ("larger messages that take less time", ((1000, 3e-4), (2000, 2e-4), (4000, 1e-4))),
)


def _noisy() -> tuple[Points, ...]:
    """Measurements whose error is a part of themselves, several of each size, in no order."""
    source = random.Random("links")
    cases = []
    for alpha, bandwidth in ((60e-6, 1.2e9), (8e-6, 20e9), (1e-3, 90e6)):
        points = [(nbytes, (alpha + nbytes / bandwidth) * source.uniform(0.75, 1.4)) for nbytes in SIZES * 2]
        source.shuffle(points)
        cases.append(tuple(points))
    return tuple(cases)


def line(points: Points, weights: Sequence[float]) -> Pair:
    """(intercept, slope) that minimise the sum of (weight * error)^2, from the two normal equations."""
    sums = [math.fsum(w * w * x**k for (x, _), w in zip(points, weights, strict=True)) for k in range(3)]
    right = [math.fsum(w * w * x**k * y for (x, y), w in zip(points, weights, strict=True)) for k in range(2)]
    determinant = sums[0] * sums[2] - sums[1] ** 2
    slope = (sums[0] * right[1] - sums[1] * right[0]) / determinant
    return (right[0] - slope * sums[1]) / sums[0], slope


def fit(points: Points) -> Pair:
    """The oracle."""
    return _bandwidth(line(points, [1 / seconds for _, seconds in points]))


def _bandwidth(pair: Pair) -> Pair:
    return pair[0], 1 / pair[1]


def _weighted(power: float) -> Callable[[Points], Pair]:
    return lambda points: _bandwidth(line(points, [seconds**-power for _, seconds in points]))


def _through_ends(points: Points) -> Pair:
    ordered = sorted(points)
    return _bandwidth(line((ordered[0], ordered[-1]), (1.0, 1.0)))


def _in_given_order(points: Points) -> Pair:
    return _bandwidth(line((points[0], points[-1]), (1.0, 1.0)))


def _log_line(points: Points) -> Pair:
    logs = tuple((math.log(nbytes), math.log(seconds)) for nbytes, seconds in points)
    return line(logs, [1.0] * len(logs))


def _logs(change: Callable[[Pair], Pair]) -> Callable[[Points], Pair]:
    return lambda points: change(_log_line(points))


_GUESSES: tuple[tuple[Mistake, Callable[[Points], Pair]], ...] = (
    (BETA_RETURNED, lambda points: line(points, [1 / seconds for _, seconds in points])),
    (BETA_RETURNED, lambda points: line(points, [1.0] * len(points))),
    (SWAPPED, lambda points: fit(points)[::-1]),
    (SWAPPED, lambda points: line(points, [1 / seconds for _, seconds in points])[::-1]),
    (ABSOLUTE_SQUARES, _weighted(0.0)),
    (OTHER_WEIGHTS, _weighted(0.5)),
    (OTHER_WEIGHTS, _weighted(2.0)),
    (OTHER_WEIGHTS, lambda points: _bandwidth(line(points, [1 / max(nbytes, 1) for nbytes, _ in points]))),
    (LOG_FIT, _logs(lambda pair: (math.exp(pair[0]), 1 / pair[1]))),
    (LOG_FIT, _logs(lambda pair: (math.exp(pair[0]), math.exp(-pair[1])))),
    (LOG_FIT, _logs(lambda pair: (pair[0], 1 / pair[1]))),
    (TWO_POINTS, _through_ends),
    (TWO_POINTS, _in_given_order),
)


def _probe(learner: Any, cases: tuple[Points, ...], seat: Seat) -> Any:
    return [learner([tuple(point) for point in points]) for points in cases]


def _probe_refusal(learner: Any, points: Points, seat: Seat) -> Any:
    return outcome(lambda: learner(list(points)))


def _pair(value: Any) -> Pair | None:
    """The two numbers, from a tuple, list, array or tensor; None for anything else."""
    if type(value) in (ArrayData, TensorData):
        value = value.numbers
    if type(value) not in (tuple, list) or len(value) != 2:
        return None
    first, second = (real_number(item) for item in value)
    return None if first is None or second is None else (first, second)


def _agree(got: Pair | None, want: Pair, points: Points) -> bool:
    """Whether both numbers agree. alpha is as exact as the smallest measured time allows."""
    if got is None:
        return False
    scale = max(abs(want[0]), min(seconds for _, seconds in points))
    return abs(got[0] - want[0]) <= 1e-4 * scale and math.isclose(got[1], want[1], rel_tol=1e-4)


def _compared(bench: Bench, cases: tuple[Points, ...], what: str) -> Finding | None:
    values = bench.run(_probe, cases, n=1).values[0]
    for points, value in zip(cases, values, strict=True):
        got, want = _pair(value), fit(points)
        if got is None:
            said = f"{what}: returned {type_in_words(value)}"
            return Finding(said, "a pair of two numbers", "Return alpha and the bandwidth.", lazy(value))
        if not _agree(got, want, points):
            said = f"{what}: alpha = {got[0]:.4g} s, bandwidth = {got[1]:.4g} bytes/s"
            advice = "Draw the points and your line, both axes logarithmic."
            return Finding(said, f"{want[0]:.4g} s, {want[1]:.4g} bytes/s", advice, _mistake(bench))
    return None


def _mistake(bench: Bench) -> Mistake | None:
    values = [_pair(value) for value in bench.run(_probe, _noisy(), n=1).values[0]]
    for mistake, guess in _GUESSES:
        if all(_agree(pair, guess(points), points) for pair, points in zip(values, _noisy(), strict=True)):
            return mistake
    if all(pair and pair[0] in (min(points)[1], min(s for _, s in points)) for pair, points in
           zip(values, _noisy(), strict=True)):  # fmt: skip
        return SMALLEST_IS_ALPHA
    return None


def _exact(bench: Bench) -> Finding | None:
    return _compared(bench, EXACT, "for nine points that lie on a line")


def _best(bench: Bench) -> Finding | None:
    return _compared(bench, _noisy(), "for 18 noisy points")


def _few(bench: Bench) -> Finding | None:
    return _compared(bench, FEW, "for two and three points")


def _refuses(bench: Bench) -> Finding | None:
    return next((f for name, points in IMPOSSIBLE if (f := refused(bench, _probe_refusal, points, name))), None)


LINE = "points that lie on a line"

CHECKS = {
    "fit_alpha_beta": (
        Check(LINE, 2, _exact, "the alpha and the bandwidth of the line"),
        Check("noisy points", 3, _best, "the line of least relative squares", needs=LINE),
        Check("few points", 1, _few, "the line of least relative squares", needs="noisy points"),
        Check("the impossible is refused", 2, _refuses, "a ValueError", needs=LINE),
    )
}
