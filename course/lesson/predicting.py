"""Predict, then run: a question that keeps the reader's guess and shows it beside the result later.

Nobody has to answer: a page runs through without a touch. What the right answer is stands in the cell that finds it.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Sequence

import ipywidgets
import traitlets

from course.errors import UsageError
from course.figures.page import InWords

_THOUSANDS = re.compile(r"-?[1-9]\d{0,2}(,\d{3})+(\.\d+)?")


class Outcome:
    """A guess beside what was found, as text and as a table."""

    def __init__(self, question: str, rows: Sequence[tuple[str, str]]) -> None:
        self.question = question
        self.rows = tuple(rows)

    def __repr__(self) -> str:
        return "\n".join([self.question, *(f"  {name}: {value}" for name, value in self.rows)])

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><th scope="row" style="text-align:left">{html.escape(name)}</th>'
            f'<td style="text-align:left">{html.escape(value)}</td></tr>'
            for name, value in self.rows
        )
        look = "text-align:left;white-space:normal;width:max-content;max-width:44em"  # longer ones wrap
        caption = f'<caption style="{look}">{html.escape(self.question)}</caption>'
        return f"<table>{caption}{rows}</table>"


class Prediction(InWords, ipywidgets.VBox):
    """The widget behind `predict`: buttons for options or a field for a number, and the guess as a trait.

    guess: the text of the chosen option, or the number; None while nobody answered. reason: the reader's own words.
    """

    guess = traitlets.Any(None, allow_none=True)
    reason = traitlets.Unicode("")

    def __init__(
        self, question: str, options: Sequence[str] | None = None, *, unit: str = "", because: str = ""
    ) -> None:
        self.question, self.options, self.unit = question, tuple(options or ()), unit
        self._field = self._choices() if self.options else self._number()
        self._note = ipywidgets.HTML("")
        row: list[ipywidgets.Widget] = [self._field]
        if not self.options:
            row.append(ipywidgets.Label(unit))
        parts = [ipywidgets.HTML(f"<b>Predict</b> · {html.escape(question)}"), ipywidgets.HBox(row)]
        if because:
            field = ipywidgets.Text(
                description="because", placeholder=because, layout={"width": "32em"}, continuous_update=False
            )
            field.observe(lambda change: self.set_trait("reason", change["new"]), "value")
            parts.append(field)
        super().__init__([*parts, self._note])

    def _choices(self) -> ipywidgets.Widget:
        field = ipywidgets.ToggleButtons(options=list(self.options), value=None, style={"button_width": "max-content"})
        field.observe(lambda change: self._keep(change["new"]), "value")
        return field

    def _number(self) -> ipywidgets.Widget:
        field = ipywidgets.Text(placeholder="a number", layout={"width": "10em"}, continuous_update=False)
        field.observe(lambda change: self._keep(_read_number(change["new"])), "value")
        return field

    def _keep(self, guess: str | float | None) -> None:
        self.guess = guess
        text = f"kept: {html.escape(self._text(guess))}" if guess is not None else "not a number: write digits alone"
        self._note.value = f"<small>{text}</small>"

    def _text(self, value: str | float | None) -> str:
        if value is None:
            return "none"
        return value if isinstance(value, str) else f"{value:.4g} {self.unit}".rstrip()

    def result(self, found: str | float) -> Outcome:
        """The guess beside what was found: one of the options, or a number in the prediction's unit."""
        if self.options and found not in self.options:
            raise UsageError(
                f"result({found!r}) of a prediction with the options {list(self.options)}: give one of them"
            )
        rows = [("your guess", self._text(self.guess) if self.guess is not None else "none yet")]
        if self.reason:
            rows.append(("because", self.reason))
        rows.append(("found", self._text(found if self.options else float(found))))
        if not self.options and isinstance(self.guess, float):
            rows.append(("off by", _off_by(self.guess, float(found))))
        return Outcome(self.question, rows)

    def __repr__(self) -> str:
        asked = [f"Predict: {self.question}", *(f"  [ ] {option}" for option in self.options)]
        return "\n".join(asked if self.options else [*asked, f"  ____ {self.unit}".rstrip()])


def predict(question: str, options: Sequence[str] | None = None, *, unit: str = "", because: str = "") -> Prediction:
    """A question before the cell that answers it: pick one of `options`, or write a number in `unit`.

    because: asks for a reason too, with this word as a nudge. Keep what comes back (`guess = predict(...)`) and end a
    later cell with `guess.result(found)` to see the guess beside the result.
    """
    if isinstance(options, str) or (options is not None and len(options) < 2):
        raise UsageError(f"predict(..., {options!r}): give a list of at least two options, or unit= for a number")
    if options is not None and unit:
        raise UsageError(f"predict(..., unit={unit!r}) with options: it is either a choice or a number, not both")
    return Prediction(question, options, unit=unit, because=because)


def _read_number(text: str) -> float | None:
    """The number a person meant: '3e6', '1 000', '1,000' (a thousand), '0,5' and '0.5' (a half)."""
    plain = "".join(text.split()).replace("_", "")
    plain = plain.replace(",", "") if _THOUSANDS.fullmatch(plain) else plain.replace(",", ".")
    try:
        value = float(plain)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _off_by(guess: float, found: float) -> str:
    if guess == found:
        return "nothing"
    if guess * found <= 0:
        return f"{guess - found:+.3g}"
    ratio = guess / found
    return f"a factor of {max(ratio, 1 / ratio):.3g}, too {'high' if guess > found else 'low'}"
