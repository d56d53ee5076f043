"""The text and its batches: every window once an epoch, the same on every machine."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from course.errors import UsageError
from course.gpt import batches, count_windows, decode, encode, epoch_order, load_text, windows


def test_the_text_is_english_prose_of_the_length_the_lessons_say():
    text = load_text()
    assert 350_000 < len(text) < 700_000
    assert text.count(" the ") > 1000


@given(st.text())
def test_bytes_carry_every_text(text):
    tokens = encode(text)
    assert tokens.dtype == torch.int64
    assert decode(tokens) == text


@given(length=st.integers(0, 40), context=st.integers(1, 9))
def test_windows_tile_the_text_and_targets_are_one_later(length, context):
    tokens = torch.arange(length)
    count = count_windows(tokens, context)
    x, y = windows(tokens, range(count), context)
    assert x.shape == y.shape == (count, context)
    assert torch.equal(x.flatten(), torch.arange(count * context))
    assert torch.equal(y, x + 1)
    assert length - 1 - count * context < context


@pytest.mark.parametrize("index", [-1, 3])
def test_a_window_that_is_not_there_is_refused(index):
    with pytest.raises(UsageError, match=f"window {index} was asked for, but 13 tokens make windows 0 to 2"):
        windows(torch.arange(13), [0, index], 4)


def test_the_order_of_an_epoch_is_the_same_everywhere():
    assert epoch_order(8, epoch=1, seed=2) == [7, 0, 1, 3, 2, 5, 4, 6]
    assert sorted(epoch_order(100)) == list(range(100))


def test_an_epoch_serves_every_window_once_with_a_smaller_last_batch():
    tokens = torch.arange(10 * 3 + 1)
    served = list(batches(tokens, context=3, batch=4))
    assert [len(x) for x, _ in served] == [4, 4, 2]
    assert sorted(torch.cat([x for x, _ in served])[:, 0].tolist()) == list(range(0, 30, 3))


def test_steps_go_on_into_epochs_with_another_order():
    tokens = torch.arange(10 * 3 + 1)
    starts = [x[:, 0].tolist() for x, _ in batches(tokens, context=3, batch=5, steps=4)]
    epochs = [list(itertools.chain(*starts[:2])), list(itertools.chain(*starts[2:]))]
    assert [sorted(epoch) for epoch in epochs] == [list(range(0, 30, 3))] * 2
    assert epochs[0] != epochs[1]
    assert [i // 3 for i in epochs[1]] == epoch_order(10, epoch=1)


@pytest.mark.parametrize("length, batch", [(3, 1), (0, 1), (30, 0)])
def test_nothing_to_serve_is_refused(length, batch):
    with pytest.raises(UsageError, match="nothing to serve"):
        next(batches(torch.arange(length), context=3, batch=batch))
