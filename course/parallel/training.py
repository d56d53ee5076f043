"""The training loop behind `course train`: the course's GPT on its text, under a layout, with checkpoints.

Runs on each rank of a group that is there already: the ranks of a notebook, or those that torchrun started. Which, it
does not know. Progress leaves as one record a step, through `report`.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from course.gpt import batches, encode, load_text, make_gpt
from course.parallel.checkpoint import last_checkpoint, load_checkpoint, save_checkpoint
from course.parallel.hybrid import HybridGPT
from course.spec import LESSON_GPT, ModelSpec
from course.spec.layout import Layout

Report = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Training:
    """What to train and how. batch: windows a step, over all ranks. every: steps between two checkpoints (0: none)."""

    layout: Layout
    steps: int
    batch: int = 32
    microbatches: int = 1
    accumulate: int = 1
    lr: float = 5e-4
    clip: float = 1.0
    seed: int = 0
    bfloat16: bool = False
    checkpoints: Path | None = None
    every: int = 0
    spec: ModelSpec = LESSON_GPT


def train(training: Training, report: Report, *, device: torch.device | str = "cpu") -> None:
    """Trains from the last checkpoint in `training.checkpoints`, or from the start, up to step `training.steps`.

    report: called on rank 0, first with {"resumed": step}, then with a record a step: step, loss (nats a token),
    norm (of the gradient before clipping), seconds, tokens_per_second, and bytes_sent: by all ranks, computed from the
    formulas. Raises UsageError where layout, batch and model do not fit, with layouts that do.
    """
    training.layout.check(dist.get_world_size(), training.spec, batch=training.batch)
    gpt, _ = make_gpt(training.seed, spec=training.spec, device=device)
    model = HybridGPT(
        gpt, training.layout, microbatches=training.microbatches, seed=training.seed,
        autocast=torch.bfloat16 if training.bfloat16 else None,
    )  # fmt: skip
    optimizer = model.make_optimizer(lr=training.lr)
    done = _resume(training, model, optimizer)
    say = report if dist.get_rank() == 0 else _nothing
    say({"resumed": done})
    sent = step_bytes(model, training)
    for step, (x, y) in _remaining(training, done, device):
        start = time.perf_counter()
        loss = model.step(x, y, accumulate=training.accumulate)
        norm = model.clip_gradients(training.clip)
        optimizer.step()
        seconds = time.perf_counter() - start
        say(
            {"step": step, "loss": loss, "norm": norm, "seconds": seconds, "tokens_per_second": x.numel() / seconds,
             "bytes_sent": sent}
        )  # fmt: skip
        if training.checkpoints and (step == training.steps or (training.every and step % training.every == 0)):
            save_checkpoint(training.checkpoints, model, optimizer, step=step, more={"seed": training.seed})


def _resume(training: Training, model: HybridGPT, optimizer: torch.optim.Optimizer) -> int:
    path = last_checkpoint(training.checkpoints) if training.checkpoints else None
    return load_checkpoint(path, model, optimizer)[0] if path else 0


def _remaining(
    training: Training, done: int, device: torch.device | str
) -> Iterator[tuple[int, tuple[Tensor, Tensor]]]:
    """(step, batch) of the steps that are left: an interrupted run sees the batches that an uninterrupted one sees."""
    tokens = encode(load_text()).to(device)
    endless = batches(tokens, context=training.spec.context, batch=training.batch, seed=training.seed, steps=10**12)
    whole = (pair for pair in endless if len(pair[0]) == training.batch)  # the last of an epoch may be smaller
    numbered = enumerate(itertools.islice(whole, training.steps), start=1)
    return itertools.islice(numbered, done, None)


def _nothing(record: dict[str, Any]) -> None:
    """Ranks other than 0 say nothing."""


def step_bytes(model: HybridGPT, training: Training) -> int:
    """Bytes that all ranks together send in a step, computed: gradients over dp, activations over pp and tp.

    dp: 2(dp-1) times the gradients of each rank of one replica. tp: 8 B T C (tp-1) elements a layer and step. pp: an
    activation and its gradient over each boundary, and a tied embedding's gradient there and back.
    Small messages (losses, norms, logits' sums) are left out.
    """
    layout, spec = training.layout, training.spec
    activation = training.batch * spec.context * spec.width * (2 if training.bfloat16 else 4)
    own = torch.tensor(float(sum(p.nbytes for p in model.parameters())), device=next(model.parameters()).device)
    dist.all_reduce(own)
    gradients = own.item() / layout.dp * 2 * (layout.dp - 1)
    tensor = 8 * (layout.tp - 1) * activation * spec.layers
    boundaries = 2 * (layout.pp - 1) * layout.tp * activation
    tied = 2 * spec.vocab * spec.width * 4 * layout.dp * training.accumulate if spec.tied and layout.pp > 1 else 0
    return round(gradients + tensor + boundaries + tied)
