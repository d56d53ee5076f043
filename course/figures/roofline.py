"""The roofline: operations a second over operations a byte, on logarithmic axes, under the roof of a machine.

Roofline: Williams, Waterman, Patterson, CACM 52(4), 2009. All numbers come from outside; nothing is measured here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from course.figures.page import BLUE, GREEN, ORANGE, PINK, PageAxes, Table, page_axes

Points = Mapping[str, Sequence[tuple[float, float]]]
Roofs = Mapping[str, tuple[float, float]]
LOOKS = ((BLUE, "o", "-"), (ORANGE, "s", "--"), (GREEN, "^", "-."), (PINK, "D", ":"))


def draw_roofline(points: Points, roofs: Roofs, *, ax: Axes | None = None) -> Axes:
    """Axes with one roof and one row of points a name.

    points: name -> [(operations a byte, operations a second), ...]. roofs: name -> (peak in operations a second,
    bandwidth in bytes a second); a roof rises with the bandwidth up to the peak. Points may have no roof.
    """
    if ax is None:
        ax = page_axes(7.5, 4.4)
    intensities = [x for row in points.values() for x, _ in row] + [peak / width for peak, width in roofs.values()]
    left, right = min(intensities) / 1.5, max(intensities) * 1.5
    for i, name in enumerate(_names(points, roofs)):
        colour, marker, line = LOOKS[i % len(LOOKS)]
        if name in roofs:
            peak, bandwidth = roofs[name]
            corners = [left, peak / bandwidth, right]
            ax.plot(corners, [_roof(x, roofs[name]) for x in corners], line, color=colour, label=f"roof: {name}")
        if name in points:
            ax.plot(*zip(*points[name], strict=True), marker, color=colour, mec="black", label=f"measured: {name}")
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xlabel("intensity (operations for each byte moved)")
    ax.set_ylabel("operations a second")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.grid(which="both", linewidth=0.4, alpha=0.5)
    ax.legend(fontsize=9)
    if isinstance(ax, PageAxes):
        ax.heading = f"roofline of {len(_names(points, roofs))} machines"
        ax.description, ax.table = describe_roofline(points, roofs), roofline_table(points, roofs)
    return ax


def describe_roofline(points: Points, roofs: Roofs) -> str:
    """A sentence a roof: what memory gives, what arithmetic gives, and where one takes over from the other."""
    said = [
        f"{name}: memory moves {bandwidth / 1e9:.3g} GB/s, arithmetic ends at {peak / 1e9:.3g} billion operations a "
        f"second; from {peak / bandwidth:.3g} operations a byte on, arithmetic is the limit."
        for name, (peak, bandwidth) in roofs.items()
    ]
    return " ".join(["Roofline.", *said])


def roofline_table(points: Points, roofs: Roofs) -> Table:
    """Each point beside the roof above it, and which of the two is its limit."""
    rows = []
    for name, row in points.items():
        for intensity, found in row:
            beside = ("", "", "")
            if name in roofs:
                roof, (peak, bandwidth) = _roof(intensity, roofs[name]), roofs[name]
                limit = "memory" if intensity * bandwidth < peak else "arithmetic"
                beside = (f"{roof / 1e9:.3g}", f"{found / roof:.0%}", limit)
            rows.append((name, f"{intensity:g}", f"{found / 1e9:.3g}", *beside))
    header = ("measured", "operations a byte", "billion a second", "roof", "share of the roof", "limit")
    return Table(header, tuple(rows))


def _roof(intensity: float, roof: tuple[float, float]) -> float:
    peak, bandwidth = roof
    return min(peak, intensity * bandwidth)


def _names(points: Points, roofs: Roofs) -> list[str]:
    return list(dict.fromkeys([*points, *roofs]))
