"""The GPT: shapes, causality, both kinds of attention, tying, dropout, and training that learns."""

from __future__ import annotations

import dataclasses
import math

import pytest
import torch
import torch.nn.functional as F

from course.errors import UsageError
from course.gpt import GPT, batches, encode, load_text, make_gpt, train_step
from course.gpt.model import explicit_attention
from course.spec import LESSON_GPT, ModelSpec

SMALL = ModelSpec(context=16, layers=2, heads=2, width=32)


def tokens(rows, time, seed=0):
    return torch.randint(256, (rows, time), generator=torch.Generator().manual_seed(seed))


def test_the_lessons_model_has_the_size_its_docstring_says():
    model, _ = make_gpt()
    assert sum(p.numel() for p in model.parameters()) == 834_304
    assert len(list(model.parameters())) == 52
    untied, _ = make_gpt(spec=dataclasses.replace(LESSON_GPT, tied=False))
    assert sum(p.numel() for p in untied.parameters()) == 834_304 + 256 * 128


def test_logits_and_first_loss():
    model, _ = make_gpt(spec=SMALL)
    x = tokens(3, 11)
    assert model(x).shape == (3, 11, 256)
    assert abs(model.loss(x, tokens(3, 11, seed=1)).item() - math.log(256)) < 0.1


def test_loss_is_the_mean_over_all_tokens():
    model, _ = make_gpt(spec=SMALL)
    x, y = tokens(4, 16), tokens(4, 16, seed=1)
    parts = [model.loss(x[i : i + 1], y[i : i + 1]) for i in range(4)]
    torch.testing.assert_close(model.loss(x, y), sum(parts) / 4)
    torch.testing.assert_close(model(x, y), model.loss(x, y))


@pytest.mark.parametrize("attention", ["sdpa", "explicit"])
def test_no_token_sees_a_later_one(attention):
    model, _ = make_gpt(spec=dataclasses.replace(SMALL, attention=attention))
    x = tokens(2, 16)
    changed = x.clone()
    changed[:, 9] = (changed[:, 9] + 1) % 256
    before, after = model(x), model(changed)
    torch.testing.assert_close(before[:, :9], after[:, :9])
    assert (before[:, 9:] - after[:, 9:]).abs().amax(dim=(0, 2)).min() > 0  # every later place noticed


def test_both_kinds_of_attention_are_the_same_function():
    q, k, v = torch.randn(3, 2, 3, 7, 5, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(explicit_attention(q, k, v), F.scaled_dot_product_attention(q, k, v, is_causal=True))
    x, y = tokens(4, 16), tokens(4, 16, seed=1)
    grads = []
    for attention in ("sdpa", "explicit"):
        model, _ = make_gpt(spec=dataclasses.replace(SMALL, attention=attention))
        model.loss(x, y).backward()
        grads.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
    torch.testing.assert_close(grads[0], grads[1], rtol=1e-4, atol=1e-6)


def test_the_embedding_is_shared_only_when_tied():
    tied, untied = GPT(SMALL), GPT(dataclasses.replace(SMALL, tied=False))
    assert tied.head.weight is tied.tokens.weight
    assert untied.head.weight is not untied.tokens.weight


@pytest.mark.parametrize("attention", ["sdpa", "explicit"])
def test_dropout_acts_in_training_alone(attention):
    model, _ = make_gpt(spec=dataclasses.replace(SMALL, dropout=0.5, attention=attention))
    x = tokens(2, 16)
    assert not torch.equal(model(x), model(x))
    model.eval()
    assert torch.equal(model(x), model(x))
    torch.testing.assert_close(model(x), make_gpt(spec=SMALL)[0](x), rtol=1e-4, atol=1e-5)


def test_equal_seeds_give_equal_weights_and_leave_torchs_random_state():
    torch.manual_seed(5)
    state = torch.get_rng_state()
    (a, _), (b, _), (c, _) = make_gpt(3, spec=SMALL), make_gpt(3, spec=SMALL), make_gpt(4, spec=SMALL)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(p, q) for p, q in zip(a.parameters(), b.parameters(), strict=True))
    assert not torch.equal(a.tokens.weight, c.tokens.weight)


def test_the_lr_given_is_the_lr_used():
    for name, default in (("adamw", 5e-4), ("sgd", 0.03)):
        assert make_gpt(spec=SMALL, optimizer=name)[1].param_groups[0]["lr"] == default
        assert make_gpt(spec=SMALL, optimizer=name, lr=0.0)[1].param_groups[0]["lr"] == 0.0


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_training_learns_and_repeats_itself_to_the_bit(optimizer):
    text = encode(load_text())[: 40 * 16 * 8]

    def losses():
        model, opt = make_gpt(spec=SMALL, optimizer=optimizer)
        return [train_step(model, opt, x, y) for x, y in batches(text, context=16, batch=8, steps=40)]

    first = losses()
    assert sum(first[-5:]) / 5 < first[0] - 0.5
    assert losses() == first


def test_text_that_is_too_long_and_unknown_optimizers_are_refused():
    model, _ = make_gpt(spec=SMALL)
    with pytest.raises(UsageError, match=r"time at most 16, but got tokens of shape \(2, 17\)"):
        model(tokens(2, 17))
    with pytest.raises(UsageError, match='must be "adamw" or "sgd"'):
        make_gpt(optimizer="adam")
