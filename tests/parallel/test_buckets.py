"""DataParallel's own promises: order of calls, bytes, odd parameters, accumulation, misuse (equality: test_oracle)."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from course.errors import RankError
from course.parallel import DataParallel
from course.ranks import calls_made


class Net(nn.Module):
    """Three layers, the last tied to the first; `branch` is used when asked, `frozen` and `unused` never learn."""

    def __init__(self, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.first, self.middle, self.last = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 6)
        self.last.weight = self.first.weight
        self.branch, self.frozen, self.unused = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 6)
        self.frozen.requires_grad_(False)
        self.register_buffer("scale", torch.rand(6))

    def forward(self, x, branch=False):
        h = self.frozen(torch.tanh(self.middle(torch.tanh(self.first(x))))) * self.scale
        return (self.last(h) + (self.branch(h) if branch else 0)).pow(2).mean()


def batch(rank, step=0, rows=4):
    return torch.randn(rows, 6, generator=torch.Generator().manual_seed(100 * step + rank))


def grads(module):
    return {name: None if p.grad is None else p.grad.clone() for name, p in module.named_parameters()}


def expected_mean(n, branches, steps=1):
    """Gradients of one process: the mean over ranks of the sum over steps."""
    module = Net()
    for rank in range(n):
        for step in range(steps):
            (module(batch(rank, step), rank in branches) / n).backward()
    return grads(module)


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, grad in expected.items():
        if grad is None:
            assert found[name] is None, name
        else:
            torch.testing.assert_close(found[name], grad, rtol=1e-5, atol=1e-7, msg=name)


# --- values ----------------------------------------------------------------------------------------------------------


def one_step(branches, bucket_bytes, rank):
    ddp = DataParallel(Net(seed=rank), bucket_bytes=bucket_bytes)
    ddp(batch(rank), rank in branches).backward()
    ddp.finish()
    return grads(ddp.module), ddp.module.state_dict()


@pytest.mark.parametrize("bucket_bytes", [1, 200, 2**20])
@pytest.mark.parametrize("branches", [(), (1,), (0, 1, 2, 3)])
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_tied_frozen_unused_and_sometimes_used_parameters_get_the_gradients_of_one_process(
    ranks, n, branches, bucket_bytes
):
    ranks.resize(n)
    for found, state in ranks.run(one_step, branches, bucket_bytes).values:
        assert_same(found, expected_mean(n, branches))
        for name, tensor in Net(seed=0).state_dict().items():
            assert torch.equal(state[name], tensor)


def several_steps(zero_to_none, rank):
    ddp = DataParallel(Net(), bucket_bytes=200)
    found = []
    for step in range(3):
        ddp.zero_grad(set_to_none=zero_to_none)
        ddp(batch(rank, step), step == 1).backward()
        ddp.finish()
        found.append(grads(ddp.module)["first.weight"])
    return found


@pytest.mark.parametrize("zero_to_none", [True, False])
def test_every_step_starts_afresh(ranks, zero_to_none):
    ranks.resize(3)
    for found in ranks.run(several_steps, zero_to_none).values:
        for step, grad in enumerate(found):
            module = Net()
            for rank in range(3):
                (module(batch(rank, step), step == 1) / 3).backward()
            torch.testing.assert_close(grad, module.first.weight.grad, rtol=1e-5, atol=1e-7)


def accumulate(synced_last, branches, rank):
    ddp = DataParallel(Net(), bucket_bytes=200)
    with ddp.no_sync():
        for step in range(2):
            ddp(batch(rank, step), rank in branches).backward()
    if synced_last:
        ddp(batch(rank, 2)).backward()
    ddp.finish()
    return grads(ddp.module)


@pytest.mark.parametrize("branches", [(), (2,)])
def test_backwards_under_no_sync_are_averaged_with_the_last(ranks, branches):
    ranks.resize(3)
    module = Net()
    for rank in range(3):
        for step in range(3):
            (module(batch(rank, step), rank in branches and step < 2) / 3).backward()
    for found in ranks.run(accumulate, True, branches).values:
        assert_same(found, grads(module))


def test_finish_averages_what_came_under_no_sync_alone(ranks):
    ranks.resize(2)
    for found in ranks.run(accumulate, False, (1,)).values:
        assert_same(found, expected_mean(2, (1,), steps=2))


def some_without_data(rank):
    ddp = DataParallel(Net(), bucket_bytes=200)
    if rank != 1:
        ddp(batch(rank)).backward()
    ddp.finish()
    return grads(ddp.module)


def test_a_rank_without_data_joins_by_finish_alone(ranks):
    ranks.resize(3)
    module = Net()
    for rank in (0, 2):
        (module(batch(rank)) / 3).backward()
    for found in ranks.run(some_without_data).values:
        assert_same(found, grads(module))


def mixed_dtypes(rank):
    module = nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.Linear(3, 3).to(torch.bfloat16), "c": nn.Linear(3, 3)})
    ddp = DataParallel(module)
    for layer in module.values():
        layer.weight.grad = None
        layer.weight.sum().mul(rank + 1).backward()
    ddp.finish()
    return [(layer.weight.grad, layer.bias.grad) for layer in module.values()]


def test_dtypes_do_not_share_a_bucket(ranks):
    ranks.resize(3)
    for found in ranks.run(mixed_dtypes).values:
        for (weight, bias), dtype in zip(found, (torch.float32, torch.bfloat16, torch.float32), strict=True):
            assert torch.equal(weight, torch.full((3, 3), 2.0, dtype=dtype)) and bias is None


# --- cost ------------------------------------------------------------------------------------------------------------


def calls_before_last_gradient(bucket_bytes, rank):
    ddp = DataParallel(nn.Sequential(*(nn.Linear(6, 6) for _ in range(4))), bucket_bytes=bucket_bytes)
    seen = []
    for parameter in ddp.parameters():  # these hooks run before the gradient is stored
        parameter.register_hook(lambda grad: seen.append(calls_made() - start))
    start = calls_made()
    ddp(batch(rank)).sum().backward()
    ddp.finish()
    return seen[-1], calls_made() - start


def test_all_reduces_start_while_backward_still_runs(ranks):
    ranks.resize(3)
    for before_last, total in ranks.run(calls_before_last_gradient, 200).values:
        assert 0 < before_last < total
    for _, total in ranks.run(calls_before_last_gradient, 2**20).values:
        assert total == 1


@pytest.mark.parametrize("bucket_bytes", [1, 200, 2**20])
def test_every_gradient_is_sent_once_and_one_flag_a_parameter(ranks, bucket_bytes):
    ranks.resize(3)
    trainable = [p for p in Net().parameters() if p.requires_grad]
    spans = ranks.run(one_step, (0,), bucket_bytes).trace.of(rank=2, kind="collective", name="all_reduce")
    assert sum(span.nbytes for span in spans) == 4 * (sum(p.numel() for p in trainable) + len(trainable))
    assert all(span.nbytes <= max(bucket_bytes, 36 * 4) + 4 * len(trainable) for span in spans)


def gradient_storages(rank):
    ddp = DataParallel(Net())
    storages = []
    for step in range(2):
        ddp.zero_grad()
        ddp(batch(rank, step), True).backward()
        ddp.finish()
        storages.append({p.grad.untyped_storage().data_ptr() for p in ddp.module.parameters() if p.grad is not None})
    return len(storages[0]), storages[0] == storages[1]


def test_gradients_are_views_of_their_bucket(ranks):
    ranks.resize(2)
    assert ranks.run(gradient_storages).values == [(1, True)] * 2


# --- use and misuse --------------------------------------------------------------------------------------------------


def wrapped_again(rank):
    module = Net()
    for _ in range(3):  # a cell that is run again
        ddp = DataParallel(module, bucket_bytes=200)
    start = calls_made()
    ddp(batch(rank)).backward()
    ddp.finish()
    return grads(module), calls_made() - start, len(module.middle.weight._post_accumulate_grad_hooks)


def test_a_module_can_be_wrapped_again(ranks):
    ranks.resize(2)
    for found, num_calls, num_hooks in ranks.run(wrapped_again).values:
        assert_same(found, expected_mean(2, ()))
        assert num_hooks == 1 and num_calls < 8


def forgets_finish(rank):
    ddp = DataParallel(Net())
    for step in range(2):
        ddp(batch(rank, step)).backward()


def two_backwards(rank):
    ddp = DataParallel(Net())
    losses = [ddp(batch(rank, step)) for step in range(2)]
    for loss in losses:
        loss.backward()


def all_frozen():
    DataParallel(nn.Linear(2, 2).requires_grad_(False))


def no_room():
    DataParallel(nn.Linear(2, 2), bucket_bytes=0)


@pytest.mark.parametrize(
    "wrong, sentence",
    [
        (forgets_finish, r"call finish\(\) before optimizer.step\(\)"),
        (two_backwards, r"a second backward began before finish\(\)"),
        (all_frozen, "no parameter of this module requires a gradient"),
        (no_room, r"bucket_bytes=0\): a bucket needs at least 1 byte"),
    ],
)
def test_misuse_gets_one_clear_sentence(ranks, wrong, sentence):
    ranks.resize(2)
    with pytest.raises(RankError, match=sentence):
        ranks.run(wrong)


def looks_while_unfinished(rank):
    ddp = DataParallel(Net())
    ddp(batch(rank)).backward()
    with torch.no_grad():
        loss = ddp(batch(rank))
    ddp.finish()
    return loss.item()


def test_evaluating_between_backward_and_finish_is_fine(ranks):
    ranks.resize(2)
    assert ranks.run(looks_while_unfinished).values == [Net()(batch(rank)).item() for rank in range(2)]
