"""Every way of data parallel training against one process: first gradient, averaged losses, replicas.

Ranks start from different weights on purpose: without the broadcast nothing here would agree.
"""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import parameters_to_vector

from course.gpt import batches, count_windows, encode, load_text, make_gpt, windows
from course.parallel import (
    DataParallel,
    accumulate_without_sync,
    broadcast_parameters,
    shard_indices,
    weighted_average_gradients,
)
from course.spec import LESSON_GPT, ModelSpec

SMALL = ModelSpec(context=16, layers=1, heads=2, width=32)
BATCH = 24  # divides by 1, 2, 3 and 4
KINDS = ("functions", "DataParallel", "torch")


def gradient_of(model):
    return parameters_to_vector(p.grad for p in model.parameters()).clone()


def one_process(tokens, spec, optimizer_name, steps, batch=BATCH):
    """Losses (steps,), first gradient and last weights, both flat: the oracle."""
    model, optimizer = make_gpt(0, spec=spec, optimizer=optimizer_name)
    losses, first = [], None
    for x, y in batches(tokens, context=spec.context, batch=batch, steps=steps):
        optimizer.zero_grad()
        loss = model.loss(x, y)
        loss.backward()
        first = gradient_of(model) if first is None else first
        optimizer.step()
        losses.append(loss.item())
    return torch.tensor(losses), first, parameters_to_vector(model.parameters())


def on_ranks(tokens, spec, optimizer_name, steps, kind, rank, world_size, device):
    """The same as one rank of several, in one of the three ways."""
    model, optimizer = make_gpt(seed=rank, spec=spec, optimizer=optimizer_name, device=device)
    wrapped = {
        "functions": lambda: model,
        "DataParallel": lambda: DataParallel(model, bucket_bytes=2**14),
        "torch": lambda: DistributedDataParallel(model, broadcast_buffers=False),
    }[kind]()
    if kind == "functions":
        broadcast_parameters(model)
    mine = shard_indices(count_windows(tokens, spec.context), rank, world_size)
    share = BATCH // world_size
    losses, first = [], None
    for step in range(steps):
        x, y = windows(tokens.to(device), mine[step * share : (step + 1) * share], spec.context)
        optimizer.zero_grad()
        loss = wrapped(x, y)
        loss.backward()
        if kind == "functions":
            weighted_average_gradients(model, len(x))
        elif kind == "DataParallel":
            wrapped.finish()
        first = gradient_of(model) if first is None else first
        optimizer.step()
        mean = loss.detach() / world_size
        dist.all_reduce(mean)
        losses.append(mean.item())
    return torch.tensor(losses), first, parameters_to_vector(model.parameters()).detach()


def assert_equal_to_one_process(results, oracle):
    losses, first, _ = oracle
    for rank_losses, rank_first, weights in results:
        assert (rank_first - first).norm() <= 1e-6 * first.norm()
        assert (rank_losses - losses).abs().max() <= 1e-5
        assert torch.equal(weights, results[0][2])  # replicas: to the bit
    assert losses[-1] < losses[0] - 0.1  # and it learned


@pytest.fixture(scope="module")
def tokens():
    return encode(load_text())


@pytest.mark.parametrize("optimizer_name", ["sgd", "adamw"])
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_training_a_small_gpt_equals_one_process(ranks, tokens, n, optimizer_name):
    ranks.resize(n)
    tokens = tokens[: 60 * BATCH * SMALL.context]
    oracle = one_process(tokens, SMALL, optimizer_name, steps=20)
    for kind in KINDS:
        assert_equal_to_one_process(ranks.run(on_ranks, tokens, SMALL, optimizer_name, 20, kind).values, oracle)


def first_gradients(tokens, batch, rank, world_size, device):
    """The lesson's GPT on one batch that may not divide, averaged in each of the three ways."""
    indices = shard_indices(count_windows(tokens, LESSON_GPT.context), 0, 1)[:batch][rank::world_size]
    x, y = windows(tokens.to(device), indices, LESSON_GPT.context)
    found = {}
    for kind in KINDS:
        model, _ = make_gpt(0, device=device)
        if kind == "functions":
            model.loss(x, y).backward()
            weighted_average_gradients(model, len(x))
        else:
            ddp = DataParallel(model) if kind == "DataParallel" else DistributedDataParallel(model)
            accumulate_without_sync(
                ddp, [(x, y)], lambda logits, y: torch.nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())
            )
            if kind == "DataParallel":
                ddp.finish()
        found[kind] = gradient_of(model)
    return found


@pytest.mark.parametrize("batch", [12, 11])
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_first_gradient_of_the_lessons_gpt_equals_one_process_and_torch(ranks, tokens, n, batch):
    ranks.resize(n)
    tokens = tokens[: 20 * LESSON_GPT.context]
    _, first, _ = one_process(tokens, LESSON_GPT, "sgd", steps=1, batch=batch)
    for found in ranks.run(first_gradients, tokens, batch).values:
        for kind in KINDS:
            assert (found[kind] - first).norm() <= 1e-6 * first.norm(), kind
        assert (found["DataParallel"] - found["torch"]).norm() <= 1e-6 * first.norm()


def unscaled_gradient(tokens, rank, world_size):
    model, _ = make_gpt(0)
    x, y = windows(tokens, shard_indices(BATCH, rank, world_size), LESSON_GPT.context)
    model.loss(x, y).backward()
    for p in model.parameters():
        dist.all_reduce(p.grad)
    return gradient_of(model)


def test_a_forgotten_division_is_seen_on_the_first_gradient(ranks, tokens):
    ranks.resize(3)
    tokens = tokens[: (BATCH + 1) * LESSON_GPT.context]
    _, first, _ = one_process(tokens, LESSON_GPT, "sgd", steps=1)
    for found in ranks.run(unscaled_gradient, tokens).values:
        torch.testing.assert_close(found.norm() / first.norm(), torch.tensor(3.0), rtol=1e-4, atol=0)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("optimizer_name", ["sgd", "adamw"])
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_fifty_steps_of_the_lessons_gpt_equal_one_process(ranks, tokens, n, optimizer_name):
    ranks.resize(n)
    oracle = one_process(tokens, LESSON_GPT, optimizer_name, steps=50)
    for kind in KINDS:
        results = ranks.run(on_ranks, tokens, LESSON_GPT, optimizer_name, 50, kind, timeout=300).values
        assert_equal_to_one_process(results, oracle)
