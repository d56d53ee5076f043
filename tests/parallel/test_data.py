"""The plain functions of data parallel training, at 1 to 4 ranks, against what one process computes."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from course.errors import RankError, UsageError
from course.gpt import epoch_order
from course.parallel import (
    DataParallel,
    accumulate_without_sync,
    average_gradients,
    broadcast_parameters,
    exposed_seconds,
    shard_indices,
    weighted_average_gradients,
)

SIZES = (1, 2, 3, 4)


# --- shard_indices ---------------------------------------------------------------------------------------------------


@given(n=st.integers(0, 60), world_size=st.integers(1, 7), epoch=st.integers(0, 5), seed=st.integers(-2, 5))
def test_shards_hold_every_sample_once_and_differ_by_at_most_one(n, world_size, epoch, seed):
    shards = [shard_indices(n, rank, world_size, epoch=epoch, seed=seed) for rank in range(world_size)]
    assert sorted(i for shard in shards for i in shard) == list(range(n))
    sizes = [len(shard) for shard in shards]
    assert sizes == [len(part) for part in torch.arange(n).tensor_split(world_size)]


def test_shards_are_shuffled_anew_for_each_seed_and_epoch():
    orders = {tuple(shard_indices(50, 0, 1, epoch=e, seed=s)) for e in range(4) for s in range(4)}
    assert len(orders) == 16  # seed 0, epoch 1 is not seed 1, epoch 0
    assert tuple(range(50)) not in orders
    assert shard_indices(50, 2, 3, epoch=1, seed=7) == shard_indices(50, 2, 3, epoch=1, seed=7)


def test_batches_of_all_ranks_together_are_the_batches_of_one_process():
    order = epoch_order(26, epoch=3, seed=5)
    shards = [shard_indices(26, rank, 4, epoch=3, seed=5) for rank in range(4)]
    for step in range(4):
        together = {i for shard in shards for i in shard[step * 2 : step * 2 + 2]}
        assert together == set(order[step * 8 : step * 8 + 8])


@pytest.mark.parametrize("n, rank, world_size", [(-1, 0, 1), (5, 2, 2), (5, -1, 2), (5, 0, 0)])
def test_shards_of_ranks_that_are_not_there_are_refused(n, rank, world_size):
    with pytest.raises(UsageError, match=f"n={n}, rank={rank}, world_size={world_size}"):
        shard_indices(n, rank, world_size)


# --- broadcast_parameters --------------------------------------------------------------------------------------------


class Odd(nn.Module):
    """What models have besides plain weights: tied, frozen, strided, scalar parameters; buffers of several dtypes."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        g = torch.Generator().manual_seed(seed)
        self.a = nn.Parameter(torch.randn(5, 3, generator=g))
        self.tied = self.a
        self.strided = nn.Parameter(torch.randn(4, 6, generator=g).T)
        self.frozen = nn.Parameter(torch.randn(7, generator=g), requires_grad=False)
        self.scalar = nn.Parameter(torch.randn((), generator=g))
        self.bf16 = nn.Parameter(torch.randn(3, generator=g).to(torch.bfloat16))
        self.register_buffer("mask", torch.rand(9, generator=g) > 0.5)
        self.register_buffer("count", torch.randint(100, (), generator=g))
        self.register_buffer("mean", torch.randn(2, 3, generator=g), persistent=False)


def replicas_after_broadcast(src, rank):
    module = Odd(seed=rank)
    broadcast_parameters(module, src)
    return [*module.parameters(), *module.buffers()], module.strided.stride(), module.tied is module.a


@pytest.mark.parametrize("n", SIZES)
def test_broadcast_makes_all_replicas_equal_to_the_source_to_the_bit(ranks, n):
    ranks.resize(n)
    src = n - 1
    expected = Odd(seed=src)
    for tensors, stride, tied in ranks.run(replicas_after_broadcast, src).values:
        for mine, source in zip(tensors, [*expected.parameters(), *expected.buffers()], strict=True):
            assert mine.dtype == source.dtype and torch.equal(mine, source)
        assert stride == expected.strided.stride() and tied


def test_broadcast_from_a_rank_that_is_not_there_is_refused(ranks):
    ranks.resize(2)
    with pytest.raises(RankError, match=r"broadcast_parameters\(src=2\): the ranks are 0 to 1"):
        ranks.run(replicas_after_broadcast, 2)


# --- average_gradients, weighted_average_gradients -------------------------------------------------------------------


def with_gradients(rank, fill=None):
    """A module whose gradients differ a rank; `lone` has one on rank 1 only, `nobody` has none."""
    module = nn.ParameterDict({"a": torch.zeros(5, 3), "lone": torch.zeros(4), "nobody": torch.zeros(2)})
    module["strided"] = nn.Parameter(torch.zeros(3, 2).T)
    for name in ("a", "strided"):
        module[name].grad = gradient(name, rank, module[name]) if fill is None else torch.full_like(module[name], fill)
    if rank == 1:
        module["lone"].grad = gradient("lone", rank, module["lone"])
    return module


def gradient(name, rank, like):
    return torch.randn(like.shape, generator=torch.Generator().manual_seed(len(name) * 100 + rank))


def averaged(rank):
    module = with_gradients(rank)
    average_gradients(module)
    return {name: p.grad for name, p in module.items()}


@pytest.mark.parametrize("n", SIZES)
def test_average_is_the_mean_over_ranks_and_none_counts_as_zero_where_others_have_one(ranks, n):
    ranks.resize(n)
    for result in ranks.run(averaged).values:
        for name, shape in (("a", (5, 3)), ("strided", (2, 3))):
            expected = sum(gradient(name, r, torch.empty(shape)) for r in range(n)) / n
            torch.testing.assert_close(result[name], expected, rtol=1e-6, atol=1e-7)
        assert result["nobody"] is None
        if n > 1:
            torch.testing.assert_close(result["lone"], gradient("lone", 1, torch.empty(4)) / n)


def test_average_sends_each_gradient_once(ranks):
    ranks.resize(3)
    spans = ranks.run(averaged).trace.of(rank=0, kind="collective")
    assert [span.nbytes for span in spans] == [4 * 4, 15 * 4, 4 * 4, 6 * 4]  # who has one, then a, lone, strided


def weighted(counts, rank):
    fill = math.nan if counts[rank] == 0 else None
    module = with_gradients(rank, fill)
    weighted_average_gradients(module, counts[rank])
    return {name: p.grad for name, p in module.items()}


@pytest.mark.parametrize("counts", [(5,), (3, 1), (4, 3, 3), (2, 0, 5), (1, 2, 3, 4), (0, 0, 7, 0)])
def test_local_means_become_the_global_mean_whatever_the_counts(ranks, counts):
    ranks.resize(len(counts))
    for result in ranks.run(weighted, counts).values:
        for name, shape in (("a", (5, 3)), ("strided", (2, 3))):
            parts = [gradient(name, r, torch.empty(shape)) * c for r, c in enumerate(counts)]
            torch.testing.assert_close(result[name], sum(parts) / sum(counts), rtol=1e-6, atol=1e-7)
        assert result["nobody"] is None


def test_counts_that_make_no_mean_are_refused_on_every_rank(ranks):
    ranks.resize(2)
    with pytest.raises(RankError, match="every rank gave count 0"):
        ranks.run(weighted, (0, 0))
    with pytest.raises(RankError, match=r"count=-1\): a count of samples is at least 0"):
        ranks.run(weighted, (-1, -1))


def empty_module():
    average_gradients(nn.Identity())
    weighted_average_gradients(nn.Identity(), 3)
    return True


def test_a_module_without_parameters_is_fine(ranks):
    ranks.resize(2)
    assert ranks.run(empty_module).values == [True, True]


# --- accumulate_without_sync -----------------------------------------------------------------------------------------

PARTS = {1: [[3, 4, 1]], 2: [[4, 4, 2], [4, 1]], 3: [[1], [2, 2], [5]], 4: [[3, 3], [2], [1, 1, 1], [4]]}


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))


def samples():
    g = torch.Generator().manual_seed(1)
    return torch.randn(30, 3, generator=g), torch.randn(30, 1, generator=g)


def accumulated(parts, wrap, rank):
    x, y = samples()
    start = sum(sum(p) for p in parts[:rank])
    microbatches = []
    for size in parts[rank]:
        microbatches.append((x[start : start + size], y[start : start + size]))
        start += size
    module = net()
    ddp = wrap(module)
    accumulate_without_sync(ddp, microbatches, nn.functional.mse_loss)
    if isinstance(ddp, DataParallel):
        ddp.finish()
    return [p.grad for p in module.parameters()]


@pytest.mark.parametrize("wrap", [DataParallel, DistributedDataParallel])
@pytest.mark.parametrize("n", SIZES)
def test_accumulating_gives_the_gradient_of_one_batch_of_all_samples(ranks, n, wrap):
    ranks.resize(n)
    total = sum(map(sum, PARTS[n]))
    x, y = samples()
    module = net()
    nn.functional.mse_loss(module(x[:total]), y[:total]).backward()
    for grads in ranks.run(accumulated, PARTS[n], wrap).values:
        for grad, p in zip(grads, module.parameters(), strict=True):
            torch.testing.assert_close(grad, p.grad, rtol=1e-5, atol=1e-6)


def test_accumulating_costs_the_bytes_of_one_backward(ranks):
    ranks.resize(3)
    num_parameters = sum(p.numel() for p in net().parameters())
    run = ranks.run(accumulated, [[2, 2, 2], [3, 3], [1, 1, 1, 1]], DataParallel)
    spans = run.trace.of(rank=1, kind="collective", name="all_reduce")
    assert [span.nbytes for span in spans] == [8, 4 * (num_parameters + 4)]  # the total, then all gradients once


def no_microbatches():
    accumulate_without_sync(DataParallel(net()), [], nn.functional.mse_loss)


def test_accumulating_nothing_is_refused(ranks):
    ranks.resize(2)
    with pytest.raises(RankError, match="this rank has no samples"):
        ranks.run(no_microbatches)


# --- exposed_seconds -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "backward, all_reduces, exposed",
    [
        (6.0, [], 0.0),
        (6.0, [(6.0, 4.0)], 4.0),  # one bucket: nothing overlaps
        (6.0, [(2.0, 1.0), (4.0, 1.0), (6.0, 1.0)], 1.0),  # only the last sticks out
        (6.0, [(2.0, 3.0), (4.0, 3.0), (6.0, 3.0)], 5.0),  # the link never rests from 2.0 on
        (6.0, [(1.0, 2.0), (2.0, 1.0)], 0.0),
        (6.0, [(5.0, 3.0), (1.0, 1.0)], 3.0),  # a bucket that is ready early waits for the one before it
    ],
)
def test_exposed_seconds_by_hand(backward, all_reduces, exposed):
    assert exposed_seconds(backward, all_reduces) == exposed


@pytest.mark.parametrize("pair", [(7.0, 1.0), (-1.0, 1.0), (2.0, -1.0), (math.nan, 1.0), (1.0, math.inf)])
def test_exposed_seconds_refuses_impossible_times(pair):
    with pytest.raises(UsageError, match="bucket 1 is ready at"):
        exposed_seconds(6.0, [(0.0, 1.0), pair])


@pytest.mark.parametrize("backward", [-1.0, math.nan, math.inf])
def test_exposed_seconds_refuses_an_impossible_backward(backward):
    with pytest.raises(UsageError, match="a backward pass takes 0 seconds or more"):
        exposed_seconds(backward, [])
