"""Checks of `ring_reduce_scatter`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from course.grading.bench import Result, Seat
from course.grading.check import Check
from course.grading.checks import digits, rings
from course.grading.checks import messages as m
from course.grading.mistakes import Mistake
from course.grading.mistakes.lesson_03 import (
    AVERAGED_SUM,
    CUT_AS_CHUNK,
    EQUAL_CHUNKS,
    INPUT_CHANGED,
    NEIGHBOURS_CHUNK,
    PADDING_LEFT,
    WHOLE_SUM,
    WHOLE_TENSORS,
)
from course.grading.plain import TensorData, plain


def _probe(learner: Any, case: m.Case, seat: Seat) -> Any:
    data = m.given(case, seat.rank, seat.world_size)
    m.spoil_memory(8 * len(data.numbers))
    t = m.tensor(data)
    return {"value": plain(learner(t)), "changed": plain(t) != data}


def _given(case: m.Case, n: int) -> list[TensorData]:
    return [m.given(case, rank, n) for rank in range(n)]


def _answer(parts: Sequence[TensorData]) -> list[TensorData]:
    total = m.sum_of(parts)
    return [m.flat(total, *place) for place in m.cuts(len(total.numbers), len(parts))]


def _starts(numel: int, n: int) -> list[int]:
    return [start for start, _ in m.cuts(numel, n)]


def _named(
    result: Result, found: Sequence[Any], parts: Sequence[TensorData], wants: Sequence[TensorData]
) -> Mistake | None:
    n, total = len(parts), m.sum_of(parts)
    if n == 1:
        return None
    if all(m.agrees(got, m.flat(total)) or m.agrees(got, total) for got in found):
        return WHOLE_SUM
    owners = [next((c for c, want in enumerate(wants) if m.agrees(got, want)), None) for got in found]
    if None not in owners and len(set(owners)) == n:
        return NEIGHBOURS_CHUNK
    if _all_hold(found, [[number / n for number in want.numbers] for want in wants]):
        return AVERAGED_SUM
    return _cut(found, total.numbers) if len(total.numbers) % n else None


def _cut(found: Sequence[Any], numbers: Sequence[float]) -> Mistake | None:
    """The mistake behind chunks that were cut in another way."""
    n = len(found)
    up, down = -(-len(numbers) // n), len(numbers) // n
    if _all_hold(found, [numbers[rank * up : (rank + 1) * up] for rank in range(n)]):
        return CUT_AS_CHUNK
    filled = [*numbers, *[0.0] * (up * n - len(numbers))]
    padded = [[*numbers[start:stop], *[0.0] * (up - stop + start)] for start, stop in m.cuts(len(numbers), n)]
    if _all_hold(found, padded) or _all_hold(found, [filled[rank * up : (rank + 1) * up] for rank in range(n)]):
        return PADDING_LEFT
    if _all_hold(found[:-1], [numbers[rank * down : (rank + 1) * down] for rank in range(n - 1)]):
        return EQUAL_CHUNKS
    return None


def _all_hold(found: Sequence[Any], guess: Sequence[Sequence[float]]) -> bool:
    return all(
        type(got) is TensorData and m.close(got.numbers, numbers, 1e-5)
        for got, numbers in zip(found, guess, strict=True)
    )


RING = rings.Ring(_probe, _given, _answer, _starts, _named, digits.pattern)
SUM = "rank r gets chunk r of the sum"

CHECKS = {
    "ring_reduce_scatter": (
        Check(SUM, 3, partial(rings.values, RING), "the sum over all ranks of chunk r, flat"),
        Check(
            "lengths that do not divide", 2, partial(rings.uneven, RING),
            "chunks of the sum, cut as `torch.tensor_split` cuts", needs=SUM,
        ),
        Check("fewer elements than ranks", 1, partial(rings.few, RING), "chunks of one element or none", needs=SUM),
        Check("whole numbers and doubles", 1, partial(rings.dtypes, RING), "the exact sum, in its dtype", needs=SUM),
        Check(
            "`t` stays untouched", 1, lambda bench: rings.untouched(RING, bench, "t", INPUT_CHANGED),
            "`t` as it was", needs=SUM,
        ),
        Check(
            "what travels", 2, lambda bench: rings.cost(RING, bench, 1, WHOLE_TENSORS),
            "n−1 messages a rank, and (n−1) times the tensor's bytes over all ranks", needs=SUM,
        ),
        Check("every handle is waited for", 1, partial(rings.waited, RING), "nothing under way at the end", needs=SUM),
    )
}  # fmt: skip
