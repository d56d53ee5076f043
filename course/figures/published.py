"""Predicted beside published: the ratio of both for each run, and the errors of each family of runs as a table.

Pairs and their errors come from `planner.scores`; nothing is predicted here.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from course.errors import UsageError
from course.figures.page import BLUE, GREEN, ORANGE, PINK, SKY, VERMILION, PageAxes, Table, page_axes
from course.planner.scores import Pair, error_table

MARKS = "os^Dv<>PX*dh"
COLOURS = (BLUE, ORANGE, GREEN, PINK, SKY, VERMILION)
BAND = 0.1
"""Share on either side of equality that is shaded."""

Families = Mapping[str, Sequence[Pair]]  # name of a family of runs -> its pairs


def draw_published(families: Families, *, what: str = "seconds a step", ax: Axes | None = None) -> Axes:
    """Axes with a mark a run: its published value to the right, predicted over published up; 10 % off is shaded.

    families: name -> pairs; one look a family. Raises UsageError without a pair.
    """
    table = errors_table(families)
    if ax is None:
        ax = page_axes(7.5, 4.8)
    ax.axhspan(1 - BAND, 1 + BAND, color="#dddddd", zorder=0)
    ax.axhline(1.0, color="#777777", linewidth=1, label="equal (±10 % shaded)")
    looks = zip(itertools.cycle(MARKS), itertools.cycle(COLOURS))
    for (name, family), (mark, colour) in zip(families.items(), looks, strict=False):
        x, y = [pair.measured for pair in family], [1 + pair.error for pair in family]
        ax.plot(x, y, mark, color=colour, mec="black", mew=0.5, ms=6, alpha=0.8, label=f"{name} ({len(family)})")
    ax.set_xscale("log")
    ax.set_xlabel(f"published: {what}")
    ax.set_ylabel("predicted / published")
    ax.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    if isinstance(ax, PageAxes):
        ax.heading, ax.table = "predicted beside published", table
        ax.description = describe_errors(families)
    return ax


def errors_table(families: Families) -> Table:
    """Rows, mean absolute error, mean error (bias) and the worst run of each family, and of all."""
    if not any(families.values()):
        raise UsageError("no pair of a predicted and a published value was given: give {family: [Pair(...), ...]}")
    rows = [_errors(name, pairs) for name, pairs in families.items() if pairs]
    every = [pair for pairs in families.values() for pair in pairs]
    return Table(("family", "runs", "mean error", "bias", "worst", "its run"), (*rows, _errors("all", every)))


def _errors(name: str, pairs: Sequence[Pair]) -> tuple[str, ...]:
    found = error_table(pairs)
    shares = (f"{found['mape']:.1%}", f"{found['bias']:+.1%}", f"{found['worst']:+.1%}")
    return (name, str(found["n"]), *shares, str(found["worst_id"]))


def describe_errors(families: Families) -> str:
    """One sentence: how many runs, their mean error, how many lie within 10 %, and the worst."""
    pairs = [pair for family in families.values() for pair in family]
    found = error_table(pairs)
    near = sum(abs(pair.error) <= BAND for pair in pairs)
    return (
        f"{len(pairs)} published runs, mean error {found['mape']:.1%}; {near} are within 10%. "
        f"The worst, {found['worst_id']}, is off by {found['worst']:+.0%}."
    )
