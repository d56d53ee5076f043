"""A rank's part of the model of `hybrid_step`: it runs forward and backward, and takes notes. No check.

It adds nothing up over ranks but what forward and backward need: that is left to the learner's step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from course.grading.bench import Seat
from course.grading.checks.hybrid_model import (
    BLOCKS,
    MICROBATCHES,
    RATE,
    TIME,
    VOCAB,
    WIDTH,
    Mesh,
    cut_of,
    names_of,
    shard_of,
    weights,
)
from course.grading.plain import plain
from course.spec.layout import axis_groups


def groups_of(mesh: Mesh, rank: int) -> dict[str, Any]:
    """The process groups of a rank, by name; every rank makes all of them, in the same order."""
    import torch.distributed as dist

    wanted = {axis: axis_groups(axis, **mesh.sizes) for axis in ("dp", "pp", "tp")}
    wanted["ends"] = [sorted({group[0], group[-1]}) for group in wanted["pp"]]
    wanted["model"] = [mesh.ranks(d * mesh.tp, ("pp", "tp")) for d in range(mesh.dp)]
    made: dict[tuple[int, ...], Any] = {}
    mine: dict[str, Any] = {"ends": None}
    for kind, lists in wanted.items():
        for ranks in lists:
            key = tuple(ranks)
            if key not in made:
                made[key] = dist.new_group(ranks)
            if rank in ranks:
                mine[kind] = made[key]
    return mine


def stage_of(mesh: Mesh, seat: Seat, groups: Mapping[str, Any]) -> Any:
    """Runs in the rank: its part of the model, with `shards`, `copies`, `tied`, `forward_backward` and `notes`."""
    from torch import nn

    from course.ranks import calls_made

    class Stage(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            whole = weights()
            for name in names_of(mesh, seat.rank):
                own = shard_of(whole[name], name, mesh, seat.rank).clone()
                self.register_parameter(name, nn.Parameter(own))
            held = dict(self.named_parameters())
            self.shards = [p for name, p in held.items() if cut_of(name) is not None]
            self.copies = [p for name, p in held.items() if cut_of(name) is None]
            self.notes: list[dict[str, Any]] = []

        @property
        def tied(self) -> Any:
            return self._parameters.get("tokens")

        def forward_backward(self, x: Any, y: Any) -> Any:
            """Adds to each `.grad` that of the mean loss over x, y; the mean loss on the last stage, else None."""
            before: list[Any] = [p.grad for p in self.parameters()]
            for p in self.parameters():
                p.grad = None
            first_call = calls_made()
            loss = _forward_backward(self, mesh, seat.rank, groups["tp"], x, y)
            note = {"x": plain(x), "y": plain(y), "calls": (first_call, calls_made()), "loss": loss}
            self.notes.append({**note, "gradients": gradients_of(self)})
            for p, old in zip(self.parameters(), before, strict=True):
                p.grad = p.grad if old is None else old + p.grad
            return loss

    return Stage()


def optimizer_of(stage: Any) -> Any:
    """Plain SGD on a stage; `taken` lists the gradients that each step met."""
    import torch

    class Noted(torch.optim.SGD):
        taken: list[dict[str, Any]]

        def step(self, closure: Any = None) -> Any:
            self.taken.append(gradients_of(stage))
            return super().step(closure)

    made = Noted(stage.parameters(), lr=RATE)
    made.taken = []
    return made


def gradients_of(stage: Any) -> dict[str, Any]:
    """The gradients of a stage, by name, in plain data."""
    return {name: plain(p.grad) for name, p in stage.named_parameters()}


def _forward_backward(stage: Any, mesh: Mesh, rank: int, tp: Any, x: Any, y: Any) -> float | None:
    """All microbatches forward, then all backward; activations go to the next stage, gradients to the one before."""
    import torch
    import torch.distributed as dist

    chain = mesh.ranks(rank, ("pp",))
    place = chain.index(rank)
    last = len(chain) - 1
    held: list[tuple[Any, Any]] = []
    total = 0.0
    for mine, target in zip(*(t.tensor_split(min(MICROBATCHES, len(x))) for t in (x, y)), strict=True):
        entered = None
        if place > 0:
            entered = torch.empty(len(mine), TIME // mesh.tp, WIDTH)
            dist.recv(entered, chain[place - 1])
            entered.requires_grad_()
        output = _piece(stage, mesh, mesh.place(rank), tp, mine if entered is None else entered, target)
        if place == last:
            output = output * (len(mine) / len(x))
            total += output.item()
        else:
            dist.send(output.detach(), chain[place + 1])
        held.append((entered, output))
    for entered, output in held:
        gradient = None
        if place < last:
            gradient = torch.empty_like(output)
            dist.recv(gradient, chain[place + 1])
        output.backward(gradient)
        if entered is not None:
            dist.send(entered.grad, chain[place - 1])
    return total if place == last else None


def _piece(stage: Any, mesh: Mesh, place: Mapping[str, int], tp: Any, x: Any, target: Any) -> Any:
    """One stage's forward: (B, T/tp, C) to hand on, or the mean loss."""
    import torch.nn.functional as F

    from course.parallel.tensor import gather_sequence, scatter_sequence, vocab_parallel_cross_entropy

    start = place["tp"] * (VOCAB // mesh.tp)
    if place["pp"] == 0:
        elsewhere = (x < start) | (x >= start + VOCAB // mesh.tp)
        rows = F.embedding((x - start).masked_fill(elsewhere, 0), stage.tokens).masked_fill(elsewhere[..., None], 0.0)
        x = scatter_sequence(rows, 1, tp)
    for block in mesh.blocks(place["pp"]):
        inner = F.gelu(F.linear(gather_sequence(_norm(stage, block, x), 1, tp), *_of(stage, block, "up", "up_bias")))
        down, bias = _of(stage, block, "down", "down_bias")
        x = x + scatter_sequence(F.linear(inner, down), 1, tp) + bias
    if place["pp"] < mesh.pp - 1:
        return x
    logits = F.linear(gather_sequence(_norm(stage, BLOCKS, x), 1, tp), stage.tokens)
    return vocab_parallel_cross_entropy(logits, target, start, group=tp)


def _norm(stage: Any, block: int, x: Any) -> Any:
    import torch.nn.functional as F

    return F.layer_norm(x, (WIDTH,), *_of(stage, block, "scale", "shift"))


def _of(stage: Any, block: int, *kinds: str) -> list[Any]:
    return [getattr(stage, f"{kind}_{block}") for kind in kinds]
