"""Checks of `gpipe_schedule`: all forwards, then all backwards, in one order on all stages."""

from __future__ import annotations

from course.grading.bench import Bench, Trouble
from course.grading.check import Check, Finding
from course.grading.checks import schedules as s
from course.grading.checks.alone import raised, refusals
from course.grading.mistakes import Mistake
from course.grading.mistakes.lesson_07 import BACKWARD_FIRST, ONE_BY_ONE, ONE_F_INSTEAD, ORDERS_DIFFER
from course.spec.schedule import Action, one_f_one_b

NAME = "gpipe_schedule"
SIZES: tuple[s.Size, ...] = ((3, 4), (2, 5), (4, 8), (8, 16))
SMALL: tuple[s.Size, ...] = ((4, 2), (3, 1), (1, 3), (1, 1))
IMPOSSIBLE = ((0, 4), (4, 0), (-1, 2), (2, -3))


def _plans(bench: Bench) -> list[s.Plan]:
    return s.asked(bench, NAME, SIZES)


def _type(bench: Bench) -> Finding | None:
    return s.unreadable(NAME, SIZES, bench.run(s.probe, SIZES, n=1).values[0])


def _once(bench: Bench) -> Finding | None:
    return next((finding for plan in _plans(bench) if (finding := s.not_once(plan))), None)


def _flushed(bench: Bench) -> Finding | None:
    return next((finding for plan in _plans(bench) if (finding := _not_flushed(plan))), None)


def _not_flushed(plan: s.Plan) -> Finding | None:
    """A finding where a forward comes behind a backward, or forwards are not in their order."""
    for stage, actions in enumerate(plan.lists):
        kinds = "".join(action.kind for action in actions)
        if "BF" not in kinds:
            continue
        at = kinds.index("BF")
        told = f"in {plan}, stage {stage} does {actions[at + 1]} after {actions[at]}"
        turned = s.turned_round(plan)
        got = turned[0] if turned else told + _slower(plan)
        mistake = BACKWARD_FIRST if turned else _instead(plan)
        return Finding(got, "", "Mark the first backward in that list. What has to come before it?", mistake)
    if sentence := s.out_of_order(plan, "F"):
        return Finding(sentence, "", "Forwards go 0, 1, 2, … on every stage.")
    return None


def _slower(plan: s.Plan) -> str:
    """How much longer the step gets, for a schedule that runs."""
    if s.waits_for_ever(plan):
        return ""
    best, mine = 3 * (plan.microbatches + plan.stages - 1), s.seconds(plan)
    return f": the step takes {mine:g} units of time where {best} are enough" if mine > best else ""


def _instead(plan: s.Plan) -> Mistake | None:
    one_by_one = [action for k in range(plan.microbatches) for action in (Action("F", k), Action("B", k))]
    if all(actions == one_by_one for actions in plan.lists):
        return ONE_BY_ONE
    lists = one_f_one_b(plan.stages, plan.microbatches)
    return ONE_F_INSTEAD if [tuple(actions) for actions in plan.lists] == list(lists) else None


def _alike(bench: Bench) -> Finding | None:
    return next((finding for plan in _plans(bench) if (finding := _not_alike(plan))), None)


def _not_alike(plan: s.Plan) -> Finding | None:
    """A finding where backwards go neither way, or another way than on the stage before."""
    up = list(range(plan.microbatches))
    first: list[int] | None = None
    for stage, actions in enumerate(plan.lists):
        order = [action.microbatch for action in actions if action.kind == "B"]
        if order not in (up, up[::-1]):
            shown = ", ".join(f"B{k}" for k in order[:5]) + (", …" if len(order) > 5 else "")
            got = f"in {plan}, the backwards of stage {stage} go {shown}"
            return Finding(got, "", "Two orders are allowed: that of the forwards, and the opposite one.")
        if first is not None and order != first:
            got = f"in {plan}, stage {stage} begins with B{order[0]}, and the stage before it with B{first[0]}"
            return Finding(got, "", "", ORDERS_DIFFER)
        first = order
    return None


def _small(bench: Bench) -> Finding | None:
    try:
        values = bench.run(s.probe, SMALL, n=1).values[0]
    except Trouble as trouble:
        if trouble.kind != "raised":
            raise
        return Finding(f"with few microbatches or stages, {raised(trouble)}", "", trouble.advice)
    if finding := s.unreadable(NAME, SMALL, values):
        return finding
    found = (check(plan) for plan in s.plans(NAME, SMALL, values) for check in (s.not_once, _not_flushed, _not_alike))
    return next((finding for finding in found if finding), None)


def _impossible(bench: Bench) -> Finding | None:
    return refusals(bench, NAME, IMPOSSIBLE)


_TYPE = "a list of actions for each stage"
_ONCE = "each forward and each backward once"
_FLUSHED = "all forwards come before the first backward"

CHECKS = {
    NAME: (
        Check(_TYPE, 1, _type, "a list of lists of actions"),
        Check(_ONCE, 1, _once, "F and B of every microbatch, once on every stage", needs=_TYPE),
        Check(_FLUSHED, 2, _flushed, "F0, F1, F2, … and then the backwards", needs=_ONCE),
        Check("backwards in one order on all stages", 1, _alike, "0, 1, 2, … or the opposite, on all stages alike",
              needs=_FLUSHED),
        Check("few microbatches, a single stage", 1, _small, "the same", needs=_FLUSHED),
        Check("the impossible is refused", 1, _impossible, "a ValueError"),
    )
}  # fmt: skip
