"""Tensor and hybrid parallel steps beside torch's own ways, and what eight ranks of the lesson's GPT take.

Run by `make bench`, which prints the figures; ratios are medians over rounds taken in turn within one run.
"""

from __future__ import annotations

import os
import statistics
import time

import psutil
import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel

from course.gpt import make_gpt
from course.parallel.hybrid import HybridGPT
from course.parallel.tensor import TensorParallelGPT
from course.ranks import Ranks
from course.spec import LESSON_GPT, ModelSpec
from course.spec.layout import Layout

WARM_UP, ROUNDS = 4, 24
UNTIED = ModelSpec(tied=False)  # torch's pipelining knows no tied weights
BATCH, TIME = 32, LESSON_GPT.context

pytestmark = pytest.mark.timeout(600)


def report(capsys, text):
    with capsys.disabled():
        print(f"\n  {text}", end="")


def batch():
    return torch.randint(0, 256, (2, BATCH, TIME), generator=torch.Generator().manual_seed(0))


def in_turn(arms):
    """Seconds of each arm's steps; a step starts and ends with all ranks together."""
    seconds = {name: [] for name in arms}
    for i in range(WARM_UP + ROUNDS):
        for name in sorted(arms, reverse=i % 2 == 1):
            dist.barrier()
            start = time.perf_counter()
            arms[name]()
            dist.barrier()
            if i >= WARM_UP:
                seconds[name].append(time.perf_counter() - start)
    return seconds


class SplitAttention(nn.Module):
    """The attention of the GPT with q, k and v as three layers, as DTensor needs them to cut heads."""

    def __init__(self, attention):
        super().__init__()
        self.heads, width = attention.heads, attention.out.in_features
        self.parts = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        for part, weight, bias in zip(
            self.parts, attention.qkv.weight.chunk(3), attention.qkv.bias.chunk(3), strict=True
        ):
            part.weight, part.bias = (nn.Parameter(t.detach().clone()) for t in (weight, bias))
        self.out = attention.out

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (part(x).view(B, T, -1, C // self.heads).transpose(1, 2) for part in self.parts)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(B, T, -1))


def with_dtensor(gpt, mesh):
    from torch.distributed.tensor import Replicate
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    columns, rows = ColwiseParallel(), RowwiseParallel()
    for block in gpt.blocks:
        block.attention = SplitAttention(block.attention)
        plan = {f"attention.parts.{k}": columns for k in range(3)} | {"attention.out": rows}
        parallelize_module(block, mesh, plan | {"mlp.up": columns, "mlp.down": rows})
    parallelize_module(gpt, mesh, {
        "tokens": RowwiseParallel(input_layouts=Replicate()), "head": ColwiseParallel(use_local_output=False),
    })  # fmt: skip
    return gpt


def race_tensor(spec, rank, world_size):
    from torch.distributed.tensor.parallel import loss_parallel

    x, y = batch()
    ours = TensorParallelGPT(make_gpt(0, spec=spec)[0])
    theirs = with_dtensor(make_gpt(0, spec=spec)[0], init_device_mesh("cpu", (world_size,)))
    losses = {}

    def our_step():
        ours.zero_grad()
        loss = ours.loss(x, y)
        loss.backward()
        losses["ours"] = loss.item()

    def their_step():
        theirs.zero_grad()
        with loss_parallel():
            loss = nn.functional.cross_entropy(theirs(x).flatten(0, 1), y.flatten())
            loss.backward()
        losses["torch"] = loss.full_tensor().item()

    seconds = in_turn({"ours": our_step, "torch": their_step})
    ours_up = ours.layers[1].mlp.up.weight.grad
    theirs_up = theirs.blocks[0].mlp.up.weight.grad.to_local()
    assert abs(losses["ours"] - losses["torch"]) < 1e-5 and torch.allclose(ours_up, theirs_up, atol=1e-6)
    return seconds


def stage_of(gpt, index):
    """One of two stages, as modules that torch's PipelineStage takes."""

    class First(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.positions = gpt.tokens, gpt.positions
            self.blocks = nn.ModuleList(gpt.blocks[:2])

        def forward(self, x):
            h = self.tokens(x) + self.positions.weight[: x.shape[1]]
            for block in self.blocks:
                h = block(h)
            return h

    class Last(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks, self.norm, self.head = nn.ModuleList(gpt.blocks[2:]), gpt.norm, gpt.head

        def forward(self, h):
            for block in self.blocks:
                h = block(h)
            return self.head(self.norm(h))

    return Last() if index else First()


def race_hybrid(microbatches, rank, world_size):
    """2 x 2 x 1 of ours beside torch's 1F1B over stages wrapped in DistributedDataParallel."""
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    x, y = batch()
    ours = HybridGPT(make_gpt(0, spec=UNTIED)[0], Layout(dp=2, pp=2), microbatches=microbatches, cuts=(3,))
    pp, dp = ours.groups["pp"], ours.groups["dp"]
    index = ours.index["pp"]
    stage = stage_of(make_gpt(0, spec=UNTIED)[0], index)
    wrapped = DistributedDataParallel(stage, process_group=dp)
    for _ in range(2):  # DDP settles its buckets in a whole step; begun inside a pipeline, that fails (torch 2.13)
        wrapped(torch.zeros(1, TIME, UNTIED.width) if index else x[:1]).sum().backward()
    theirs = Schedule1F1B(
        PipelineStage(wrapped, index, 2, torch.device("cpu"), group=pp), microbatches,
        loss_fn=lambda logits, targets: nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten()),
    )  # fmt: skip
    mine_x, mine_y = (t.chunk(2)[ours.index["dp"]] for t in (x, y))

    def their_step():
        wrapped.zero_grad()
        losses = []
        if index:
            theirs.step(target=mine_y, losses=losses)
        else:
            theirs.step(mine_x)
        total = torch.stack(losses).mean().detach() if losses else torch.zeros(())
        dist.all_reduce(total, group=pp)  # the mean loss on every rank, as ours gives it
        dist.all_reduce(total, group=dp)

    seconds = in_turn({"ours": lambda: ours.step(x, y), "torch": their_step})
    a = ours.pipeline.pieces[0][-1 if index == 0 else 0].mlp.up.weight.grad
    b = (stage.blocks[-1] if index == 0 else stage.blocks[0]).mlp.up.weight.grad
    assert torch.allclose(a, b, atol=1e-6), (a - b).abs().max()
    return seconds


def medians(seconds):
    ratio = statistics.median(a / b for a, b in zip(seconds["ours"], seconds["torch"], strict=True))
    return ratio, *(statistics.median(seconds[name]) * 1e3 for name in ("ours", "torch"))


@pytest.mark.parametrize("width", [128, 256])
def test_a_tensor_parallel_step_beside_dtensors(capsys, width):
    with Ranks(2, threads=1, live=False, stall=60.0) as ranks:
        seconds = ranks.run(race_tensor, ModelSpec(width=width)).values[0]
    ratio, ours, torchs = medians(seconds)
    report(capsys, f"tp=2, width {width}: ours {ours:.1f} ms, parallelize_module {torchs:.1f} ms: {ratio:.2f}")
    assert ratio < 1.1


@pytest.mark.parametrize("microbatches", [2, 8])
def test_a_hybrid_step_beside_torchs_combination(capsys, microbatches):
    with Ranks(4, threads=1, live=False, stall=60.0) as ranks:
        seconds = ranks.run(race_hybrid, microbatches).values[0]
    ratio, ours, torchs = medians(seconds)
    name = f"dp=2,pp=2, {microbatches} microbatches"
    report(capsys, f"{name}: ours {ours:.1f} ms, pipelining with DDP {torchs:.1f} ms: {ratio:.2f}")
    assert ratio < 1.15


def train(rank, world_size):
    """Seconds of each step of the lesson's GPT at 2 x 2 x 2, optimizer and clipping included."""
    model = HybridGPT(make_gpt(0)[0], Layout(dp=2, pp=2, tp=2), microbatches=2)
    optimizer = model.make_optimizer()
    seconds = []
    for _ in range(8):
        dist.barrier()
        start = time.perf_counter()
        model.step(*batch())
        model.clip_gradients(1.0)
        optimizer.step()
        dist.barrier()
        seconds.append(time.perf_counter() - start)
    return seconds


def test_eight_ranks_of_the_lessons_gpt(capsys):
    with Ranks(8, threads=1, live=False) as ranks:
        seconds = ranks.run(train).values[0]
        family = psutil.Process(os.getpid()).children(recursive=True)
        ranks_bytes = sum(process.memory_full_info().pss for process in family)
        kernel_bytes = psutil.Process().memory_full_info().pss
    step = statistics.median(seconds[2:])
    total = ranks_bytes + kernel_bytes
    report(capsys, (
        f"2 x 2 x 2: {step:.3f} s a step on {os.cpu_count()} cores; PSS {ranks_bytes / 1e6:.0f} MB of ranks and their "
        f"server, {total / 1e6:.0f} MB with the process that started them"
    ))  # fmt: skip
    assert total < 1.5e9 and step < 1
