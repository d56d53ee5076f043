"""The checks that the three ring exercises share: values, lengths, dtypes, cost.

What is run, what each rank should come back with, and how a wrong result is named: that is a `Ring`, one an exercise,
in `scattering`, `gathering` and `reducing`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from course.grading.bench import Bench, Probe, Result, Trouble
from course.grading.check import Finding
from course.grading.checks import digits, traffic
from course.grading.checks import messages as m
from course.grading.mistakes import Mistake
from course.grading.mistakes.lesson_03 import EQUAL_CHUNKS, FOR_TWO_RANKS, NO_EMPTY_CHUNK, STEP_SHORT
from course.grading.plain import TensorData

SIZES = (3, 4, 1, 2)
NUM_DIGITS = math.prod(m.DIGITS[1])
Wants = Sequence[TensorData]


@dataclass(frozen=True)
class Ring:
    """One of the exercises. `probe` sends home {"value": ..., "changed": ...} from each rank.

    answer: from all ranks' inputs, what each rank should have. starts: from a length and n, the place of the first
    element of each rank's value. named: the mistake behind the values found, from the inputs and what was wanted.
    named_by_digits: the same from whose part is in which element, and from the most messages that a rank sent; None
    where nothing is added.
    """

    probe: Probe
    given: Callable[[m.Case, int], Wants]
    answer: Callable[[Wants], Wants]
    starts: Callable[[int, int], Sequence[int]]
    named: Callable[[Result, Sequence[Any], Wants, Wants], Mistake | None]
    named_by_digits: Callable[[digits.Found, int], Mistake | None] | None
    noun: str = "the result"


def compared(ring: Ring, bench: Bench, case: m.Case, n: int) -> Finding | None:
    """A finding where a rank of n has something else than it should."""
    result = m.run(bench, ring.probe, case, n)
    if isinstance(result, Finding):
        return result
    parts = ring.given(case, n)
    wants = ring.answer(parts)
    found = [value["value"] for value in result.values]
    numel = math.prod(case[1])
    what = f"with {ranks(n)} and {numel} element{'' if numel == 1 else 's'}"

    def say(rank: int) -> str:
        part = _by_digits(ring, bench, n)
        return f"wrong: {part}" if part else m.one_wrong(found[rank], wants[rank], ring.starts(numel, n)[rank])

    def recognise() -> Mistake | None:
        if mistake := ring.named(result, found, parts, wants):
            return mistake
        if n < 3 or case != m.EVEN or ring.named_by_digits is None:
            return None
        counted = _counts(ring, bench, n)
        mistake = ring.named_by_digits(counted, max(traffic.sent(result)[0])) if counted else None
        return FOR_TWO_RANKS if mistake in (None, STEP_SHORT) and _passes(ring, bench, m.EVEN, 2) else mistake

    returned = result.values[0].get("returned")
    return m.compare(m.Question(result, found, wants, what, ring.noun, returned), recognise, say)


def _counts(ring: Ring, bench: Bench, n: int) -> digits.Found:
    """Whose part is in which element, on each rank; nothing where the digits test gives no result."""
    try:
        values = bench.run(ring.probe, m.DIGITS, n=n).values
    except Trouble:
        return []
    return [_counted(value["value"], start, n) for value, start in zip(values, ring.starts(NUM_DIGITS, n), strict=True)]


def _counted(value: Any, start: int, n: int) -> list[digits.Counts | None]:
    """Its counts as the elements from `start` on; as another rank's chunk where it can only be that."""
    tries = [digits.counts_of(value, place, n) for place in (start, *(start for start, _ in m.cuts(NUM_DIGITS, n)))]
    return next((row for row in tries if None not in row), tries[0])


def _by_digits(ring: Ring, bench: Bench, n: int) -> str:
    sums = ring.named_by_digits is not None and n > 1 and not _passes(ring, bench, m.EVEN, n)
    found = _counts(ring, bench, n) if sums else []
    return digits.in_words(found, ring.starts(NUM_DIGITS, n)) if found else ""


def _passes(ring: Ring, bench: Bench, case: m.Case, n: int) -> bool:
    try:
        values = bench.run(ring.probe, case, n=n).values
    except Trouble:
        return False
    return all(m.agrees(v["value"], want) for v, want in zip(values, ring.answer(ring.given(case, n)), strict=True))


def ranks(n: int) -> str:
    return "1 rank" if n == 1 else f"{n} ranks"


# --- the checks -------------------------------------------------------------------------------------------------------


def values(ring: Ring, bench: Bench) -> Finding | None:
    """Lengths that every number of ranks divides."""
    return next((finding for n in SIZES if (finding := compared(ring, bench, m.EVEN, n))), None)


def uneven(ring: Ring, bench: Bench) -> Finding | None:
    """Lengths that do not divide; what stops there and did not before takes all chunks to be alike."""
    for n, case in m.UNEVEN:
        try:
            finding = compared(ring, bench, case, n)
        except Trouble as trouble:
            if trouble.kind != "raised":
                raise
            finding = Finding(f"with {math.prod(case[1])} elements: {trouble.got}", "", "", EQUAL_CHUNKS)
        if finding:
            return finding
    return None


def few(ring: Ring, bench: Bench) -> Finding | None:
    """Fewer elements than ranks, and none at all."""
    for n, case in m.FEW:
        try:
            finding = compared(ring, bench, case, n)
        except Trouble as trouble:
            if trouble.kind not in ("raised", "stalled"):
                raise
            finding = Finding(f"with {math.prod(case[1])} elements: {trouble.got}", "")
        if finding:
            return replace(finding, mistake=finding.mistake or NO_EMPTY_CHUNK)
    return None


def dtypes(ring: Ring, bench: Bench) -> Finding | None:
    """Whole numbers and doubles, to the last digit."""
    for n, case in ((4, m.DIGITS), (3, m.DOUBLES)):
        if (finding := compared(ring, bench, case, n)) is None:
            continue
        if finding.mistake is not None:
            return finding
        got = [value["value"] for value in bench.run(ring.probe, case, n=n).values]
        return m.exact(finding, list(zip(got, ring.answer(ring.given(case, n)), strict=True)))
    return None


def untouched(ring: Ring, bench: Bench, name: str, mistake: Mistake) -> Finding | None:
    """The input is as it was."""
    return m.untouched([bench.run(ring.probe, m.EVEN, n=n) for n in SIZES], name, mistake)


def cost(ring: Ring, bench: Bench, times: int, wasteful: Mistake, forbidden: str = "") -> Finding | None:
    """Messages and bytes, where a tensor goes `times` times around; the collective that may not do it."""
    nbytes = 4 * math.prod(m.LARGE[1])
    for n in (4, 3):
        result = m.run(bench, ring.probe, m.LARGE, n)
        if isinstance(result, Finding):
            return result
        if finding := traffic.called(result, forbidden) if forbidden else None:
            return finding
        budget = traffic.Budget(times * (n - 1), times * (n - 1) * nbytes, times * (n - 1) / n * nbytes)
        if finding := traffic.overspent(result, budget, wasteful):
            return finding
    return None


def waited(ring: Ring, bench: Bench) -> Finding | None:
    """Every handle."""
    return m.waited([bench.run(ring.probe, m.EVEN, n=n) for n in (3, 4)])
