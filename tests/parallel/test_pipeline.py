"""The pipelined model against the whole one: every schedule, 1 to 4 ranks, few and many microbatches."""

from __future__ import annotations

import dataclasses

import pytest
import torch
import torch.distributed as dist
from torch import nn

from course.errors import DeadlockError, RankError, UsageError
from course.gpt import make_gpt
from course.parallel.pipeline import Pipeline
from course.parallel.stages import cut_model, layers_of, measure_layers, token_loss
from course.spec import ModelSpec
from course.spec.schedule import gpipe_schedule, interleaved_1f1b, one_f_one_b, zero_bubble_h1
from course.spec.split import split_layers
from course.trace.statistics import bytes_sent, total_bytes, total_messages

SPEC = ModelSpec(vocab=64, context=16, layers=6, heads=2, width=32)  # eight layers: embedding, 6 blocks, head
SCHEDULES = {
    "gpipe": (gpipe_schedule, 1),
    "1f1b": (one_f_one_b, 1),
    "zero bubble": (zero_bubble_h1, 1),
    "interleaved": (lambda p, m: interleaved_1f1b(p, m, 2), 2),
}


def batch(size=9):
    generator = torch.Generator().manual_seed(5)
    return torch.randint(0, 64, (2, size, 16), generator=generator)


def pipelined(name, m, dtype, tied, recompute, rank, world_size):
    """Largest relative error of a gradient, in two steps, and what the steps returned, less the whole model's loss."""
    spec = dataclasses.replace(SPEC, tied=tied)
    whole, model = (make_gpt(0, spec=spec)[0].to(dtype) for _ in range(2))
    x, y = batch()
    loss = whole.loss(x, y)
    loss.backward()
    names = {id(p): n for n, p in model.named_parameters()}
    schedule, chunks = SCHEDULES[name]
    pieces = cut_model(model, split_layers([1.0] * 8, world_size * chunks))
    pipeline = Pipeline(pieces, schedule(world_size, m), loss_fn=token_loss, recompute=recompute)
    worst, losses = 0.0, []
    wanted = dict(whole.named_parameters())
    for _ in range(2):
        pipeline.zero_grad()
        found = pipeline.step(x, y)
        losses.append(None if found is None else abs((found - loss).item()))
        for p in pipeline.parameters():
            want = wanted[names[id(p)]].grad
            worst = max(worst, ((p.grad - want).abs().max() / want.abs().max()).item())
    return worst, losses, len(list(pipeline.parameters()))


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_gradients_are_those_of_the_whole_model(ranks, n, name):
    ranks.resize(n)
    last = {"interleaved": n - 1}.get(name, n - 1)
    for m in (1, 3, 8):
        if name == "interleaved" and m % max(1, m // n):
            continue
        for dtype, tolerance in ((torch.float64, 1e-6), (torch.float32, 1e-4)):
            for tied, recompute in ((True, False), (False, True)):
                values = ranks.run(pipelined, name, m, dtype, tied, recompute).values
                assert max(worst for worst, _, _ in values) < tolerance, (m, dtype, tied, recompute)
                for rank, (_, losses, _) in enumerate(values):
                    if rank == last:
                        assert max(losses) < tolerance
                    else:
                        assert losses == [None, None]


def counted(m, rank, world_size):
    model, _ = make_gpt(0, spec=dataclasses.replace(SPEC, tied=False))
    pipeline = Pipeline(cut_model(model, (2, 5)), one_f_one_b(3, m), loss_fn=token_loss)
    x, y = batch(8)
    pipeline.step(x, y)


def test_what_travels_is_an_activation_and_a_gradient_a_boundary_and_microbatch(ranks):
    ranks.resize(3)
    trace = ranks.run(counted, 4).trace
    activation, header = 8 * 16 * 32 * 4, 64
    traffic = bytes_sent(trace)
    assert total_bytes(traffic, 3) == (activation + header, 2 * activation + header, activation)
    assert total_messages(traffic, 3) == (5, 9, 4)
    assert {span.name for span in trace.of(rank=1, kind="compute")} >= {f"{kind}{k}" for kind in "FB" for k in range(4)}


def held(schedule, m, rank, world_size):
    """The most forwards of this rank that were alive at once, counted where the module runs."""
    model = nn.Sequential(*[nn.Linear(8, 8) for _ in range(world_size)])
    pieces = cut_model(model, tuple(range(1, world_size)))
    pipeline = Pipeline(pieces, schedule(world_size, m), loss_fn=nn.functional.mse_loss)
    alive, most = [], [0]

    def came(*_):
        alive.append(1)
        most.append(len(alive))

    def went(*_):
        alive.pop()

    pipeline.pieces[0].register_forward_hook(came)
    pipeline.pieces[0].register_full_backward_hook(went)
    pipeline.step(torch.ones(8, 8), torch.zeros(8, 8))
    return max(most)


def test_1f1b_holds_less_than_gpipe(ranks):
    ranks.resize(4)
    assert ranks.run(held, gpipe_schedule, 8).values == [8, 8, 8, 8]
    assert ranks.run(held, one_f_one_b, 8).values == [4, 3, 2, 1]


def in_a_subgroup(rank, world_size):
    group = dist.new_group([1, 3])
    if rank not in (1, 3):
        return None
    torch.manual_seed(0)
    whole = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2)).double()
    x, y = torch.randn(5, 4).double(), torch.randn(5, 2).double()
    wanted = torch.autograd.grad(nn.functional.mse_loss(whole(x), y), list(whole.parameters()))
    names = {id(p): k for k, p in enumerate(whole.parameters())}
    pipeline = Pipeline(cut_model(whole, (1,)), one_f_one_b(2, 2), loss_fn=nn.functional.mse_loss, group=group)
    loss = pipeline.step(x, y)
    agree = all(torch.allclose(p.grad, wanted[names[id(p)]]) for p in pipeline.parameters())
    return agree, loss is not None


def test_a_pipeline_in_a_group_of_its_own(ranks):
    ranks.resize(4)
    assert ranks.run(in_a_subgroup).values == [None, (True, False), None, (True, True)]


def against_torch(rank, world_size):
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    def model():
        torch.manual_seed(0)
        return nn.Sequential(*[nn.Sequential(nn.Linear(16, 16), nn.Tanh()) for _ in range(world_size)]).double()

    torch.manual_seed(1)
    x, y = torch.randn(8, 16).double(), torch.randn(8, 16).double()
    theirs = model()[rank]
    stage = PipelineStage(theirs, rank, world_size, torch.device("cpu"))
    schedule = Schedule1F1B(stage, 4, loss_fn=nn.functional.mse_loss)
    schedule.step(*([x] if rank == 0 else []), **({"target": y} if rank == world_size - 1 else {}))
    ours = Pipeline(
        cut_model(model(), tuple(range(1, world_size))), one_f_one_b(world_size, 4), loss_fn=nn.functional.mse_loss
    )
    ours.step(x, y)
    pairs = zip(ours.parameters(), theirs.parameters(), strict=True)
    return max(((a.grad - b.grad).abs().max() / b.grad.abs().max()).item() for a, b in pairs)


def test_gradients_are_those_of_torchs_pipelining(ranks):
    ranks.resize(3)
    assert max(ranks.run(against_torch).values) < 1e-12


# --- what cannot be --------------------------------------------------------------------------------------------------


def build(schedule, cuts, rank, world_size):
    model = nn.Sequential(*[nn.Linear(4, 4) for _ in range(4)])
    return Pipeline(cut_model(model, cuts), schedule, loss_fn=nn.functional.mse_loss)


@pytest.mark.parametrize(
    ("schedule", "cuts", "says"),
    [
        ([["F0", "B0", "F1", "B1"], ["F0", "F1", "B0", "B1"]], (2,), "stage 0 waits at B0 for stage 1"),
        (one_f_one_b(3, 2), (1, 2), "for 3 ranks, but the group has 2"),
        (one_f_one_b(2, 2), (1, 2), "hold 2 pieces, but the model was cut into 3"),
        (one_f_one_b(2, 2), (2, 2), "no stage is empty"),
        (one_f_one_b(2, 2), (3, 1), "must rise from 1 to 3"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_sent(ranks, schedule, cuts, says):
    ranks.resize(2)
    with pytest.raises(RankError, match=says) as caught:
        ranks.run(build, schedule, cuts)
    kinds = {failure.type_name for failure in caught.value.failures}
    assert kinds <= {DeadlockError.__name__, UsageError.__name__}


def too_few(rank, world_size):
    build(one_f_one_b(2, 4), (2,), rank, world_size).step(torch.ones(3, 4), torch.ones(3, 4))


def test_fewer_samples_than_microbatches(ranks):
    ranks.resize(2)
    with pytest.raises(RankError, match="3 inputs and 3 targets cannot be cut into 4 microbatches"):
        ranks.run(too_few)


def test_a_model_whose_order_is_not_known_cannot_be_cut():
    with pytest.raises(UsageError, match="a Bilinear cannot be cut.*nn.Sequential"):
        cut_model(nn.Bilinear(2, 2, 2), (1,))


def test_the_layers_of_a_gpt_one_after_another_are_the_gpt():
    model, _ = make_gpt(0, spec=SPEC)
    x, y = batch()
    h = x
    for layer in layers_of(model):
        h = layer(h)
    assert torch.equal(h, model(x))
    costs = measure_layers(model, x, y, token_loss, repeats=2)
    assert [cost.name for cost in costs] == ["Embed", *["Block"] * 6, "Head"]
    assert all(cost.forward > 0 and cost.output_bytes > 0 for cost in costs)
    assert all(p.grad is None for p in model.parameters())
