"""A photograph before and after brightening, and how long each way to do it took.

Nothing is brightened or measured here: pixels and seconds come from outside.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes

from course.figures.page import SKY, PageAxes, Table, page_axes, seconds_text

Timings = Mapping[str, tuple[int, float]]  # name -> (pixels, seconds)
BYTES_A_PIXEL = 2  # of a grey image: one read, one written


def draw_brightness(
    before: np.ndarray, after: np.ndarray, timings: Timings | None = None, *, ax: Axes | None = None
) -> Axes:
    """Axes with two photographs side by side, (H, W) grey or (H, W, 3) RGB, uint8; timings stand in the table."""
    if ax is None:
        ax = page_axes(7.0, 7.0 * before.shape[0] / (2 * before.shape[1]) + 0.5)
    ax.imshow(np.concatenate([before, after], axis=1), cmap="gray", vmin=0, vmax=255)
    ax.axvline(before.shape[1] - 0.5, color="black", linewidth=1)
    ax.set_xticks([before.shape[1] * 0.5, before.shape[1] * 1.5], ["before", "after"])
    ax.set_yticks([])
    if isinstance(ax, PageAxes):
        ax.heading = "photograph before and after brightening"
        ax.description = describe_brightness(before, after)
        ax.table = timings_table(timings) if timings else None
    return ax


def describe_brightness(before: np.ndarray, after: np.ndarray) -> str:
    """One sentence: mean brightness before and after, and how much of the picture sits at either end."""
    ends = ", ".join(f"{np.mean(after == end):.1%} at {end}" for end in (0, 255))
    return f"Mean brightness {before.mean():.0f} before, {after.mean():.0f} after; {ends}."


def draw_timings(timings: Timings, *, peer: str = "memcpy", ax: Axes | None = None) -> Axes:
    """Axes with a bar a name: nanoseconds a pixel on a logarithmic scale, GB/s beside it. First name on top."""
    if ax is None:
        ax = page_axes(7.5, 0.9 + 0.38 * len(timings))
    times = [seconds / pixels * 1e9 for pixels, seconds in timings.values()]
    ax.barh(range(len(times)), times, color=SKY, edgecolor="black", linewidth=0.5)
    for i, time in enumerate(times):
        ax.annotate(f"{BYTES_A_PIXEL / time:.3g} GB/s", (time, i), (4, 0), textcoords="offset points", va="center")
    ax.set_yticks(range(len(times)), list(timings))
    ax.invert_yaxis()
    ax.set_xscale("log")
    ax.set_xlim(min(times) / 3, max(times) * 8)
    ax.set_xlabel("nanoseconds a pixel (logarithmic)")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    if isinstance(ax, PageAxes):
        ax.heading = "time of each way to brighten"
        parts = ", ".join(f"{name} {time:.3g}" for name, time in zip(timings, times, strict=True))
        ax.description, ax.table = f"Nanoseconds a pixel: {parts}.", timings_table(timings, peer=peer)
    return ax


def timings_table(timings: Timings, *, peer: str = "memcpy") -> Table:
    """For each way its pixels, time and GB/s (2 bytes a pixel); with `peer` among them, also its time as a multiple."""
    base = timings[peer][1] / timings[peer][0] if peer in timings else None
    rows = []
    for name, (pixels, seconds) in timings.items():
        row = (name, f"{pixels:,}", seconds_text(seconds), f"{BYTES_A_PIXEL * pixels / seconds / 1e9:.3g}")
        rows.append(row if base is None else (*row, _times(seconds / pixels / base)))
    header = ("way", "pixels", "time", "GB/s")
    return Table(header if base is None else (*header, f"times {peer}, a pixel"), tuple(rows))


def _times(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.3g}"
