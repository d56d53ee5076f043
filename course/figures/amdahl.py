"""Speed-up over workers, both axes in powers of two: Amdahl's and Gustafson's laws, and measured points on them.

The laws come from `spec.speedup`; nothing is measured or fitted here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from course.errors import UsageError
from course.figures.page import BLUE, GREEN, ORANGE, PINK, VERMILION, PageAxes, Table, page_axes
from course.spec.speedup import amdahl_speedup, gustafson_speedup, parallel_efficiency

Points = Mapping[str, Sequence[tuple[int, float]]]  # name -> [(workers, speed-up), ...]

MARKS = (("o", ORANGE), ("s", GREEN), ("^", PINK), ("D", "white"))
SAMPLES = 60  # of a curve


def draw_amdahl(points: Points, *, serial: float, workers: int = 64, ax: Axes | None = None) -> Axes:
    """Axes with both laws for this serial share from 1 worker to `workers`, what is ideal, and one mark a point.

    points: name -> [(workers, speed-up), ...], at most four names, may be empty; the axes reach as far as they do.
    serial: for Amdahl a share of one worker's time, for Gustafson one of the parallel run. Raises UsageError.
    """
    table = amdahl_table(points, serial=serial, workers=workers)
    if ax is None:
        ax = page_axes(7.5, 4.2)
    most = max([workers, 2, *(n for row in points.values() for n, _ in row)])
    counts = [most ** (i / (SAMPLES - 1)) for i in range(SAMPLES)]
    curves = (
        ("ideal", "#777777", ":", counts),
        ("Gustafson", BLUE, "--", [gustafson_speedup(serial=serial, workers=n) for n in counts]),
        ("Amdahl", VERMILION, "-", [amdahl_speedup(serial=serial, workers=n) for n in counts]),
    )
    for name, colour, line, values in curves:
        ax.plot(counts, values, line, color=colour, label=name)
    for (name, row), (mark, colour) in zip(points.items(), MARKS, strict=False):
        ax.plot(*zip(*row, strict=True), mark, color=colour, mec="black", ms=8, label=f"measured: {name}")
    for axis, scale in ((ax.xaxis, ax.set_xscale), (ax.yaxis, ax.set_yscale)):
        scale("log", base=2)
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.set_xlabel("workers")
    ax.set_ylabel("speed-up (times as fast as one)")
    ax.grid(which="major", linewidth=0.4, alpha=0.6)
    ax.legend(frameon=False, fontsize=9)
    if isinstance(ax, PageAxes):
        ax.heading = "speed-up over workers"
        ax.description, ax.table = describe_amdahl(serial, workers), table
    return ax


def describe_amdahl(serial: float, workers: int) -> str:
    """One sentence a law: what it promises for this share and this many workers."""
    amdahl, gustafson = (
        amdahl_speedup(serial=serial, workers=workers),
        gustafson_speedup(serial=serial, workers=workers),
    )
    limit = f"never above {1 / serial:.4g}" if serial else "without a limit"
    return (
        f"{serial:.0%} serial, {_workers(workers)}. Amdahl, the same work: {amdahl:.3g} times as fast, {limit}, "
        f"efficiency {parallel_efficiency(amdahl, 1.0, workers):.0%}. "
        f"Gustafson, more work in the same time: {gustafson:.3g} times as much."
    )


def amdahl_table(points: Points, *, serial: float, workers: int = 64) -> Table:
    """Both laws at powers of two up to `workers` and at each measured point, with the efficiency of what was measured.

    Raises UsageError for more than four names, an empty row, or a point that cannot be.
    """
    if len(points) > len(MARKS):
        raise UsageError(f"draw_amdahl draws at most {len(MARKS)} rows of points, but got {len(points)}")
    found: dict[int, list[str]] = {}
    for name, row in points.items():
        if not row:
            raise UsageError(f"draw_amdahl got no points for {name!r}: give pairs (workers, speed-up), or leave it out")
        for n, speedup in row:
            if speedup <= 0:
                raise UsageError(f"draw_amdahl got a speed-up of {speedup!r} for {name!r}: one worker's time over n's")
            efficiency = parallel_efficiency(speedup, 1.0, n)
            found.setdefault(n, []).append(f"{name} {speedup:.3g} ({efficiency:.0%})")
    powers = [2**k for k in range(workers.bit_length())]
    rows = tuple(
        (
            str(n),
            f"{amdahl_speedup(serial=serial, workers=n):.3g}",
            f"{gustafson_speedup(serial=serial, workers=n):.3g}",
            ", ".join(found.get(n, [])) or "–",
        )
        for n in sorted({*powers, workers, *found})
    )
    return Table(("workers", "Amdahl", "Gustafson", "measured (efficiency)"), rows, f"Speed-up, {serial:.0%} serial.")


def _workers(workers: int) -> str:
    return "1 worker" if workers == 1 else f"{workers:,} workers"
