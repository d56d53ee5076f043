"""Checks of `weighted_average_gradients`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from course.grading.bench import Bench, Seat, Trouble
from course.grading.check import Check, Finding
from course.grading.checks import gradients as g
from course.grading.checks.averaging import seen_in_calls, stopped_by_order
from course.grading.mistakes import Mistake
from course.grading.mistakes.lesson_05 import (
    AVERAGED_AGAIN,
    EMPTY_RANK_AWAY,
    MEAN_OF_MEANS,
    NOT_DIVIDED_BY_TOTAL,
    OWN_COUNT,
    RANK_ZERO_ONLY,
    SUM_NOT_AVERAGE,
    UNWEIGHTED,
)
from course.grading.plain import Numbers

# Counts by rank. "uneven": all different. "stale": rank 1 has no samples, but a gradient of an earlier step.
# "empty": a rank has no samples and no gradients; it is rank 1 in one case and rank 0 in the other.
COUNTS: dict[str, tuple[int, ...]] = {
    "uneven": (5, 2, 9, 4),
    "digits": (1, 1, 1, 1),
    "stale": (5, 0, 3, 4),
    "empty": (5, 0, 3, 4),
    "empty first": (0, 2, 3, 4),
}
SIZES = (3, 4, 1, 2)


def _without(case: str, rank: int) -> tuple[str, ...]:
    if case.startswith("empty") and COUNTS[case][rank] == 0:
        return tuple(g.SHAPES)
    return ()


def _given(case: str, n: int) -> list[g.Gradients]:
    return [g.given(rank, _without(case, rank), digits=case == "digits") for rank in range(n)]


def _probe(learner: Any, case: str, seat: Seat) -> Any:
    own = g.given(seat.rank, _without(case, seat.rank), digits=case == "digits")
    return g.probe(learner, own, (COUNTS[case][seat.rank],))


def _want(case: str, n: int) -> Numbers:
    counts = COUNTS[case][:n]
    return g.weighted(_given(case, n), [count / sum(counts) for count in counts])


def _guesses(case: str, n: int) -> list[tuple[Mistake, Sequence[Numbers]]]:
    """What each known mistake would leave on each rank."""
    parts, counts = _given(case, n), COUNTS[case][:n]
    total = sum(counts)
    shares = [count / total for count in counts]
    own = [g.weighted([part], [1.0]) for part in parts]
    want = g.weighted(parts, shares)
    weighted_sum = [float(count) for count in counts]

    def all_ranks(weights: Sequence[float]) -> list[Numbers]:
        return [g.weighted(parts, weights)] * n

    return [
        (MEAN_OF_MEANS, all_ranks([1 / n] * n)),
        (SUM_NOT_AVERAGE, all_ranks([1.0] * n)),
        (NOT_DIVIDED_BY_TOTAL, all_ranks(weighted_sum)),
        (NOT_DIVIDED_BY_TOTAL, all_ranks([count / n for count in counts])),
        (OWN_COUNT, [g.weighted(parts, [c / max(count, 1) for c in counts]) for count in counts]),
        (OWN_COUNT, [g.weighted(parts, [c / n / max(count, 1) for c in counts]) for count in counts]),
        (UNWEIGHTED, all_ranks([1 / total] * n)),
        (AVERAGED_AGAIN, all_ranks([share / n for share in shares])),
        (RANK_ZERO_ONLY, [want if rank == 0 else own[rank] for rank in range(n)]),
        (RANK_ZERO_ONLY, [want if rank == 0 else g.weighted([parts[rank]], [shares[rank]]) for rank in range(n)]),
    ]


def _compared(bench: Bench, case: str, n: int, what: str) -> Finding | None:
    guesses = _guesses(case, n) if n > 1 else []
    result = bench.run(_probe, case, n=n)
    finding = g.compare(result, _want(case, n), guesses, what)
    scaled = [[g.weighted([p], [float(c)]) for p, c in zip(_given(case, n), COUNTS[case][:n], strict=True)]]
    return finding and seen_in_calls(finding, result, _given(case, n), scaled)


def _mean(bench: Bench) -> Finding | None:
    for n in SIZES:
        what = f"with {n} rank{'s' if n > 1 else ''} and counts {', '.join(map(str, COUNTS['uneven'][:n]))}"
        if finding := _compared(bench, "uneven", n, what):
            return finding
        if n == 3 and (finding := g.digits_finding(bench.run(_probe, "digits", n=n), n, "with 3 ranks of 1 sample")):
            return finding
    return None


def _empty(bench: Bench) -> Finding | None:
    for case, n in (("empty first", 2), ("stale", 3), ("empty", 3)):
        rank = COUNTS[case].index(0)
        what = f"with {n} ranks and count 0 on rank {rank}"
        what += ", whose gradients are None" if case.startswith("empty") else ", which has old gradients"
        try:
            finding = _compared(bench, case, n, what)
        except Trouble as trouble:
            if not stopped_by_order(trouble):
                raise
            return Finding(f"{what}: {trouble.got}", "", "", EMPTY_RANK_AWAY)
        if finding:
            stayed = bench.run(_probe, case, n=n).calls(rank) == () and n > 1
            return replace(finding, mistake=EMPTY_RANK_AWAY if stayed else finding.mistake)
    return None


def _same(bench: Bench) -> Finding | None:
    runs = ((n, bench.run(_probe, "uneven", n=n)) for n in (3, 4))
    return next((f for n, run in runs if (f := g.unequal(run, f"with {n} ranks"))), None)


def _parameters(bench: Bench) -> Finding | None:
    return g.changed(bench.run(_probe, "uneven", n=3), "with 3 ranks")


def _cost(bench: Bench) -> Finding | None:
    runs = ((n, bench.run(_probe, "uneven", n=n)) for n in (3, 4))
    return next((f for n, run in runs if (f := g.too_many_bytes(run, f"with {n} ranks"))), None)


MEAN = "the gradient of the mean over all samples"

CHECKS = {
    "weighted_average_gradients": (
        Check(MEAN, 4, _mean, "each rank's gradient weighted by its share of all samples"),
        Check("the same on every rank, to the bit", 1, _same, "equal numbers on all ranks", needs=MEAN),
        Check("a rank with count 0 still joins", 2, _empty, "the mean over the other ranks' samples", needs=MEAN),
        Check("the parameters are left alone", 1, _parameters, "parameters as they were", needs=MEAN),
        Check("each gradient is sent once", 1, _cost, "the bytes of one all-reduce", needs=MEAN),
    )
}
