"""The tensor splitter: cut two matrices by columns or rows, move the cuts, and see who holds what and what is sent.

The counting is `figures.tensor.Cut`; its static twin is `figures.draw_tensor`.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import ipywidgets
import traitlets
from matplotlib.axes import Axes

from course.figures.page import InWords, Table
from course.figures.shards import rank_colour
from course.figures.tensor import FEWEST, GAP, HIDDEN, LEGEND, MOST, WAYS, WHOLE, WIDTH, Cut, draw_tensor, equal_cuts

PIXELS = 7  # a side of one element
WIDE = {"style": {"description_width": "initial"}, "layout": {"width": "19em"}}


class TensorSplitter(InWords, ipywidgets.VBox):
    """`TensorSplitter()`: cut A and B of y = g(x A) B over ranks, and read what must be sent forward and backward.

    Traits to set: n (2 to 4), first and second ("columns", "rows"), a_cuts and b_cuts (n - 1 places each, rising).
    Traits to read: held (weights of each rank), sent (elements forward and backward, all ranks), sentence.
    Another n, first or second cuts that matrix into equal parts again. Cuts that cannot be raise UsageError.
    """

    n = traitlets.Int(2, min=FEWEST, max=MOST)
    first = traitlets.Enum(WAYS, "columns")
    second = traitlets.Enum(WAYS, "columns")
    a_cuts = traitlets.List(traitlets.Int())
    b_cuts = traitlets.List(traitlets.Int())
    held = traitlets.List()
    sent = traitlets.List()
    sentence = traitlets.Unicode("")

    def __init__(
        self,
        n: int = 2,
        first: str = "columns",
        second: str = "columns",
        a_cuts: Sequence[int] | None = None,
        b_cuts: Sequence[int] | None = None,
    ) -> None:
        cut = Cut(n, first, second, a_cuts, b_cuts)
        self._picture, self._moving = ipywidgets.HTML(), False
        super().__init__()
        self.n, self.first, self.second = n, first, second
        self._sliders = {name: [self._slider(name, i) for i in range(MOST - 1)] for name in ("a_cuts", "b_cuts")}
        rows = [ipywidgets.HBox(row, layout={"flex_flow": "row wrap"}) for row in (self._choices(), *self._rows())]
        self.children = [*rows, self._picture]
        self._set(a_cuts=cut.a_cuts, b_cuts=cut.b_cuts)
        self.observe(lambda change: self._set(a_cuts=None, b_cuts=None), "n")
        self.observe(lambda change: self._set(a_cuts=None), "first")
        self.observe(lambda change: self._set(b_cuts=None), "second")
        self.observe(lambda change: self._set(), ["a_cuts", "b_cuts"])

    @traitlets.validate("a_cuts", "b_cuts")
    def _possible(self, proposal: Any) -> list[int]:
        if not self._moving:
            name = proposal["trait"].name
            Cut(self.n, self.first, self.second, **{name: proposal["value"]})
        return list(proposal["value"])

    @property
    def cut(self) -> Cut:
        """What the traits describe, as a record."""
        return Cut(self.n, self.first, self.second, self.a_cuts, self.b_cuts)

    def _size(self, name: str) -> int:
        hidden = self.first == "columns" if name == "a_cuts" else self.second == "rows"
        return HIDDEN if hidden else WIDTH

    def _choices(self) -> list[ipywidgets.Widget]:
        look = {"style": {"description_width": "initial"}, "layout": {"width": "auto", "max_width": "11em"}}
        ranks = ipywidgets.BoundedIntText(value=self.n, min=FEWEST, max=MOST, description="ranks", **look)
        first = ipywidgets.Dropdown(options=WAYS, value=self.first, description="cut A by", **look)
        second = ipywidgets.Dropdown(options=WAYS, value=self.second, description="cut B by", **look)
        for name, field in (("n", ranks), ("first", first), ("second", second)):
            traitlets.link((self, name), (field, "value"))
        return [ranks, first, second]

    def _rows(self) -> list[list[ipywidgets.Widget]]:
        return [self._sliders["a_cuts"], self._sliders["b_cuts"]]

    def _slider(self, name: str, i: int) -> ipywidgets.IntSlider:
        """One cut: dragged by mouse, moved by arrow keys, or typed."""
        words = f"{name[0].upper()}, cut {i + 1}"
        slider = ipywidgets.IntSlider(value=1, min=1, max=HIDDEN - 1, description=words, **WIDE)
        slider.observe(lambda change: self._move(name, i, change["new"]), "value")
        return slider

    def _move(self, name: str, i: int, place: int) -> None:
        """A slider's move, kept between its neighbours."""
        if self._moving:
            return
        cuts = list(getattr(self, name))
        low = cuts[i - 1] + 1 if i else 1
        high = (cuts[i + 1] if i + 1 < len(cuts) else self._size(name)) - 1
        cuts[i] = max(low, min(high, place))
        setattr(self, name, cuts)
        self._follow()  # the slider too, where it was stopped

    def _set(self, **cuts: Sequence[int] | None) -> None:
        """Take these cuts (None: equal parts), then bring sliders, words and picture up to date."""
        if self._moving:
            return
        self._moving = True
        try:
            for name, places in cuts.items():
                setattr(self, name, list(equal_cuts(self._size(name), self.n) if places is None else places))
        finally:
            self._moving = False
        self._follow()

    def _follow(self) -> None:
        cut, self._moving = self.cut, True
        try:
            for name, sliders in self._sliders.items():
                places = getattr(self, name)
                for i, slider in enumerate(sliders):
                    slider.layout.display = "" if i < len(places) else "none"
                    if i < len(places):
                        slider.max = self._size(name) - 1
                        slider.value = places[i]
        finally:
            self._moving = False
        self.held, self.sent, self.sentence = cut.held, list(cut.sent), cut.sentence
        self._picture.value = (
            f'{_svg(cut)}<div>{LEGEND}</div><div role="status" aria-live="polite" style="line-height:1.4">'
            f"{cut.sends._repr_html_()}{html.escape(cut.sentence)}</div>"
        )

    def table(self) -> Table:
        """The text twin: what each rank holds, and the sentence."""
        return self.cut.table

    def sends(self) -> Table:
        """The text twin's second part: what is sent where, forward and backward."""
        return self.cut.sends

    def figure(self) -> Axes:
        """The static twin: the same rectangles, drawn."""
        return draw_tensor(self.cut)

    def __repr__(self) -> str:
        given = f"n={self.n}, first={self.first!r}, second={self.second!r}, a_cuts={self.a_cuts}, b_cuts={self.b_cuts}"
        return f"TensorSplitter({given})\n{self.table()}\n{self.sends()}"


def _svg(cut: Cut) -> str:
    """The bands as a picture; readers of the words below need nothing of it."""
    parts, named = [], set()
    for band in cut.bands:
        left, top, width, height = (PIXELS * size for size in (band.left, band.top, band.width, band.height))
        colour = WHOLE if band.rank is None else rank_colour(band.rank)
        label = "all" if band.rank is None else band.rank
        parts.append(
            f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="{colour}" stroke="#333"/>'
            f'<text x="{left + width / 2}" y="{top + height / 2 + 4}" text-anchor="middle">{label}</text>'
        )
        if band.matrix not in named:
            parts.append(f'<text x="{left}" y="{top - 6}">{html.escape(band.words)}</text>')
        named.add(band.matrix)
    width, height = PIXELS * (3 * WIDTH + 2 * HIDDEN + 4 * GAP), PIXELS * HIDDEN
    return (
        f'<svg aria-hidden="true" viewBox="-4 -20 {width + 50} {height + 26}" '
        f'style="max-width:{width + 50}px;width:100%;background:#fff;font:12px sans-serif">{"".join(parts)}</svg>'
    )
