"""Checks of `one_f_one_b`: each action once, in order, no wait for ever, little memory, no time lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from course.grading.bench import Bench, Trouble
from course.grading.check import Check, Finding
from course.grading.checks import schedules as s
from course.grading.checks.alone import raised, refusals
from course.grading.mistakes import Mistake
from course.grading.mistakes.lesson_07 import (
    BACKWARD_FIRST,
    GPIPE_INSTEAD,
    MISSING_BACKWARD,
    NEWEST_BACKWARD,
    NO_COOL_DOWN,
    ONE_BY_ONE,
    SAME_WARM_UP,
    UNCLAMPED,
    WARM_UP_GROWS,
    WARM_UP_TOO_LONG,
    WARM_UP_TOO_SHORT,
)
from course.spec.schedule import Action

NAME = "one_f_one_b"
SIZES: tuple[s.Size, ...] = ((4, 8), (2, 4), (3, 7), (4, 4), (5, 6), (8, 16))
FEW: tuple[s.Size, ...] = ((4, 2), (3, 1), (8, 5), (2, 1), (5, 4))
ALONE: tuple[s.Size, ...] = ((1, 3), (1, 1))
IMPOSSIBLE = ((0, 4), (4, 0), (-1, 2), (2, -3))


def warm_ups(plan: s.Plan) -> list[int]:
    """How many forwards each stage of p is to begin with: min(m, p-1-s)."""
    return [min(plan.microbatches, plan.stages - 1 - stage) for stage in range(plan.stages)]


def _plans(bench: Bench) -> list[s.Plan]:
    return s.asked(bench, NAME, SIZES)


def _type(bench: Bench) -> Finding | None:
    return s.unreadable(NAME, SIZES, bench.run(s.probe, SIZES, n=1).values[0])


def _once(bench: Bench) -> Finding | None:
    for plan in _plans(bench):
        if finding := s.not_once(plan):
            return _without_cool_down(finding, plan)
    return None


def _without_cool_down(finding: Finding, plan: s.Plan) -> Finding:
    """The same finding, named where each stage lacks as many backwards as its warm-up has forwards."""
    if finding.mistake is not MISSING_BACKWARD:
        return finding
    missing = [len(plan.wanted) - len(actions) for actions in plan.lists]
    return replace(finding, mistake=NO_COOL_DOWN) if missing == warm_ups(plan) and any(missing) else finding


def _order(bench: Bench) -> Finding | None:
    return next((finding for plan in _plans(bench) if (finding := _in_order(bench, plan))), None)


def _in_order(bench: Bench, plan: s.Plan) -> Finding | None:
    advice = "Print that stage's list, and mark the first place that is not as the statement has it."
    if turned := s.turned_round(plan):
        sentence, _, _ = turned
        return Finding(sentence, "", advice, BACKWARD_FIRST)
    for kind in "FB":
        if sentence := s.out_of_order(plan, kind):
            newest = kind == "B" and any(_newest_first(actions) for actions in plan.lists)
            return Finding(sentence, "", advice, NEWEST_BACKWARD if newest else None)
    return None


def _newest_first(actions: Sequence[Action]) -> bool:
    """Whether the first backward is that of the forward just before it, though others are older."""
    first = next(place for place, action in enumerate(actions) if action.kind == "B")
    return first > 1 and actions[first].microbatch == actions[first - 1].microbatch


def _runs(bench: Bench) -> Finding | None:
    for plan in _plans(bench):
        if finding := s.waits_for_ever(plan):
            return replace(finding, mistake=_by_warm_up(bench))
    return None


def _limits(plan: s.Plan) -> list[int]:
    return [min(plan.microbatches, plan.stages - stage) for stage in range(plan.stages)]


def _memory(bench: Bench) -> Finding | None:
    for plan in _plans(bench):
        if finding := s.holds_too_much(plan, _limits(plan)):
            return replace(finding, mistake=_by_warm_up(bench))
    return None


def _time(bench: Bench) -> Finding | None:
    for plan in _plans(bench):
        if finding := s.takes_too_long(plan):
            return replace(finding, mistake=_by_warm_up(bench))
    return None


def _by_warm_up(bench: Bench) -> Mistake | None:
    """The mistake that the forwards before the first backward give away, with 4 stages and 8 microbatches."""
    plan = next(plan for plan in _plans(bench) if plan.size == (4, 8))
    firsts = [next(place for place, a in enumerate(actions) if a.kind == "B") for actions in plan.lists]
    wanted = [warm_up + 1 for warm_up in warm_ups(plan)]
    if len(set(firsts)) == 1:
        return {8: GPIPE_INSTEAD, 1: ONE_BY_ONE}.get(firsts[0], SAME_WARM_UP)
    if firsts == sorted(firsts):
        return WARM_UP_GROWS
    if all(mine >= want for mine, want in zip(firsts, wanted, strict=True)) and firsts != wanted:
        return WARM_UP_TOO_LONG
    too_short = all(mine <= want for mine, want in zip(firsts, wanted, strict=True)) and firsts != wanted
    return WARM_UP_TOO_SHORT if too_short else None


def _few(bench: Bench) -> Finding | None:
    return _all_of_it(bench, FEW, "with fewer microbatches than stages", UNCLAMPED)


def _alone(bench: Bench) -> Finding | None:
    return _all_of_it(bench, ALONE, "with a single stage")


def _all_of_it(bench: Bench, sizes: tuple[s.Size, ...], what: str, mistake: Mistake | None = None) -> Finding | None:
    """All that can be wrong with the schedules of these sizes; `mistake`: behind an error, or too many actions."""
    try:
        values = bench.run(s.probe, sizes, n=1).values[0]
    except Trouble as trouble:
        if trouble.kind != "raised":
            raise
        return Finding(f"{what}, {raised(trouble)}", "", trouble.advice, mistake)
    if finding := s.unreadable(NAME, sizes, values):
        return finding
    for plan in s.plans(NAME, sizes, values):
        if finding := s.not_once(plan):
            return replace(finding, mistake=mistake or finding.mistake)
        checks = (
            lambda plan: _in_order(bench, plan),
            s.waits_for_ever,
            lambda plan: s.holds_too_much(plan, _limits(plan)),
            s.takes_too_long,
        )
        if found := next((finding for check in checks if (finding := check(plan))), None):
            return found
    return None


def _impossible(bench: Bench) -> Finding | None:
    return refusals(bench, NAME, IMPOSSIBLE)


_TYPE = "a list of actions for each stage"
_ONCE = "each forward and each backward once"
_ORDER = "the oldest first, each backward behind its forward"
_RUNS = "no stage waits for ever"
_MEMORY = "stage s holds at most min(m, p−s) microbatches"
_TIME = "no time is lost"

CHECKS = {
    NAME: (
        Check(_TYPE, 1, _type, "a list of lists of actions"),
        Check(_ONCE, 2, _once, "F and B of every microbatch, once on every stage", needs=_TYPE),
        Check(_ORDER, 1, _order, "forwards 0, 1, 2, … and backwards 0, 1, 2, …", needs=_ONCE),
        Check(_RUNS, 2, _runs, "a schedule that comes to its end", needs=_ORDER),
        Check(_MEMORY, 2, _memory, "at most min(m, p−s) on stage s", needs=_RUNS),
        Check(_TIME, 1, _time, "(m+p−1) forwards and backwards, one after the other", needs=_RUNS),
        Check("fewer microbatches than stages", 1, _few, "the same, with warm-ups of min(m, p−1−s)", needs=_ORDER),
        Check("a single stage", 1, _alone, "F0 B0 F1 B1 …", needs=_ORDER),
        Check("the impossible is refused", 1, _impossible, "a ValueError"),
    )
}
