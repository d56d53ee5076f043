"""Checks of `ring_all_gather`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import permutations, product
from typing import Any

from course.grading.bench import Result, Seat
from course.grading.check import Check
from course.grading.checks import digits, rings
from course.grading.checks import messages as m
from course.grading.mistakes import Mistake
from course.grading.mistakes.lesson_03 import (
    CUT_AS_CHUNK,
    GATHER_START,
    GROWING_MESSAGES,
    INPUT_CHANGED,
    MISPLACED,
    ORDER_OF_ARRIVAL,
    OWN_CHUNKS_ONLY,
    PADDING_LEFT,
)
from course.grading.plain import TensorData, plain

FROM = 4  # whose numbers the whole tensor holds: of a digits test, those that float32 does not hold


def _probe(learner: Any, case: m.Case, seat: Seat) -> Any:
    whole = m.given(case, FROM, seat.world_size)
    numel = len(whole.numbers)
    data = m.flat(whole, *m.cuts(numel, seat.world_size)[seat.rank])
    m.spoil_memory(8 * numel)
    chunk = m.tensor(data)
    return {"value": plain(learner(chunk, numel)), "changed": plain(chunk) != data}


def _given(case: m.Case, n: int) -> list[TensorData]:
    whole = m.given(case, FROM, n)
    return [m.flat(whole, *place) for place in m.cuts(len(whole.numbers), n)]


def _answer(parts: Sequence[TensorData]) -> list[TensorData]:
    numbers = tuple(number for part in parts for number in part.numbers)
    return [TensorData(parts[0].dtype, (len(numbers),), "cpu", numbers)] * len(parts)


def _starts(numel: int, n: int) -> list[int]:
    return [0] * n


def _named(
    result: Result, found: Sequence[Any], parts: Sequence[TensorData], wants: Sequence[TensorData]
) -> Mistake | None:
    n, want = len(parts), wants[0].numbers
    numbers = [got.numbers if type(got) is TensorData else () for got in found]
    if n == 1:
        return None
    arrivals = [[(rank + sign * step) % n for step in range(n)] for sign in (1, -1) for rank in range(n)]
    if all(_in_order(numbers[rank], parts, (arrivals[rank], arrivals[n + rank])) for rank in range(n)):
        return ORDER_OF_ARRIVAL
    if n < 5 and all(_in_order(row, parts, list(permutations(range(n)))) for row in numbers):
        return MISPLACED
    if len(want) % n and all(len(row) > len(want) and not any(row[len(want) :]) for row in numbers):
        return PADDING_LEFT if all(m.close(row[: len(want)], want, 1e-5) for row in numbers) else None
    if len(want) % n and all(m.close(row, _cut_up(parts), 1e-5) for row in numbers):
        return CUT_AS_CHUNK
    return None if len(want) % n else _missing(numbers, parts)


def _missing(found: Sequence[Sequence[float]], parts: Sequence[TensorData]) -> Mistake | None:
    """The mistake behind results of the right length, in which some places hold no chunk."""
    n, size = len(parts), len(parts[0].numbers)
    if any(len(row) != n * size for row in found):
        return None
    held = [[_whose(row[size * k : size * (k + 1)], parts) for k in range(n)] for row in found]
    starts = product((1, -1), range(1, n))
    if held in (digits.around(n, way, 0, 0, n - 1, begin, alone=True) for way, begin in starts):
        return GATHER_START
    return OWN_CHUNKS_ONLY if all(row[rank] for rank, row in enumerate(held)) else None


def _whose(numbers: Sequence[float], parts: Sequence[TensorData]) -> digits.Counts:
    """As counts: 1 for the rank whose chunk it is; nothing where it is nobody's."""
    owners = [int(m.close(numbers, part.numbers, 1e-5)) for part in parts]
    return tuple(owners) if any(owners) else ()


def _in_order(numbers: Sequence[float], parts: Sequence[TensorData], orders: Sequence[Sequence[int]]) -> bool:
    """Whether it is the parts one after the other, in one of the orders."""
    return any(m.close(numbers, [x for k in order for x in parts[k].numbers], 1e-5) for order in orders)


def _cut_up(parts: Sequence[TensorData]) -> list[float]:
    """Parts laid where `torch.chunk` would have them, one over the end of the other."""
    up, numel = len(parts[0].numbers), sum(len(part.numbers) for part in parts)
    laid = [0.0] * numel
    for rank, part in enumerate(parts):
        for k, number in enumerate(part.numbers):
            if rank * up + k < numel:
                laid[rank * up + k] = number
    return laid


RING = rings.Ring(_probe, _given, _answer, _starts, _named, None)
WHOLE = "every rank gets all chunks, in order"

CHECKS = {
    "ring_all_gather": (
        Check(WHOLE, 3, partial(rings.values, RING), "the whole tensor, flat, on every rank"),
        Check(
            "lengths that do not divide", 2, partial(rings.uneven, RING),
            "the whole tensor, from chunks as `torch.tensor_split` cuts them", needs=WHOLE,
        ),
        Check("fewer elements than ranks", 1, partial(rings.few, RING), "the whole tensor", needs=WHOLE),
        Check("whole numbers and doubles", 1, partial(rings.dtypes, RING), "the same numbers and dtype", needs=WHOLE),
        Check(
            "`chunk` stays untouched", 1, lambda bench: rings.untouched(RING, bench, "chunk", INPUT_CHANGED),
            "`chunk` as it was", needs=WHOLE,
        ),
        Check(
            "what travels", 2, lambda bench: rings.cost(RING, bench, 1, GROWING_MESSAGES),
            "n−1 messages a rank, and (n−1) times the tensor's bytes over all ranks", needs=WHOLE,
        ),
        Check(
            "every handle is waited for", 1, partial(rings.waited, RING), "nothing under way at the end", needs=WHOLE
        ),
    )
}  # fmt: skip
