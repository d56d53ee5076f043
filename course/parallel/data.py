"""Data parallel: every rank a whole copy of the model, each a different shard of the data, gradients averaged.

The plain form, one function per idea; n is the world size and S the bytes of all gradients. Bytes moved are what a
rank sends when the backend uses a ring (Patarasuk and Yuan 2009): 2(n-1)/n of an all-reduced tensor.
The wrapper that sends few large messages while backward still runs is `buckets.DataParallel`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn

from course.errors import UsageError


def shard_indices(n: int, rank: int, world_size: int, *, epoch: int = 0, seed: int = 0) -> list[int]:
    """The sample numbers, of 0 to n - 1, that `rank` trains on in this epoch.

    All ranks together hold every sample exactly once: nothing is repeated to make shards even, nothing is dropped.
    Shard sizes differ by at most one, the first ranks have the bigger ones. The order is shuffled anew for each
    (seed, epoch), the same on all ranks. Rank r takes every world_size-th sample from place r on: so the b-th batches
    of all ranks, put together, are the b-th batch of one process that reads the same shuffle.

    Pure: nothing is sent. Raises UsageError for a rank outside 0 to world_size - 1 or a negative n.
    """
    if n < 0 or not 0 <= rank < world_size:
        raise UsageError(
            f"shard_indices(n={n}, rank={rank}, world_size={world_size}): n must be at least 0, "
            "and rank one of 0 to world_size - 1"
        )
    order = list(range(n))
    random.Random(f"seed {seed}, epoch {epoch}").shuffle(order)
    return order[rank::world_size]


def broadcast_parameters(module: nn.Module, src: int = 0) -> None:
    """Makes all replicas equal to rank `src`'s, to the bit, in place: parameters (frozen ones too) and buffers.

    Every rank calls it, with modules of the same shapes. A tied parameter is sent once.
    Bytes: `src` sends the module's bytes to each of the others (less with a tree), nobody else sends more than that.
    Raises UsageError when `src` is not a rank.
    """
    if not 0 <= src < dist.get_world_size():
        raise UsageError(f"broadcast_parameters(src={src}): the ranks are 0 to {dist.get_world_size() - 1}")
    if dist.get_world_size() == 1:
        return
    for tensor in [*module.parameters(), *module.buffers()]:
        message = tensor.detach().contiguous()  # gloo sends wrong numbers, silently, for a strided tensor
        dist.broadcast(message, src)
        tensor.detach().copy_(message)


def average_gradients(module: nn.Module) -> None:
    """Replaces each parameter's gradient by its mean over the ranks, in place.

    Call it after backward, on every rank. Equal shards give the gradient of the whole batch, since the mean over a
    batch is the mean of the means over its equal parts. A parameter without gradient on every rank keeps None; where
    only some ranks have one, the others count as zero and get the mean too.

    Bytes: 2(n-1)/n * S, in one message per parameter, plus 4 bytes a parameter for who has which. With one rank
    nothing is sent.
    """
    if dist.get_world_size() == 1:
        return
    for grad in _gradients_of_anyone(module):
        dist.all_reduce(grad)  # the sum over ranks, in place
        grad /= dist.get_world_size()


def weighted_average_gradients(module: nn.Module, count: int) -> None:
    """Turns gradients of local means into the gradient of the global mean, in place.

    `count` is the number of samples behind this rank's gradients. With g_r the gradient of the mean over the count_r
    samples of rank r, every rank ends with sum(count_r * g_r) / sum(count_r): shards of different sizes weigh what
    they hold, where a plain average would weigh each rank alike. A rank with count 0 joins too, and whatever its
    gradients are (the mean of nothing is NaN), they weigh nothing. None is treated as in `average_gradients`.

    Bytes: 2(n-1)/n * S, in one message per parameter, plus 8 bytes for the count and 4 a parameter. With one rank
    nothing is sent. Raises UsageError for a negative count, and on every rank when all counts are 0.
    """
    if not 0 <= count < math.inf:
        raise UsageError(f"weighted_average_gradients(count={count}): a count of samples is at least 0")
    total = torch.tensor(float(count), dtype=torch.float64, device=_device_of(module))
    if dist.get_world_size() > 1:
        dist.all_reduce(total)
    if total == 0:
        raise UsageError("weighted_average_gradients: every rank gave count 0, so there is no mean to take")
    if dist.get_world_size() == 1:
        return
    for grad in _gradients_of_anyone(module):
        if count:
            grad *= count / total.item()
        else:
            grad.zero_()  # not grad *= 0: zero times NaN is NaN
        dist.all_reduce(grad)


def _gradients_of_anyone(module: nn.Module) -> list[Tensor]:
    """The gradients that at least one rank has, the same list on all ranks; zeros are filled in where one is missing.

    Ranks must agree on this list before the first all-reduce: a rank that skipped a parameter for itself would meet
    the others one call too early, with another tensor.
    """
    parameters = list(module.parameters())
    if not parameters:
        return []
    present = torch.tensor([p.grad is not None for p in parameters], dtype=torch.int32, device=_device_of(module))
    dist.all_reduce(present)  # on how many ranks
    used = [p for p, num_ranks in zip(parameters, present.tolist(), strict=True) if num_ranks]
    for p in used:
        p.grad = torch.zeros_like(p) if p.grad is None else p.grad
        p.grad = p.grad.contiguous()
    return [p.grad for p in used]


def _device_of(module: nn.Module) -> torch.device:
    return next((p.device for p in module.parameters()), torch.device("cpu"))


def accumulate_without_sync(
    ddp: nn.Module, microbatches: Sequence[tuple[Tensor, Tensor]], loss_fn: Callable[[Tensor, Tensor], Tensor]
) -> None:
    """Adds up gradients over this rank's microbatches and averages over ranks once: the mean over all samples.

    ddp: `DataParallel` or torch's DistributedDataParallel; both average gradients over ranks, unless under `no_sync`.
    microbatches: (x, y) pairs, at least one; sizes len(x), at least 1, may differ, and so may their number a rank.
    loss_fn(ddp(x), y): the mean loss over the samples of one microbatch.
    Afterwards (with `DataParallel`: after `.finish()`) each `.grad` has grown by the gradient of the mean over every
    sample of every microbatch of every rank, as if they had been one batch.

    Each microbatch's mean is scaled by n * len(x) / total, since ddp divides by n what it sums. Bytes: those of one
    backward with ddp, however many microbatches, plus 8 for the total. Raises UsageError when this rank has no samples.
    """
    num_samples = sum(len(x) for x, _ in microbatches)
    if num_samples == 0:
        raise UsageError("accumulate_without_sync: this rank has no samples, give every rank at least one microbatch")
    *first, (last_x, last_y) = microbatches
    total = torch.tensor(float(num_samples), dtype=torch.float64, device=last_x.device)
    if dist.get_world_size() > 1:
        dist.all_reduce(total)
    per_sample = dist.get_world_size() / total.item()
    with ddp.no_sync():
        for x, y in first:
            (loss_fn(ddp(x), y) * (len(x) * per_sample)).backward()
    (loss_fn(ddp(last_x), last_y) * (len(last_x) * per_sample)).backward()  # this backward sends the sums


def exposed_seconds(backward: float, all_reduces: Sequence[tuple[float, float]]) -> float:
    """Seconds of all-reduce that stick out beyond backward: what a step pays for averaging its gradients.

    backward: seconds the backward pass takes. all_reduces: one (ready, seconds) per bucket, in the order they are
    sent: when its last gradient is there, counted from the start of backward, and how long its all-reduce takes.
    They go one at a time: each starts when its bucket is ready and the one before has ended,

        start_i = max(ready_i, end_(i-1)),   end_i = start_i + seconds_i,   exposed = max(0, end_last - backward),

    so a bucket that is ready early still waits for those before it. 0.0 without buckets (Li et al. 2020, section 3.2).

    Pure arithmetic. Raises UsageError for negative times, or a bucket that is ready after backward has ended.
    """
    if not 0 <= backward < math.inf:
        raise UsageError(f"exposed_seconds(backward={backward}): a backward pass takes 0 seconds or more")
    end = 0.0
    for i, (ready, seconds) in enumerate(all_reduces):
        if not 0 <= ready <= backward or not 0 <= seconds < math.inf:
            raise UsageError(
                f"exposed_seconds: bucket {i} is ready at {ready} s and takes {seconds} s, but it must be ready "
                f"within the {backward} s of backward, and neither may be negative"
            )
        end = max(ready, end) + seconds
    return max(0.0, end - backward)
