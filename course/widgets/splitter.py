"""The layer splitter: move cuts between layers, see load, memory, timeline and bubble at once, and run that very split.

The kernel does the arithmetic (`splits`, `rounds`): a move sends the cuts there, and a picture made of the simulated
step comes back (`figures.strips`). The bar of cuts is `splitter.js`, which moves the bars meanwhile; its twin of plain
ipywidgets has the same traits. Ranks are passed in with `run`; none are imported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ipywidgets
import traitlets
from matplotlib.axes import Axes

from course.errors import UsageError
from course.figures.page import InWords, Table
from course.figures.pipeline import draw_pipeline, draw_split, pipeline_table, split_table, time_text
from course.trace.replay import bubble as idle_share
from course.widgets.rounds import MICROBATCHES, ROUNDS, goal_of
from course.widgets.splits import (
    MOST_MICROBATCHES,
    MOST_STORED,
    PRESETS,
    SCHEDULES,
    Cost,
    Model,
    Prediction,
    Split,
    measured_step,
    model_with,
    move_cut,
    predict,
    split_at,
)
from course.widgets.splitter_view import KINDS, SplitterView, kind_here

Run = Callable[[tuple[int, ...], int, str], Any]


class LayerSplitter(InWords, ipywidgets.VBox):
    """`LayerSplitter()`, `LayerSplitter("12-11-7·m8·1F1B")` or `LayerSplitter(costs=measured, head=last, run=train)`.

    code: a share code to open with; otherwise the layers are split equally over `stages`. costs: of the layers that can
    be cut, forward alone (backward is then twice that) or (forward, backward) pairs; head: of what stays on the last
    stage; unit: "s" where these are seconds. Without costs it opens on 30 layers of cost 1 and a head that costs 4.
    run(cuts, microbatches, schedule name) trains the split of the model it opened with, and gives the Trace of one
    step, or (measured, replayed); the last is drawn. kind: "drag", "text" (plain ipywidgets) or "auto", which takes
    text in VS Code and Colab. first_round: 1 (only the cuts move) to 5 (nothing is locked).

    Traits to set: cuts, microbatches, schedule, memory_limit (stored layers, 0: none), preset, round, code, kind.
    Traits to read: sizes, loads, memory, step_time, bubble, target (the bubble the round asks for, None after the
    last), goal, verdict, predicted (Trace); measured (Trace), measured_bubble and measured_code after a run.
    Wrong values raise UsageError. Schedules that give a rank several pieces cannot be shown: a stage is one piece here.
    """

    cuts = traitlets.List(traitlets.Int())
    microbatches = traitlets.Int(MICROBATCHES)
    schedule = traitlets.Unicode("1F1B")
    memory_limit = traitlets.Int(0)
    preset = traitlets.Unicode()
    round = traitlets.Int(1)
    code = traitlets.Unicode("")
    kind = traitlets.Enum(KINDS[1:], "drag")
    sizes = traitlets.List()
    loads = traitlets.List()
    memory = traitlets.List()
    step_time = traitlets.Float(0.0)
    bubble = traitlets.Float(0.0)
    target = traitlets.Float(None, allow_none=True)
    goal = traitlets.Unicode("")
    verdict = traitlets.Unicode("")
    predicted = traitlets.Any()
    measured = traitlets.Any()
    measured_bubble = traitlets.Float(None, allow_none=True)
    measured_code = traitlets.Unicode("")

    def __init__(
        self,
        code: str | None = None,
        *,
        costs: Sequence[Cost] | None = None,
        head: Cost = 0.0,
        stages: int = 3,
        unit: str = "",
        run: Run | None = None,
        kind: str = "auto",
        first_round: int = 1,
    ) -> None:
        if kind not in KINDS or not 1 <= first_round <= ROUNDS + 1 or not (run is None or callable(run)):
            raise UsageError(
                f"LayerSplitter(run={run!r}, kind={kind!r}, first_round={first_round!r}): run is a function, "
                f"kind is one of {', '.join(KINDS)}, first_round goes from 1 to {ROUNDS + 1}"
            )
        own = [] if costs is None else [Model.of("your costs", costs, head, stages, unit)]
        self.models = {model.name: model for model in (*own, *PRESETS)}
        self._opening = next(iter(self.models))
        self._runner, self._goal, self._moving = run, None, True
        self.expected_bubble = 0.0
        self._view = SplitterView(list(self.models), self._move_cut)
        super().__init__()
        self.preset, self.round, self.kind = self._opening, first_round, kind_here(kind)
        self.cuts = list(Split(self.model.equal()).cuts)
        self._wire()
        self._moving = False
        if code is not None:
            self.code = code
        self._follow()
        self._lay_out()

    @property
    def model(self) -> Model:
        """The layers and costs behind `preset`."""
        return self.models[self.preset]

    @property
    def split(self) -> Split:
        """What the traits describe, as a record."""
        return split_at(self.model, self.cuts, self.microbatches, self.schedule)

    @property
    def can_run(self) -> bool:
        """Whether `run` is for the model that is shown: it is for the one the widget opened with."""
        return self._runner is not None and self.preset == self._opening

    @traitlets.validate("cuts")
    def _in_order(self, proposal: dict[str, Any]) -> list[int]:
        split_at(self.model, proposal["value"], MICROBATCHES, "1F1B")
        return proposal["value"]

    @traitlets.validate("microbatches", "schedule", "memory_limit", "preset", "round")
    def _possible(self, proposal: dict[str, Any]) -> Any:
        name, value = proposal["trait"].name, proposal["value"]
        allowed = {
            "microbatches": range(1, MOST_MICROBATCHES + 1),
            "schedule": SCHEDULES,
            "memory_limit": range(MOST_STORED + 1),
            "preset": self.models,
            "round": range(1, ROUNDS + 2),
        }[name]
        if value not in allowed:
            span = f"{allowed.start} to {allowed.stop - 1}" if isinstance(allowed, range) else ", ".join(allowed)
            raise UsageError(f"{name}={value!r} cannot be: it may be {span}")
        return value

    @traitlets.validate("code")
    def _readable(self, proposal: dict[str, Any]) -> str:
        split = Split.parse(proposal["value"])
        model_with((self.model, *self.models.values()), split)
        return split.code

    def _change(self, **traits: Any) -> None:
        """Set several traits and follow them once."""
        self._moving = True
        try:
            for name, value in traits.items():
                setattr(self, name, value)
        finally:
            self._moving = False
        self._follow()

    def _start_over(self) -> None:
        """Another model: its equal split, without the memory limit of the one before."""
        if not self._moving:
            self._change(cuts=list(Split(self.model.equal()).cuts), memory_limit=0)

    def _restore(self) -> None:
        """Follow the code; what it sets is unlocked."""
        if self._moving:
            return
        split = Split.parse(self.code)
        needed = 4 if split.schedule != "1F1B" else 3 if split.microbatches != MICROBATCHES else 1
        model = model_with((self.model, *self.models.values()), split)
        self._change(
            memory_limit=self.memory_limit if model is self.model else 0,
            preset=model.name,
            cuts=list(split.cuts),
            microbatches=split.microbatches,
            schedule=split.schedule,
            round=max(self.round, needed),
        )

    def _follow(self) -> None:
        """Make everything that can be read or seen agree with the traits that can be set."""
        if self._moving:
            return
        self._moving = True
        try:
            prediction = predict(self.model, self.split)
            won = self._play(prediction)
            self.sizes, self.code = list(self.split.sizes), self.split.code
            self.loads, self.memory = list(prediction.loads), list(prediction.memory)
            self.step_time, self.bubble, self.predicted = prediction.step_time, prediction.bubble, prediction.trace
            self.verdict = won + self._judge()
            self._view.show(self)
        finally:
            self._moving = False

    def _play(self, prediction: Prediction) -> str:
        """Go on to the round that this split has not won yet; a new goal brings its memory limit."""
        won = []
        while self.round <= ROUNDS:
            goal = goal_of(self.model, len(self.cuts) + 1, self.round)
            if goal != self._goal:
                self._goal, self.memory_limit = goal, goal.limit
            if not goal.met_by(self.split, prediction):
                self.target = goal.bubble
                self.goal = f"Round {self.round} of {ROUNDS}. {goal.words}: bubble at most {100 * goal.bubble:.1f} %."
                break
            won.append(self.round)
            self.round += 1
        else:
            self.target, self.goal = None, "All controls are yours."
        return "".join(f"Round {number} won. " for number in won)

    def _judge(self) -> str:
        step = time_text(self.step_time, self.model.unit)
        return f"The step takes {step}, of which {100 * self.bubble:.1f} % is bubble. {self._split_table().caption}"

    def _measure(self) -> None:
        """Run the split, and keep what the run gave; a run that fails is told in a sentence."""
        split, expected, button = self.split, self.bubble, self._view.run
        button.disabled = True
        self._say(f"Running {split.code} …")
        try:
            steps = measured_step(self._runner(split.cuts, split.microbatches, split.schedule))
        except (Exception, KeyboardInterrupt) as error:
            self._say(f"The run ended with {type(error).__name__}: {(str(error).splitlines() or [''])[0]}")
            return
        finally:
            button.disabled = False
        self.measured, self.measured_bubble, self.measured_code = steps, idle_share(steps), split.code
        self.expected_bubble = expected
        self._follow()

    def _wire(self) -> None:
        """Traits to what they move, and controls to traits."""
        self.observe(lambda _: self._follow(), ["cuts", "microbatches", "schedule", "memory_limit", "round"])
        self.observe(lambda _: self._restore(), "code")
        self.observe(lambda _: self._start_over(), "preset")
        self.observe(lambda _: self._lay_out(), "kind")
        view = self._view
        view.bar.observe(lambda change: self._take("cuts", change["new"]), "cuts")
        for name, field in view.fields.items():
            field.observe(lambda change, name=name: self._take(name, change["new"]), "value")
        view.as_text.observe(lambda change: self.set_trait("kind", "text" if change["new"] else "drag"), "value")
        view.next_round.on_click(lambda _: self._change(round=min(self.round + 1, ROUNDS + 1)))
        view.run.on_click(lambda _: self._measure())

    def _take(self, name: str, value: Any) -> None:
        """A control was moved: follow it, or say why not."""
        if self._moving or getattr(self, name) == value:
            return
        try:
            setattr(self, name, value)
        except UsageError as error:
            self._say(str(error))
        else:
            self._view.tidy(self)

    def _move_cut(self, index: int, to: int) -> None:
        if not self._moving:
            self.cuts = list(move_cut(self.cuts, index, to, len(self.model.layers)))

    def _say(self, words: str) -> None:
        self.verdict = words
        self._view.say(self)

    def _lay_out(self) -> None:
        self.children = self._view.children(self, runs=self._runner is not None)

    def _split_table(self) -> Table:
        return split_table(self.sizes, self.loads, self.memory, limit=self.memory_limit, unit=self.model.unit)

    def table(self) -> Table:
        """The text twin: layers, load and stored layers of each stage under the verdict."""
        table = self._split_table()
        return Table(table.header, table.rows, self.verdict)

    def timeline_table(self) -> Table:
        """The predicted timeline in text: what each stage does in order."""
        return pipeline_table(self.predicted, unit=self.model.unit)

    def figure(self) -> Axes:
        """The static twin of the bars: load and memory of each stage."""
        return draw_split(self.sizes, self.loads, self.memory, limit=self.memory_limit, unit=self.model.unit)

    def timeline(self) -> Axes:
        """The static twin of the predicted timeline."""
        return draw_pipeline(self.predicted, unit=self.model.unit)

    def __repr__(self) -> str:
        return f"LayerSplitter({self.code!r})\n{self.goal}\n{self.table()}"
