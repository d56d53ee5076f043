"""Steps of training on a page: the ranks' shares of each batch, and how long one step takes.

Which step is right is not decided here: the cells write it, and `compare` judges it.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

import torch
from torch import Tensor

from course.errors import UsageError
from course.gpt import GPT, batches, encode


def shards(
    text: str | Tensor,
    rank: int,
    world_size: int,
    *,
    steps: int,
    batch: int = 24,
    context: int = 64,
    seed: int = 0,
    device: torch.device | str | None = None,
) -> Iterator[tuple[Tensor, Tensor]]:
    """This rank's share (x, y) of each of `steps` batches of `batch` windows, cut as torch.tensor_split does.

    With equal seeds all ranks share out the same batches: rank 0's part, rank 1's, ... one after the other are what
    `shards(text, 0, 1, ...)` gives. x and y are (share, context) int64. text: a string, or its tokens (N,).
    """
    if not 0 <= rank < world_size:
        raise UsageError(f"shards(text, rank={rank}, world_size={world_size}): ranks go from 0 to world_size - 1")
    if batch < world_size:
        raise UsageError(
            f"shards(..., batch={batch}) for {world_size} ranks: a rank would get nothing; use a larger batch"
        )
    tokens = encode(text) if isinstance(text, str) else text
    for x, y in batches(tokens, context=context, batch=batch, seed=seed, steps=steps):
        mine = slice_of(len(x), rank, world_size)
        yield x[mine].to(device), y[mine].to(device)


def slice_of(n: int, rank: int, world_size: int) -> slice:
    """The part of n things that goes to `rank`: the first n % world_size parts are bigger by one."""
    size, more = divmod(n, world_size)
    start = rank * size + min(rank, more)
    return slice(start, start + size + (rank < more))


def time_step(model: GPT, batch: tuple[Tensor, Tensor], *, repeats: int = 5) -> float:
    """Seconds of one forward and backward pass on a batch (x, y): the median of `repeats`, after one to warm up.

    Weights stay as they are; gradients are put back as they were.
    """
    if repeats < 1:
        raise UsageError(f"time_step(..., repeats={repeats}): one measurement is the least there is")
    x, y = batch
    kept = [p.grad for p in model.parameters()]
    seconds = []
    for _ in range(repeats + 1):
        model.zero_grad(set_to_none=True)
        _synchronize(x.device)
        start = time.perf_counter()
        model.loss(x, y).backward()
        _synchronize(x.device)
        seconds.append(time.perf_counter() - start)
    for p, grad in zip(model.parameters(), kept, strict=True):
        p.grad = grad
    return statistics.median(seconds[1:])


def _synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
