"""Pipelines: our executor beside torch's, replayed bubbles beside theory, the simulator's pace.

Run by `make bench`, which prints the figures; ratios within one run.
"""

from __future__ import annotations

import builtins
import itertools
import statistics
import time

import pytest
import torch
import torch.distributed as dist
from torch import nn

from course.gpt import make_gpt
from course.parallel import DataParallel
from course.parallel.pipeline import Pipeline
from course.parallel.stages import cut_model
from course.ranks import Ranks
from course.spec.schedule import bubble_fraction, gpipe_schedule, interleaved_1f1b, one_f_one_b
from course.spec.split import split_layers
from course.trace.program import pipeline_program
from course.trace.replay import bubble, median_costs, replay
from course.trace.simulate import Connection, simulate

STAGES, MICROBATCHES, WIDTH, ROWS = 4, 8, 768, 256


def report(capsys, text):
    with capsys.disabled():
        print(f"\n  {text}", end="")


class Shift(nn.Module):
    """A parameter before the first layer, so that the first stage, too, has a gradient of its input to compute."""

    def __init__(self):
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(WIDTH))

    def forward(self, x):
        return x + self.shift


def layers(count):
    torch.manual_seed(0)
    return nn.Sequential(nn.Sequential(Shift(), nn.Linear(WIDTH, WIDTH, bias=False)), *[
        nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(count - 1)
    ])  # fmt: skip


def set_up(schedule, cuts, count, rank, world_size):
    builtins.pipeline = Pipeline(cut_model(layers(count), cuts), schedule, loss_fn=nn.functional.mse_loss)
    builtins.batch = torch.randn(ROWS * MICROBATCHES, WIDTH)
    builtins.pipeline.step(builtins.batch, builtins.batch)


def step():
    builtins.pipeline.step(builtins.batch, builtins.batch)


def recorded(ranks, schedule, cuts, count, steps=9):
    ranks.run(set_up, schedule, cuts, count)
    return [ranks.run(step).trace for _ in range(steps)]


@pytest.mark.parametrize("schedule", [gpipe_schedule, one_f_one_b])
def test_the_replayed_bubble_is_that_of_the_formula(capsys, schedule):
    with Ranks(STAGES, threads=1, live=False) as ranks:
        cuts = tuple(2 * k for k in range(1, STAGES))
        traces = recorded(ranks, schedule(STAGES, MICROBATCHES), cuts, 2 * STAGES)
    costs = median_costs(traces)
    replayed = statistics.median(bubble(replay(trace, costs=costs)) for trace in traces)
    wall = statistics.median(bubble(trace) for trace in traces)
    theory = bubble_fraction(STAGES, MICROBATCHES)
    report(capsys, f"{schedule.__name__}: bubble {replayed:.3f} replayed, {theory:.3f} theory, {wall:.3f} on the wall")
    assert abs(replayed - theory) < 0.04


def of_stages(cost, cuts, count):
    edges = (0, *cuts, count)
    return [cost * (end - start) for start, end in itertools.pairwise(edges)]


def test_an_unequal_splits_step_is_predicted_from_an_equal_ones_layers(capsys):
    """Layers cost what they cost in an equal split, with all ranks at work: alone on the machine they take less."""
    schedule, count = one_f_one_b(STAGES, MICROBATCHES), 2 * STAGES
    with Ranks(STAGES, threads=1, live=False) as ranks:
        equal = median_costs(recorded(ranks, schedule, (2, 4, 6), count))
        forward, backward = (statistics.median(v for (_, n), v in equal.items() if n[0] == kind) / 2 for kind in "FB")
        for cuts in ((1, 3, 5), (3, 4, 6), (2, 3, 6)):
            traces = recorded(ranks, schedule, cuts, count)
            measured = replay(traces[-1], costs=median_costs(traces)).seconds
            stages = {"forward": of_stages(forward, cuts, count), "backward": of_stages(backward, cuts, count)}
            predicted = simulate(pipeline_program(schedule, **stages)).seconds
            report(capsys, f"cuts {cuts}: predicted {predicted * 1e3:.1f} ms, replayed {measured * 1e3:.1f} ms")
            assert abs(predicted / measured - 1) < 0.10


def race(rank, world_size):
    """Milliseconds a step of ours and of torch's, in turn, on the same stages."""
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    cuts = split_layers([1.0] * (2 * world_size), world_size)
    torchs = PipelineStage(cut_model(layers(2 * world_size), cuts)[rank], rank, world_size, torch.device("cpu"))
    theirs = Schedule1F1B(torchs, MICROBATCHES, loss_fn=nn.functional.mse_loss)
    pieces = cut_model(layers(2 * world_size), cuts)
    ours = Pipeline(pieces, one_f_one_b(world_size, MICROBATCHES), loss_fn=nn.functional.mse_loss)
    x = torch.randn(ROWS * MICROBATCHES, WIDTH)
    first, last = rank == 0, rank == world_size - 1
    times = {"ours": [], "torch": []}
    for _ in range(25):
        for name in times:
            dist.barrier()
            start = time.perf_counter()
            if name == "ours":
                ours.step(x, x)
            else:
                theirs.step(*([x] if first else []), **({"target": x} if last else {}))
            dist.barrier()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(seconds[3:]) for name, seconds in times.items()}


@pytest.mark.parametrize("n", [2, 4])
def test_our_executor_beside_torchs(capsys, n):
    with Ranks(n, threads=1, live=False) as ranks:
        times = ranks.run(race, timeout=120).values[0]
    ratio = times["ours"] / times["torch"]
    report(
        capsys, f"{n} ranks: ours {times['ours'] * 1e3:.1f} ms, torch's 1F1B {times['torch'] * 1e3:.1f} ms: {ratio:.2f}"
    )
    assert ratio < 1.15


def data_parallel(rank, world_size):
    builtins.model, builtins.optimizer = make_gpt(0)
    builtins.wrapped = DataParallel(builtins.model)
    builtins.x = torch.randint(0, 256, (16, 64))


def data_parallel_step():
    builtins.optimizer.zero_grad()
    builtins.wrapped(builtins.x, builtins.x).backward()
    builtins.wrapped.finish()
    builtins.optimizer.step()


def test_a_data_parallel_step_replayed_beside_the_wall_clock(capsys):
    with Ranks(2, threads=1, live=False) as ranks:
        ranks.run(data_parallel)
        for _ in range(3):
            ranks.run(data_parallel_step)
        ratios = []
        for _ in range(15):
            trace = ranks.run(data_parallel_step).trace
            reduces = trace.of(rank=0, kind="collective")
            busy = sum(min(s.seconds for s in group) for group in zip(
                trace.of(rank=0, kind="collective"), trace.of(rank=1, kind="collective"), strict=True))  # fmt: skip
            bandwidth = sum(s.nbytes for s in reduces) / max(busy, 1e-9)
            ratios.append(replay(trace, lambda src, dst, b=bandwidth: Connection(0.0, b)).seconds / trace.seconds)
    ratio = statistics.median(ratios)
    report(capsys, f"a data-parallel step of 2 ranks: {ratio:.2f} times the wall clock when replayed")
    assert 0.85 < ratio < 1.15


def test_the_simulators_pace(capsys):
    schedule = interleaved_1f1b(16, 512, 8)
    program = pipeline_program(schedule, forward=[1.0] * 128, backward=[2.0] * 128, nbytes=1000)
    events = sum(map(len, program))
    times = []
    for _ in range(3):
        start = time.perf_counter()
        simulate(program)
        times.append(time.perf_counter() - start)
    report(capsys, f"{events:,} events in {min(times):.2f} s: {events / min(times):,.0f} a second")
    assert events / min(times) > 200_000 and min(times) < 3
