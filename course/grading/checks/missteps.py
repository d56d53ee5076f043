"""What went wrong in a `pipeline_step`: told from what each stage noted, or from how the ranks stopped. No check."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from course.grading.bench import Result, Trouble
from course.grading.checks import stages as st
from course.grading.mistakes import Mistake
from course.grading.mistakes.lesson_07 import (
    BACKWARD_FORGOTTEN,
    BUFFER_REUSED,
    DETACHED_KEPT,
    DIVIDED_BY_RANKS,
    GRADIENT_NOT_USED,
    LOSS_NOT_DIVIDED,
    LOSS_OF_ONE,
    LOSS_SUMMED,
    NO_INPUT_GRADIENT,
    SAME_INPUT,
    SEND_HOLDS_UP,
    WRONG_GRADIENT_SENT,
)
from course.grading.plain import TensorData, ratio


def said(trouble: Trouble) -> Mistake | None:
    """The mistake behind an error, or behind ranks that wait for each other."""
    if trouble.kind == "stalled":
        return SEND_HOLDS_UP if "send" in trouble.got and "recv" not in trouble.got else None
    if trouble.kind != "raised":
        return None
    if "modified by an inplace operation" in trouble.got or "through the graph a second time" in trouble.got:
        return BUFFER_REUSED
    if "does not require grad and does not have a grad_fn" in trouble.got:
        return DETACHED_KEPT
    nothing = ("NoneType", "Expected parameter `tensor` of type torch.Tensor")
    return NO_INPUT_GRADIENT if any(words in trouble.got for words in nothing) else None


def behind(result: Result, case: st.Case, n: int) -> Mistake | None:
    """The mistake behind gradients that are not those of one process."""
    want, values = st.reference(n, case.microbatches), result.values
    if mistake := _by_factor(values, case.microbatches, want):
        return mistake
    if any(sum(kind == "B" for kind, _ in value["order"]) < case.microbatches for value in values):
        return BACKWARD_FORGOTTEN
    if any(_reused(value) for value in values[1:]):
        return BUFFER_REUSED
    for rank, value in enumerate(values):
        which = [st.place_of(data, want.inputs[rank]) for data, _ in value["inputs"]]
        if rank == 0 and len(set(which)) == 1 and case.microbatches > 1:
            return SAME_INPUT
        if None in which or len(set(which)) < case.microbatches:
            return None
    return next((mistake for rank in reversed(range(n - 1)) if (mistake := _came_back(values, rank, want))), None)


def _by_factor(values: Sequence[Any], m: int, want: st.Reference) -> Mistake | None:
    factors = set()
    for value, wanted in zip(values, want.gradients, strict=True):
        found = {k: v.numbers for k, v in value["gradients"].items() if type(v) is TensorData}
        if any(len(found.get(name, ())) != len(numbers) for name, numbers in wanted.items()):
            return None
        factor = ratio(found, wanted)
        factors.add(None if factor is None else round(factor, 3))
    if len(factors) != 1 or None in factors:
        return None
    factor, n = factors.pop() or 0.0, len(values)
    if math.isclose(factor, m, rel_tol=1e-2):
        return LOSS_NOT_DIVIDED
    return DIVIDED_BY_RANKS if math.isclose(factor, m / n, rel_tol=1e-2) else None


def _reused(value: Any) -> bool:
    """Whether what came in for a microbatch lies where that of another lay whose backward was still to come."""
    held: dict[int, int] = {}
    for kind, number in value["order"]:
        if kind == "B":
            held.pop(number, None)
        elif value["inputs"][number][1] in held.values():
            return True
        else:
            held[number] = value["inputs"][number][1]
    return False


def _came_back(values: Sequence[Any], rank: int, want: st.Reference) -> Mistake | None:
    """The mistake behind the gradients that came back to a stage; None where they are right."""
    which = [st.place_of(data, want.inputs[rank]) for data, _ in values[rank]["inputs"]]
    pairs = [(gradient, want.returned[rank][which[number] or 0]) for number, gradient in values[rank]["came_back"]]
    if all(st.alike(gradient, wanted) for gradient, wanted in pairs):
        return None
    found = [set(gradient.numbers) if type(gradient) is TensorData else set() for gradient, _ in pairs]
    if all(numbers == {0.0} for numbers in found):
        return NO_INPUT_GRADIENT
    return GRADIENT_NOT_USED if all(len(numbers) == 1 for numbers in found) else WRONG_GRADIENT_SENT


def after_loss(number: float, losses: Sequence[float]) -> Mistake | None:
    """The mistake behind a loss that is not the mean."""
    if math.isclose(number, sum(losses), rel_tol=1e-4):
        return LOSS_SUMMED
    m = len(losses)
    one = any(math.isclose(number, loss / k, rel_tol=1e-4) for loss in losses for k in (1, m))
    return LOSS_OF_ONE if one else None
