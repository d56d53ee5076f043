"""What comes back, against torch's own collectives on the same ranks: sizes, dtypes, groups, strides, cutting."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist

from course import collectives
from course.collectives import (
    broadcast_tree,
    ring,
    ring_all_gather,
    ring_reduce_scatter,
    ring_shift,
)

SIZES = (1, 2, 3, 4, 5)
SUMMED = (torch.float32, torch.float64, torch.int64, torch.bfloat16)
ALL_REDUCES = ("ring_all_reduce", "tree_all_reduce", "naive_all_reduce")


def numbers(rank, shape, dtype, largest=50):
    """Whole numbers, other ones on each rank, whose sums every dtype holds exactly in any order of addition."""
    return torch.randint(0, largest, shape, generator=torch.Generator().manual_seed(rank)).to(dtype)


def lengths(n):
    return sorted({0, 1, max(n - 1, 0), n, n + 1, 1000})


def torchs_sum(t, group=None):
    total = t.contiguous().clone()
    dist.all_reduce(total, group=group)
    return total


def assert_equal(found, expected):
    assert found.dtype == expected.dtype and found.shape == expected.shape
    assert torch.equal(found, expected), f"{found} is not {expected}"


def assert_all_equal_torchs(t, group=None, segments=1):
    """Each collective of the room on `t`, against torch's; t stays as it was."""
    n, index = dist.get_world_size(group), dist.get_rank(group)
    ranks = dist.get_process_group_ranks(group)
    before, total = t.clone(), torchs_sum(t, group)
    for name in ALL_REDUCES:
        summed = t.clone()
        extra = {"segments": segments} if name == "ring_all_reduce" else {}
        assert getattr(collectives, name)(summed, group=group, **extra) is None
        assert_equal(summed, total)
    chunk = ring_reduce_scatter(t, group=group, segments=segments)
    assert_equal(chunk, total.flatten().tensor_split(n)[index])
    assert_equal(ring_all_gather(chunk, t.numel(), group=group), total.flatten())
    everyones = [torch.empty_like(before) for _ in ranks]
    dist.all_gather(everyones, before, group=group)
    assert_equal(ring_shift(t, group=group), everyones[index - 1])
    assert_equal(t, before)
    for src in (ranks[0], ranks[-1]):
        sent = t.clone()
        assert broadcast_tree(sent, src, group=group) is None
        assert_equal(sent, everyones[ranks.index(src)])


# --- sizes and dtypes ------------------------------------------------------------------------------------------------


def every_length(dtype, rank, world_size):
    for length in lengths(world_size):
        assert_all_equal_torchs(numbers(rank, (length,), dtype))
    return len(lengths(world_size))


def large(dtype, rank):
    assert_all_equal_torchs(numbers(rank, (1_000_003,), dtype))


def shapes_and_pieces(rank):
    for segments, shape in ((2, (3, 5)), (3, ()), (7, (1, 2, 2)), (4, (0, 3))):
        assert_all_equal_torchs(numbers(rank, shape, torch.float32), segments=segments)


@pytest.mark.parametrize("n", SIZES)
def test_every_collective_equals_torchs_at_every_length_dtype_and_number_of_pieces(ranks, n):
    ranks.resize(n)
    for dtype in SUMMED:
        assert ranks.run(every_length, dtype).values == [len(lengths(n))] * n
        ranks.run(large, dtype)
    ranks.run(shapes_and_pieces)


def real_numbers(dtype, rank):
    t = torch.randn(1009, generator=torch.Generator().manual_seed(rank)).to(dtype)
    found = [t.clone() for _ in ALL_REDUCES]
    for name, tensor in zip(ALL_REDUCES, found, strict=True):
        getattr(collectives, name)(tensor)
    return t, torchs_sum(t), found


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_sums_of_real_numbers_are_as_close_as_torchs_and_equal_to_the_bit_on_all_ranks(ranks, dtype):
    ranks.resize(5)
    values = ranks.run(real_numbers, dtype).values
    exact = sum(t.double() for t, _, _ in values)
    size = sum(t.double().abs() for t, _, _ in values)
    for _, torchs, found in values:
        for tensor, first in zip(found, values[0][2], strict=True):
            assert torch.equal(tensor, first)
            for sums in (tensor, torchs):  # each of 4 additions rounds by half an eps at most
                assert ((sums.double() - exact).abs() <= 2 * torch.finfo(dtype).eps * size).all()


ODD = (torch.float16, torch.int32, torch.int16, torch.int8, torch.uint8)
CARRIED = (*ODD, torch.bool, torch.complex64, torch.uint16, torch.float8_e4m3fn)


def other_dtypes(rank, world_size):
    for dtype in ODD:
        mine, total = numbers(rank, (7,), dtype), sum(numbers(r, (7,), torch.int64) for r in range(world_size))
        for name in ALL_REDUCES:
            summed = mine.clone()
            getattr(collectives, name)(summed)
            assert_equal(summed, total.to(dtype))
    for dtype in CARRIED:
        t = numbers(rank, (7,), dtype, largest=2)
        assert_equal(ring_shift(t).float(), numbers((rank - 1) % world_size, (7,), dtype, largest=2).float())
        broadcast_tree(t, 1)
        assert_equal(t.float(), numbers(1, (7,), dtype, largest=2).float())
        gathered = ring_all_gather(numbers(rank, (1,), dtype, largest=2), world_size)
        assert gathered.tolist() == [numbers(r, (1,), dtype, largest=2).item() for r in range(world_size)]


def test_dtypes_that_torchs_sum_refuses_are_summed_or_carried_too(ranks):
    ranks.resize(3)
    ranks.run(other_dtypes)


# --- groups, strides, memory -----------------------------------------------------------------------------------------


def in_groups(rank):
    groups = [dist.new_group(members) for members in ([0, 2, 3], [1, 4], [4, 1, 3])]
    for group in groups:
        if dist.get_rank(group) >= 0:
            for length in (1, 10):
                assert_all_equal_torchs(numbers(rank, (length,), torch.float32), group, segments=2)
    return [dist.get_rank(group) for group in groups]


def test_groups_count_their_own_ranks(ranks):
    ranks.resize(5)
    assert ranks.run(in_groups).values[3] == [2, -1, 1]


def strided(rank, world_size):
    """Views of all kinds in place: what they show is summed, what lies between stays."""
    views = {
        "transposed": lambda base: base.T,
        "column": lambda base: base[:, 1],
        "every other": lambda base: base.flatten()[::2],
        "rows": lambda base: base[1:],
        "parameter": lambda base: torch.nn.Parameter(base[1:].T),
    }
    done = [collectives.__dict__[name] for name in ALL_REDUCES] + [lambda t: broadcast_tree(t, world_size - 1)]
    for name, view in views.items():
        bases = [numbers(r, (4, 6), torch.float32) for r in range(world_size)]
        for number, change in enumerate(done):
            mine, expected = bases[rank].clone(), bases[rank].clone()
            change(view(mine))
            with torch.no_grad():
                view(expected).copy_(sum(view(b) for b in bases) if number < 3 else view(bases[-1]))
            assert torch.equal(mine, expected), name
        shown = view(bases[rank])
        assert torch.equal(ring_shift(shown), view(bases[rank - 1])), name
        total = sum(view(b) for b in bases).flatten()
        assert torch.equal(ring_reduce_scatter(shown), total.tensor_split(world_size)[rank]), name
    lazy = torch.complex(torch.ones(3), torch.full((3,), float(rank))).conj()
    assert torch.equal(ring_shift(lazy).imag, torch.full((3,), -float((rank - 1) % world_size)))
    assert torch.equal(ring_shift(torch.full((3,), float(rank)).expand(2, 3))[0, 0], torch.tensor((rank - 1.0) % 3))


def test_strided_tensors_are_right_too(ranks):
    ranks.resize(3)
    ranks.run(strided)


def written_after(rank):
    t = numbers(rank, (9,), torch.float32)
    results = [ring_shift(t), ring_reduce_scatter(t)]
    chunk = t[:3].clone()
    results.append(ring_all_gather(chunk, 3 * dist.get_world_size()))
    copies = [r.clone() for r in results]
    t.zero_(), chunk.zero_()
    return all(torch.equal(r, c) for r, c in zip(results, copies, strict=True))


@pytest.mark.parametrize("n", [1, 3])
def test_results_share_no_memory_with_what_was_given(ranks, n):
    ranks.resize(n)
    assert ranks.run(written_after).values == [True] * n


def batched(rank):
    """The way messages are posted under NCCL, here over gloo."""
    ring._needs_batches = lambda flat: True
    try:
        for length in (0, 1, 10):
            for segments in (1, 3):
                assert_all_equal_torchs(numbers(rank, (length,), torch.float32), segments=segments)
    finally:
        ring._needs_batches = lambda flat: flat.is_cuda


@pytest.mark.parametrize("n", [2, 4])
def test_receives_in_one_batch_with_their_sends_give_the_same(ranks, n):
    ranks.resize(n)
    ranks.run(batched)


def test_functions_travel_as_imports():
    for name in collectives.__all__:
        function = getattr(collectives, name)
        assert (function.__module__, function.__name__) == ("course.collectives", name) and function.__doc__
