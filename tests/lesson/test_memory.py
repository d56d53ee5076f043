"""What TrackMemory counts, to the byte where it can be known, and beside what torch's own allocator says."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from course.gpt import make_gpt
from course.lesson.memory import TrackMemory
from course.spec import ModelSpec

SPEC = ModelSpec(vocab=64, context=32, layers=2, heads=2, width=32)


def test_a_tensor_counts_from_its_birth_to_its_end():
    with TrackMemory(nn.Linear(3, 5)) as memory:
        a = torch.zeros(1000)
        b = a[:10]  # no memory of its own
        del a
        c = b + 1
        del b, c
    weights = 4 * (3 * 5 + 5)
    assert [moment["rest"] for moment in memory.curve] == [0, 4000, 4040, 40, 0]
    assert {moment["weights"] for moment in memory.curve} == {weights}
    assert memory.peak == weights + 4040 and memory.parts["rest"] == 4040


def test_tensors_from_before_do_not_count():
    before = torch.zeros(1000)
    with TrackMemory(nn.Linear(1, 1)) as memory:
        before.add_(1)
        before.view(10, 100)
    assert memory.parts["rest"] == 0


def test_gradients_and_adams_states_are_told_apart():
    model, optimizer = make_gpt(0, spec=SPEC)
    count = sum(p.numel() for p in model.parameters())
    x = torch.zeros(2, 32, dtype=torch.int64)
    with TrackMemory(model, optimizer) as memory:
        model.loss(x, x).backward()
        optimizer.step()
    end = memory.curve[-1]
    steps = 4 * len(list(model.parameters()))  # Adam's counters, one a tensor
    assert end == {"weights": 4 * count, "gradients": 4 * count, "optimizer": 8 * count + steps, "rest": 0}
    with TrackMemory(model, optimizer) as memory:
        optimizer.zero_grad()
    assert [moment["gradients"] for moment in memory.curve][0] == 4 * count
    assert memory.curve[-1]["gradients"] == 0


def allocated_peak(step) -> int:
    """The most bytes beyond those at the start, by the allocator's own record."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True) as profile:
        step()
    events = [e for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"]
    now = peak = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        now += event.nbytes()
        peak = max(peak, now)
    return peak


def test_the_peak_is_the_allocators():
    model, optimizer = make_gpt(0, spec=SPEC)
    x = torch.zeros(8, 32, dtype=torch.int64)

    def step():
        optimizer.zero_grad()
        model.loss(x, x).backward()
        optimizer.step()

    step()
    optimizer.zero_grad()
    with TrackMemory(model, optimizer) as memory:
        step()
    optimizer.zero_grad()
    held = sum(memory.curve[0].values())
    assert memory.peak - held == pytest.approx(allocated_peak(step), rel=0.01)


def test_results_stay_the_same_and_nothing_is_left_behind():
    x = torch.zeros(2, 32, dtype=torch.int64)
    plain, _ = make_gpt(0, spec=SPEC)
    plain.loss(x, x).backward()
    model, optimizer = make_gpt(0, spec=SPEC)
    with pytest.raises(ZeroDivisionError), TrackMemory(model, optimizer):
        model.loss(x, x).backward()
        1 / 0  # noqa: B018
    for a, b in zip(plain.parameters(), model.parameters(), strict=True):
        assert torch.equal(a.grad, b.grad)
        assert not b._post_accumulate_grad_hooks
