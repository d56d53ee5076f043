"""Checks of `average_gradients`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from course.grading.bench import Bench, Result, Seat, Trouble
from course.grading.check import Check, Finding
from course.grading.checks import gradients as g
from course.grading.mistakes import Mistake
from course.grading.mistakes.lesson_05 import (
    AVERAGED_PARAMETERS,
    COPY_REDUCED,
    DIVIDED_TWICE,
    FIXED_DIVISOR,
    HOLDERS_ONLY,
    LARGEST,
    NONE_BECOMES_ZERO,
    ONE_RANKS_GRADIENT,
    RANK_ZERO_ONLY,
    SKIPS_NONE,
    SUM_NOT_AVERAGE,
)
from course.grading.plain import Numbers

SIZES = (3, 4, 1, 2)  # each change of size re-forms the group: as few as can be


def _without(case: str, rank: int) -> tuple[str, ...]:
    """The parameters that have no gradient on this rank."""
    if case == "holes":  # one a rank, all of one shape: each rank makes as many calls, so nothing hangs
        return (g.ALIKE[rank % 4],)
    if case == "some":  # ranks other than 1 lack a layer
        return () if rank == 1 else ("left.weight", "left.bias")
    return ("second.weight", "right.bias") if case == "nobody" else ()


def _zero(case: str) -> tuple[str, ...]:
    """The parameters whose gradient is zero on every rank: that is not the same as none."""
    return ("left.bias",) if case == "nobody" else ()


def _given_to(case: str, rank: int) -> g.Gradients:
    return g.given(rank, _without(case, rank), digits=case == "digits", zero=_zero(case))


def _given(case: str, n: int) -> list[g.Gradients]:
    return [_given_to(case, rank) for rank in range(n)]


def _probe(learner: Any, case: str, seat: Seat) -> Any:
    return g.probe(learner, _given_to(case, seat.rank), ())


def _guesses(parts: list[g.Gradients]) -> list[tuple[Mistake, Sequence[Numbers]]]:
    """What each known mistake would leave on each rank."""
    n = len(parts)
    mean = g.weighted(parts, [1 / n] * n)
    total = g.weighted(parts, [1.0] * n)
    own = [g.weighted([part], [1.0]) for part in parts]
    largest = {name: [max(column) for column in zip(*(o[name] for o in own), strict=True)] for name in own[0]}
    fixed = [(FIXED_DIVISOR, [g.weighted(parts, [1 / k] * n)] * n) for k in (2, 3, 4) if k != n]
    ranks = range(n)
    return [
        (SUM_NOT_AVERAGE, [total] * n),
        (DIVIDED_TWICE, [g.weighted(parts, [1 / n**2] * n)] * n),
        *fixed,
        (RANK_ZERO_ONLY, [mean if rank == 0 else own[rank] for rank in ranks]),
        (RANK_ZERO_ONLY, [mean if rank == 0 else g.weighted([parts[rank]], [1 / n]) for rank in ranks]),
        (ONE_RANKS_GRADIENT, [own[0]] * n),
        (ONE_RANKS_GRADIENT, [g.weighted([parts[0]], [1 / n])] * n),
        (LARGEST, [largest] * n),
    ]


def _average(bench: Bench) -> Finding | None:
    for n in SIZES:
        result = bench.run(_probe, "all", n=n)
        parts = _given("all", n)
        what = f"with {_ranks(n)}"
        finding = g.compare(result, g.weighted(parts, [1 / n] * n), _guesses(parts) if n > 1 else [], what)
        if finding:
            return seen_in_calls(finding, result, parts)
        if n == 3 and (finding := g.digits_finding(bench.run(_probe, "digits", n=n), n, what)):
            return finding
    return None


def seen_in_calls(
    finding: Finding, result: Result, parts: list[g.Gradients], also: Sequence[Sequence[Numbers]] = ()
) -> Finding:
    """A finding without a name yet, named where each rank still has its own gradients, whole or scaled.

    `also`: other states that mean the same, one set of numbers a rank.
    """
    if finding.mistake is not None or not result.calls(0):
        return finding
    n = len(parts)
    own = [[g.weighted([part], [weight]) for part in parts] for weight in (1.0, 1 / n)]
    found = [g.numbers_of(value) for value in result.values]
    for guess in (*own, *also):
        if all(not isinstance(f, str) and g.agrees(f, o) for f, o in zip(found, guess, strict=True)):
            changed = any(value["changed"] for value in result.values)
            return replace(finding, mistake=AVERAGED_PARAMETERS if changed else COPY_REDUCED)
    return finding


def _ranks(n: int) -> str:
    return "1 rank" if n == 1 else f"{n} ranks"


def _some_none(bench: Bench) -> Finding | None:
    for case, n in (("some", 2), ("holes", 3), ("some", 3)):
        what = (
            f"with {n} ranks, each without another gradient" if case == "holes" else f"with {n} ranks, only rank 1 has"
        )
        what += "" if case == "holes" else " the gradients of `left`"
        try:
            result = bench.run(_probe, case, n=n)
        except Trouble as trouble:
            if not stopped_by_order(trouble):
                raise
            return Finding(f"{what}: {trouble.got}", "", "", SKIPS_NONE)
        parts = _given(case, n)
        finding = g.compare(result, g.weighted(parts, [1 / n] * n), _guesses_none(parts), what)
        if finding:
            return finding
    return None


def stopped_by_order(trouble: Trouble) -> bool:
    """Whether ranks made different calls: a stall, or a mismatch found before the call."""
    return trouble.kind == "stalled" or (trouble.kind == "raised" and "MismatchError" in trouble.got)


def _guesses_none(parts: list[g.Gradients]) -> list[tuple[Mistake, Sequence[Numbers]]]:
    n = len(parts)
    total = g.weighted(parts, [1.0] * n)
    holders = {name: sum(part[name] is not None for part in parts) for name in total}
    of_holders = {name: [number / holders[name] for number in numbers] for name, numbers in total.items()}
    return [(HOLDERS_ONLY, [of_holders] * n), (SKIPS_NONE, _shifted(parts))]


def _shifted(parts: list[g.Gradients]) -> list[Numbers]:
    """Averages of the k-th gradient that each rank has, whichever that is; what a rank lacks it does not get."""
    n = len(parts)
    held = [[name for name in g.SHAPES if part[name] is not None] for part in parts]
    result: list[dict[str, Sequence[float]]] = [{} for _ in parts]
    for met in zip(*held, strict=False):
        columns = [part[name] or () for part, name in zip(parts, met, strict=True)]
        if len({len(column) for column in columns}) == 1:
            mean = [sum(numbers) / n for numbers in zip(*columns, strict=True)]
            for rank, name in enumerate(met):
                result[rank][name] = mean
    return list(result)


def _none_stays(bench: Bench) -> Finding | None:
    for n in (3, 2):
        result = bench.run(_probe, "nobody", n=n)
        parts = _given("nobody", n)
        if finding := g.compare(result, g.weighted(parts, [1 / n] * n), _guesses_none(parts), f"with {_ranks(n)}"):
            return finding
        for rank, value in enumerate(result.values):
            for name in _without("nobody", rank):
                if value["gradients"][name] is not None:
                    got = f"with {_ranks(n)}, the gradient of `{name}` is no longer None on rank {rank}"
                    zeros = set(value["gradients"][name].numbers) == {0.0}
                    return Finding(got, "", "", NONE_BECOMES_ZERO if zeros else None)
    return None


def _same(bench: Bench) -> Finding | None:
    return next((f for n in (3, 4) if (f := g.unequal(bench.run(_probe, "all", n=n), f"with {n} ranks"))), None)


def _parameters(bench: Bench) -> Finding | None:
    return g.changed(bench.run(_probe, "all", n=3), "with 3 ranks")


def _cost(bench: Bench) -> Finding | None:
    return next((f for n in (3, 4) if (f := g.too_many_bytes(bench.run(_probe, "all", n=n), f"with {n} ranks"))), None)


AVERAGE = "each gradient is the average over the ranks"

CHECKS = {
    "average_gradients": (
        Check(AVERAGE, 3, _average, "the average of the ranks' gradients, on every rank"),
        Check("the same on every rank, to the bit", 1, _same, "equal numbers on all ranks", needs=AVERAGE),
        Check("None on some ranks counts as zero", 2, _some_none, "the average, None as zero", needs=AVERAGE),
        Check("None on all ranks stays None", 1, _none_stays, "None on every rank", needs=AVERAGE),
        Check("the parameters are left alone", 1, _parameters, "parameters as they were", needs=AVERAGE),
        Check("each gradient is sent once", 1, _cost, "the bytes of one all-reduce", needs=AVERAGE),
    )
}
