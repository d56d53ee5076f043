"""The planner against the published runs that ship with it, and the command that says so.

The bounds are what the course claims. They hold for all rows, those of the fit and those kept aside.
"""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path

import pytest

from course.planner.fit import BOUNDS, fit, rows_to_fit
from course.planner.rows import Inexpressible, is_kept_aside, network_bandwidth, read_row, read_runs
from course.planner.validate import SHIPPED, main, report, validate
from course.spec.chips import chip_of

RUNS = read_runs(SHIPPED)
RESULT = validate(RUNS)
ROOT = Path(__file__).resolve().parents[2]

STEP_TIME = {  # family: the most it may miss, on average
    "korthikanti": 0.037, "sc21-t1": 0.056, "zerobubble": 0.10, "mosaic": 0.10, "vtrain": 0.10, "llama3": 0.08,
    "mcore-h100": 0.12, "titan-dec24": 0.12, "titan-h200": 0.12, "megatron-jan21": 0.07, "bridge": 0.12,
}  # fmt: skip
MEMORY = {"zerobubble": 0.10, "titan-dec24": 0.10, "titan-h200": 0.10, "korthikanti": 0.05, "zero-paper": 0.02}


@pytest.mark.parametrize(("family", "most"), STEP_TIME.items())
def test_step_times(family: str, most: float) -> None:
    assert RESULT["step_time"][family]["mape"] <= most


@pytest.mark.parametrize(("family", "most"), MEMORY.items())
def test_memory(family: str, most: float) -> None:
    assert RESULT["memory"][family]["mape"] <= most


def test_rows_kept_aside_are_no_worse_than_the_claims() -> None:
    aside = validate([run for run in RUNS if is_kept_aside(run["id"])])
    for family in ("mosaic", "vtrain", "zerobubble", "bridge", "titan-dec24"):
        assert aside["step_time"][family]["n"] >= 8 and aside["step_time"][family]["mape"] <= 0.12


def test_layouts_come_in_the_right_order() -> None:
    """All groups but GPT 39.1B: there layouts with tp=2 (and some with tp=4) lost 0.1 to 0.2 s in each slot of the
    pipeline, whatever the size of the microbatch; no term explains it, and none is made up for it."""
    missed = {group for group, tau in RESULT["kendall"].items() if tau < 0.85}
    assert all("GPT 39.1B" in group for group in missed)
    assert len(RESULT["kendall"]) >= 6


def test_no_run_that_was_out_of_memory_is_predicted_to_fit() -> None:
    assert RESULT["oom_predicted_to_fit"] == [] and sum(bool(run["measured"].get("oom")) for run in RUNS) == 3


def test_nothing_is_dropped_silently() -> None:
    judged = sum(table["n"] for table in RESULT["step_time"].values())
    only_memory = sum(run["kind"] in ("memory", "memory-ratio", "memory-analytic") for run in RUNS)
    oom = sum(bool(run["measured"].get("oom")) for run in RUNS)
    assert judged + only_memory + oom + len(RESULT["not_expressible"]) == len(RUNS)
    assert all(RESULT["not_expressible"].values())


def test_every_row_has_its_source() -> None:
    assert all(run["source"]["cite"] and run["family"] and run["id"] for run in RUNS)


@pytest.mark.parametrize(
    ("part", "field", "value", "words"),
    [
        ("layout", "global_batch", None, "global batch is not printed"),
        ("cluster", "gpu_id", "Cerebras", "not in the catalogue"),
        ("layout", "tp", 7, "does not divide 32 chips"),
        ("layout", "micro_batch", 5, "does not divide by dp=32 x microbatch=5"),
        ("model", "hidden", "2304", "hidden='2304'"),
        ("measured", "step_time_s", "fast", "measured.step_time_s"),
        ("model", "heads", 7, "try"),
    ],
)
def test_a_row_that_cannot_be_predicted_says_why(part: str, field: str, value: object, words: str) -> None:
    run = copy.deepcopy(RUNS[0])
    run[part][field] = value
    with pytest.raises(Inexpressible, match=words):
        read_row(run)
    assert validate([run])["not_expressible"].keys() == {run["id"]}


def test_a_missing_part_is_named() -> None:
    run = copy.deepcopy(RUNS[0])
    del run["layout"]
    assert "'layout' is missing" in validate([run])["not_expressible"][run["id"]]


@pytest.mark.parametrize(
    ("text", "bandwidth"),
    [
        ("8x HDR 200 Gb/s IB per node (25 GB/s per GPU)", 25e9),
        ("4x IB HDR = 800 Gb/s per node (12.5 GB/s per GPU)", 12.5e9),
        ("RoCE 400 Gb/s per GPU", 50e9),
        ("1600 Gb/s RoCE per node", 25e9),
        ("not stated (800+ Gb/s class)", 25e9),
        (None, 25e9),
    ],
)
def test_networks_as_sources_print_them(text: str | None, bandwidth: float) -> None:
    assert network_bandwidth({"inter_link": text, "gpus_per_node": 8}, chip_of("a100-80gb")) == bandwidth


def test_a_rate_in_hardware_flops_is_four_thirds_of_the_models() -> None:
    run = copy.deepcopy(RUNS[0])
    printed = read_row(run).step_seconds
    del run["derived"]
    assert read_row(run).step_seconds == pytest.approx(printed, rel=0.02)


def test_the_fit_stays_in_bounds_and_does_not_get_worse() -> None:
    from course.planner.constants import TYPICAL
    from course.planner.fit import loss

    rows = [row for row in rows_to_fit(RUNS) if row.family in ("korthikanti", "sc21-t1")]
    found = fit(rows, trials=30)
    assert loss(rows, found) < loss(rows, TYPICAL)
    assert all(low <= getattr(found, name) <= high for name, (low, high) in BOUNDS.items())
    assert not any(is_kept_aside(row.id) for row in rows)


def test_the_command(tmp_path: Path) -> None:
    path = tmp_path / "runs.json"
    path.write_text(json.dumps({"runs": RUNS[:12]}))
    command = [sys.executable, "-m", "course.planner.validate", str(path), "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    result = json.loads(done.stdout)
    assert set(result) == {"step_time", "memory", "kendall", "oom_predicted_to_fit", "not_expressible"}
    assert {"n", "mape", "bias", "worst"} < set(result["step_time"]["sc21-t1"])


def test_a_file_that_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none.json")]) == 2
    assert "cannot be read" in capsys.readouterr().err
    (tmp_path / "odd.json").write_text("3")
    assert main([str(tmp_path / "odd.json")]) == 2


def test_the_report_names_families_and_reasons() -> None:
    text = report(RESULT)
    assert "korthikanti" in text and "Kendall" in text and "not printed" in text
