"""What ranks cost: starting, calling, remembering, recording. Ratios within one run, on whatever machine this is.

Run by `make bench`, which prints the figures; the bounds are those the project promises on 2 idle cores.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

import psutil
import torch

from course.gpt import make_gpt, train_step
from course.ranks import Ranks

RANKS = 4
MODULES = (
    "torch, torch._dynamo, torch.distributed, torch.distributed.device_mesh, torch.distributed.fsdp, "
    "torch.distributed.tensor.parallel, torch.nn.parallel, torch.utils.data"
)


def report(capsys, text):
    with capsys.disabled():
        print(f"\n  {text}", end="")


def nothing():
    pass


def empty(rank, *args):
    pass


def seconds(code):
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - start


def test_an_empty_run_against_spawn(capsys):
    with Ranks(RANKS) as gang:
        for _ in range(20):
            gang.run(nothing)
        times = []
        for _ in range(200):
            start = time.perf_counter()
            gang.run(nothing)
            times.append(time.perf_counter() - start)
    warm = statistics.median(times)
    spawn = min(seconds(SPAWN) for _ in range(2))
    report(
        capsys,
        f"warm empty run {warm * 1e3:.2f} ms, mp.spawn with a gloo group {spawn:.1f} s: {spawn / warm:,.0f} times",
    )
    assert warm < 2e-3
    assert spawn / warm > 1000


SPAWN = f"""
import tempfile, torch, torch.distributed as dist, torch.multiprocessing as mp
from tests.benchmarks.spawned import join
if __name__ == "__main__":
    mp.spawn(join, args=({RANKS}, tempfile.mktemp()), nprocs={RANKS})
"""


def test_a_first_gang_against_the_imports_it_needs(capsys):
    code = f"from course.ranks import Ranks; gang = Ranks({RANKS}); import os; os._exit(0)"
    pairs = [(seconds(code), seconds(f"import {MODULES}")) for _ in range(5)]
    ratio = statistics.median(gang / imports for gang, imports in pairs)
    gang, imports = (statistics.median(column) for column in zip(*pairs, strict=True))
    report(capsys, f"first gang {gang:.2f} s, its imports in one process {imports:.2f} s: ratio {ratio:.2f}")
    assert ratio < 1.2


def test_a_new_gang(capsys):
    with Ranks(1):
        times = []
        for _ in range(7):
            start = time.perf_counter()
            with Ranks(RANKS):
                times.append(time.perf_counter() - start)
    report(capsys, f"a new gang {statistics.median(times):.2f} s")
    assert statistics.median(times) < 0.6


def steps(count, world_size):
    import torch.distributed as dist

    model, optimizer = make_gpt(seed=0)
    x = torch.randint(0, 256, (8, 64))
    times, imported = [], set(sys.modules)
    for _ in range(count):
        start = time.perf_counter()
        optimizer.zero_grad()
        model.loss(x, x).backward()
        for p in model.parameters():
            dist.all_reduce(p.grad)
            p.grad /= world_size
        optimizer.step()
        times.append(time.perf_counter() - start)
    return times, sorted(set(sys.modules) - imported)


def test_memory_and_the_first_step(capsys):
    with Ranks(RANKS) as gang:
        values = gang.run(steps, 3).values
        pids = [*gang.pids, gang._gang.starter.pid]
        total = sum(psutil.Process(pid).memory_full_info().pss for pid in pids)
    first = max(times[0] / min(times) for times, _ in values)
    modules = sorted({name for _, new in values for name in new})
    report(
        capsys,
        f"{total / 1e6:.0f} MB (PSS) after 3 AdamW steps; first step {first:.1f} times the fastest; imported {modules}",
    )
    assert total < 450e6
    assert not any(name.startswith(("torch._dynamo", "torch._inductor")) for name in modules)


def test_what_tracing_and_checks_cost_a_step(capsys):
    with Ranks(RANKS) as on, Ranks(RANKS, trace=False, check=False) as off:
        ratios = []
        for gang in (on, off):
            gang.run(steps, 3)
        for _ in range(9):
            with_, without = (statistics.median(gang.run(steps, 8).values[0][0]) for gang in (on, off))
            ratios.append(with_ / without)
    ratio = statistics.median(ratios)
    report(capsys, f"a step with tracing and checks: {ratio:.3f} times one without (53 all-reduces)")
    assert ratio < 1.10


def test_one_process_steps(capsys):
    model, optimizer = make_gpt(seed=0)
    x = torch.randint(0, 256, (8, 64))
    times = []
    for _ in range(10):
        start = time.perf_counter()
        train_step(model, optimizer, x, x)
        times.append(time.perf_counter() - start)
    report(capsys, f"one process, batch of 8: {statistics.median(times) * 1e3:.0f} ms a step")
