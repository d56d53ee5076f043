"""`course train`: on ranks of its own and under torchrun, stopped and resumed, and used wrongly."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from course.parallel.checkpoint import last_checkpoint

QUICK = ["--batch", "8", "--steps", "4"]


def course_train(*options: str | Path, torchrun: int = 0) -> subprocess.CompletedProcess[str]:
    program = ["-m", "course.cli", "train", *map(str, options)]
    start = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(torchrun)] if torchrun else []
    environment = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    return subprocess.run(
        [sys.executable, *start, *program], capture_output=True, text=True, env=environment, check=False
    )  # fmt: skip


def losses(path: Path) -> dict[int, float]:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {line["step"]: line["loss"] for line in lines if "step" in line}


def test_own_ranks_torchrun_and_a_resumed_run_give_the_same_losses(tmp_path: Path) -> None:
    logs = {name: tmp_path / f"{name}.jsonl" for name in ("own", "torchrun", "resumed")}
    trace = tmp_path / "trace.json"
    done = course_train("--layout", "tp=2", *QUICK, "--log-file", logs["own"], "--trace", trace)
    assert done.returncode == 0, done.stderr
    assert "tokens/s" in done.stderr and json.loads(trace.read_text())["traceEvents"]
    done = course_train("--layout", "tp=2", *QUICK, "--log-file", logs["torchrun"], torchrun=2)
    assert done.returncode == 0, done.stderr
    for layout, steps in (("dp=2", 2), ("pp=2", 4)):
        options = ["--layout", layout, "--batch", "8", "--steps", steps, "--checkpoints", tmp_path / "checkpoints"]
        done = course_train(*options, "--log-file", logs["resumed"])
        assert done.returncode == 0, done.stderr
    whole = losses(logs["own"])
    assert sorted(whole) == [1, 2, 3, 4] and whole == losses(logs["torchrun"])
    resumed = losses(logs["resumed"])
    assert max(abs(resumed[step] - whole[step]) for step in whole) < 1e-5
    assert '{"resumed": 2}' in logs["resumed"].read_text()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--layout", "dp=2,ep=2"], "cannot read 'ep=2'"),
        (["--layout", "dp=3"], "a batch of 32 does not divide by dp=3: try dp=1,pp=3,tp=1"),
        (["--layout", "tp=3"], "4 heads do not divide by tp=3"),
        (["--layout", "pp=2", "--microbatches", "64"], "cannot be cut into 64 microbatches"),
    ],
)
def test_what_cannot_be_trained_is_said_in_a_sentence(options: list[str], says: str) -> None:
    done = course_train(*options)
    said = " ".join(done.stderr.split())
    assert done.returncode == 1 and says in said and "Traceback (most recent" not in said


def started(*options: str | Path, torchrun: int = 0, restarts: int = 0) -> subprocess.Popen[str]:
    start = [
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        str(torchrun),
        "--max-restarts",
        str(restarts),
    ]
    program = [*(["-m", *start] if torchrun else []), "-m", "course.cli", "train", *map(str, options)]
    environment = os.environ | {
        "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo",
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",  # else ranks may be given addresses of dead ones (pytorch #135712)
    }  # fmt: skip
    return subprocess.Popen([sys.executable, *program], stderr=subprocess.PIPE, text=True, env=environment)


def kill_a_rank_after(process: subprocess.Popen[str], folder: Path) -> None:
    """SIGKILL to the youngest descendant, a rank, once a checkpoint is there."""
    deadline = time.monotonic() + 170
    while last_checkpoint(folder) is None:
        assert process.poll() is None and time.monotonic() < deadline, "no checkpoint was written"
        time.sleep(0.05)
    ranks = [p for p in psutil.Process(process.pid).children(recursive=True) if not p.children()]
    max(ranks, key=lambda p: p.create_time()).kill()


@pytest.mark.slow
def test_a_killed_rank_ends_the_run_with_a_sentence_and_the_next_one_goes_on(tmp_path: Path) -> None:
    log, folder = tmp_path / "log.jsonl", tmp_path / "checkpoints"
    options = ["--batch", "8", "--checkpoints", folder, "--every", "2", "--log-file", log, "--layout"]
    process = started(*options, "dp=2,tp=2", "--steps", "100000")
    kill_a_rank_after(process, folder)
    said = process.communicate(timeout=30)[1]
    assert process.returncode == 1 and "was killed by SIGKILL" in " ".join(said.split()), said
    assert "Traceback (most recent" not in said
    done = max(losses(log))
    saved = int(last_checkpoint(folder).name.removeprefix("step-"))
    assert 0 <= done - saved <= 3, "only the steps since the last checkpoint are lost"
    again = course_train(*options, "pp=2", "--steps", str(saved + 2))
    assert again.returncode == 0 and f'{{"resumed": {saved}}}' in log.read_text(), again.stderr


@pytest.mark.slow
def test_under_torchrun_a_killed_rank_is_started_again_from_the_checkpoint(tmp_path: Path) -> None:
    log, folder = tmp_path / "log.jsonl", tmp_path / "checkpoints"
    options = ["--batch", "8", "--checkpoints", folder, "--every", "2", "--log-file", log, "--layout", "tp=2"]
    process = started(*options, "--steps", "60", torchrun=2, restarts=1)
    kill_a_rank_after(process, folder)
    assert process.communicate(timeout=120) and process.returncode == 0
    assert max(losses(log)) == 60
    resumed = [json.loads(line)["resumed"] for line in log.read_text().splitlines() if "resumed" in line]
    assert len(resumed) == 2 and resumed[1] >= 2
