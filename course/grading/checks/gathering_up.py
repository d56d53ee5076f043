"""Checks of `accumulate_gradients`: gradient and loss of all samples, and what is held of each pair."""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from course.grading.bench import Bench, Seat
from course.grading.check import Check, Finding
from course.grading.checks.hello import lazy
from course.grading.checks.sharding import random
from course.grading.mistakes import Mistake
from course.grading.mistakes import lesson_04 as known
from course.grading.mistakes.lesson_05 import (
    MEAN_OF_MEANS,
    ONLY_LAST_PAIR,
    OPTIMIZER_CALLED,
    SCALED_BY_SIZE_ONLY,
    SUM_OF_MEANS,
)
from course.grading.plain import Numbers, TensorData, difference, plain, ratio, real_number, same, type_in_words

FEATURES = 6


@dataclass(frozen=True, slots=True)
class Case:
    """Pairs of these sizes; `held`: gradients of an earlier step lie in the module."""

    sizes: tuple[int, ...]
    held: bool = False

    def __str__(self) -> str:
        pairs = f"pairs of {', '.join(map(str, self.sizes))} samples" if len(self.sizes) > 1 else "a single pair"
        return f"with {pairs}" + (" and old gradients" if self.held else "")

    @property
    def total(self) -> int:
        return sum(self.sizes)

    def module(self) -> Any:
        import torch
        from torch import nn

        torch.manual_seed(3)
        held = nn.Sequential(nn.Linear(FEATURES, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 2))
        if self.held:
            for number, p in enumerate(held.parameters()):
                p.grad = random(*p.shape, seed=60 + number)
        return held

    def pairs(self) -> list[tuple[Any, Any]]:
        x, y = random(self.total, FEATURES, seed=71), random(self.total, 2, seed=72)
        x = x * (1 + random(self.total, 1, seed=73).abs())  # so that no two pairs have losses alike
        return list(zip(x.split(self.sizes), y.split(self.sizes), strict=True))


CASES = (Case((5, 1, 3)), Case((2, 7, 1, 4)), Case((6,)))
HELD = (Case((5, 1, 3), held=True), Case((6,), held=True))


def mean_loss(output: Any, target: Any) -> Any:
    """The mean over samples of the squared error."""
    return (output - target).pow(2).sum(dim=1).mean()


# --- in the rank ------------------------------------------------------------------------------------------------------


class Kept:
    """A tensor that backward will need, as long as autograd holds it."""

    __slots__ = ("__weakref__", "tensor")

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor


def _probe(learner: Any, case: Case, seat: Seat) -> Any:
    """What happened, in order: ("F", samples, tensors still held for backward) and ("B",)."""
    import torch

    module = case.module()
    before = [plain(p) for p in module.parameters()]
    events: list[tuple[Any, ...]] = []
    alive: weakref.WeakSet[Kept] = weakref.WeakSet()

    def pack(tensor: Any) -> Kept:
        kept = Kept(tensor)
        alive.add(kept)
        return kept

    def loss_fn(output: Any, target: Any) -> Any:
        loss = mean_loss(output, target)
        if loss.requires_grad:
            loss.register_hook(lambda gradient: events.append(("B",)))
        return loss

    forward = module.forward

    def noted(x: Any) -> Any:
        events.append(("F", len(x), len(alive)))
        return forward(x)

    module.forward = noted
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda kept: kept.tensor):
        returned = learner(module, case.pairs(), loss_fn)
    return {
        "returned": plain(returned),
        "events": events,
        "gradients": {name: plain(p.grad) for name, p in module.named_parameters()},
        "changed": [plain(p) for p in module.parameters()] != before,
    }


# --- in one process ---------------------------------------------------------------------------------------------------


@cache
def gradient(case: Case, weights: tuple[float, ...]) -> dict[str, tuple[float, ...]]:
    """The gradient of the weighted sum of the pairs' losses."""
    import torch

    module = case.module()
    module.zero_grad()
    losses = [mean_loss(module(x), y) * weight for (x, y), weight in zip(case.pairs(), weights, strict=True)]
    torch.autograd.backward(torch.stack(losses).sum())
    return {name: tuple(p.grad.reshape(-1).tolist()) for name, p in module.named_parameters()}


@cache
def losses(case: Case) -> tuple[float, ...]:
    module = case.module()
    return tuple(mean_loss(module(x), y).item() for x, y in case.pairs())


def shares(case: Case) -> tuple[float, ...]:
    return tuple(size / case.total for size in case.sizes)


def _guesses(case: Case) -> Sequence[tuple[Mistake, tuple[float, ...]]]:
    """The weights that known mistakes give to the pairs."""
    m = len(case.sizes)
    nothing = (0.0,) * (m - 1)
    return (
        (SUM_OF_MEANS, (1.0,) * m),
        (MEAN_OF_MEANS, (1 / m,) * m),
        (SCALED_BY_SIZE_ONLY, tuple(map(float, case.sizes))),
        (SCALED_BY_SIZE_ONLY, tuple(size / m for size in case.sizes)),
        *((ONLY_LAST_PAIR, (*nothing, last)) for last in (1.0, shares(case)[-1], 1 / m)),
    )


# --- checks -----------------------------------------------------------------------------------------------------------


def _value(bench: Bench, case: Case) -> Any:
    return bench.run(_probe, case, n=1).values[0]


def _gradients(bench: Bench, cases: Sequence[Case]) -> Finding | None:
    for case in cases:
        value = _value(bench, case)
        if mistake := lazy(value["returned"]):
            return Finding(f"{case}, it returned {type_in_words(value['returned'])}", "", "", mistake)
        want = gradient(case, shares(case))
        found: dict[str, tuple[Any, ...]] = {}
        for name, numbers in value["gradients"].items():
            if type(numbers) is not TensorData or len(numbers.numbers) != len(want[name]):
                got = f"{case}, the gradient of `{name}` is {type_in_words(numbers)}"
                return Finding(got, "", "Where is `backward()` called?")
            found[name] = numbers.numbers
        if not same(found, want):
            return Finding(f"{case}, {_how(found, want)}", "", "", _mistake(case, found, want))
    return None


def _mistake(case: Case, found: Numbers, want: Numbers) -> Mistake | None:
    if case.held:
        old = {name: tuple(p.grad.reshape(-1).tolist()) for name, p in case.module().named_parameters()}
        added = {name: tuple(map(sum, zip(old[name], want[name], strict=True))) for name in want}
        return known.ACCUMULATE_STALE if same(found, added) else None
    if len(case.sizes) == 1:
        return None
    return next((mistake for mistake, weights in _guesses(case) if same(found, gradient(case, weights))), None)


def _how(got: Numbers, want: Numbers) -> str:
    factor = ratio(got, want)
    if factor is not None and abs(factor) > 1e-6:
        return f"your gradient is {factor:.2f} times the reference on every parameter"
    worst = difference(got, want)
    if worst is None:
        return "the gradients differ"
    return f"one number of the gradient of `{worst.worst}` is {worst.got:.4g} where {worst.want:.4g} was expected"


def _loss(bench: Bench) -> Finding | None:
    for case in CASES:
        value = _value(bench, case)["returned"]
        number, want = real_number(value), sum(map(math.prod, zip(losses(case), shares(case), strict=True)))
        if number is None:
            return Finding(f"{case}, it returned {type_in_words(value)}", "the mean loss", "Return one number.")
        if not math.isclose(number, want, rel_tol=1e-4):
            mistake = _loss_mistake(case, number)
            return Finding(f"{case}, it returned {number:.4g}", f"{want:.4g}", "", mistake)
    return None


def _loss_mistake(case: Case, number: float) -> Mistake | None:
    all_of_them, part = losses(case), shares(case)
    m = len(all_of_them)
    guesses = (
        (known.ACCUMULATE_LOSS_LAST, all_of_them[-1]),
        (known.ACCUMULATE_LOSS_LAST, all_of_them[-1] * part[-1]),
        (known.ACCUMULATE_LOSS_MEAN, sum(all_of_them) / m),
        (known.ACCUMULATE_LOSS_MEAN, sum(map(math.prod, zip(all_of_them, part, strict=True))) / m),
        (known.ACCUMULATE_LOSS_SUM, sum(all_of_them)),
        (known.ACCUMULATE_LOSS_SUM, sum(map(math.prod, zip(all_of_them, case.sizes, strict=True)))),
    )
    return next((mistake for mistake, guess in guesses if math.isclose(number, guess, rel_tol=1e-4)), None)


def _one_at_a_time(bench: Bench) -> Finding | None:
    for case in CASES:
        events = _value(bench, case)["events"]
        forwards = [event for event in events if event[0] == "F"]
        m, order = len(case.sizes), "".join(event[0] for event in events)
        if len(forwards) == 1 and forwards[0][1] == case.total and m > 1:
            got = f"{case}, right, but all {case.total} samples go in at once"
            return Finding(got, "", "", known.ACCUMULATE_ONE_BATCH)
        if len(forwards) > m:
            got = f"{case}, right, but the module is called {len(forwards)} times"
            return Finding(got, f"{m} calls", "", known.ACCUMULATE_CALLED_TWICE)
        held = max(event[2] for event in forwards)
        if order != "FB" * m:
            got = f"{case}, right, but forwards and backwards come as {order}"
            return Finding(got, "FB" * m, "", known.ACCUMULATE_ALL_HELD)
        if held:
            got = f"{case}, right, but {held} tensors of earlier pairs are held when the module is called"
            mistake = known.ACCUMULATE_RETAINED if held > m else known.ACCUMULATE_LOSS_ATTACHED
            return Finding(got, "none", "", mistake)
    return None


def _parameters(bench: Bench) -> Finding | None:
    for case in CASES:
        if _value(bench, case)["changed"]:
            return Finding(f"{case}, parameters have changed", "", "", OPTIMIZER_CALLED)
    return None


MEAN = "the gradient of the mean over all samples"

CHECKS = {
    "accumulate_gradients": (
        Check(MEAN, 4, lambda bench: _gradients(bench, CASES), "the gradient of one large batch"),
        Check("old gradients do not count", 1, lambda bench: _gradients(bench, HELD), "the same", needs=MEAN),
        Check("the mean loss comes back", 2, _loss, "the mean over all samples", needs=MEAN),
        Check("one pair at a time", 2, _one_at_a_time, "a forward and a backward for each pair", needs=MEAN),
        Check("the parameters are left alone", 1, _parameters, "parameters as they were", needs=MEAN),
    )
}
