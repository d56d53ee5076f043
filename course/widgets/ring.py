"""The ring stepper: an all-reduce one round at a time, as ring, tree or naive, on two to eight ranks.

The rounds come from `spec.collective`, the words from `figures.ring`; its static twin is `figures.draw_step`.
"""

from __future__ import annotations

import html

import ipywidgets
import traitlets
from matplotlib.axes import Axes

from course.errors import UsageError
from course.figures.page import InWords, Table
from course.figures.ring import ALGORITHMS, LEGEND, Step, draw_step, sum_colour, sum_text

FEWEST, MOST = 2, 8
CELL = "padding:4px 8px;text-align:center;color:#000;min-width:4.5em;border:{width}px solid #000;background:{colour}"


class RingStepper(InWords, ipywidgets.VBox):
    """`RingStepper()`: press Next and watch the sums travel; change the algorithm at any step and compare.

    Traits to set: n (2 to 8), algorithm ("ring", "tree", "naive"), step (0 to last). Traits to read: last (rounds),
    messages (so far), most (bytes from the busiest sender so far, in units of the tensor's size S), sentence.
    A step beyond the last round becomes the last. Raises UsageError.
    """

    n = traitlets.Int(4, min=FEWEST, max=MOST)
    algorithm = traitlets.Enum(ALGORITHMS, "ring")
    step = traitlets.Int(0, min=0)
    last = traitlets.Int(0)
    messages = traitlets.Int(0)
    most = traitlets.Float(0.0)
    sentence = traitlets.Unicode("")

    def __init__(self, n: int = 4, algorithm: str = "ring", step: int = 0) -> None:
        self._picture = ipywidgets.HTML()
        super().__init__()
        try:
            self.n, self.algorithm, self.step = n, algorithm, step
        except traitlets.TraitError:
            raise UsageError(
                f"RingStepper(n={n!r}, algorithm={algorithm!r}, step={step!r}): n goes from {FEWEST} to {MOST}, "
                f"algorithm is one of {', '.join(ALGORITHMS)}, step counts from 0"
            ) from None
        self._show()
        self.children = [ipywidgets.HBox(self._controls(), layout={"flex_flow": "row wrap"}), self._picture]
        self.observe(lambda change: self._show(), ["n", "algorithm", "step"])

    def _controls(self) -> list[ipywidgets.Widget]:
        """Fields that take typed numbers and arrow keys, a list, and two buttons: all reached by Tab."""
        look = {"style": {"description_width": "initial"}, "layout": {"width": "auto", "max_width": "11em"}}
        kind = ipywidgets.Dropdown(options=ALGORITHMS, value=self.algorithm, description="all-reduce", **look)
        ranks = ipywidgets.BoundedIntText(value=self.n, min=FEWEST, max=MOST, description="ranks", **look)
        step = ipywidgets.BoundedIntText(value=self.step, min=0, max=self.last, description="step", **look)
        traitlets.link((self, "n"), (ranks, "value"))
        traitlets.link((self, "algorithm"), (kind, "value"))
        traitlets.link((self, "last"), (step, "max"))
        traitlets.link((self, "step"), (step, "value"))
        back, on = (
            ipywidgets.Button(description=words, layout={"width": "6em"}, tooltip=f"{words} round")
            for words in ("Previous", "Next")
        )
        back.on_click(lambda _: self.set_trait("step", max(0, self.step - 1)))
        on.on_click(lambda _: self.set_trait("step", min(self.last, self.step + 1)))
        return [kind, ranks, step, back, on]

    def _show(self) -> None:
        """Follow the traits: the words, the counts and the picture."""
        end = len(Step(self.n, self.algorithm, 0).rounds)
        if self.step > end:
            self.step = end  # comes back here
            return
        now = self._now()
        self.last, self.messages, self.most, self.sentence = end, now.messages, now.most, now.sentence
        self._picture.value = self._html(now)

    def _now(self) -> Step:
        return Step(self.n, self.algorithm, self.step)

    def _html(self, now: Step) -> str:
        rows = "".join(
            f'<tr><th scope="row">rank {rank}</th>'
            + "".join(self._cell(now, rank, chunk) for chunk in range(now.n))
            + f'<td style="padding-left:1em;text-align:left">{now.sending(rank)}</td></tr>'
            for rank in range(now.n)
        )
        names = [*(f"chunk {chunk}" for chunk in range(now.n)), "sends next"]
        head = "<td></td>" + "".join(f'<th scope="col">{name}</th>' for name in names)
        return (
            f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
            f'<div role="status" aria-live="polite">{html.escape(now.sentence)}</div><div>{LEGEND}</div>'
        )

    def _cell(self, now: Step, rank: int, chunk: int) -> str:
        parts = now.holdings[rank][chunk]
        style = CELL.format(width=3 if now.travels(rank, chunk) else 1, colour=sum_colour(parts, now.n))
        return f'<td style="{style}">{sum_text(parts, now.n)}</td>'

    def table(self) -> Table:
        """The text twin: who holds which sums, who sends what, and what was sent so far."""
        return self._now().table

    def figure(self) -> Axes:
        """The static twin: the same cells, drawn."""
        return draw_step(self.n, self.algorithm, self.step)

    def __repr__(self) -> str:
        return f"RingStepper(n={self.n}, algorithm={self.algorithm!r}, step={self.step})\n{self.table()}"
