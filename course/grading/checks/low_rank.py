"""Low-rank adapters: the layers they are made from, what a rank does with one, and the formula in one process.

What is compared, and which mistakes have names, stands in `adapting`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from course.grading.bench import Seat
from course.grading.check import Finding
from course.grading.checks.against_one import first_wrong, flat
from course.grading.checks.cost import outcome
from course.grading.checks.messages import close
from course.grading.checks.sharding import random
from course.grading.mistakes import Mistake
from course.grading.plain import TensorData, plain, type_in_words

TOLERANCE = 3e-5


@dataclass(frozen=True, slots=True)
class Case:
    """One layer and what it is made with. No two of its sizes are equal."""

    inside: int
    outside: int
    rank: int
    alpha: float
    biased: bool = True
    tokens: tuple[int, ...] = (2, 3)

    def __str__(self) -> str:
        bias = "" if self.biased else ", bias=False"
        return f"LoRALinear(nn.Linear({self.inside}, {self.outside}{bias}), {self.rank}, {self.alpha})"

    @property
    def scale(self) -> float:
        return self.alpha / self.rank

    def linear(self) -> Any:
        """The layer that is handed in."""
        import torch

        linear = torch.nn.Linear(self.inside, self.outside, bias=self.biased)
        with torch.no_grad():
            linear.weight.copy_(random(self.outside, self.inside, seed=41))
            if self.biased:
                linear.bias.copy_(random(self.outside, seed=42))
        return linear

    def x(self) -> Any:
        return random(*self.tokens, self.inside, seed=43)

    def upstream(self) -> Any:
        return random(*self.tokens, self.outside, seed=44)


CASES = (
    Case(7, 5, 2, 16.0),
    Case(5, 11, 3, 2.0, tokens=(4,)),
    Case(8, 6, 3, 1.0, biased=False),
    Case(9, 4, 1, 0.5, tokens=(2, 2, 3)),
)
IMPOSSIBLE = (Case(7, 5, 0, 16.0), Case(7, 5, -1, 16.0))


# --- in the rank ------------------------------------------------------------------------------------------------------


def made(learner: Any, case: Case) -> tuple[Any, Any]:
    linear = case.linear()
    return linear, learner(linear, case.rank, case.alpha)


def base(linear: Any) -> list[Any]:
    return [plain(p) for p in linear.parameters()]


def trained_by(layer: Any) -> list[Any]:
    return [p for p in layer.parameters() if p.requires_grad]


def fill(layer: Any) -> None:
    """Other numbers for everything that is trained, as after some steps."""
    import torch

    with torch.no_grad():
        for number, p in enumerate(trained_by(layer)):
            p.copy_(random(*p.shape, seed=50 + number))


def probe_start(learner: Any, case: Case, seat: Seat) -> Any:
    import torch

    linear, layer = made(learner, case)
    if not isinstance(layer, torch.nn.Module):
        return {"module": type(layer).__name__}
    return {
        "module": "",
        "trained": [plain(p) for p in trained_by(layer)],
        "output": plain(layer(case.x())),
        "base": base(linear),
    }


def probe_filled(learner: Any, case: Case, seat: Seat) -> Any:
    import torch

    linear, layer = made(learner, case)
    fill(layer)
    x = case.x().requires_grad_()
    given, output = plain(x), layer(x)
    found = plain(output)
    if isinstance(output, torch.Tensor) and output.shape == case.upstream().shape and output.requires_grad:
        torch.autograd.backward(output, case.upstream())
    return {
        "trained": [plain(p) for p in trained_by(layer)],
        "output": found,
        "gradients": [plain(p.grad) for p in trained_by(layer)],
        "input gradient": plain(x.grad),
        "changed": plain(x) != given,
        "base trained": any(p.grad is not None for p in linear.parameters()),
        "base": base(linear),
    }


def probe_merged(learner: Any, case: Case, seat: Seat) -> Any:
    import torch

    linear, layer = made(learner, case)
    fill(layer)
    merged = layer.merged()
    kind = type(merged).__name__
    if not isinstance(merged, torch.nn.Linear) or isinstance(merged, type(layer)):
        return {"kind": kind}
    return {
        "kind": "",
        "trained": [plain(p) for p in trained_by(layer)],
        "output": plain(merged(case.x())),
        "bias": merged.bias is not None,
        "again": plain(layer(case.x())),
        "base": base(linear),
    }


def probe_refusals(learner: Any, cases: tuple[Case, ...], seat: Seat) -> Any:
    return [outcome(lambda case=case: type(made(learner, case)[1]).__name__) for case in cases]  # type: ignore[misc]


# --- in one process ---------------------------------------------------------------------------------------------------


def tensor(data: TensorData) -> Any:
    import torch

    return torch.tensor(data.numbers, dtype=torch.float32).view(data.shape)


def factors(case: Case, trained: Sequence[TensorData]) -> tuple[Any, Any] | None:
    """A (rank, in) and B (out, rank) among what is trained, whatever their layout; None where they are not there."""
    if len(trained) != 2:
        return None
    sizes = {len(data.numbers): tensor(data) for data in trained}
    if set(sizes) != {case.rank * case.inside, case.outside * case.rank}:
        return None
    a, b = sizes[case.rank * case.inside], sizes[case.outside * case.rank]
    a = a.t() if a.shape == (case.inside, case.rank) else a.reshape(case.rank, case.inside)
    b = b.t() if b.shape == (case.rank, case.outside) else b.reshape(case.outside, case.rank)
    return a, b


def output_of(case: Case, a: Any, b: Any, *, x: Any = None, scale: float | None = None) -> Any:
    """linear(x) + scale · x Aᵀ Bᵀ."""
    linear, x = case.linear(), case.x() if x is None else x
    whole = x @ linear.weight.T + (linear.bias if case.biased else 0.0)
    return whole + (case.scale if scale is None else scale) * (x @ a.T @ b.T)


def agrees(got: Any, want: Any) -> bool:
    same_shape = type(got) is TensorData and got.shape == tuple(want.shape)
    return same_shape and close(got.numbers, flat(want), TOLERANCE)


def wrong(what: str, got: Any, want: Any, mistake: Mistake | None = None, advice: str = "") -> Finding | None:
    """A finding where a tensor that came back is not the one expected."""
    if agrees(got, want):
        return None
    if type(got) is not TensorData or got.shape != tuple(want.shape):
        said = f"{what} is {type_in_words(got)}"
        return Finding(said, f"a tensor of shape {tuple(want.shape)}", advice or "Write the shapes beside each line.")
    return Finding(f"{what} is {first_wrong(got.numbers, flat(want))}", "", advice, mistake)


def base_changed(case: Case, value: Any) -> bool:
    return bool(value["base"] != base(case.linear()))
