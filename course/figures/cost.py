"""Seconds against bytes, both axes in powers of ten: measured points, and the curves that theory draws through them.

Curves come in as functions; nothing is measured or fitted here.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence

from matplotlib.axes import Axes

from course.errors import UsageError
from course.figures.page import (
    BLUE,
    GREEN,
    ORANGE,
    PINK,
    VERMILION,
    PageAxes,
    Table,
    bytes_text,
    page_axes,
    seconds_text,
)

Points = Sequence[tuple[float, float]]  # (nbytes, seconds)
Curve = Callable[[float], float]  # nbytes -> seconds

LOOKS = (
    (BLUE, "-", "o"),
    (VERMILION, "--", "s"),
    (GREEN, ":", "^"),
    (ORANGE, "-.", "D"),
    (PINK, (0, (5, 1, 1, 1)), "v"),
)
SAMPLES = 60  # of a curve


def draw_cost(measured: Mapping[str, Points], theory: Mapping[str, Curve], *, ax: Axes | None = None) -> Axes:
    """Axes with the points of each name as marks and the curve of the same name as a line; either may lack the other.

    measured: {name: [(nbytes, seconds), ...]}. theory: {name: function of nbytes}. Curves run from the smallest to the
    largest measured size, or from 1 kB to 1 GB where nothing is measured. Raises UsageError when nothing is given.
    """
    names = list(dict.fromkeys([*measured, *theory]))
    if not names or len(names) > len(LOOKS):
        raise UsageError(f"draw_cost draws one to {len(LOOKS)} names, but got {len(names)}")
    if ax is None:
        ax = page_axes(7.5, 4.2)
    sizes = [nbytes for points in measured.values() for nbytes, _ in points] or [1e3, 1e9]
    for name, (colour, line, mark) in zip(names, LOOKS, strict=False):
        if name in theory:
            grid = _log_steps(min(sizes), max(sizes))
            ax.plot(grid, [theory[name](nbytes) for nbytes in grid], color=colour, ls=line, label=f"{name}, theory")
        if name in measured:
            x, y = zip(*measured[name], strict=True)
            ax.plot(x, y, mark, color=colour, mec="black", ms=7, label=f"{name}, measured")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("size (bytes)")
    ax.set_ylabel("time (s)")
    ax.grid(which="major", color="#ddd")
    ax.legend(frameon=False)
    if isinstance(ax, PageAxes):
        ax.heading = f"time against bytes: {', '.join(names)}"
        ax.table = cost_table(measured, theory)
        ax.description = f"Time against bytes, both axes logarithmic; {ax.table.caption}"
    return ax


def cost_table(measured: Mapping[str, Points], theory: Mapping[str, Curve]) -> Table:
    """One row a measured point: size, measured, theory and how far theory is off; the caption has the medians."""
    rows, off = [], {}
    for name, points in measured.items():
        for nbytes, seconds in points:
            curve = theory.get(name)
            predicted = curve(nbytes) if curve else None
            if predicted is not None:
                off.setdefault(name, []).append(abs(predicted / seconds - 1))
            told = (seconds_text(predicted), f"{predicted / seconds - 1:+.0%}") if predicted is not None else ("–", "–")
            rows.append((name, bytes_text(nbytes), seconds_text(seconds), *told))
    medians = [f"{name}: theory is off by {statistics.median(values):.0%} (median)" for name, values in off.items()]
    caption = "; ".join(medians) + "." if medians else f"Curves: {', '.join(theory)}."
    return Table(("what", "size", "measured", "theory", "off by"), tuple(rows), caption)


def _log_steps(first: float, last: float) -> list[float]:
    return [first * (last / first) ** (i / (SAMPLES - 1)) for i in range(SAMPLES)]
