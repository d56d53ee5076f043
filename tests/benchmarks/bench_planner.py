"""How fast the planner is: one layout, the search of a large cluster, its import. Ratios against peers of the same run.

Run by `make bench`, which prints the figures. The peer of arithmetic is json.loads of ten thousand numbers, about two
milliseconds; that of the import is an interpreter that does nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from course.planner import find_plans, peak_memory, predict_step
from course.spec.chips import Cluster, chip_of
from course.spec.plan import Plan
from course.spec.shape import shape_of

ROOT = Path(__file__).resolve().parents[2]
SHAPE, CLUSTER = shape_of("llama-3.1-405b"), Cluster(chip=chip_of("h100"), num_gpus=16384)
START = Plan(global_batch=2048, sequence=8192, overlap_tp=True)
LAYOUT = Plan(tp=8, pp=16, dp=128, chunks=8, global_batch=2048, sequence=8192, overlap_tp=True)
NUMBERS = json.dumps([k / 7 for k in range(10_000)])


def seconds(call: Callable[[], object], repeats: int) -> float:
    """The least of several runs of `call`."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def processor_seconds(code: str) -> float:
    """Processor time of a fresh interpreter that runs `code`, the least of nine: unlike the wall clock, it does not
    count other programs."""
    best = float("inf")
    for _ in range(9):
        child = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        assert child.returncode == 0
        best = min(best, used.ru_utime + used.ru_stime)
    return best


def test_one_layout(capsys: pytest.CaptureFixture[str]) -> None:
    peer = seconds(lambda: json.loads(NUMBERS), 200)
    one = seconds(lambda: (predict_step(SHAPE, LAYOUT, CLUSTER), peak_memory(SHAPE, LAYOUT)), 500)
    with capsys.disabled():
        print(f"\n  one layout, step and memory: {one * 1e3:.3f} ms, {one / peer:.2f} of json.loads", end="")
    assert one < 0.5e-3 or one < 0.25 * peer


@pytest.mark.parametrize("sequence", [8192, 131072])
def test_the_search_of_405b_on_16384_gpus(sequence: int, capsys: pytest.CaptureFixture[str]) -> None:
    start = Plan(global_batch=2048, sequence=sequence, overlap_tp=True)
    peer = seconds(lambda: json.loads(NUMBERS), 200)
    found = find_plans(SHAPE, CLUSTER, start, best=1)
    took = seconds(lambda: find_plans(SHAPE, CLUSTER, start, best=1), 3)
    with capsys.disabled():
        counts = f"{found.tried} layouts, {found.priced} fit"
        print(f"\n  {sequence} tokens: {counts}, {took:.2f} s, {took / peer:.0f} times json.loads", end="")
    assert found.tried >= found.priced > 0
    assert took < 2 or took < 1000 * peer


def test_the_import(capsys: pytest.CaptureFixture[str]) -> None:
    codes = ("pass", "import dataclasses", "import course.planner", "from course.planner import *")
    nothing, peer, door, rooms = (processor_seconds(code) for code in codes)
    with capsys.disabled():
        print(
            f"\n  import course.planner: {(door - nothing) * 1e3:.0f} ms, every room {(rooms - nothing) * 1e3:.0f} ms"
        )
        print(f"  an interpreter alone {nothing * 1e3:.0f} ms, dataclasses {(peer - nothing) * 1e3:.0f} ms", end="")
    assert door - nothing < 2 * nothing
    assert rooms - nothing < 8 * nothing
