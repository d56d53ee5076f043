"""A model in pieces: its layers in order, cut into stages, and what each layer costs on this machine.

Nothing is sent here; `pipeline` runs the pieces on ranks. Where to cut is decided in `spec.split`.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from course.errors import UsageError
from course.gpt.model import GPT
from course.spec.split import stage_sizes


class Embed(nn.Module):
    """The GPT's entrance: tokens (B, T) int64 -> (B, T, C)."""

    def __init__(self, gpt: GPT) -> None:
        super().__init__()
        self.tokens, self.positions, self.dropout = gpt.tokens, gpt.positions, gpt.dropout

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.tokens(x) + self.positions.weight[: x.shape[1]])  # (B, T, C) + (T, C)


class Head(nn.Module):
    """The GPT's exit: (B, T, C) -> logits (B, T, V)."""

    def __init__(self, gpt: GPT) -> None:
        super().__init__()
        self.norm, self.head = gpt.norm, gpt.head

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.norm(x))


def layers_of(model: nn.Module) -> list[nn.Module]:
    """The layers of a GPT (embedding, blocks, head) or of an `nn.Sequential`, in order; the same parameter objects.

    Raises UsageError for a model of which the order of layers is not known.
    """
    if isinstance(model, GPT):
        return [Embed(model), *model.blocks, Head(model)]
    if isinstance(model, nn.Sequential):
        return list(model)
    raise UsageError(
        f"a {type(model).__name__} cannot be cut: only a GPT or an nn.Sequential says in which order its layers run; "
        "put its layers into an nn.Sequential"
    )


def cut_model(model: nn.Module, cuts: Sequence[int]) -> list[nn.Sequential]:
    """The pieces of a model, cut before the layers `cuts`: cuts (2, 5) give layers 0-1, 2-4 and 5 to the end.

    Pieces hold the model's own parameters. Raises UsageError for cuts out of order, and where a piece would be empty.
    """
    layers = layers_of(model)
    sizes = stage_sizes(len(layers), cuts)
    ends = list(itertools.accumulate(sizes))
    return [nn.Sequential(*layers[end - size : end]) for end, size in zip(ends, sizes, strict=True)]


def token_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean cross-entropy in nats: logits (B, T, V), targets (B, T) int64 -> a scalar, as `GPT.loss` has it."""
    return nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


@dataclass(frozen=True, slots=True)
class LayerCost:
    """What one layer took on this machine: seconds of forward and backward, and bytes of parameters and of output."""

    name: str
    forward: float
    backward: float
    parameter_bytes: int
    output_bytes: int


def measure_layers(
    model: nn.Module, inputs: Tensor, targets: Tensor, loss_fn: Callable[[Tensor, Tensor], Tensor], *, repeats: int = 5
) -> list[LayerCost]:
    """The cost of each layer of `model` for one microbatch: CPU seconds of this thread, the median of `repeats` runs.

    Each layer runs alone on the output of the one before; the last one's cost includes the loss. Gradients of the
    model are left as they were. On a GPU, wall seconds between synchronisations.
    """
    costs, x = [], inputs
    layers = layers_of(model)
    for place, layer in enumerate(layers):
        last = place == len(layers) - 1
        runs = [_time_layer(layer, x, targets if last else None, loss_fn) for _ in range(repeats + 1)][1:]
        with torch.no_grad():
            output = layer(x)
        costs.append(
            LayerCost(
                type(layer).__name__,
                statistics.median(forward for forward, _ in runs),
                statistics.median(backward for _, backward in runs),
                sum(p.nbytes for p in layer.parameters()),
                output.nbytes,
            )
        )
        x = output
    return costs


def _time_layer(
    layer: nn.Module, x: Tensor, targets: Tensor | None, loss_fn: Callable[[Tensor, Tensor], Tensor]
) -> tuple[float, float]:
    """Backward adds to gradients that are there already, as it does from the second microbatch on."""
    x = x.detach().requires_grad_(x.is_floating_point())
    kept = [(p, p.grad) for p in layer.parameters()]
    for p, _ in kept:
        p.grad = torch.zeros_like(p)
    start = _now(x)
    output = layer(x)
    loss = output if targets is None else loss_fn(output, targets)
    middle = _now(x)
    if loss.requires_grad:
        loss.backward(torch.ones_like(loss))
    end = _now(x)
    for p, grad in kept:
        p.grad = grad
    return middle - start, end - middle


def _now(x: Tensor) -> float:
    if x.is_cuda:
        torch.cuda.synchronize(x.device)
        return time.perf_counter()
    return time.thread_time()
