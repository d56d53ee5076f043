"""All the ways of splitting at once: one GPT trained on dp x pp x tp ranks, with the losses of one process.

The order of wrapping stands in `HybridGPT.__init__`: tensor inside each layer, pipeline over layers, data around all.
Which rank sits where is `spec.layout`'s business; how to save and resume, `checkpoint`'s.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Iterable, Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed import ProcessGroup
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from course.gpt.model import GPT
from course.parallel.pipeline import Pipeline
from course.parallel.tensor import tensor_parallel_layers, vocab_parallel_cross_entropy, vocabulary_share
from course.spec.layout import AXES, Layout
from course.spec.schedule import Schedule, one_f_one_b
from course.spec.split import split_layers, stage_sizes

FLAT_BYTES = 25_000_000  # gradients averaged over dp in one message, at most


class HybridGPT(nn.Module):
    """This rank's part of a GPT under a layout.

        model = HybridGPT(gpt, Layout(dp=2, pp=2, tp=2), microbatches=4)      # the whole GPT, the same on every rank
        optimizer = model.make_optimizer(lr=5e-4)
        loss = model.step(x, y)              # the whole batch on every rank; the mean loss, on every rank
        norm = model.clip_gradients(1.0)
        optimizer.step(); optimizer.zero_grad()

    microbatches: of each rank's share of the batch. schedule(pp, microbatches): 1F1B unless another is given.
    cuts: layers before each cut, of embedding, blocks and head; None cuts by the FLOPs of each.
    sequence: sequence parallel norms and dropout. recompute: forward again before backward. seed: of dropout, which
    differs along dp and pp; along tp, where all ranks hold the same activations, it is the same, and with `sequence`,
    where each has its own, it differs. autocast: a dtype, such as torch.bfloat16,
    to compute in; weights and gradients stay as they are.
    Bytes a rank and step: those of its tensor layers (see `tensor_parallel_layers`) and its pipeline, and an all-reduce
    of its gradients over dp.
    Raises UsageError where the layout does not fit the ranks or the GPT, with layouts that do.
    """

    def __init__(
        self,
        gpt: GPT,
        layout: Layout,
        *,
        microbatches: int = 1,
        schedule: Callable[[int, int], Schedule] = one_f_one_b,
        cuts: Sequence[int] | None = None,
        sequence: bool = False,
        recompute: bool = False,
        seed: int = 0,
        autocast: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        layout.check(dist.get_world_size(), gpt.spec)
        self.layout, self.spec, self.autocast = layout, gpt.spec, autocast
        device = next(gpt.parameters()).device.type
        self.mesh: DeviceMesh = init_device_mesh(device, tuple(layout.sizes.values()), mesh_dim_names=AXES)
        self.groups: dict[str, ProcessGroup] = {axis: self.mesh.get_group(axis) for axis in AXES}
        self.index = {axis: self.mesh.get_local_rank(axis) for axis in AXES}

        # tensor: inside each layer
        layers = tensor_parallel_layers(gpt, group=self.groups["tp"], sequence=sequence)
        # pipeline: layers over stages
        cuts = split_layers(layer_flops(gpt), layout.pp) if cuts is None else cuts
        self.sizes = stage_sizes(len(layers), cuts)
        ends = itertools.accumulate(self.sizes)
        pieces = [nn.Sequential(*layers[end - size : end]) for end, size in zip(ends, self.sizes, strict=True)]
        self.pipeline = Pipeline(
            pieces, schedule(layout.pp, microbatches), loss_fn=self._loss, group=self.groups["pp"], recompute=recompute
        )
        # data: copies of all that, each on its own part of the batch (see `step`)

        self._model_group = _model_group(self.mesh)
        self._second_holders = _held_before(pieces, self.index["pp"])
        place = (self.index["dp"] * layout.pp + self.index["pp"]) * layout.tp + (self.index["tp"] if sequence else 0)
        torch.manual_seed(seed * 1_000_003 + place)

    @property
    def first_layer(self) -> int:
        """The number, in the whole GPT, of this stage's first layer."""
        return sum(self.sizes[: self.index["pp"]])

    def whole_names(self) -> dict[str, nn.Parameter]:
        """This rank's parameters by the names that they have in the whole GPT; a tied weight has the embedding's."""
        renamed = {"positions": "positions.weight", "head.weight": "tokens.weight" if self.spec.tied else "head.weight"}
        names = {}
        for place, layer in enumerate(self.pipeline.pieces[0], start=self.first_layer):
            block = f"blocks.{place - 1}." if 0 < place <= self.spec.layers else ""
            for name, parameter in layer.named_parameters():
                name = renamed.get(name, name).replace("attention.weight", "attention.qkv.weight")
                names[block + name.replace("attention.bias", "attention.qkv.bias")] = parameter
        return names

    def _loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        group = self.groups["tp"]
        start = vocabulary_share(self.spec.vocab, group).start
        return vocab_parallel_cross_entropy(logits.float(), targets, start, group=group)

    def step(self, x: Tensor, y: Tensor, *, accumulate: int = 1) -> float:
        """Forward and backward of one batch x, y (B, T) int64; each `.grad` becomes that of the mean over all of it.

        Every rank is given the whole batch and takes its part along dp; B must divide by dp. accumulate: parts of a
        rank's share that go through the pipeline one after another. Returns the mean loss, in nats, on every rank.
        """
        self.layout.check(dist.get_world_size(), self.spec, batch=len(x))
        self.zero_grad()
        mine = [t.chunk(self.layout.dp)[self.index["dp"]] for t in (x, y)]
        total = torch.zeros((), dtype=torch.float64, device=x.device)
        for part_x, part_y in zip(*(t.tensor_split(accumulate) for t in mine), strict=True):
            share = len(part_x) / len(mine[0])
            with self._precision(x.device.type):
                loss = self.pipeline.step(part_x, part_y, weight=share)
            if loss is not None:
                total += share * loss.double()
        self._average(total)
        return total.item()

    def _precision(self, device: str) -> contextlib.AbstractContextManager[object]:
        return torch.autocast(device, dtype=self.autocast) if self.autocast else contextlib.nullcontext()

    def _average(self, loss: Tensor) -> None:
        """Gradients and loss, averaged over dp; the loss of the last stage, given to all stages."""
        dp, pp = self.groups["dp"], self.groups["pp"]
        if self.layout.pp > 1:
            dist.all_reduce(loss, group=pp)  # the other stages bring 0
        if self.layout.dp > 1:
            dist.all_reduce(loss, group=dp)
            loss /= self.layout.dp
            for flat in flat_gradients(self.parameters(), dp):
                flat /= self.layout.dp

    def clip_gradients(self, max_norm: float) -> float:
        """The norm of the gradient of the whole GPT; scales the gradients down to `max_norm` where it is larger.

        Each shard counts on its own rank, what all ranks of tp hold counts once, and so does a tied embedding.
        """
        counted = [p for p in self.parameters() if id(p) not in self._second_holders and p.grad is not None]
        sharded = [p for p in counted if getattr(p, "is_shard", False)]
        whole = [p for p in counted if not getattr(p, "is_shard", False)]
        norm = gradient_norm([(sharded, self._model_group), (whole, self.groups["pp"])])
        scale_gradients(self.parameters(), norm, max_norm)
        return norm

    def make_optimizer(self, *, lr: float = 5e-4, kind: str = "adamw", zero: bool = False) -> torch.optim.Optimizer:
        """AdamW without weight decay, or plain "sgd", on this rank's parameters. zero: its state is split over dp
        (ZeRO-1, Rajbhandari et al. 2020), by torch's ZeroRedundancyOptimizer."""
        made = torch.optim.SGD if kind == "sgd" else torch.optim.AdamW
        settings = {"lr": lr} if kind == "sgd" else {"lr": lr, "weight_decay": 0.0}
        if zero:
            from torch.distributed.optim import ZeroRedundancyOptimizer  # slow to import, and seldom asked for

            return ZeroRedundancyOptimizer(
                self.parameters(), optimizer_class=made, process_group=self.groups["dp"], **settings
            )
        return made(self.parameters(), **settings)


def layer_flops(gpt: GPT) -> list[float]:
    """FLOPs a token of each layer's forward: embedding (a look-up: next to none), blocks, head."""
    spec = gpt.spec
    block = 2 * (4 * spec.width**2 + 2 * spec.width * spec.hidden) + 4 * spec.context * spec.width
    return [float(spec.width), *[float(block)] * spec.layers, 2.0 * spec.vocab * spec.width]


def flat_gradients(parameters: Iterable[nn.Parameter], group: ProcessGroup) -> Iterable[Tensor]:
    """Sums gradients over `group` in few large messages; yields each sum, to be divided, before it is written back."""
    holders = [p for p in parameters if p.requires_grad]
    for p in holders:
        if p.grad is None:
            p.grad = torch.zeros_like(p)
    bucket: list[nn.Parameter] = []
    size = 0
    for place, p in enumerate(holders):
        bucket.append(p)
        size += p.nbytes
        full = size >= FLAT_BYTES
        if full or place == len(holders) - 1 or holders[place + 1].dtype != p.dtype:
            flat = torch.cat([q.grad.flatten() for q in bucket])
            dist.all_reduce(flat, group=group)
            yield flat
            for q, part in zip(bucket, flat.split([q.numel() for q in bucket]), strict=True):
                q.grad.copy_(part.view_as(q))
            bucket, size = [], 0


def gradient_norm(entries: Sequence[tuple[Sequence[nn.Parameter], ProcessGroup | None]]) -> float:
    """The norm over all gradients: of each entry, the squares are summed over its group (None: over this rank alone).

    Sent: one number an entry with a group. All ranks of the groups get the same norm, to the bit.
    """
    total = 0.0
    for parameters, group in entries:
        square = torch.zeros((), dtype=torch.float64)
        for p in parameters:
            if p.grad is not None:
                square += p.grad.double().square().sum().cpu()
        if group is not None and dist.get_world_size(group) > 1:
            square = square.to(parameters[0].device if parameters else "cpu")
            dist.all_reduce(square, group=group)
        total += square.item()
    return math.sqrt(total)


def scale_gradients(parameters: Iterable[nn.Parameter], norm: float, max_norm: float) -> None:
    """Multiplies all gradients so that a norm above `max_norm` becomes `max_norm`; as `clip_grad_norm_` does it."""
    if norm > max_norm:
        for p in parameters:
            if p.grad is not None:
                p.grad.mul_(max_norm / (norm + 1e-6))


def clip_gradients_sharded(
    entries: Sequence[tuple[Sequence[nn.Parameter], ProcessGroup | None]], max_norm: float
) -> float:
    """Clips gradients that are split over ranks, as if one rank had them all; returns the norm before.

    entries: (parameters, the group that they are split over, or None where every rank holds them whole).
    """
    norm = gradient_norm(entries)
    scale_gradients((p for parameters, _ in entries for p in parameters), norm, max_norm)
    return norm


def _model_group(mesh: DeviceMesh) -> ProcessGroup:
    """The ranks that hold one copy of the model together: all of pp and tp, at this rank's place in dp.

    Every rank makes the groups of all copies: gloo numbers the groups that a process has made.
    """
    copies = [mesh.mesh[:, index, :].flatten().tolist() for index in range(mesh.size(1))]
    groups = [dist.new_group(sorted(ranks)) for ranks in copies]
    return groups[mesh.get_local_rank("dp")]


def _held_before(pieces: Sequence[nn.Module], stage: int) -> set[int]:
    """ids of this stage's parameters that an earlier stage holds too: they count there."""
    earlier = {id(p) for piece in pieces[:stage] for p in piece.parameters()}
    return {id(p) for p in pieces[stage].parameters() if id(p) in earlier}
