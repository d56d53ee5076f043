"""Layers split over ranks: the whole modules, what a rank does with its part, and the oracle in one process.

Each weight of a whole module has a value that no other has. So the numbers a rank holds tell which part of the module
they are, in whatever shape and order they are kept, and each gradient can be compared with that of the same number in
one process. The comparison is made in `against_one`; what each exercise asks stands in `linears` and `heads`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from course.grading.bench import Seat
from course.grading.plain import plain


@dataclass(frozen=True, slots=True)
class Layer:
    """A kind of layer: how its whole module and its input are made, what a rank needs of it, and what has to travel."""

    make: Callable[[], Any]
    inputs: Callable[[], Any]
    held: Callable[[int], int]  # elements that the busiest of n ranks needs
    reduced: int  # bytes that are all-reduced, forward and backward together
    cut: str = ""  # which of "input" and "output" a rank has a part of only, along `dim`
    dim: int = -1
    biased: bool = True


def distinct(module: Any, scale: float = 0.5) -> Any:
    """The module with numbers for weights of which no two are equal."""
    import torch

    generator = torch.Generator().manual_seed(8)
    parameters = list(module.parameters())
    size = sum(p.numel() for p in parameters)
    numbers = ((torch.randperm(size, generator=generator) + 0.5) / size * 2 - 1) * scale
    with torch.no_grad():
        for p, part in zip(parameters, numbers.split([p.numel() for p in parameters]), strict=True):
            p.copy_(part.view_as(p))
    return module


def random(*shape: int, seed: int) -> Any:
    import torch

    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def part_of(t: Any, layer: Layer, which: str, rank: int, n: int) -> Any:
    """What rank `rank` has of an input or an output."""
    return t.tensor_split(n, layer.dim)[rank].contiguous() if which in layer.cut.split() else t


def probe(learner: Any, layer: Layer, seat: Seat) -> Any:
    """Runs in the rank: split the whole module, forward, backward; everything that came of it, as plain data."""
    import torch

    whole, x = layer.make(), layer.inputs()
    before = [plain(p) for p in whole.parameters()]
    mine = part_of(x, layer, "input", seat.rank, seat.world_size).clone()
    given = plain(mine)
    if mine.is_floating_point():
        mine.requires_grad_()
    split = learner(whole)
    if not isinstance(split, torch.nn.Module):
        return {"module": type(split).__name__}
    output = split(mine)
    gradient = part_of(upstream(layer), layer, "output", seat.rank, seat.world_size)
    fits = isinstance(output, torch.Tensor) and output.shape == gradient.shape
    flows = fits and output.requires_grad
    found = plain(output)
    if flows:
        output.backward(gradient)
    return {
        "module": "",
        "output": found,
        "flows": flows,
        "input gradient": plain(mine.grad),
        "weights": [(plain(p), plain(p.grad)) for p in split.parameters()],
        "changed": plain(mine) != given,
        "whole changed": [plain(p) for p in whole.parameters()] != before,
    }


@cache
def upstream(layer: Layer) -> Any:
    """The gradient of the loss with respect to the whole output."""
    import torch

    with torch.no_grad():
        return random(*layer.make()(layer.inputs()).shape, seed=9)


@dataclass(frozen=True, slots=True)
class Oracle:
    """One process: the output, the gradient of the input (None for tokens), and of each weight, by its value."""

    output: Any
    input_gradient: Any
    gradients: dict[float, float]


@cache
def oracle(layer: Layer) -> Oracle:
    whole, x = layer.make(), layer.inputs()
    if x.is_floating_point():
        x.requires_grad_()
    output = whole(x)
    output.backward(upstream(layer))
    gradients = {}
    for p in whole.parameters():
        gradients |= dict(zip(p.reshape(-1).tolist(), p.grad.reshape(-1).tolist(), strict=True))
    return Oracle(output.detach(), x.grad, gradients)
