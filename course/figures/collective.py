"""What a collective does, on pictures: what each rank held before and after, side by side; and shapes to hold.

The collectives run elsewhere, on ranks; only their inputs and results are drawn here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from course.errors import UsageError
from course.figures.page import PageAxes, Table, page_axes

SHAPES = ("disc", "square", "triangle", "cross")
GAP = 0.18  # between pictures, in widths of one

Held = Mapping[str, tuple[Any, Any]]  # {collective: (image before, image after)} of one rank; None for nothing


def shape_image(rank: int, size: int = 32) -> np.ndarray:
    """A shape for each of four ranks: (size, size) float32, 1 inside and 0 outside: disc, square, triangle, cross."""
    if rank not in range(len(SHAPES)):
        raise UsageError(f"shape_image({rank!r}): there are shapes for ranks 0 to {len(SHAPES) - 1}")
    y, x = np.mgrid[0:size, 0:size] * (2 / (size - 1)) - 1  # both from -1 to 1
    inside = (
        x**2 + y**2 < 0.7,
        np.maximum(abs(x), abs(y)) < 0.62,
        (y < 0.75) & (2 * abs(x) < y + 0.85),
        np.minimum(abs(x - y), abs(x + y)) < 0.35,
    )[rank]
    return inside.astype(np.float32)


def draw_collectives(held: Sequence[Held], *, ax: Axes | None = None) -> Axes:
    """Axes with one row a collective: left what each rank held, right what it holds afterwards.

    held: one {name: (before, after)} a rank; an image is 2-D, of grey values from 0 up, or None. Dark is more; the
    darkest grey of a row is its largest value. A part of the rows, of shape (size / n, size), is drawn where chunk
    `rank` lies in the whole.
    """
    names, n = list(held[0]), len(held)
    if ax is None:
        ax = page_axes(1.6 + 2 * 0.8 * n, 0.5 + 0.92 * len(names))
    for row, name in enumerate(names):
        pairs = [[_array(image) for image in of_rank[name]] for of_rank in held]
        there = [image for pair in pairs for image in pair if image is not None]
        most = max((image.max(initial=0) for image in there), default=0) or 1
        size = max((image.shape[1] for image in there), default=1)
        for rank, pair in enumerate(pairs):
            for side, image in enumerate(pair):
                corner = ((side * (n + 0.6) + rank) * (1 + GAP), row * (1 + GAP))
                _draw_image(ax, image, corner, rank, size, most)
    _label(ax, names, n)
    if isinstance(ax, PageAxes):
        ax.heading, ax.table = f"before and after: {', '.join(names)}", collectives_table(held)
        ax.description = f"What each of {n} ranks holds before and after {', '.join(names)}."
    return ax


def _draw_image(
    ax: Axes, image: np.ndarray | None, corner: tuple[float, float], rank: int, size: int, most: float
) -> None:
    x, y = corner
    ax.add_patch(Rectangle(corner, 1, 1, facecolor="#f4f4f4", edgecolor="#999", lw=0.6))
    if image is None:
        return
    height = image.shape[0] / size
    top = y + (rank * height if height < 1 else 0)
    grey = 0.85 * image / most + 0.08  # a chunk of zeros is still seen as something held
    ax.imshow(grey, cmap="Greys", vmin=0, vmax=1, extent=(x, x + 1, top + height, top), zorder=2)
    ax.add_patch(Rectangle((x, top), 1, height, facecolor="none", edgecolor="black", lw=0.8, zorder=3))


def _label(ax: Axes, names: list[str], n: int) -> None:
    step = 1 + GAP
    ax.set_yticks([row * step + 0.5 for row in range(len(names))], names)
    places = [(side * (n + 0.6) + rank) * step + 0.5 for side in (0, 1) for rank in range(n)]
    ax.set_xticks(places, [f"{word}{rank}" for word in ("rank ", "rank ") for rank in range(n)], fontsize=8)
    ax.set_xlim(-0.1, (2 * n + 0.6) * step)
    ax.set_ylim(len(names) * step, -0.35)
    ax.text(-0.05, -0.12, "before", fontsize=9, weight="bold")
    ax.text((n + 0.6) * step, -0.12, "after", fontsize=9, weight="bold")
    ax.set_aspect("equal")
    ax.tick_params(length=0)
    ax.set_frame_on(False)


def collectives_table(held: Sequence[Held]) -> Table:
    """One row a collective and rank: the shape and the sum of what it held before and after."""
    rows = tuple(
        (name, str(rank), *(_words(image) for image in of_rank[name]))
        for name in held[0]
        for rank, of_rank in enumerate(held)
    )
    return Table(("collective", "rank", "before", "after"), rows)


def _words(image: Any) -> str:
    array = _array(image)
    return "nothing" if array is None else f"{array.shape[0]} × {array.shape[1]}, sum {array.sum():.0f}"


def _array(image: Any) -> np.ndarray | None:
    if image is None:
        return None
    array = np.asarray(image)
    if array.ndim != 2:
        raise UsageError(f"draw_collectives draws 2-D images, but got one of shape {array.shape}")
    return array
