"""`course plan`: the table, one layout with its terms, JSON, and one sentence for what cannot be."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from course.cli import app
from course.cli.plan import parse_layout
from course.errors import UsageError
from course.spec.plan import Plan

SMALL = ["plan", "--model", "llama-3.1-8b", "--gpus", "8", "--global-batch", "64"]


def test_the_best_layouts_come_as_a_table() -> None:
    done = CliRunner().invoke(app, [*SMALL, "--tokens", "1e9", "--price", "2"])
    assert done.exit_code == 0 and "layouts fit" in done.stdout and "GPU hours" in done.stdout
    assert "recompute" in done.stdout.splitlines()[1]  # columns are not cut


def test_one_layout_with_every_term() -> None:
    done = CliRunner().invoke(app, [*SMALL, "--layout", "zero=3,recompute=full", "--explain"])
    assert done.exit_code == 0
    for term in ("seconds: compute", "seconds: bubble", "GiB: states", "GiB: logits", "GiB: driver"):
        assert term in done.stdout


def test_json_adds_up() -> None:
    done = CliRunner().invoke(app, [*SMALL, "--layout", "zero=3,recompute=full", "--tokens", "5.24288e8", "--json"])
    row = json.loads(done.stdout)
    assert row["memory"]["total"] < row["memory"]["needed"] <= 80 * 2**30  # with driver, NCCL and gaps
    assert row["memory"]["fits"] and row["layout"]["dp"] == 8
    parts = ("compute", "tensor", "context", "bubble", "data", "optimizer", "straggling")
    assert row["seconds"]["step"] == pytest.approx(sum(row["seconds"][part] for part in parts))
    assert row["run"]["steps"] == 1000 and row["run"]["gpu_hours"] == pytest.approx(row["seconds"]["step"] / 3.6 * 8)
    assert len(json.loads(CliRunner().invoke(app, [*SMALL, "--json", "--best", "3"]).stdout)) == 3


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        (["--chip", "h10"], "no chip is called 'h10': try h100"),
        (["--layout", "tp=3"], "try tp=2"),
        (["--layout", "tp=16"], "there are 8 GPUs"),
        (["--layout", "dp=16"], "needs 16 GPUs, but there are 8"),
        (["--layout", "dp=3"], "try 63"),
        (["--layout", "tp=0"], "cannot read 'tp=0'"),
        (["--layout", "tp=²"], "cannot read 'tp=²'"),
        (["--layout", "zero=7"], "stages of ZeRO"),
        (["--layout", "microbatch=9"], "try 72"),
        (["--layout", "chunks=3"], "try chunks=1"),
        (["--layout", "pp=2,chunks=3"], "16 layers of a stage .* try chunks=2"),
        (["--layout", "pp=8,chunks=4", "--global-batch", "12"], "rounds of pp=8, but there are 12"),
        (["--layout", "pp=2,chunks=40"], "not cut into chunks=40: try chunks=16"),
        (["--gpus", "7"], "uses 7 chips: .* try 8"),
        (["--model", "llama-3.1-405b"], "in none of 656 layouts: try 128 chips"),
        (["--model", "llama-3.1-9b"], "try llama-3.1-8b"),
        (["--price", "-1", "--tokens", "1e9"], "price -1: .* try --price 1"),
        (["--price", "-1"], "at least 0"),
        (["--price", "nan", "--tokens", "1e9"], "try --price 2"),
        (["--price", "2"], "--tokens does not say how long"),
        (["--tokens", "inf"], "try --tokens 1e12"),
        (["--goodput", "0", "--tokens", "1e9"], "goodput 0: a share"),
        (["--precision", "int8"], "bf16, fp8, fp4"),
        (["--chip", "a100-80gb", "--precision", "fp8"], "no fp8"),
    ],
)
def test_one_sentence_for_what_cannot_be(extra: list[str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        CliRunner().invoke(app, [*SMALL, *extra], catch_exceptions=False)


def test_stages_as_alpa_cuts_them() -> None:
    alpa = [*SMALL, "--alpa", "--model", "gpt-3-175b", "--chip", "a100-80gb", "--gpus", "512", "--global-batch", "1536"]
    done = CliRunner().invoke(app, [*alpa, "--sequence", "2048"])
    assert "as Alpa cuts it" in done.stdout and "columns, rows, columns, rows" in done.stdout
    found = json.loads(CliRunner().invoke(app, [*alpa, "--json"]).stdout)
    assert sum(stage["rows"] * stage["columns"] for stage in found["stages"]) == 512
    with pytest.raises(UsageError, match="leave --layout out"):
        CliRunner().invoke(app, [*alpa, "--layout", "tp=8"], catch_exceptions=False)


def test_fewer_gpus_than_there_are_is_said() -> None:
    done = CliRunner().invoke(app, [*SMALL, "--layout", "dp=4,zero=3"])
    assert "on 8 x h100, 4 of them used" in done.stdout


def test_layouts_as_they_are_written() -> None:
    start = Plan(global_batch=64)
    plan = parse_layout("tp=2, pp=2, recompute=full", start, 8)
    assert (plan.dp, plan.tp, plan.pp, plan.recompute, plan.sequence_parallel) == (2, 2, 2, "full", True)
    for wrong in ("tp:2", "tp=2,tp=4", "xp=2", "recompute=half"):
        with pytest.raises(UsageError, match="cannot read"):
            parse_layout(wrong, start, 8)
