"""Stages for `pipeline_step`: a small model in pieces that take notes, and what one process makes of it. No check.

A stage notes what comes in, in which order forwards and backwards run, and which gradient comes back to it. With a
gate it also waits, in its first action of a kind, until its neighbour has begun its third: that never happens where
sending means waiting for the receiver. So what is told is an order of events, not a time.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from course.grading.plain import TensorData, plain
from course.spec.schedule import gpipe_schedule, one_f_one_b

WIDTH, SHAPE = 8, (2, 3, 8)  # of the activation of a microbatch: 2 samples of 3 tokens
PATIENCE = 1.0  # seconds that a gate waits at most: only a stage that is held up needs them
Actions = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Case:
    """One run: which schedule, for how many microbatches; whether parameters have a gradient beforehand.

    gate: a folder that all ranks see, for a run of 2 ranks with gates.
    """

    schedule: str
    microbatches: int
    before: bool = False
    gate: str = ""

    def actions(self, n: int) -> tuple[Actions, ...]:
        """The list of each of n stages."""
        m = self.microbatches
        if self.schedule == "1F1B":
            return tuple(tuple((a.kind, a.microbatch) for a in actions) for actions in one_f_one_b(n, m))
        if self.schedule == "GPipe":
            return tuple(tuple((a.kind, a.microbatch) for a in actions) for actions in gpipe_schedule(n, m))
        forwards = (*range(1, m), 0)  # a GPipe in an order of its own
        backwards = (*range(m - 2, -1, -1), m - 1)
        return ((*(("F", k) for k in forwards), *(("B", k) for k in backwards)),) * n


def batch(m: int) -> tuple[list[Any], list[Any]]:
    """Inputs and targets: a list of m microbatches each."""
    import torch

    generator = torch.Generator().manual_seed(7)
    x = torch.randn(m, *SHAPE[:-1], 6, generator=generator)
    y = torch.randn(m, *SHAPE[:-1], 2, generator=generator)
    return list(x), [y[k] * (1 + k) for k in range(m)]


def layers(rank: int, n: int) -> Any:
    """The layers of stage `rank` of n; every process makes the same."""
    import torch
    from torch import nn

    torch.manual_seed(50 + rank)
    first, last = rank == 0, rank == n - 1
    body = [nn.Linear(6 if first else WIDTH, WIDTH), nn.Tanh()]
    return nn.Sequential(*body, *([nn.Linear(WIDTH, 2)] if last else []))


def loss_of(output: Any, target: Any) -> Any:
    """The mean squared error."""
    return (output - target).pow(2).mean()


# --- in the rank ------------------------------------------------------------------------------------------------------


def watched(rank: int, n: int, gate: str = "") -> Any:
    """Runs in the rank: stage `rank` of n as a module that takes notes in `.notes`."""
    import torch
    from torch import nn

    class Mark(torch.autograd.Function):
        """Hands on what it gets, both ways, and notes the gradient that comes back."""

        @staticmethod
        def forward(ctx: Any, y: Any, notes: Notes, number: int) -> Any:
            ctx.notes, ctx.number = notes, number
            return y.view_as(y)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            ctx.notes.leave(ctx.number, grads[0])
            return grads[0], None, None

    class Stage(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = layers(rank, n)
            self.notes = Notes(rank, gate)

        def run(self, x: Any) -> Any:
            number = self.notes.enter(x)
            return Mark.apply(self.layers(x), self.notes, number)

    class Body(Stage):
        def forward(self, x: Any) -> Any:
            return self.run(x)

    class Head(Stage):
        def forward(self, x: Any, target: Any) -> Any:
            return loss_of(self.run(x), target)

    kind = Head if rank == n - 1 else Body
    kind.forward.__qualname__ = "stage"  # so errors speak of `stage()`
    return kind()


class Notes:
    """What happened to one stage, in its order; forwards are numbered as they come.

    held_up: the kinds of action for which the neighbour that sends did not come to its third, though it could.
    """

    def __init__(self, rank: int, gate: str = "") -> None:
        self.order: list[tuple[str, int]] = []
        self.inputs: list[Any] = []
        self.gradients: list[tuple[int, Any]] = []
        self.held_up: list[str] = []
        self._held: list[Any] = []  # so that no other input can get the same memory
        self._gate = Path(gate) if gate else None
        self._sends = "F" if rank == 0 else "B"  # what the first of two ranks sends, and the second

    def enter(self, x: Any) -> int:
        """A forward on `x` begins; its number."""
        number = len(self.inputs)
        self.order.append(("F", number))
        self.inputs.append((plain(x.detach().clone()), x.data_ptr()))
        self._held.append(x)
        self._pass_gate("F", number)
        return number

    def leave(self, number: int, gradient: Any) -> None:
        """The backward of forward `number` begins."""
        self.order.append(("B", number))
        self.gradients.append((number, plain(gradient)))
        self._pass_gate("B", len(self.gradients) - 1)

    def _pass_gate(self, kind: str, count: int) -> None:
        if self._gate is None:
            return
        third = self._gate / kind
        if kind == self._sends and count == 2:
            third.touch()
        elif kind != self._sends and count == 0:
            end = time.monotonic() + PATIENCE
            while not third.exists() and time.monotonic() < end:
                time.sleep(0.002)
            if not third.exists():
                self.held_up.append(kind)


# --- one process ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reference:
    """One process. `inputs[r][k]`: what stage r gets; `returned[r][k]`: the gradient of what it hands on; `losses`."""

    gradients: tuple[dict[str, tuple[float, ...]], ...]
    inputs: tuple[tuple[TensorData, ...], ...]
    returned: tuple[tuple[TensorData, ...], ...]
    losses: tuple[float, ...]


@cache
def reference(n: int, m: int) -> Reference:
    """What each of n stages should see, and the gradient of the mean loss over m microbatches."""
    stages = [layers(rank, n) for rank in range(n)]
    inputs, targets = batch(m)
    seen: list[list[Any]] = [[] for _ in stages]
    losses = []
    for x, target in zip(inputs, targets, strict=True):
        for rank, stage in enumerate(stages):
            seen[rank].append(x)
            x = stage(x)
            x.retain_grad()
        loss = loss_of(x, target)
        (loss / m).backward()
        losses.append(loss.item())
    gradients = tuple({name: tuple(p.grad.reshape(-1).tolist()) for name, p in s.named_parameters()} for s in stages)
    returned = tuple(tuple(plain(y.grad) for y in seen[rank + 1]) for rank in range(n - 1))
    return Reference(gradients, tuple(tuple(map(_plain, xs)) for xs in seen), returned, tuple(losses))


def _plain(x: Any) -> TensorData:
    data: TensorData = plain(x.detach())
    return data


def alike(got: Any, want: TensorData, factor: float = 1.0) -> bool:
    """Whether a tensor is `factor` times another, to rounding."""
    if type(got) is not TensorData or got.shape != want.shape:
        return False
    scale = max(abs(factor * number) for number in want.numbers) or 1.0
    return all(abs(a - factor * b) <= 1e-4 * scale for a, b in zip(got.numbers, want.numbers, strict=True))


def place_of(data: Any, among: Sequence[TensorData]) -> int | None:
    """Which of these tensors it is."""
    return next((k for k, other in enumerate(among) if alike(data, other)), None)
