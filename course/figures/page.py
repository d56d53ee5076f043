"""Figures that show themselves on a page, with words: axes off pyplot, an alternative text and a table below.

`Axes` made here need no pyplot, so no figure is drawn twice or left open. What is drawn on them lives elsewhere.
"""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

# Okabe and Ito's colours: told apart by colour-blind eyes, and of different lightness in grey.
BLUE, ORANGE, GREEN, PINK, SKY, VERMILION = "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text under a header: the same figures as a picture, for screen readers, terminals and tests."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""

    def __str__(self) -> str:
        widths = [max(len(row[i]) for row in (self.header, *self.rows)) for i in range(len(self.header))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in self._all
        ]
        return "\n".join([self.caption, *lines] if self.caption else lines)

    __repr__ = __str__

    @property
    def _all(self) -> tuple[tuple[str, ...], ...]:
        return (self.header, *self.rows)

    def _repr_html_(self) -> str:
        head = "".join(f'<th scope="col">{html.escape(cell)}</th>' for cell in self.header)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in self.rows)
        caption = (
            f'<caption style="text-align:left;white-space:nowrap">{html.escape(self.caption)}</caption>'
            if self.caption
            else ""
        )
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


class InWords:
    """Mixed into a widget, before its base class: readers without widgets get its repr as text."""

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        bundle = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        data = bundle[0] if isinstance(bundle, tuple) else bundle
        return {**(data or {}), "text/plain": repr(self)}


class PageAxes(Axes):
    """Axes that a notebook shows by themselves, as a picture with a description and a table that folds out."""

    heading: str = "figure"  # what it is, without numbers that change from run to run
    description: str = ""
    table: Table | None = None

    def __repr__(self) -> str:
        return f"<{self.heading}>"

    __str__ = __repr__

    def _repr_html_(self) -> str:
        buffer = io.BytesIO()
        figure = self.get_figure(root=True)
        figure.savefig(buffer, format="png", dpi=110)
        data = base64.b64encode(buffer.getvalue()).decode()
        alt = html.escape(self.description, quote=True)
        below = (
            "" if self.table is None else f"<details><summary>As a table</summary>{self.table._repr_html_()}</details>"
        )
        image = f'<img alt="{alt}" src="data:image/png;base64,{data}" style="max-width:100%;background:#fff">'
        return f'<figure style="margin:0">{image}<figcaption>{alt}</figcaption>{below}</figure>'


def page_axes(width: float, height: float) -> PageAxes:
    """Fresh axes of `width` by `height` inches, unknown to pyplot."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot(axes_class=PageAxes)
    if not isinstance(axes, PageAxes):
        raise TypeError("add_subplot gave other axes than it was asked for")
    return axes


def seconds_text(seconds: float) -> str:
    """A length of time with three digits and the unit that suits it: '12.3 ms'."""
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return "0 s" if seconds <= 0 else f"{seconds * 1e9:.3g} ns"


def bytes_text(nbytes: float) -> str:
    """A number of bytes with three digits and the unit that suits it: '3.25 MB' (a MB is 1,000,000 bytes)."""
    for size, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if nbytes >= size:
            return f"{nbytes / size:.3g} {unit}"
    return f"{nbytes:.0f} B"


def time_scale(seconds: Sequence[float]) -> tuple[float, str]:
    """(factor, unit) to write times as long as these on an axis."""
    longest = max(seconds, default=0.0)
    for size, unit in ((1.0, "s"), (1e-3, "ms")):
        if longest >= size:
            return 1 / size, unit
    return 1e6, "µs"
