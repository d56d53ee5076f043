"""The same training on two machines: losses of one, a machine that is lost and comes back, a slow cable."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.hosts.machines import ADDRESSES, Machines, missing, records

WHY_NOT = missing()
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300), pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)]
STEPS = 8


def course_train(*options: str) -> list[str]:
    return ["course.cli", "train", "--batch", "16", *options]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, float]]:
    """The records of a run on this machine's own ranks."""
    log = tmp_path_factory.mktemp("alone") / "log.jsonl"
    options = ["--layout", "dp=2,tp=2", "--steps", str(STEPS), "--log-file", str(log)]
    subprocess.run([sys.executable, "-m", *course_train(*options)], check=True, capture_output=True)
    return records(log)


def elastic(machine: int, port: int, restarts: int = 0) -> list[str]:
    """Options of an elastic start; machine 0 keeps the store (torchrun would guess from the name of the host)."""
    return [
        "--nnodes", "2", "--nproc-per-node", "2", "--rdzv-backend", "c10d", "--rdzv-id", "course",
        "--rdzv-endpoint", f"{ADDRESSES[0]}:{port}", "--rdzv-conf", f"is_host={int(machine == 0)}",
        "--max-restarts", str(restarts),
    ]  # fmt: skip


def test_two_machines_give_the_losses_of_one(tmp_path: Path, alone: list[dict[str, float]]) -> None:
    log = tmp_path / "log.jsonl"
    program = course_train("--layout", "dp=2,tp=2", "--steps", str(STEPS), "--log-file", str(log))
    with Machines() as machines:
        machines.finish(*[machines.torchrun(m, *elastic(m, 29410), program=program) for m in (0, 1)])
    assert [r["step"] for r in records(log)] == list(range(1, STEPS + 1))
    assert max(abs(a["loss"] - b["loss"]) for a, b in zip(records(log), alone, strict=True)) < 1e-5


def until(condition, limit: float = 120) -> None:
    """Wait for something that another process brings about."""
    deadline = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.05)


def test_a_machine_that_is_lost_comes_back_and_training_goes_on(tmp_path: Path, alone: list[dict[str, float]]) -> None:
    log, folder = tmp_path / "log.jsonl", tmp_path / "checkpoints"
    steps = 400
    options = ["--steps", str(steps), "--checkpoints", str(folder), "--every", "5", "--log-file", str(log)]
    program = course_train("--layout", "dp=2,tp=2", *options)
    with Machines() as machines:
        first, second = (machines.torchrun(m, *elastic(m, 29420, 3), program=program) for m in (0, 1))
        until(lambda: len(records(log)) >= STEPS and (folder / "step-00000005").exists())
        machines.kill(second)
        lost_at = records(log)[-1]["step"]
        machines.torchrun(1, *elastic(1, 29420, 3), program=program)
        until(lambda: any(b["step"] <= a["step"] for a, b in zip(records(log), records(log)[1:], strict=False)))
        again = records(log)
        until(lambda: records(log)[-1]["step"] > lost_at + 5 or first.poll() is not None)
        assert first.poll() is None, machines.said(first)
        again = records(log)
    resumed = next(b["step"] for a, b in zip(again, again[1:], strict=False) if b["step"] <= a["step"])
    assert resumed > 5 and lost_at - resumed < 10, "only the steps since the last checkpoint are done again"
    by_step: dict[float, list[float]] = {}
    for record in again:
        by_step.setdefault(record["step"], []).append(record["loss"])
    assert any(len(losses) > 1 for losses in by_step.values())
    assert all(max(losses) - min(losses) < 1e-5 for losses in by_step.values())
    for record in alone:
        assert abs(by_step[record["step"]][0] - record["loss"]) < 1e-5


def test_a_machine_that_is_lost_for_good_ends_the_run_with_a_sentence(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    program = course_train("--layout", "dp=2,tp=2", "--steps", "100000", "--log-file", str(log))
    with Machines() as machines:
        first, second = (machines.torchrun(m, *elastic(m, 29450), program=program) for m in (0, 1))
        until(lambda: len(records(log)) >= 3)
        machines.kill(second)
        started = time.monotonic()
        assert first.wait(timeout=60) != 0
        took = time.monotonic() - started
        said = machines.said(first)
    assert "Connection closed by peer" in said or "Connection reset by peer" in said, said
    print(f"a machine lost for good: ended after {took:.1f} s")


def seconds_a_step(machines: Machines, places: dict[int, int], port: int, log: Path) -> float:
    """Median step of dp=2,tp=2, one torchrun a rank; places: rank -> machine."""
    program = course_train("--layout", "dp=2,tp=2", "--steps", "10", "--log-file", str(log))
    static = ["--nnodes", "4", "--nproc-per-node", "1", "--master-addr", ADDRESSES[0], "--master-port", str(port)]
    started = [
        machines.torchrun(machine, *static, "--node-rank", str(rank), program=program)
        for rank, machine in places.items()
    ]
    machines.finish(*started)
    return statistics.median(record["seconds"] for record in records(log)[2:])


def test_on_a_slow_cable_tensor_parallel_belongs_inside_a_machine(tmp_path: Path) -> None:
    with Machines() as machines:
        machines.slow_down("200mbit")
        inside = seconds_a_step(machines, {0: 0, 1: 0, 2: 1, 3: 1}, 29430, tmp_path / "inside.jsonl")
        across = seconds_a_step(machines, {0: 0, 1: 1, 2: 0, 3: 1}, 29440, tmp_path / "across.jsonl")
    losses = [[r["loss"] for r in records(tmp_path / f"{name}.jsonl")] for name in ("inside", "across")]
    assert max(abs(a - b) for a, b in zip(*losses, strict=True)) < 1e-5
    assert across > inside  # 16 all-reduces of activations a step over the cable, against one of gradients
    print(f"tp inside {inside * 1e3:.0f} ms a step, across {across * 1e3:.0f} ms")
