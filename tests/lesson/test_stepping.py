"""Shares of batches put together are the batch; timing leaves the model as it was."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course.errors import UsageError
from course.gpt import encode, make_gpt
from course.lesson import checksum, shards, time_step
from course.lesson.stepping import slice_of
from course.spec import ModelSpec

TEXT = "In the beginning there was one process, and it had all the text to itself. " * 30
SMALL = ModelSpec(context=8, layers=1, heads=2, width=8)


@settings(max_examples=30, deadline=None)
@given(world_size=st.integers(1, 6), batch=st.integers(6, 25), seed=st.integers(0, 3))
def test_the_shares_in_rank_order_are_the_batches_of_one_process(world_size, batch, seed):
    more = {"steps": 3, "batch": batch, "context": 8, "seed": seed}
    whole = list(shards(TEXT, 0, 1, **more))
    parts = [list(shards(TEXT, rank, world_size, **more)) for rank in range(world_size)]
    for step, (x, y) in enumerate(whole):
        assert torch.equal(torch.cat([part[step][0] for part in parts]), x)
        assert torch.equal(torch.cat([part[step][1] for part in parts]), y)


def test_tokens_serve_as_well_as_text():
    a, b = (list(shards(text, 1, 3, steps=2, context=8)) for text in (TEXT, encode(TEXT)))
    assert all(torch.equal(p, q) for one, other in zip(a, b, strict=True) for p, q in zip(one, other, strict=True))


@given(st.integers(0, 200), st.integers(1, 12))
def test_the_cut_is_tensor_splits(n, world_size):
    expected = torch.arange(n).tensor_split(world_size)
    for rank in range(world_size):
        assert torch.equal(torch.arange(n)[slice_of(n, rank, world_size)], expected[rank])


@pytest.mark.parametrize(("rank", "world_size", "batch"), [(2, 2, 8), (-1, 2, 8), (0, 9, 8)])
def test_impossible_shares_are_refused(rank, world_size, batch):
    with pytest.raises(UsageError, match="shards"):
        next(shards(TEXT, rank, world_size, steps=1, batch=batch, context=8))


def test_time_step_measures_and_leaves_weights_and_gradients_alone():
    model, _ = make_gpt(spec=SMALL)
    x, y = next(shards(TEXT, 0, 1, steps=1, batch=4, context=8))
    model.loss(x, y).backward()
    before, kept = checksum(model), [p.grad.clone() for p in model.parameters()]
    assert time_step(model, (x, y), repeats=2) > 0
    assert checksum(model) == before
    assert all(torch.equal(p.grad, grad) for p, grad in zip(model.parameters(), kept, strict=True))


def test_time_step_needs_a_measurement():
    with pytest.raises(UsageError, match="repeats=0"):
        time_step(make_gpt(spec=SMALL)[0], (torch.zeros(1, 8).long(),) * 2, repeats=0)
