"""What the layer splitter looks like: its controls, the bar of cuts, the twin of plain fields and tables, the strips.

Shows the state of a `LayerSplitter` and decides nothing; which control changes what is wired in `splitter`.
"""

from __future__ import annotations

import html
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import anywidget
import ipywidgets
import traitlets
from IPython import get_ipython

from course.figures.pipeline import pipeline_table, time_text
from course.figures.strips import KEY, STYLE, split_strips, step_strips
from course.widgets.rounds import ROUNDS, UNLOCKED_IN
from course.widgets.splits import MOST_MICROBATCHES, MOST_STORED, SCHEDULES

if TYPE_CHECKING:
    from course.widgets.splitter import LayerSplitter

KINDS = ("auto", "drag", "text")
ROW = {"flex_flow": "row wrap"}


class CutBar(anywidget.AnyWidget):
    """The bar of layers with its handles, and the picture below, in the browser: `splitter.js`.

    costs: (forward, backward) of each layer, the head's in the last. head, status: words. picture: HTML of
    `figures.strips`, whose bars the browser moves by itself until the kernel has answered.
    """

    _esm = Path(__file__).with_name("splitter.js")
    _css = Path(__file__).with_name("splitter.css")
    cuts = traitlets.List(traitlets.Int()).tag(sync=True)
    costs = traitlets.List().tag(sync=True)
    head = traitlets.Unicode("").tag(sync=True)
    status = traitlets.Unicode("").tag(sync=True)
    picture = traitlets.Unicode("").tag(sync=True)


class SplitterView:
    """The widgets behind a splitter. `fields`: the controls but for the cuts, by the name of their trait.

    move_cut(index, to): called when a field of the text twin gets a number.
    """

    def __init__(self, models: Sequence[str], move_cut: Callable[[int, int], None]) -> None:
        self._move_cut = move_cut
        self.goal, self.picture, self.tables = (ipywidgets.HTML() for _ in range(3))
        self.bar, self.cuts = CutBar(), ipywidgets.HBox(layout=ROW)
        self.run = ipywidgets.Button(description="Run it", tooltip="Train this split on the ranks")
        self.next_round = ipywidgets.Button(description="Next round", tooltip="Unlock the next control")
        self.as_text = ipywidgets.Checkbox(description="as text", indent=False, layout={"width": "auto"})
        self.fields = {
            "memory_limit": _number("memory limit (stored layers, 0: none)", 0, MOST_STORED, "23em"),
            "microbatches": _number("micro-batches", 1, MOST_MICROBATCHES, "11em"),
            "schedule": _choice("schedule", tuple(SCHEDULES)),
            "preset": _choice("model", models),
            "code": ipywidgets.Text(description="share code", continuous_update=False, layout={"width": "24em"}),
        }

    def children(self, state: LayerSplitter, *, runs: bool) -> list[ipywidgets.Widget]:
        """From top to bottom; the bar, or in its place fields and tables."""
        self.as_text.value = state.kind == "text"
        self._fill(state)
        *settings, code = self.fields.values()
        buttons = [self.next_round, *([self.run] if runs else []), self.as_text]
        return [
            self.goal,
            ipywidgets.HBox(settings, layout=ROW),
            ipywidgets.HBox([code, *buttons], layout=ROW),
            *([self.bar] if state.kind == "drag" else [self.cuts, self.tables, self.picture]),
        ]

    def say(self, state: LayerSplitter) -> None:
        """Show the verdict alone: nothing else has changed."""
        if state.kind == "drag":
            self.bar.status = state.verdict
        else:
            self.tables.value = _tables(state)

    def show(self, state: LayerSplitter) -> None:
        """Show everything, the picture first: each of these is a message to the browser."""
        self._fill(state)
        for name, field in self.fields.items():
            field.value, field.disabled = getattr(state, name), state.round < UNLOCKED_IN.get(name, 1)
        self.next_round.disabled = state.round > ROUNDS
        self.run.disabled = not state.can_run
        self.goal.value = f"<strong>{html.escape(state.goal)}</strong>"

    def tidy(self, state: LayerSplitter) -> None:
        """A code that was typed in another way reads as it is shared."""
        self.fields["code"].value = state.code

    def _fill(self, state: LayerSplitter) -> None:
        """The bar, or its twin: whichever is seen."""
        if state.kind == "drag":
            head = sum(state.model.head)
            with self.bar.hold_sync():
                self.bar.costs, self.bar.cuts = state.model.costs, state.cuts
                self.bar.head = f"+ head, load {time_text(head, state.model.unit)}" if head else ""
                self.bar.status, self.bar.picture = state.verdict, _strips(state)
        else:
            self._fill_cuts(state)
            self.tables.value, self.picture.value = _tables(state), _strips(state)

    def _fill_cuts(self, state: LayerSplitter) -> None:
        count, layers = len(state.cuts), len(state.model.layers)
        if len(self.cuts.children) != count:
            self.cuts.children = [self._cut_field(index) for index in range(count)]
        for index, field in enumerate(self.cuts.children):
            field.max, field.min, field.value = layers - count + index, index + 1, state.cuts[index]

    def _cut_field(self, index: int) -> ipywidgets.Widget:
        field = _number(f"layers before cut {index + 1}", 0, MOST_STORED, "14em")
        field.observe(lambda change: self._move_cut(index, change["new"]), "value")
        return field


def kind_here(kind: str) -> str:
    """What "auto" stands for here. VS Code and Colab may not show the bar before they are set up for it."""
    if kind != "auto":
        return kind
    names = getattr(get_ipython(), "user_ns", {})
    return "text" if "google.colab" in sys.modules or "__vsc_ipynb_file__" in names else "drag"


def _number(words: str, least: int, most: int, width: str) -> ipywidgets.Widget:
    style = {"description_width": "initial"}
    return ipywidgets.BoundedIntText(min=least, max=most, description=words, style=style, layout={"width": width})


def _choice(words: str, options: Sequence[str]) -> ipywidgets.Widget:
    style = {"description_width": "initial"}
    return ipywidgets.Dropdown(options=options, description=words, style=style, layout={"width": "auto"})


def _strips(state: LayerSplitter) -> str:
    """The bars: load and memory, the predicted step, and below it the measured one, on one clock where both have it."""
    unit, measured = state.model.unit, state.measured
    length = max(state.step_time, measured.seconds) if unit == "s" and measured is not None else 0.0
    heading = f"Predicted: {state.code}, bubble {100 * state.bubble:.1f} %"
    parts = [
        split_strips(state.sizes, state.loads, state.memory, limit=state.memory_limit, unit=unit),
        step_strips(state.predicted, heading, unit=unit, length=length, role="predicted"),
    ]
    if measured is not None:
        parts.append(step_strips(measured, _measured_words(state), length=length))
    cuts = ",".join(map(str, state.cuts))
    return f'{STYLE}<div class="strips" data-cuts="{cuts}">{"".join(parts)}{KEY}</div>'


def _tables(state: LayerSplitter) -> str:
    """The same in words."""
    table = state.table()
    parts = [replace(table, caption="")._repr_html_(), state.timeline_table()._repr_html_()]
    if state.measured is not None:
        parts.append(replace(pipeline_table(state.measured), caption=_measured_words(state))._repr_html_())
    return f'<div role="status" aria-live="polite">{html.escape(state.verdict)}</div>{"".join(parts)}'


def _measured_words(state: LayerSplitter) -> str:
    return (
        f"{state.measured.origin.capitalize()}: {state.measured_code}, bubble {100 * state.measured_bubble:.1f} % "
        f"(predicted {100 * state.expected_bubble:.1f} %), step {time_text(state.measured.seconds)}"
    )
