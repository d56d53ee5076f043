"""Checks of `ring_shift`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from course.grading.bench import Bench, Result, Seat
from course.grading.check import Check, Finding
from course.grading.checks import messages as m
from course.grading.checks import traffic
from course.grading.mistakes import Mistake
from course.grading.mistakes.lesson_03 import FOR_TWO_RANKS, GATHERED_ALL, INPUT_CHANGED, KEEPS_OWN, NO_WRAP, WRONG_WAY
from course.grading.plain import plain

SIZES = (3, 4, 2)
INTEGERS: m.Case = ("digits", (7,))


def _probe(learner: Any, case: m.Case, seat: Seat) -> Any:
    data = m.given(case, seat.rank, seat.world_size)
    m.spoil_memory(8 * len(data.numbers))
    t = m.tensor(data)
    return {"value": plain(learner(t)), "changed": plain(t) != data}


def _compared(bench: Bench, case: m.Case, n: int) -> Finding | None:
    result = m.run(bench, _probe, case, n)
    if isinstance(result, Finding):
        return result
    parts = [m.given(case, rank, n) for rank in range(n)]
    wants = [parts[rank - 1] for rank in range(n)]
    found = [value["value"] for value in result.values]

    def whose(rank: int) -> str:
        return next((f"that of rank {r}" for r, p in enumerate(parts) if m.agrees(found[rank], p)), "nobody's")

    def recognise() -> Mistake | None:
        if case != m.EVEN:
            return None
        if n > 2 and all(m.agrees(found[rank], parts[(rank + 1) % n]) for rank in range(n)):
            return WRONG_WAY
        if n > 1 and all(m.agrees(got, part) for got, part in zip(found, parts, strict=True)):
            return KEEPS_OWN
        if n > 2 and all(m.agrees(got, want) for got, want in list(zip(found, wants, strict=True))[1:]):
            return NO_WRAP
        return FOR_TWO_RANKS if n > 2 and _swaps(bench) else None

    what = "with 1 rank" if n == 1 else f"with {n} ranks"
    return m.compare(m.Question(result, found, wants, what), recognise, whose)


def _swaps(bench: Bench) -> bool:
    """Whether two ranks get each other's tensor."""
    result = m.run(bench, _probe, m.EVEN, 2)
    return isinstance(result, Result) and all(
        m.agrees(value["value"], m.given(m.EVEN, 1 - rank, 2)) for rank, value in enumerate(result.values)
    )


def _neighbours(bench: Bench) -> Finding | None:
    return next((finding for n in SIZES if (finding := _compared(bench, m.EVEN, n))), None)


def _alone(bench: Bench) -> Finding | None:
    return _compared(bench, m.EVEN, 1)


def _dtypes(bench: Bench) -> Finding | None:
    for n, case in ((4, INTEGERS), (3, m.DOUBLES)):
        if (finding := _compared(bench, case, n)) is None:
            continue
        if finding.mistake is not None:
            return finding
        values = bench.run(_probe, case, n=n).values
        return m.exact(finding, [(v["value"], m.given(case, (rank - 1) % n, n)) for rank, v in enumerate(values)])
    return None


def _untouched(bench: Bench) -> Finding | None:
    return m.untouched([bench.run(_probe, m.EVEN, n=n) for n in SIZES], "t", INPUT_CHANGED)


def _cost(bench: Bench) -> Finding | None:
    nbytes = 4 * m.LARGE[1][0]
    for n in (4, 3):
        result = m.run(bench, _probe, m.LARGE, n)
        if isinstance(result, Finding):
            return result
        if finding := traffic.overspent(result, traffic.Budget(1, n * nbytes, nbytes)):
            much = sum(traffic.sent(result)[1]) > 1.5 * n * nbytes
            return replace(finding, mistake=GATHERED_ALL if much else finding.mistake)
    return None


def _waited(bench: Bench) -> Finding | None:
    return m.waited([bench.run(_probe, m.EVEN, n=n) for n in (3, 4)])


SHIFTED = "each rank gets its neighbour's tensor"

CHECKS = {
    "ring_shift": (
        Check(SHIFTED, 3, _neighbours, "that of the rank before"),
        Check("one rank alone", 1, _alone, "the numbers of `t`", needs=SHIFTED),
        Check("whole numbers and doubles", 1, _dtypes, "the same numbers and dtype", needs=SHIFTED),
        Check("`t` stays untouched", 1, _untouched, "`t` as it was", needs=SHIFTED),
        Check("one message a rank", 1, _cost, "one message a rank, the bytes of `t`", needs=SHIFTED),
        Check("every handle is waited for", 1, _waited, "nothing under way at the end", needs=SHIFTED),
    )
}
