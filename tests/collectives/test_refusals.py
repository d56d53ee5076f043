"""Wrong use: one sentence before anything is sent, and tensors that do not match refused by the ranks themselves."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist

from course import collectives
from course.collectives import broadcast_tree, ring_all_gather, ring_all_reduce, ring_reduce_scatter, ring_shift
from course.errors import RankError, UsageError

IN_PLACE = ("broadcast_tree", "naive_all_reduce", "ring_all_reduce", "tree_all_reduce")
SUMS = ("naive_all_reduce", "ring_all_reduce", "ring_reduce_scatter", "tree_all_reduce")


def refusals(names, t):
    """The sentence each function refuses t with."""
    said = []
    for name in names:
        try:
            getattr(collectives, name)(t, *([3] if name == "ring_all_gather" else []))
        except UsageError as error:
            said.append(str(error))
    return said


@pytest.mark.parametrize(
    "names, t, sentence",
    [
        (collectives.__all__, [1.0, 2.0], "a tensor is needed, this is a list"),
        (collectives.__all__, torch.ones(3, device="meta"), "the tensor is on meta, and this group sends from cpu"),
        (SUMS, torch.ones(3, dtype=torch.bool), "torch.bool is not added up here"),
        (SUMS, torch.ones(3, dtype=torch.uint16), "torch.uint16 is not added up here"),
        (SUMS, torch.ones(3, dtype=torch.complex64), "torch.complex64 is not added up here"),
        (SUMS, torch.ones(3).to(torch.float8_e4m3fn), "torch.float8_e4m3fn is not added up here"),
    ],
)
def test_what_cannot_be_sent_is_refused_before_anything_is(ranks, names, t, sentence):
    ranks.resize(2)
    run = ranks.run(lambda: refusals(names, t.to("meta") if sentence.startswith("the tensor is on") else t))
    for said in run.values:
        assert [line.partition(": ")[0] for line in said] == list(names)
        assert all(sentence in line for line in said)
    assert not run.trace.messages and not run.trace.of(kind="recv")


def test_tensors_without_elements_of_their_own_are_refused(ranks):
    ranks.resize(2)
    run = ranks.run(
        lambda: (refusals(collectives.__all__, torch.eye(3).to_sparse()), refusals(IN_PLACE, torch.ones(1).expand(3)))
    )
    for sparse, expanded in run.values:
        assert len(sparse) == len(collectives.__all__) and "torch.sparse_coo" in sparse[0]
        assert len(expanded) == len(IN_PLACE) and "elements of this tensor share memory" in expanded[0]
    assert not run.trace.messages


WRONG_ARGUMENTS = {
    "no pieces": (lambda: ring_all_reduce(torch.ones(4), segments=0), "ring_all_reduce: segments=0"),
    "half a piece": (lambda: ring_reduce_scatter(torch.ones(4), segments=1.5), "ring_reduce_scatter: segments=1.5"),
    "long chunk": (lambda: ring_all_gather(torch.ones(3), 4), "has 3 elements, but of 4 on 3 ranks it must have [12],"),
    "negative": (lambda: ring_all_gather(torch.ones(0), -1), "ring_all_gather: numel=-1"),
    "no such source": (lambda: broadcast_tree(torch.ones(4), 3), r"src=3 is not one of the group's ranks \[0, 1, 2\]"),
}


@pytest.mark.parametrize("kind", WRONG_ARGUMENTS)
def test_wrong_arguments_get_one_clear_sentence(ranks, kind):
    ranks.resize(3)
    wrong, sentence = WRONG_ARGUMENTS[kind]
    with pytest.raises(RankError, match=sentence) as caught:
        ranks.run(wrong)
    assert {failure.type_name for failure in caught.value.failures} == {"UsageError"}


def in_a_group_of_others():
    group = dist.new_group([0, 2])
    ring_shift(torch.ones(3), group=group)


def source_of_another_group():
    group = dist.new_group([1, 2])
    if dist.get_rank(group) >= 0:
        broadcast_tree(torch.ones(3), group=group)


@pytest.mark.parametrize(
    "wrong, sentence",
    [
        (in_a_group_of_others, "ring_shift: rank 1 is not in the group"),
        (source_of_another_group, r"src=0 is not one of the group's ranks \[1, 2\]"),
    ],
)
def test_groups_are_for_their_members(ranks, wrong, sentence):
    ranks.resize(3)
    with pytest.raises(RankError, match=sentence):
        ranks.run(wrong)


def test_outside_of_ranks_they_say_where_to_call_them():
    with pytest.raises(UsageError, match=r"ring_shift: this process is in no group of ranks: call it inside ranks.run"):
        ring_shift(torch.ones(3))


# --- ranks that do not agree -----------------------------------------------------------------------------------------


def unlike(name, length, dtype, rank):
    t = torch.ones(length, dtype=dtype) if rank == 2 else torch.ones(10)
    getattr(collectives, name)(t)


@pytest.mark.parametrize("name", [n for n in collectives.__all__ if n != "ring_all_gather"])
@pytest.mark.parametrize("length, dtype", [(11, torch.float32), (10, torch.int32)])
def test_unlike_lengths_and_dtypes_are_refused_by_the_ranks(ranks, name, length, dtype):
    """int32 has as many bytes as float32: gloo would add them bit by bit."""
    ranks.resize(4)
    with pytest.raises(RankError, match="both must bring as many elements of one dtype"):
        ranks.run(unlike, name, length, dtype)
