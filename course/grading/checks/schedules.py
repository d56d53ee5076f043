"""What the exercises on schedules share: reading what came back, and its faults in a sentence each. No check itself.

Time is virtual: a forward takes 1, a backward 2, messages nothing, and a send never waits for its receiver.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from course.errors import DeadlockError
from course.grading.bench import Bench, Seat
from course.grading.check import Finding
from course.grading.checks.hello import lazy
from course.grading.mistakes import Mistake
from course.grading.mistakes.lesson_07 import MICROBATCHES_FROM_ONE, MISSING_BACKWARD, ONE_LIST
from course.grading.plain import type_in_words, whole_numbers
from course.spec.check import check_schedule
from course.spec.schedule import Action, peak_activations
from course.trace.program import pipeline_program
from course.trace.simulate import simulate

Size = tuple[int, ...]  # (stages, microbatches), or (stages, microbatches, chunks)
Lists = list[list[Action]]
_WORD = re.compile(r"([FB])(-?\d{1,9})(?:\.(-?\d{1,9}))?")
_MANY = 10**9


@dataclass(frozen=True, slots=True)
class Plan:
    """What came back for one size, and the call that it answers."""

    name: str
    size: Size
    lists: Lists

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.size))})"

    @property
    def stages(self) -> int:
        return self.size[0]

    @property
    def microbatches(self) -> int:
        return self.size[1]

    @property
    def chunks(self) -> int:
        return self.size[2] if len(self.size) > 2 else 1

    @property
    def wanted(self) -> list[Action]:
        """What each rank has to do, in no order."""
        kinds: tuple[Literal["F", "B"], ...] = ("F", "B")
        return [Action(kind, k, c) for c in range(self.chunks) for kind in kinds for k in range(self.microbatches)]

    @property
    def is_complete(self) -> bool:
        return all(sorted(actions) == sorted(self.wanted) for actions in self.lists)


def probe(learner: Any, sizes: tuple[Size, ...], seat: Seat) -> Any:
    """Runs in the rank: the schedule for each size."""
    return [learner(*size) for size in sizes]


# --- reading ----------------------------------------------------------------------------------------------------------


def plans(name: str, sizes: Sequence[Size], values: Sequence[Any]) -> list[Plan]:
    """The schedules that came back; one that cannot be read is empty (the first check says so)."""
    return [Plan(name, size, read(value) or []) for size, value in zip(sizes, values, strict=True)]


def asked(bench: Bench, name: str, sizes: tuple[Size, ...]) -> list[Plan]:
    """The schedules for these sizes. Raises Trouble."""
    return plans(name, sizes, bench.run(probe, sizes, n=1).values[0])


def read(value: Any) -> Lists | None:
    """A schedule from a list of lists of actions; None for anything else."""
    if type(value) not in (list, tuple) or not all(type(actions) in (list, tuple) for actions in value):
        return None
    lists = [[action_of(item) for item in actions] for actions in value]
    read_lists = [[action for action in actions if action is not None] for actions in lists]
    return read_lists if read_lists == lists else None


def action_of(item: Any) -> Action | None:
    """An Action from ("F", 3), ("F", 3, 1), "F3" or "F3.1"; None for anything else."""
    if type(item) is str and (match := _WORD.fullmatch(item)):
        return Action("F" if match[1] == "F" else "B", int(match[2]), int(match[3] or 0))
    if type(item) not in (list, tuple) or len(item) not in (2, 3) or item[0] not in ("F", "B"):
        return None
    numbers = whole_numbers(list(item[1:]))
    return None if numbers is None or any(abs(k) > _MANY for k in numbers) else Action(item[0], *numbers)


def unreadable(name: str, sizes: Sequence[Size], values: Sequence[Any]) -> Finding | None:
    """A finding where something is no list of actions for each stage."""
    for size, value in zip(sizes, values, strict=True):
        lists = read(value)
        if lists is not None and len(lists) == size[0]:
            continue
        call = f"{name}({', '.join(map(str, size))})"
        got = f"{call} returned {type_in_words(value)}"
        if lists is not None:
            advice = "Count the lists: one for each stage."
            return Finding(f"{got} lists", f"{size[0]} lists, one for each stage", advice)
        mistake = lazy(value)
        if type(value) in (list, tuple) and value:
            flat = all(action_of(item) is not None for item in value)
            mistake = ONE_LIST if flat else next((found for item in value if (found := lazy(item))), None)
            got += f" with {_first_strange(value)} in it"
        return Finding(got, "a list with a list of actions for each stage", "Print it for 2 stages.", mistake)
    return None


def _first_strange(value: Sequence[Any]) -> str:
    """The first item that is no list of actions, or the first thing in such a list that is no action, in words."""
    for item in value:
        if type(item) not in (list, tuple):
            return f"`{item}`" if type(item) is str and len(item) < 9 else type_in_words(item)
        if action_of(item) is not None:
            return f"the action {action_of(item)}"
        for action in item:
            if action_of(action) is None:
                return _no_action(action)
    return "something else"


def _no_action(item: Any) -> str:
    if type(item) in (list, tuple) and len(item) < 5:
        return f"the action ({', '.join(map(_part, item))})"
    return f'the action "{item}"' if type(item) is str and len(item) < 9 else type_in_words(item)


def _part(part: Any) -> str:
    short = (type(part) is int and abs(part) <= _MANY) or (type(part) is str and len(part) < 9)
    return f"{part!r}" if short else type_in_words(part)


# --- faults -----------------------------------------------------------------------------------------------------------


def not_once(plan: Plan) -> Finding | None:
    """A finding where an action is missing, comes twice, or is none of those asked for."""
    wanted = set(plan.wanted)
    for stage, actions in enumerate(plan.lists):
        counts = Counter(actions)
        strange = [action for action in actions if action not in wanted]
        twice = [action for action in plan.wanted if counts[action] > 1]
        missing = [action for action in plan.wanted if not counts[action]]
        if not (strange or twice or missing):
            continue
        if strange:
            last = f"microbatches 0 to {plan.microbatches - 1}"
            what = f"has {strange[0]}, and there are {last}" + (f", chunks 0 to {plan.chunks - 1}" * (plan.chunks > 1))
        elif missing:
            what = f"lacks {missing[0]}, the {_word(missing[0])} of microbatch {missing[0].microbatch}"
        else:
            what = f"has {twice[0]} {counts[twice[0]]} times"
        got = f"in {plan}, stage {stage} {what}"
        return Finding(got, "", "Count the actions of that stage, in each part of its list.", _miscounted(plan))
    return None


def _word(action: Action) -> str:
    return "forward" if action.kind == "F" else "backward"


def _miscounted(plan: Plan) -> Mistake | None:
    """What is plain from which actions are missing."""
    moved = [sorted(Action(a.kind, a.microbatch - 1, a.chunk) for a in actions) for actions in plan.lists]
    if all(actions == sorted(plan.wanted) for actions in moved):
        return MICROBATCHES_FROM_ONE
    wanted = set(plan.wanted)
    missing = [action for actions in plan.lists for action in wanted - set(actions)]
    extra = any(set(actions) - wanted or len(set(actions)) < len(actions) for actions in plan.lists)
    return MISSING_BACKWARD if missing and not extra and all(action.kind == "B" for action in missing) else None


def turned_round(plan: Plan) -> tuple[str, int, Action] | None:
    """(sentence, stage, action) of the first backward that comes before its forward."""
    for stage, actions in enumerate(plan.lists):
        for place, action in enumerate(actions):
            if action.kind == "B" and Action("F", action.microbatch, action.chunk) not in actions[:place]:
                return f"in {plan}, stage {stage} does {action} before F{repr(action)[1:]}", stage, action
    return None


def out_of_order(plan: Plan, kind: str) -> str:
    """Where the actions of a kind do not go 0, 1, 2, ...; "" where they do."""
    for stage, actions in enumerate(plan.lists):
        own = [action for action in actions if action.kind == kind]
        for before, after in zip(own, own[1:], strict=False):
            if after.microbatch < before.microbatch:
                return f"in {plan}, stage {stage} does {after} after {before}"
    return ""


def waits_for_ever(plan: Plan) -> Finding | None:
    """A finding where stages wait for each other in a circle, though sends never wait."""
    try:
        check_schedule(plan.lists, microbatches=plan.microbatches)
    except DeadlockError as error:
        told = str(error).partition(": ")[2]
        got = f"{plan} waits for ever: {told}"
        return Finding(got, "", "Follow the circle: which of these actions has to come earlier in its list?")
    return None


def holds_too_much(plan: Plan, limits: Sequence[int]) -> Finding | None:
    """A finding where a stage holds more activations than its limit."""
    for stage, (actions, limit) in enumerate(zip(plan.lists, limits, strict=True)):
        if (held := peak_activations(actions)) > limit:
            got = f"in {plan}, stage {stage} holds the activations of {held} microbatches at once"
            return Finding(got, f"at most {limit}", "Count its forwards before its first backward.")
    return None


def seconds(plan: Plan) -> float:
    """The length of the step: forwards of 1, backwards of 2 (a v-th of that with v chunks, counted v times)."""
    pieces = plan.stages * plan.chunks
    lists = tuple(tuple(actions) for actions in plan.lists)
    trace = simulate(pipeline_program(lists, forward=[1.0] * pieces, backward=[2.0] * pieces))
    return max(span.end for span in trace.spans)


def takes_too_long(plan: Plan) -> Finding | None:
    """A finding where the step is longer than (v m + p - 1) forwards and backwards."""
    best, mine = 3 * (plan.chunks * plan.microbatches + plan.stages - 1), seconds(plan)
    if mine <= best:
        return None
    got = f"{plan} is right but slow: {mine:g} units of time where {best} are enough (a forward takes 1, a backward 2)"
    return Finding(got, "", "Draw the stages' rows below each other. Who waits for whom, and could do what meanwhile?")
