"""How the physical constants were found: `python -m course.planner.fit RUNS.json [--leave-one-out]`.

A random search, always the same, over `constants.Constants`, one family of chips after another, on the rows that are
not kept aside. It prints constants and changes nothing.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from random import Random
from typing import Any

from course.planner.constants import CONSTANTS, TYPICAL, Constants
from course.planner.rows import Inexpressible, Row, is_kept_aside, read_row, read_runs
from course.planner.search import chosen_plan
from course.planner.step import predict_step
from course.planner.validate import SHIPPED, validate
from course.spec.plan import Plan

BOUNDS = {
    "matmul": (0.6, 0.9), "matmul_low": (0.4, 0.9), "operand": (0.1, 3.0), "attention": (0.1, 0.8),
    "flash_2": (0.1, 0.8), "memory": (0.3, 0.95), "kernels": (1e-5, 2e-3), "network": (0.3, 0.95),
    "overlap": (0.1, 1.0), "interference": (0.001, 0.5), "tensor_overlap": (0.05, 0.95), "straggling": (1e-4, 0.03),
}  # fmt: skip
"""What is physically possible; kernels in seconds, the rest as in `constants`."""


PULL = 0.001
"""Loss for each squared natural logarithm of a constant over its typical value: a constant that rows say nothing about
stays there."""


def rows_to_fit(runs: Sequence[Mapping[str, Any]], without: str = "") -> list[Row]:
    """Rows with a measured step time that are not kept aside; `without` leaves a whole family of rows out too."""
    return expressible([run for run in runs if not is_kept_aside(run["id"]) and run["family"] != without])


def expressible(runs: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Rows with a measured step time and printed axes."""
    rows = []
    for run in runs:
        if run.get("kind") == "memory-analytic":
            continue
        try:
            row = read_row(run)
        except Inexpressible:
            continue
        if row.step_seconds is not None and "axes" not in row.free:
            rows.append(row)
    return rows


def fit(rows: Sequence[Row], start: Constants = TYPICAL, *, trials: int = 600, seed: int = 0) -> Constants:
    """The constants with the least loss near `start`: random steps in a few of them at once, kept where they help, each
    third of the trials with half the step (an evolution strategy of one parent and one child; Rechenberg 1973).

    What a source does not print of a plan is chosen anew before each third.
    """
    random, best = Random(seed), start
    for third in range(3):
        planned = _planned(rows, best)
        least = _loss(planned, best)
        for _ in range(trials // 3):
            moved = {
                name: min(high, max(low, getattr(best, name) * math.exp(random.gauss(0, 0.2 / 2**third))))
                for name, (low, high) in BOUNDS.items()
                if random.random() < 0.3
            }
            child = replace(best, **moved)
            error = _loss(planned, child)
            if error < least:
                best, least = child, error
    return best


def loss(rows: Sequence[Row], constants: Constants) -> float:
    """Weighted mean over families of the mean |log(predicted / measured)|.

    A row counts at most 0.4: what the model cannot say should not bend what it can.
    """
    return _loss(_planned(rows, constants), constants)


def _planned(rows: Sequence[Row], constants: Constants) -> list[tuple[Row, Plan]]:
    return [(row, chosen_plan(row, constants)) for row in rows]


def _loss(planned: Sequence[tuple[Row, Plan]], constants: Constants) -> float:
    families: dict[str, list[float]] = {}
    for row, plan in planned:
        seconds = predict_step(row.shape, plan, row.cluster, constants).seconds
        error = abs(math.log(seconds / (row.step_seconds or seconds)))
        families.setdefault(row.family, []).append(min(0.4, error))
    # A family weighs as the square root of its rows: more rows say more, but not in proportion.
    weights = {family: math.sqrt(len(errors)) for family, errors in families.items()}
    means = {family: sum(errors) / len(errors) for family, errors in families.items()}
    strange = sum(math.log(getattr(constants, name) / getattr(TYPICAL, name)) ** 2 for name in BOUNDS)
    return sum(weights[family] * means[family] for family in means) / sum(weights.values()) + PULL * strange


def fitted(rows: Sequence[Row], chips: str = "") -> dict[str, Constants]:
    """Constants by family of chips, those that no row runs on as they stand; `chips`: one family alone."""
    found = dict(CONSTANTS)
    for family in CONSTANTS if not chips else [chips]:
        own = [row for row in rows if row.cluster.chip.family == family]
        if own:
            found[family] = fit(own)
    return found


def leave_one_out(runs: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The errors of each family of rows under constants fitted without it: {family: {"n", "mape", "bias", "worst"}}.

    Typical constants where no other family runs on its chips.
    """
    tables: dict[str, dict[str, Any]] = {}
    for family in sorted({run["family"] for run in runs}):
        own = [run for run in runs if run["family"] == family]
        others = rows_to_fit(runs, family)
        constants = dict(CONSTANTS)
        for name in {row.cluster.chip.family for row in expressible(own)}:
            rows = [row for row in others if row.cluster.chip.family == name]
            constants[name] = fit(rows) if rows else TYPICAL
        tables |= validate(own, constants)["step_time"]
    return tables


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: prints constants, or with --leave-one-out the errors of families that a fit has not seen."""
    parser = argparse.ArgumentParser(prog="python -m course.planner.fit", description=__doc__)
    parser.add_argument("runs", nargs="?", default=SHIPPED)
    parser.add_argument("--chips", default="", help="a family of chips to fit alone")
    parser.add_argument("--leave-one-out", action="store_true", help="takes minutes")
    options = parser.parse_args(arguments)
    runs = read_runs(options.runs)
    if options.leave_one_out:
        within = validate(runs)["step_time"]
        sys.stdout.write(f"{'':16}{'rows':>5}{'MAPE':>8}{'left out':>10}{'bias':>8}\n")
        for family, table in leave_one_out(runs).items():
            errors = f"{within[family]['mape']:8.1%}{table['mape']:10.1%}{table['bias']:+8.1%}"
            sys.stdout.write(f"{family:16}{table['n']:5}{errors}\n")
        return 0
    for family, found in fitted(rows_to_fit(runs), options.chips).items():
        values = "".join(f"    {name}={value:.3g},\n" for name, value in asdict(found).items())
        sys.stdout.write(f"{family}:\n{values}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
