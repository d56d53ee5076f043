"""Checks of `ring_all_reduce`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any

from course.grading.bench import Bench, Result, Seat
from course.grading.check import Check, Finding
from course.grading.checks import digits, rings
from course.grading.checks import messages as m
from course.grading.mistakes import Mistake
from course.grading.mistakes.lesson_03 import (
    AVERAGED_SUM,
    COPY_SUMMED,
    EQUAL_CHUNKS,
    GATHER_START,
    NO_GATHER,
    ONE_RANK_HAS_IT,
    STEP_SHORT,
    WHOLE_TENSORS,
)
from course.grading.plain import TensorData, plain

SHAPES: tuple[tuple[int, m.Case], ...] = ((3, ("floats", ())), (3, ("floats", (2, 3, 4))), (4, ("floats", (5, 1))))


def _probe(learner: Any, case: m.Case, seat: Seat) -> Any:
    data = m.given(case, seat.rank, seat.world_size)
    m.spoil_memory(8 * len(data.numbers))
    t = m.tensor(data)
    returned = plain(learner(t))
    return {"value": plain(t), "returned": returned}


def _given(case: m.Case, n: int) -> list[TensorData]:
    return [m.given(case, rank, n) for rank in range(n)]


def _answer(parts: Sequence[TensorData]) -> list[TensorData]:
    return [m.sum_of(parts)] * len(parts)


def _starts(numel: int, n: int) -> list[int]:
    return [0] * n


def _named(
    result: Result, found: Sequence[Any], parts: Sequence[TensorData], wants: Sequence[TensorData]
) -> Mistake | None:
    n = len(parts)
    if n == 1:
        return None
    total = wants[0].numbers
    whole = len(total) // n * n  # what n chunks of one size hold
    if list(found) == list(parts) and whole == len(total) > 0:
        return COPY_SUMMED
    if 0 < whole < len(total) and all(_first(got, whole, total) for got in found):
        return EQUAL_CHUNKS
    if sum(m.agrees(got, want) for got, want in zip(found, wants, strict=True)) == 1:
        return ONE_RANK_HAS_IT
    mean = [number / n for number in total]
    averaged = all(type(got) is TensorData and m.close(got.numbers, mean, 1e-5) for got in found)
    return AVERAGED_SUM if averaged else None


def _first(got: Any, count: int, numbers: Sequence[float]) -> bool:
    return type(got) is TensorData and m.close(got.numbers[:count], numbers[:count], 1e-5)


def _named_by_digits(found: digits.Found, steps: int) -> Mistake | None:
    """A ring that goes wrong in a known way, or what the counts say by themselves."""
    n, size = len(found), rings.NUM_DIGITS // len(found)
    if any(len(row) != rings.NUM_DIGITS for row in found):
        return None
    matrix = [[row[chunk * size] for chunk in range(n)] for row in found]
    short = steps < 2 * (n - 1)  # fewer messages than a ring needs: a start at another chunk is not to blame
    known = (mistake for mistake, guess in _wrong_rings(n) if guess == matrix and (mistake is GATHER_START) != short)
    return next(known, None) or digits.pattern(found, steps)


def _wrong_rings(n: int) -> Iterator[tuple[Mistake, digits.Matrix]]:
    """What each rank holds after a ring that misses steps, or whose second half starts at another chunk."""
    full = n - 1
    for start, way in product((0, -1, 1), (1, -1)):
        yield NO_GATHER, digits.around(n, way, start, full, 0, 0)
        yield STEP_SHORT, digits.around(n, way, start, full, full - 1, start + 1)
        yield STEP_SHORT, digits.around(n, way, start, full - 1, full, start + 1)
        yield STEP_SHORT, digits.around(n, way, start, full - 1, full, start + 2)
        yield STEP_SHORT, digits.around(n, way, start, full - 1, full - 1, start + 1)
        yield from (
            (GATHER_START, digits.around(n, way, start, full, full, begin)) for begin in range(n) if begin != start + 1
        )


def _shape(bench: Bench) -> Finding | None:
    return next((finding for n, case in SHAPES if (finding := rings.compared(RING, bench, case, n))), None)


RING = rings.Ring(_probe, _given, _answer, _starts, _named, _named_by_digits, noun="`t`")
SUM = "`t` is the sum over the ranks, on every rank"

CHECKS = {
    "ring_all_reduce": (
        Check(SUM, 3, partial(rings.values, RING), "the sum over all ranks in `t`, on every rank"),
        Check("lengths that do not divide", 1, partial(rings.uneven, RING), "the sum over all ranks in `t`", needs=SUM),
        Check("fewer elements than ranks", 1, partial(rings.few, RING), "the sum over all ranks in `t`", needs=SUM),
        Check("any shape", 1, _shape, "the sum over all ranks, in the shape of `t`", needs=SUM),
        Check("whole numbers and doubles", 1, partial(rings.dtypes, RING), "the exact sum, in its dtype", needs=SUM),
        Check(
            "what travels", 3, lambda bench: rings.cost(RING, bench, 2, WHOLE_TENSORS, "all_reduce"),
            "2(n−1) messages and 2(n−1)/n of the tensor's bytes a rank", needs=SUM,
        ),
        Check("every handle is waited for", 1, partial(rings.waited, RING), "nothing under way at the end", needs=SUM),
    )
}  # fmt: skip
