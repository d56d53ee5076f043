"""`course train`: on ranks of its own and under torchrun, stopped and resumed, and used wrongly."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

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
