"""The cluster planner: set a layout by hand, see at once whether it fits, how long a step takes and what a run costs,
then compare with the best layout of all.

Problems and prices come from `problems`, parts and words from `figures.plan`, whose pictures are the static twin.
"""

from __future__ import annotations

import contextlib
import html
from collections.abc import Mapping, Sequence
from typing import Any

import ipywidgets
import traitlets
from matplotlib.axes import Axes

from course.errors import UsageError
from course.figures.page import InWords, Table
from course.figures.plan import (
    GIB,
    Part,
    describe_memory,
    describe_step,
    draw_plan_memory,
    draw_plan_seconds,
    memory_parts,
    plan_memory_table,
    plan_seconds_table,
    step_parts,
)
from course.planner.run import Run, plan_run
from course.planner.search import Priced
from course.spec.chips import CHIPS
from course.spec.plan import RECOMPUTE
from course.spec.shape import SHAPES
from course.widgets.problems import SIZES, Problem, layout_text

ASKED = ("model", "chip", "gpus", "batch", "sequence")
LAYOUT = (*SIZES, "recompute")
MONEY = ("tokens", "price", "goodput")
MOST = 2**20
LARGEST = 1e9  # of a field
WIDE, HIGH = 560, 22  # pixels of the longest bar


class ClusterPlanner(InWords, ipywidgets.VBox):
    """`ClusterPlanner()`: Llama 3.1 405B on 16,384 H100; `ClusterPlanner(model="gpt-3-175b", chip="a100-80gb", ...)`.

    Traits to set: model, chip, gpus, batch (samples a step), sequence (tokens a sample); tp, pp, cp, chunks,
    microbatch, zero, recompute (dp is what is left of the GPUs); tokens (of the run, in billions), price (dollars an
    hour of a GPU), goodput (share of the time that stays). Traits to read: dp, seconds (a step; 0 for none),
    fits, best (seconds of the fastest that fitted so far; 0 for none), planners (of the planner's best, once asked for
    with `reveal()`; else 0), days, cost, sentence. Without a layout it starts at `Problem.first_try`. `suggest()` names
    layouts near the one now that fit. Another problem starts the game again. Raises UsageError.
    """

    model = traitlets.Enum(tuple(SHAPES), "llama-3.1-405b")
    chip = traitlets.Enum(tuple(CHIPS), "h100")
    gpus = traitlets.Int(16384, min=1, max=MOST)
    batch = traitlets.Int(2048, min=1, max=MOST)
    sequence = traitlets.Int(8192, min=1, max=MOST)
    tp = traitlets.Int(1, min=1, max=MOST)
    pp = traitlets.Int(1, min=1, max=MOST)
    cp = traitlets.Int(1, min=1, max=MOST)
    chunks = traitlets.Int(1, min=1, max=MOST)
    microbatch = traitlets.Int(1, min=1, max=MOST)
    zero = traitlets.Enum((0, 1, 2, 3), 1)
    recompute = traitlets.Enum(RECOMPUTE, "none")
    tokens = traitlets.Float(15_600.0, min=1e-3)
    price = traitlets.Float(2.0, min=0.0)
    goodput = traitlets.Float(1.0, min=0.01, max=1.0)
    dp = traitlets.Int(0)
    seconds = traitlets.Float(0.0)
    fits = traitlets.Bool(False)
    best = traitlets.Float(0.0)
    planners = traitlets.Float(0.0)
    days = traitlets.Float(0.0)
    cost = traitlets.Float(0.0)
    sentence = traitlets.Unicode("")

    def __init__(self, **asked: Any) -> None:
        known = (*ASKED, *LAYOUT, *MONEY)
        if unknown := asked.keys() - set(known):
            raise UsageError(f"ClusterPlanner({min(unknown)}=...): it takes {', '.join(known)}")
        self._picture = ipywidgets.HTML()
        self._said: list[str] = []
        self._now: Priced | None = None
        self._yours: Priced | None = None
        self._theirs: Priced | None = None
        self._near: list[str] = []
        super().__init__()
        try:
            for name, value in asked.items():
                setattr(self, name, value)
        except traitlets.TraitError as error:
            Problem(**{key: value for key, value in asked.items() if key in ("model", "chip")})  # with the nearest
            raise UsageError(f"ClusterPlanner({name}={value!r}): {error}") from None
        if not asked.keys() & {*LAYOUT}:
            for name, size in self.problem.first_try.items():
                setattr(self, name, size)
        self.children = [*self._rows(), self._picture]
        self.observe(lambda change: self._start(), list(ASKED))
        self.observe(lambda change: self._move(), list(LAYOUT))
        self.observe(lambda change: self._show(), list(MONEY))
        self._start()

    @property
    def problem(self) -> Problem:
        """What is asked for, as a record."""
        return Problem(**{name: getattr(self, name) for name in ASKED})

    def reveal(self) -> None:
        """Show the planner's best layout beside one's own best."""
        try:
            self._theirs = self.problem.found[0]
        except UsageError:
            self._theirs = None  # nothing fits: the sentence says so
        self._show()

    def _sizes(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in LAYOUT}

    def suggest(self) -> None:
        """Name the layouts nearest to the one now that fit."""
        with contextlib.suppress(UsageError):  # nothing fits: the sentence says so
            self._near = self.problem.near(**self._sizes())
        self._show()

    def _start(self) -> None:
        """Another problem: nothing is found yet."""
        self._yours = self._theirs = None
        self._move()

    def _move(self) -> None:
        """Another layout: what was near the last one is forgotten."""
        self._near = []
        self._show()

    def _show(self) -> None:
        """Follow the traits: price, words and pictures."""
        now, reason = None, ""
        try:
            now = self.problem.price(**self._sizes())
        except UsageError as error:
            reason = f"{error}."
        self._now, self.fits = now, now is not None and self.problem.fits(now)
        if now and self.fits and (self._yours is None or now.step.seconds < self._yours.step.seconds):
            self._yours = now
        self.dp, self.seconds = (now.plan.dp, now.step.seconds) if now else (0, 0.0)
        self.best, self.planners = (plan.step.seconds if plan else 0.0 for plan in (self._yours, self._theirs))
        run = self._run()
        self.days, self.cost = (run.hours / 24, run.cost) if run else (0.0, 0.0)
        self._said = self._say(reason, run)
        self.sentence = " ".join(self._said)
        self._picture.value = self._html()

    def _run(self) -> Run | None:
        if self._now is None:
            return None
        steps = max(1, round(self.tokens * 1e9 / self.batch / self.sequence))
        return plan_run(
            step_seconds=self.seconds, steps=steps, num_gpus=self.gpus, price=self.price, goodput=self.goodput
        )

    def _say(self, reason: str, run: Run | None) -> list[str]:
        """Where it stands, a paragraph a subject."""
        said = [reason] if reason else []
        if self._now and run:
            m = self._now.plan.microbatches
            left = f"dp is what is left: {self.dp}, with {m} microbatch{'es' * (m > 1)} a step."
            memory = describe_memory(self._now, self.problem.cluster.chip)
            bill = f"{run.hours / 24:,.1f} days, {_amount(run.gpu_hours)} GPU-hours, ${_amount(run.cost)}"
            said = [f"{left} {describe_step(self._now)} {memory}", f"The run: {bill}."]
        if not self.fits:
            said += self.problem.advice(self._now)
        if self._near:
            said.append(f"Near ones that fit: {'; '.join(self._near)}.")
        if self._theirs:
            said.append(compare_plans(self._yours, self._theirs))
        return said

    def plans(self) -> dict[str, Priced]:
        """What is shown: the layout now, one's best so far, the planner's best once it was asked for."""
        if self._now is not None and self._now == self._yours:
            shown = {"now (best)": self._now, "planner's": self._theirs}
        else:
            shown = {"now": self._now, "your best": self._yours, "planner's": self._theirs}
        return {name: priced for name, priced in shown.items() if priced is not None}

    def table(self) -> Table:
        """The text twin: the seconds of a step of each plan, term by term. Raises UsageError where none can be."""
        return plan_seconds_table(self.plans())

    def memory(self) -> Table:
        """The text twin's second part: the fullest chip of each plan."""
        return plan_memory_table(self.plans(), self.problem.cluster.chip)

    def figure(self) -> Axes:
        """The static twin: where the seconds go."""
        return draw_plan_seconds(self.plans())

    def memory_figure(self) -> Axes:
        """The static twin's second part: what fills the memory."""
        return draw_plan_memory(self.plans(), self.problem.cluster.chip)

    def _rows(self) -> list[ipywidgets.Widget]:
        """Fields and lists in three rows: the problem, the layout, the money and the buttons. All reached by Tab."""
        words = {"chunks": "chunks a stage", "zero": "ZeRO", "gpus": "GPUs", "tokens": "tokens, billions"}
        words |= {"price": "$ a GPU-hour"}
        rows = [[self._control(name, words.get(name, name)) for name in names] for names in (ASKED, LAYOUT, MONEY)]
        actions = {"Name layouts near it that fit": self.suggest, "Show the planner's best": self.reveal}
        for description, action in actions.items():
            button = ipywidgets.Button(description=description, layout={"width": "max-content"})
            button.on_click(lambda _, action=action: action())
            rows[-1].append(button)
        return [ipywidgets.HBox(row, layout={"flex_flow": "row wrap"}) for row in rows]

    def _control(self, name: str, words: str) -> ipywidgets.Widget:
        trait, value = self.traits()[name], getattr(self, name)
        look: dict[str, Any] = {"description": words, "style": {"description_width": "initial"}}
        if isinstance(trait, traitlets.Enum):
            control = ipywidgets.Dropdown(options=trait.values, value=value, layout={"width": "max-content"}, **look)
        else:
            kind = ipywidgets.BoundedIntText if isinstance(trait, traitlets.Int) else ipywidgets.BoundedFloatText
            width = {"width": f"{(5.5 if name in LAYOUT else 7) + len(words) / 2:g}em"}
            control = kind(value=value, min=trait.min, max=min(trait.max, LARGEST), layout=width, **look)
        traitlets.link((self, name), (control, "value"))
        return control

    def _html(self) -> str:
        shown, memory = self.plans(), self.problem.cluster.chip.memory
        bars = _bars("seconds a step", {k: step_parts(v) for k, v in shown.items()}, 1.0, 0.0)
        bars += _bars("GiB on the fullest chip", {k: memory_parts(v) for k, v in shown.items()}, GIB, memory)
        tables = f"{self.table()._repr_html_()}{self.memory()._repr_html_()}" if shown else ""
        folded = f"<details><summary>As tables</summary>{tables}</details>" if tables else ""
        words = "".join(f"<div>{html.escape(paragraph)}</div>" for paragraph in self._said)
        said = f'<div role="status" aria-live="polite" style="line-height:1.4">{words}</div>'
        return f"{bars}{said}{folded}"

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={getattr(self, name)!r}" for name in (*ASKED, *LAYOUT))
        return f"ClusterPlanner({given})\n{self.sentence}"


def compare_plans(yours: Priced | None, theirs: Priced) -> str:
    """One sentence: both steps, and the terms in which they differ most."""
    words = f"The planner's best: {theirs.step.seconds:.2f} s with {layout_text(theirs.plan)}."
    if yours is None:
        return f"{words} Yours: none that fits yet."
    gap = yours.step.seconds - theirs.step.seconds
    if abs(gap) < 5e-3:
        return f"{words} Yours takes as long."
    terms = {a.words: a.size - b.size for a, b in zip(step_parts(yours), step_parts(theirs), strict=True)}
    largest = sorted(terms, key=lambda name: -abs(terms[name]))[:3]
    said = ", ".join(f"{name} {terms[name]:+.2f}" for name in largest if abs(terms[name]) >= 5e-3)
    verdict = f"{gap:.2f} s more" if gap > 0 else f"{-gap:.2f} s less: you beat it"
    return f"{words} Yours takes {yours.step.seconds:.2f} s, {verdict} ({said})."


def _amount(number: float) -> str:
    """Millions with one digit, or the number: "54.7 million", "812,000"."""
    return f"{number / 1e6:,.1f} million" if number >= 1e6 else f"{number:,.0f}"


def _bars(label: str, rows: Mapping[str, Sequence[Part]], unit: float, limit: float) -> str:
    """Stacked bars on one scale with their parts named below, and a line at `limit` if it is not 0."""
    if not rows:
        return ""
    longest = max(limit, *(sum(part.size for part in parts) for parts in rows.values()))
    drawn, top = [], 0
    for name, parts in rows.items():
        left, total = 0.0, sum(part.size for part in parts)
        drawn.append(f'<text x="0" y="{top + 16}">{html.escape(name)}</text>')
        for part in parts:
            x, width = 80 + WIDE * left / longest, WIDE * part.size / longest
            drawn.append(
                f'<rect x="{x:.1f}" y="{top + 2}" width="{width:.1f}" height="{HIGH - 4}" fill="{part.colour}" '
                f'stroke="#333"><title>{part.words}: {part.size / unit:.3g}</title></rect>'
            )
            left += part.size
        drawn.append(f'<text x="{85 + WIDE * total / longest:.1f}" y="{top + 16}">{total / unit:.3g}</text>')
        top += HIGH
    if limit:
        x = 80 + WIDE * limit / longest
        drawn.append(f'<line x1="{x}" x2="{x}" y1="0" y2="{top}" stroke="#D55E00" stroke-width="3"/>')
    shown = [part for i, part in enumerate(next(iter(rows.values()))) if any(parts[i].size for parts in rows.values())]
    names = "".join(
        f'<span style="white-space:nowrap;margin-right:1em"><span style="display:inline-block;width:.8em;height:.8em;'
        f'border:1px solid #333;background:{part.colour}"></span> {part.words}</span>'
        for part in shown
    )
    ends = f"; the line: {limit / unit:.0f}, all there is" if limit else ""
    return (
        f'<div style="font-size:12px"><b>{label}</b>{ends}</div>'
        f'<svg aria-hidden="true" viewBox="0 0 {WIDE + 150} {top}" style="max-width:{WIDE + 150}px;width:100%;'
        f'background:#fff;font:12px sans-serif">{"".join(drawn)}</svg>'
        f'<div style="font-size:12px;line-height:1.4">{names}</div>'
    )
