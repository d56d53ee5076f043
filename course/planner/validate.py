"""Published runs against the planner: `python -m course.planner.validate RUNS.json [--json]`.

Without a file the runs that ship with the package (`data/runs.json`) are read. Nothing is dropped silently: rows that
cannot be expressed are listed with the reason.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from course.errors import UsageError
from course.planner.constants import Constants
from course.planner.memory import fits, layer_activation_bytes, microbatches_held, peak_memory, states_bytes
from course.planner.rows import Inexpressible, Row, is_kept_aside, read_row, read_runs
from course.planner.scores import Pair, error_table, kendall_table
from course.planner.search import chosen_plan
from course.planner.step import predict_step
from course.spec.plan import stage_layers

SHIPPED = Path(__file__).parent / "data" / "runs.json"
GIB = 2.0**30
NO_STEP = {
    "whole-run": "hours of a whole run, and no step",
    "per-layer-time": "the time of one layer, and no step",
    "bubble": "an idle share, and neither a step nor memory",
}
"""Kinds of rows that measure something else, with what it is."""


def validate(runs: Sequence[Mapping[str, Any]], constants: Mapping[str, Constants] | None = None) -> dict[str, Any]:
    """The errors of all rows: {"step_time", "memory", "kendall", "oom_predicted_to_fit", "not_expressible"}.

    runs: rows as in the shipped file. constants: by family of chips, in place of the planner's own. step_time and
    memory: {family: table}, as `scores.error_table` makes it. not_expressible: {id: reason}, a field that
    cannot be read named.
    """
    steps: dict[str, list[Pair]] = {}
    memories: dict[str, list[Pair]] = {}
    reasons: dict[str, str] = {}
    oom: list[str] = []
    for run in runs:
        try:
            step, memory, wrong = _judge(run, constants)
        except UsageError as reason:
            reasons[str(run["id"])] = str(reason)
            continue
        if step:
            steps.setdefault(run["family"], []).append(step)
        if memory:
            memories.setdefault(run["family"], []).append(memory)
        if wrong:
            oom.append(run["id"])
    return {
        "step_time": {family: error_table(pairs) for family, pairs in steps.items()},
        "memory": {family: error_table(pairs) for family, pairs in memories.items()},
        "kendall": kendall_table([pair for pairs in steps.values() for pair in pairs]),
        "oom_predicted_to_fit": oom,
        "not_expressible": reasons,
    }


def _judge(run: Mapping[str, Any], constants: Mapping[str, Constants] | None) -> tuple[Pair | None, Pair | None, bool]:
    """A row's pair of step times, its pair of memories, and whether it was out of memory but is predicted to fit."""
    if run.get("kind") == "memory-analytic":
        return None, _states_pair(run), False
    if run.get("kind") in NO_STEP:
        raise Inexpressible(NO_STEP[run["kind"]])
    row = read_row(run)
    if row.oom:
        return None, None, fits(row.shape, row.plan, row.cluster.chip)
    own = constants[row.cluster.chip.family] if constants else None
    plan = chosen_plan(row, own)
    memory = _memory_pair(replace(row, plan=plan))
    if row.step_seconds is None:
        if memory is None:
            raise Inexpressible(f"nothing of a step is measured ({', '.join(row.measured)})")
        return None, memory, False
    seconds = predict_step(row.shape, plan, row.cluster, own).seconds
    group = (
        f"{row.shape.name}, {row.cluster.num_gpus} x {row.cluster.chip.name}, "
        f"batch {plan.global_batch} x {plan.sequence} ({row.family})"
    )
    return Pair(row.id, seconds, row.step_seconds, group, plan), memory, False


def _states_pair(run: Mapping[str, Any]) -> Pair:
    """The states of a model known by its parameters alone (ZeRO, figure 1)."""
    try:
        layout, parameters = run["layout"], run["model"]["params_b"] * 1e9
        predicted = states_bytes(parameters, dp=layout["dp"], zero=layout["zero_stage"])
        return Pair(run["id"], predicted, run["measured"]["model_states_gb"] * 1e9)
    except (KeyError, TypeError) as error:
        raise Inexpressible(f"states need dp, zero_stage, params_b and model_states_gb: {error}") from error


def _memory_pair(row: Row) -> Pair | None:
    """Predicted and measured bytes (or the share of another layout's activations), where memory was measured."""
    measured = row.measured
    memory = peak_memory(row.shape, row.plan)
    if share := measured.get("activations_pct_of_tp_baseline"):
        base = replace(row.plan, recompute="none", sequence_parallel=False)
        ours = layer_activation_bytes(row.shape, row.plan) / layer_activation_bytes(row.shape, base)
        return Pair(row.id, ours, share / 100)
    if states := measured.get("params_grads_optimizer_gib"):
        layers = stage_layers(row.shape.layers, row.plan.pp)[0]
        kept = layers * layer_activation_bytes(row.shape, row.plan) * microbatches_held(row.plan, 0)
        return Pair(row.id, memory.states + kept, (states + measured["activations_gib"]) * GIB)
    for field in ("peak_memory_gib", "peak_memory_gb", "peak_memory_gb_max_allocated"):
        if measured.get(field):
            return Pair(row.id, memory.total, measured[field] * GIB)  # PyTorch's "GB" are 2**30 bytes
    return None


def report(result: Mapping[str, Any]) -> str:
    """The result of `validate` as text."""
    lines = []
    for name in ("step_time", "memory"):
        lines.append(f"{name.replace('_', ' '):24}{'rows':>6}{'MAPE':>9}{'bias':>9}{'worst':>9}")
        for family, table in sorted(result[name].items()):
            errors = f"{table['mape']:9.1%}{table['bias']:+9.1%}{table['worst']:+9.1%}"
            lines.append(f"  {family:22}{table['n']:6}{errors}  {table['worst_id']}")
    lines.append("Kendall tau")
    lines += [f"  {tau:5.2f}  {group}" for group, tau in sorted(result["kendall"].items())]
    lines.append(f"out of memory, predicted to fit: {', '.join(result['oom_predicted_to_fit']) or 'none'}")
    lines.append(f"not expressible: {len(result['not_expressible'])}")
    lines += [f"  {row}: {reason}" for row, reason in result["not_expressible"].items()]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. Exit status 2, with one sentence, where the file cannot be read."""
    parser = argparse.ArgumentParser(prog="python -m course.planner.validate", description=__doc__)
    parser.add_argument("runs", nargs="?", default=SHIPPED, help="rows as in the shipped file")
    parser.add_argument("--kept-aside", action="store_true", help="only the half of the rows that no fit has seen")
    parser.add_argument("--json", action="store_true", help="errors as fractions, for programs")
    options = parser.parse_args(arguments)
    try:
        runs = read_runs(options.runs)
        result = validate([run for run in runs if not options.kept_aside or is_kept_aside(run["id"])])
    except UsageError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(json.dumps(result, indent=1) + "\n" if options.json else report(result))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
