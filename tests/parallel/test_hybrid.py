"""One GPT under every layout of 4 and of 8 ranks against one process: losses, norms, first gradient, replicas."""

from __future__ import annotations

import functools

import pytest
import torch
import torch.distributed as dist
from torch import nn

from course.errors import RankError
from course.gpt import make_gpt
from course.parallel.hybrid import HybridGPT, clip_gradients_sharded
from course.spec import ModelSpec
from course.spec.layout import Layout, layouts_of
from course.spec.schedule import gpipe_schedule

SPEC = ModelSpec(vocab=64, context=16, layers=4, heads=4, width=32)
BATCH, CLIP = 32, 0.5  # clips in every step
STEPS = 30


def batch(k):
    return torch.randint(0, 64, (2, BATCH, 16), generator=torch.Generator().manual_seed(k))


@functools.cache
def one_process(steps, kind="adamw"):
    """Losses, norms before clipping, and the first gradients by name."""
    model, optimizer = make_gpt(0, spec=SPEC, optimizer=kind)
    losses, norms, first = [], [], {}
    for k in range(steps):
        optimizer.zero_grad()
        loss = model.loss(*batch(k))
        loss.backward()
        first = first or {name: p.grad.clone() for name, p in model.named_parameters()}
        norms.append(nn.utils.clip_grad_norm_(model.parameters(), CLIP).item())
        optimizer.step()
        losses.append(loss.item())
    return losses, norms, first


def hybrid(layout, steps, kind, settings, rank, world_size):
    """Losses, norms, a sum of the first gradient's squares, and the last parameters' bytes, of this rank."""
    gpt, optimizer = make_gpt(0, spec=SPEC, optimizer=kind)
    accumulate, zero = settings.pop("accumulate", 1), settings.pop("zero", False)
    model = HybridGPT(gpt, layout, microbatches=2, **settings)
    optimizer = model.make_optimizer(lr=optimizer.param_groups[0]["lr"], kind=kind, zero=zero)
    losses, norms, first = [], [], None
    for k in range(steps):
        losses.append(model.step(*batch(k), accumulate=accumulate))
        if first is None:
            first = {f"{model.first_layer}:{name}": p.grad.clone() for name, p in model.named_parameters()}
        norms.append(model.clip_gradients(CLIP))
        optimizer.step()
    numbers = torch.cat([p.detach().flatten() for p in model.parameters()])
    return losses, norms, first, numbers, dict(model.index)


def gathered(values, layout):
    """The gradient of each whole block's MLP, put together from all ranks of the first replica."""
    found = {}
    for _, _, first, _, index in values:
        if index["dp"]:
            continue
        for key, grad in first.items():
            layer, name = key.split(":")
            _, chunk, place, *rest = name.split(".", 4)[1:] if name.startswith("pipeline") else name.split(".", 4)
            found.setdefault((int(layer) + int(place), ".".join(rest)), {})[index["tp"]] = grad
    dims = {"mlp.up.weight": 0, "mlp.up.bias": 0, "mlp.down.weight": 1, "attention.out.weight": 1}
    whole = {}
    for (layer, name), parts in found.items():
        in_order = [parts[k] for k in sorted(parts)]
        whole[layer, name] = torch.cat(in_order, dims[name]) if name in dims else in_order[0]
    return whole


def agree(values, steps, kind="adamw"):
    losses, norms, first = one_process(steps, kind)
    for mine, found, *_ in values:
        assert max(abs(a - b) for a, b in zip(mine, losses, strict=True)) < 1e-3
        assert max(abs(a / b - 1) for a, b in zip(found, norms, strict=True)) < 1e-3
    assert len({tuple(v[0]) for v in values}) == len({tuple(v[1]) for v in values}) == 1
    return first


def replicas_are_equal(values):
    by_place = {}
    for *_, numbers, index in values:
        by_place.setdefault((index["pp"], index["tp"]), []).append(numbers)
    for copies in by_place.values():
        assert all(torch.equal(copies[0], copy) for copy in copies)


LAYOUTS = [layout for n in (4, 8) for layout in layouts_of(n) if layout.pp <= 4 and layout.tp <= 4]


QUICK = (Layout(dp=2, pp=2), Layout(pp=4), Layout(dp=2, pp=2, tp=2))  # the others wait for the slow tests


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "layout", [pytest.param(x, id=str(x), marks=[] if x in QUICK else [pytest.mark.slow]) for x in LAYOUTS]
)
def test_a_layout_trains_as_one_process_does(ranks, layout):
    ranks.resize(layout.world_size)
    values = ranks.run(hybrid, layout, STEPS, "adamw", {"accumulate": 2}, timeout=240).values
    first = agree(values, STEPS)
    replicas_are_equal(values)
    compared = 0
    for (layer, name), grad in gathered(values, layout).items():
        if 0 < layer <= SPEC.layers and (".mlp." in f".{name}" or name == "attention.out.weight" or "norm" in name):
            want = first[f"blocks.{layer - 1}.{name}"]
            assert (grad - want).abs().max() < 1e-5 * want.abs().max(), (layer, name)
            compared += 1
    assert compared == SPEC.layers * 9  # four of the MLP, one of attention, four of norms


@pytest.mark.parametrize(
    "settings",
    [
        {"sequence": True},
        {"recompute": True},
        {"zero": True},
        {"cuts": (1,)},
        {"schedule": gpipe_schedule},
        {"seed": 3, "accumulate": 4},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_options_change_nothing_in_the_losses(ranks, settings):
    ranks.resize(8)
    values = ranks.run(hybrid, Layout(dp=2, pp=2, tp=2), 4, "adamw", dict(settings)).values
    agree(values, 4)
    replicas_are_equal(values)


def test_under_sgd_too_where_scale_shows(ranks):
    ranks.resize(8)
    agree(ranks.run(hybrid, Layout(dp=2, pp=2, tp=2), 6, "sgd", {}).values, 6, "sgd")


def test_bfloat16_comes_close(ranks):
    ranks.resize(8)
    values = ranks.run(hybrid, Layout(dp=2, pp=2, tp=2), 3, "adamw", {"autocast": torch.bfloat16}).values
    losses, *_ = one_process(3)
    assert max(abs(a - b) for a, b in zip(values[0][0], losses, strict=True)) < 0.05


def clipped(rank, world_size):
    """A sharded and a whole parameter, clipped as one."""
    torch.manual_seed(0)
    sharded, whole = torch.randn(4, 6), torch.randn(3)
    reference = [nn.Parameter(torch.zeros_like(t)) for t in (sharded, whole)]
    for p, grad in zip(reference, (sharded, whole), strict=True):
        p.grad = grad.clone()
    want = nn.utils.clip_grad_norm_(reference, 1.0)
    a, b = nn.Parameter(torch.zeros(4 // world_size, 6)), nn.Parameter(torch.zeros(3))
    a.grad, b.grad = sharded.chunk(world_size)[rank].clone(), whole.clone()
    norm = clip_gradients_sharded([([a], dist.group.WORLD), ([b], None)], 1.0)
    near = torch.allclose(a.grad, reference[0].grad.chunk(world_size)[rank]) and torch.allclose(
        b.grad, reference[1].grad
    )
    return abs(norm / want.item() - 1) < 1e-6 and near


def test_clipping_sharded_gradients(ranks):
    for n in (1, 2, 4):
        ranks.resize(n)
        assert all(ranks.run(clipped).values)


def misfit(layout, size, rank, world_size):
    HybridGPT(make_gpt(0, spec=SPEC)[0], layout).step(*(t[:size] for t in batch(0)))


@pytest.mark.parametrize(
    ("layout", "says"),
    [
        (Layout(dp=3), "needs 3 ranks, but this run has 4: try"),
        (Layout(dp=4), "a batch of 6 does not divide by dp=4: try"),
    ],
)
def test_a_layout_that_does_not_fit_is_refused_with_one_that_does(ranks, layout, says):
    ranks.resize(4)
    with pytest.raises(RankError, match=says):
        ranks.run(misfit, layout, 6)


def with_dropout(sequence, rank, world_size):
    spec = ModelSpec(vocab=64, context=16, layers=2, heads=4, width=32, dropout=0.3)
    model = HybridGPT(make_gpt(0, spec=spec)[0], Layout(tp=2, dp=2), sequence=sequence, seed=1)
    loss = model.step(*batch(0))
    norm = model.pipeline.pieces[0][-1].norm.weight.grad  # held by both ranks of tp
    return loss, norm, torch.rand(3), model.index


@pytest.mark.parametrize("sequence", [False, True])
def test_dropout_differs_where_activations_do(ranks, sequence):
    ranks.resize(4)
    values = ranks.run(with_dropout, sequence).values
    for loss, norm, _, _ in values:
        assert loss == values[0][0] and torch.equal(norm, values[0][1])
    drawn = {(index["dp"], index["tp"]): numbers for _, _, numbers, index in values}
    assert not torch.equal(drawn[0, 0], drawn[1, 0])
    assert torch.equal(drawn[0, 0], drawn[0, 1]) != sequence
