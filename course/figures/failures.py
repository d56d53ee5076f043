"""What failures take from a run, over the interval between checkpoints: the formula's curve, and points of one's own.

The formula is Young's (1974), as `planner.run` has it; nothing is simulated here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes

from course.figures.page import BLUE, ORANGE, VERMILION, PageAxes, Table, page_axes
from course.planner.run import checkpoint_interval

SAMPLES = 80
Points = Sequence[tuple[float, float]]  # (seconds between checkpoints, share of the time lost)


def lost_share(interval: float, *, checkpoint_seconds: float, restart_seconds: float, to_failure: float) -> float:
    """C/t + (t/2 + R)/M: the share of the time that checkpoints, lost work and restarts take, to first order."""
    return checkpoint_seconds / interval + (interval / 2 + restart_seconds) / to_failure


def draw_lost(
    *, checkpoint_seconds: float, restart_seconds: float, to_failure: float, points: Points = (), ax: Axes | None = None
) -> Axes:
    """Axes with the share of the time lost over the interval between checkpoints, its least value, and `points`.

    checkpoint_seconds: that a checkpoint stops the run. restart_seconds: from a failure to the first new step.
    to_failure: mean seconds between failures. Raises UsageError for what cannot be.
    """
    given = {
        "checkpoint_seconds": checkpoint_seconds, "restart_seconds": restart_seconds, "to_failure": to_failure,
    }  # fmt: skip
    best = checkpoint_interval(checkpoint_seconds, to_failure)
    if ax is None:
        ax = page_axes(7.5, 3.6)
    span = max([8.0, *(max(t / best, best / t) for t, _ in points)])
    intervals = [best * span ** (2 * i / (SAMPLES - 1) - 1) for i in range(SAMPLES)]
    least = lost_share(best, **given)
    ax.plot([t / 60 for t in intervals], [100 * lost_share(t, **given) for t in intervals], color=BLUE, label="formula")
    ax.axhline(100 * restart_seconds / to_failure, color="#777777", linestyle=":", label="restarts alone")
    ax.plot([best / 60], [100 * least], "D", color=VERMILION, mec="black", label="√(2CM)")
    if points:
        x, y = zip(*points, strict=True)
        ax.plot([t / 60 for t in x], [100 * share for share in y], "o", color=ORANGE, mec="black", label="simulated")
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.set_ylim(bottom=0)
    ax.set_xlabel("minutes between checkpoints")
    ax.set_ylabel("lost, % of the time")
    ax.legend(frameon=False, fontsize=9)
    if isinstance(ax, PageAxes):
        ax.heading = "time lost over the interval between checkpoints"
        ax.description = (
            f"A failure every {to_failure / 3600:.3g} h, checkpoints of {checkpoint_seconds:.3g} s, restarts of "
            f"{restart_seconds:.3g} s: least lost, {least:.1%}, with a checkpoint every {best / 60:.3g} minutes."
        )
        ax.table = _table(best, points, given)
    return ax


def _table(best: float, points: Points, given: dict[str, float]) -> Table:
    simulated = dict(points)
    intervals = sorted({best / 4, best, best * 4, *simulated})
    rows = [
        (
            f"{t / 60:.3g}",
            f"{lost_share(t, **given):.1%}",
            f"{simulated[t]:.1%}" if t in simulated and not math.isnan(simulated[t]) else "–",
        )
        for t in intervals
    ]
    return Table(("minutes between checkpoints", "lost, formula", "lost, simulated"), tuple(rows))
