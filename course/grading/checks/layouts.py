"""Checks of `best_layout`: the fastest layout that fits, found without asking for the time of more than it takes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from course.grading.bench import Bench, Seat, Trouble
from course.grading.check import Check, Finding
from course.grading.checks.alone import asked, raised
from course.grading.checks.clusters import CHOICES, EDGES, HAND, RANDOM, TOO_SMALL, Cluster, Layout, chosen, needed
from course.grading.checks.cost import outcome, refused
from course.grading.checks.hello import lazy
from course.grading.mistakes import Mistake
from course.grading.mistakes import lesson_10_runs as known
from course.grading.mistakes.any_exercise import PRINTED
from course.grading.plain import ArrayData, TensorData, plain, real_number, type_in_words


def _probe(learner: Any, cases: tuple[Cluster, ...], seat: Seat) -> Any:
    return [_observed(learner, case) for case in cases]


def _observed(learner: Any, case: Cluster) -> tuple[Any, list[Any]]:
    """What came back, and the layouts whose time was asked for, in order."""
    calls: list[Any] = []

    def nbytes(dp: int, tp: int, pp: int) -> float:
        return case.nbytes(dp, tp, pp)

    def bound(dp: int, tp: int, pp: int) -> float:
        return case.bound(dp, tp, pp)

    def seconds(dp: int, tp: int, pp: int) -> float:
        calls.append((int(dp), int(tp), int(pp)))
        return case.seconds(dp, tp, pp)

    numbers = {"gpus": case.gpus, "layers": case.layers, "heads": case.heads, "batch": case.batch}
    found = learner(**numbers, memory=case.memory, nbytes=nbytes, bound=bound, seconds=seconds)
    return plain(found), calls


def _probe_refusal(learner: Any, case: Cluster, seat: Seat) -> Any:
    return outcome(lambda: _observed(learner, case)[0])


def _layout(value: Any) -> Layout | None:
    """Three whole numbers above 0 in a tuple, list or array; None for anything else."""
    if type(value) in (TensorData, ArrayData) and len(value.shape) == 1:
        value = value.numbers
    if type(value) not in (tuple, list) or len(value) != 3:
        return None
    numbers = [real_number(item) for item in value]
    whole = [int(n) for n in numbers if n is not None and math.isfinite(n) and n == int(n) and n >= 1]
    return (whole[0], whole[1], whole[2]) if len(whole) == 3 else None


def _item(value: Any) -> str:
    number = real_number(value)
    return type_in_words(value) if number is None else f"{number:.6g}"


def _named(layout: Layout) -> str:
    return "dp={}, tp={}, pp={}".format(*layout)


def prices(case: Cluster) -> dict[str, str]:
    """The case's made-up `nbytes`, `bound` and `seconds`, as a learner would write them; numbers to six digits."""
    batch, data = case.batch, f"{case.data:.6g}*(dp - 1)/(dp*tp*pp)"
    messages = f"{case.tensor:.6g}*(tp - 1)*{batch}/(dp*pp) + {data} + {case.hop:.6g}*(pp - 1)"
    bound = f"{case.work:.6g}/(dp*tp*pp)*(1 + (pp - 1)*dp/{batch})*(1 + {case.thin:.6g}*(tp - 1))"
    nbytes = f"{case.states:.6g}/(tp*pp) + {case.kept:.6g}/tp"
    return {"nbytes": nbytes, "bound": bound, "seconds": f"bound + {messages}"}


def _here(case: Cluster, *names: str) -> str:
    return "Here " + ", ".join(f"{name} = {prices(case)[name]}" for name in names)


def _ask(bench: Bench, cases: tuple[Cluster, ...]) -> Finding | list[tuple[Any, list[Layout]]]:
    values = asked(bench, _probe, cases)
    if isinstance(values, Trouble):
        return Finding(f"for a case such as {cases[0]} {raised(values)}", "", values.advice)
    for case, (value, _) in zip(cases, values, strict=True):
        if _layout(value) is None:
            printed = value is None and any(bench.run(_probe, cases, n=1).output)
            said = type_in_words(value)
            if type(value) in (tuple, list):
                said += f": {', '.join(map(_item, value))}"
            got = f"{case} returned {said}"
            return Finding(
                got, "(dp, tp, pp), three ints above 0", "Return these three.", PRINTED if printed else lazy(value)
            )
    return [(_layout(value), calls) for value, calls in values]


def _usable(cases: tuple[Cluster, ...], bench: Bench) -> Finding | None:
    """Whether what came back uses all GPUs, divides and fits."""
    answers = _ask(bench, cases)
    if isinstance(answers, Finding):
        return answers
    for case, (layout, _) in zip(cases, answers, strict=True):
        if wrong := _unusable(case, layout):
            mistake = _mistake(cases, [found for found, _ in answers])
            if math.prod(layout) < case.gpus and mistake is None:
                mistake = known.LAYOUT_FEWER_GPUS
            got = f"{case} returned {_named(layout)}: {wrong}"
            want = f"at most {case.memory:.6g} bytes. {_here(case, 'nbytes')}" if "bytes" in wrong else ""
            return Finding(got, want, "Check each condition of the statement for this layout by hand.", mistake)
    return None


def _unusable(case: Cluster, layout: Layout) -> str:
    """Which condition a layout does not meet; empty where it meets all."""
    dp, tp, pp = layout
    if math.prod(layout) != case.gpus:
        return f"these are {math.prod(layout)} GPUs"
    for name, size, whole, what in (("dp", dp, case.batch, "batch"), ("tp", tp, case.heads, "heads")):
        if whole % size:
            return f"{name}={size} does not divide {what}={whole}"
    if case.layers % pp:
        return f"pp={pp} does not divide layers={case.layers}"
    needs = case.nbytes(*layout)
    return f"it needs {needs:.6g} bytes" if needs > case.memory else ""


def _fastest(cases: tuple[Cluster, ...], bench: Bench) -> Finding | None:
    if finding := _usable(cases, bench):
        return finding
    answers = _ask(bench, cases)
    if isinstance(answers, Finding):
        return answers
    layouts = [layout for layout, _ in answers]
    for case, layout in zip(cases, layouts, strict=True):
        if not case.is_best(layout):
            got = f"{case} returned {_named(layout)}: {case.seconds(*layout):.6g} seconds"
            advice = "Print every layout that fits, with its seconds, and look for yours."
            want = f"{case.least:.6g} seconds. {_here(case, 'nbytes', 'bound', 'seconds')}"
            return Finding(got, want, advice, _mistake(cases, layouts))
    return None


def _mistake(cases: tuple[Cluster, ...], layouts: Sequence[Layout]) -> Mistake | None:
    for order in itertools.permutations(range(3)):
        moved = [(layout[order[0]], layout[order[1]], layout[order[2]]) for layout in layouts]
        if all(case.is_best(layout) for case, layout in zip(cases, moved, strict=True)):
            return known.LAYOUT_OTHER_ORDER
    for choice in CHOICES:
        if all(layout in chosen(choice, case) for case, layout in zip(cases, layouts, strict=True)):
            return choice[0]
    return None


def _sparing(cases: tuple[Cluster, ...], bench: Bench) -> Finding | None:
    """The first layout whose time need not have been asked for."""
    answers = _ask(bench, cases)
    if isinstance(answers, Finding):
        return answers
    everything = all(len(calls) == len(case.fitting) for case, (_, calls) in zip(cases, answers, strict=True))
    mistake = known.LAYOUT_ASKED_ALL if everything else known.LAYOUT_ASKED_OUT_OF_ORDER
    for case, (_, calls) in zip(cases, answers, strict=True):
        if finding := _in_vain(case, calls):
            return finding
        if many := [layout for layout in calls if layout not in needed(case)]:
            got = f"{case} called `seconds` for {len(calls)} layouts; {_named(many[0])} takes at least "
            want = f"the best takes {case.least:.6g}. {_here(case, 'nbytes', 'bound', 'seconds')}"
            return Finding(f"{got}{case.bound(*many[0]):.6g} seconds", want, "", mistake)
    return None


def _in_vain(case: Cluster, calls: list[Layout]) -> Finding | None:
    """The first layout that was asked about again, or cannot be the answer."""
    for place, layout in enumerate(calls):
        if layout not in case.fitting:
            got = f"{case} called `seconds` for {_named(layout)}, which is no layout that divides and fits"
            return Finding(got, "", "", known.LAYOUT_ASKED_UNFIT)
        if layout in calls[:place]:
            return Finding(f"{case} called `seconds` for {_named(layout)} twice", "", "", known.LAYOUT_ASKED_TWICE)
    return None


def _refuses(bench: Bench) -> Finding | None:
    found = (refused(bench, _probe_refusal, case, str(case)) for case in TOO_SMALL)
    return next((finding for finding in found if finding), None)


_FITS, _BEST = "four clusters: a layout that divides and fits", "four clusters: the fastest of those"
_MANY = "thirty random clusters"
_ONCE = "each that may be the best, and no other, once"

CHECKS: dict[str, Sequence[Check]] = {
    "best_layout": (
        Check(_FITS, 2, partial(_usable, HAND), "a layout on all GPUs that divides and fits"),
        Check(_BEST, 3, partial(_fastest, HAND), "the least seconds", needs=_FITS),
        Check(_MANY, 2, partial(_fastest, RANDOM), "the least seconds", needs=_BEST),
        Check("one GPU, a prime, full to the last byte, ties", 1, partial(_fastest, EDGES), "the same", needs=_BEST),
        Check("`seconds` is called sparingly", 3, partial(_sparing, (*HAND, *RANDOM)), _ONCE, needs=_BEST),
        Check("the impossible is refused", 1, _refuses, "a ValueError", needs=_FITS),
    )
}
