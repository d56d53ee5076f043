"""Checks of `clip_gradients_sharded`: norm, gradients, what was sent, against one process that has all shards."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from course.grading.bench import Bench, Result, Trouble
from course.grading.check import Check, Finding
from course.grading.checks.averaging import stopped_by_order
from course.grading.checks.hello import lazy
from course.grading.checks.messages import close
from course.grading.checks.shares import Shares, probe
from course.grading.mistakes import Mistake
from course.grading.mistakes import lesson_09 as known
from course.grading.mistakes.lesson_08 import ALL_REDUCE_RETURNED
from course.grading.plain import TensorData, real_number, type_in_words

TOLERANCE = 2e-5  # torch adds 1e-6 to the norm that it divides by

LARGE = (
    Shares(3, ("world", "whole")),
    Shares(4, ("whole", "pair", "world")),
    Shares(4, ("pair", "whole")),
    Shares(2, ("world", "whole", "whole")),
    Shares(1, ("world", "whole")),
)
SMALL = (Shares(3, ("world", "whole"), max_norm=100.0), Shares(2, ("world", "whole"), scale=0.0))
HOLES = (Shares(3, ("world", "whole"), holes=True), Shares(4, ("pair", "whole", "world"), holes=True))


# --- the norm ---------------------------------------------------------------------------------------------------------


def _norms(bench: Bench, cases: Sequence[Shares]) -> Finding | None:
    for case in cases:
        try:
            result = bench.run(probe, case, n=case.n)
        except Trouble as trouble:
            if case.holes or trouble.kind != "raised" or "NoneType" not in trouble.got:
                raise
            return Finding(trouble.got, "", "", ALL_REDUCE_RETURNED)
        for rank, value in enumerate(result.values):
            number = real_number(value["returned"])
            if number is None:
                got = f"{case}, rank {rank} returned {type_in_words(value['returned'])}"
                return Finding(got, "the norm, one number", "Return the norm.", lazy(value["returned"]))
            if not _same(number, case.norm):
                got = f"{case}, rank {rank} returned {number:.6g}"
                advice = "Write down what each rank holds, and count every number of the model once."
                return Finding(got, f"{case.norm:.6g}", advice, _norm_mistake(result, case))
    return None


def _same(number: float, want: float) -> bool:
    return math.isclose(number, want, rel_tol=TOLERANCE, abs_tol=1e-9)


def _norm_mistake(result: Result, case: Shares) -> Mistake | None:
    """The mistake that explains the norms of all ranks."""
    numbers = [real_number(value["returned"]) for value in result.values]
    for mistake, guess in _norm_guesses(case):
        wanted = [guess(rank) for rank in range(case.n)]
        if all(number is not None and _same(number, want) for number, want in zip(numbers, wanted, strict=True)):
            return mistake
    return None


def _norm_guesses(case: Shares) -> Sequence[tuple[Mistake, Callable[[int], float]]]:
    """What known mistakes return on each rank."""
    entries, everyone = range(len(case.kinds)), range(case.n)
    whole = [kind == "whole" for kind in case.kinds]

    def root(of_entry: Callable[[int, int], float]) -> Callable[[int], float]:
        return lambda rank: math.sqrt(sum(of_entry(entry, rank) for entry in entries))

    def over_all(entry: int, rank: int) -> float:
        return sum(case.square(entry, other) for other in everyone)

    def group(entry: int, rank: int) -> tuple[int, ...]:
        return case.ranks(case.kinds[entry], rank)

    def norms(entry: int, rank: int) -> float:
        return sum(math.sqrt(case.square(entry, other)) for other in group(entry, rank))

    own, right = root(case.square), root(case.summed)
    return (
        (known.CLIP_LOCAL_NORM, own),
        (known.CLIP_NORMS_ADDED, lambda rank: sum(map(own, everyone))),
        (known.CLIP_NORMS_ADDED, root(lambda entry, rank: norms(entry, rank) ** 2)),
        (known.CLIP_NORMS_ADDED, lambda rank: sum(norms(entry, rank) for entry in entries)),
        (known.CLIP_NORMS_ADDED, lambda rank: sum(math.sqrt(case.summed(entry, rank)) for entry in entries)),
        (known.CLIP_COUNTED_OFTEN, root(lambda e, r: case.n * case.square(e, r) if whole[e] else case.summed(e, r))),
        (known.CLIP_COUNTED_OFTEN, root(over_all)),
        (known.CLIP_WHOLE_LEFT_OUT, root(lambda e, r: 0.0 if whole[e] else case.summed(e, r))),
        (known.CLIP_NO_ROOT, lambda rank: right(rank) ** 2),
        (known.CLIP_GROUP_IGNORED, root(lambda e, r: case.square(e, r) if whole[e] else over_all(e, r))),
        (known.CLIP_AVERAGED, root(lambda e, r: case.summed(e, r) / len(group(e, r)))),
        (known.CLIP_AVERAGED, root(lambda e, r: over_all(e, r) / case.n)),
        (known.CLIP_ENTRIES_APART, lambda rank: math.sqrt(case.summed(entries[-1], rank))),
        (known.CLIP_ENTRIES_APART, lambda rank: math.sqrt(max(case.summed(entry, rank) for entry in entries))),
        (known.CLIP_NORM_AFTER, lambda rank: min(right(rank), case.max_norm)),
    )


# --- the gradients ----------------------------------------------------------------------------------------------------


def _gradients(bench: Bench, cases: Sequence[Shares]) -> Finding | None:
    return next((f for case in cases if (f := _scaled(bench.run(probe, case, n=case.n), case))), None)


def _scaled(result: Result, case: Shares) -> Finding | None:
    for rank, value in enumerate(result.values):
        if value["changed"]:
            got = f"{case}, the values of parameters are changed on rank {rank}"
            return Finding(got, "parameters as they were", "Scale `p.grad`, not `p`.")
        for entry, found in enumerate(value["gradients"]):
            for gradient, given in zip(found, case.given(entry, rank), strict=True):
                if said := _wrong(gradient, given, case.factor):
                    got = f"{case} and max_norm {case.max_norm}, in entry {entry} of rank {rank} {said}"
                    advice = "Write down the factor, and print which gradients it reaches."
                    return Finding(got, f"the gradient times {case.factor:.4g}", advice, _scale_mistake(result, case))
    return None


def _wrong(gradient: Any, given: tuple[float, ...] | None, factor: float) -> str:
    """What is wrong with one gradient, in words; "" for a right one."""
    if given is None:
        return "" if gradient is None else f"a gradient that was None is {type_in_words(gradient)}"
    if type(gradient) is not TensorData or gradient.dtype != "float32" or gradient.shape != (len(given),):
        return f"a gradient is {type_in_words(gradient)}"
    if _is(gradient, given, factor):
        return ""
    k = max(range(len(given)), key=lambda k: abs(given[k]))
    return f"the gradient {given[k]:.4g} became {gradient.numbers[k]:.4g}"


def _is(gradient: Any, given: Sequence[float] | None, factor: float) -> bool:
    if given is None or type(gradient) is not TensorData:
        return given is None and gradient is None
    return close(gradient.numbers, [factor * number for number in given], TOLERANCE)


def _scale_mistake(result: Result, case: Shares) -> Mistake | None:
    """The mistake that explains the gradients of all ranks; the norm that came back is right."""
    entries = range(len(case.kinds))

    def all_scaled(factor: Callable[[int, int], float]) -> bool:
        return all(_entry_is(result, case, entry, rank, factor) for entry in entries for rank in range(case.n))

    def own(rank: int) -> float:
        return math.sqrt(sum(case.square(entry, rank) for entry in entries))

    if case.norm <= case.max_norm:
        return known.CLIP_SCALES_UP if case.norm and all_scaled(lambda e, r: case.max_norm / case.norm) else None
    if all_scaled(lambda e, r: 1.0):
        return known.CLIP_NOT_SCALED
    if all_scaled(lambda e, r: 1 / case.norm):
        return known.CLIP_TO_ONE
    if all_scaled(lambda e, r: case.max_norm / own(r)):
        return known.CLIP_LOCAL_NORM
    if all_scaled(lambda e, r: min(1.0, case.max_norm / (math.sqrt(case.summed(e, r)) or 1.0))):
        return known.CLIP_ENTRIES_APART
    if _by_value(result, case):
        return known.CLIP_BY_VALUE
    left = [all(_entry_is(result, case, entry, rank, lambda e, r: 1.0) for rank in range(case.n)) for entry in entries]
    rest = all_scaled(lambda e, r: 1.0 if left[e] else case.factor)
    return known.CLIP_WHOLE_NOT_SCALED if any(left) and rest else None


def _entry_is(result: Result, case: Shares, entry: int, rank: int, factor: Callable[[int, int], float]) -> bool:
    found, given = result.values[rank]["gradients"][entry], case.given(entry, rank)
    return all(_is(gradient, one, factor(entry, rank)) for gradient, one in zip(found, given, strict=True))


def _by_value(result: Result, case: Shares) -> bool:
    limit = case.max_norm
    for rank, value in enumerate(result.values):
        for entry, found in enumerate(value["gradients"]):
            held = [g and tuple(max(-limit, min(limit, x)) for x in g) for g in case.given(entry, rank)]
            if not all(_is(gradient, one, 1.0) for gradient, one in zip(found, held, strict=True)):
                return False
    return True


# --- small ones, holes, what is sent ----------------------------------------------------------------------------------


def _below(bench: Bench) -> Finding | None:
    return _norms(bench, SMALL) or _gradients(bench, SMALL)


def _holes(bench: Bench) -> Finding | None:
    for case in HOLES:
        try:
            bench.run(probe, case, n=case.n)
        except Trouble as trouble:
            if not stopped_by_order(trouble):
                raise
            got = f"{case}, where rank 1 has no parameters of what is split: {trouble.got}"
            return Finding(got, "", "", known.CLIP_EMPTY_STAYS_AWAY)
    return _norms(bench, HOLES) or _gradients(bench, HOLES)


def _sent(bench: Bench) -> Finding | None:
    for case in LARGE:
        result = bench.run(probe, case, n=case.n)
        result = result.since(value["first_call"] for value in result.values)
        sizes = [len(case.ranks(kind, 0)) for kind in case.kinds if kind != "whole"]
        numbers = sum(case.n * (size - 1) for size in sizes)  # as an all-gather sends them; an all-reduce sends fewer
        calls = max(len(result.calls(rank)) for rank in range(case.n))
        if result.nbytes <= 8 * numbers and calls <= len(sizes):
            continue
        got = f"{case}, right, but {result.nbytes} bytes travel in {calls} calls of a rank"
        expected = f"at most {8 * numbers} bytes, in {len(sizes)} call{'s' if len(sizes) > 1 else ''} of a rank"
        return Finding(
            got,
            expected,
            "Send one number an entry, and none where every rank holds the whole.",
            _sent_mistake(result, calls, len(case.kinds), numbers),
        )
    return None


def _sent_mistake(result: Result, calls: int, most: int, numbers: int) -> Mistake | None:
    """The gradients of an entry are 58 numbers or more. `most`: calls in which every entry has one."""
    if result.nbytes > 4 * 40 * numbers:
        return known.CLIP_GRADIENTS_SENT
    names = {span.name for rank in range(result.world_size) for span in result.calls(rank)}
    return known.CLIP_CALL_EACH if calls > most and names == {"all_reduce"} else None


_FACTOR = "one factor for all gradients"
_NORM = "the norm of the whole gradient, on every rank"

CHECKS: dict[str, Sequence[Check]] = {
    "clip_gradients_sharded": (
        Check(_NORM, 4, lambda bench: _norms(bench, LARGE), "the root of all squares, each number once"),
        Check(_FACTOR, 3, lambda bench: _gradients(bench, LARGE), "", needs=_NORM),
        Check("below max_norm nothing changes", 2, _below, "the gradients as they were", needs=_NORM),
        Check("no parameters, and no gradients", 2, _holes, "None as zero, and None afterwards", needs=_FACTOR),
        Check("one number an entry is sent", 2, _sent, "one small call for each entry with a group", needs=_NORM),
    )
}
