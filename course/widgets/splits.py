"""What the layer splitter knows of a split: models to cut, share codes, and what a split is predicted to cost.

Plain records and functions without a widget; the step is that of `trace.simulate`, with free messages.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from course.errors import UsageError
from course.figures.pipeline import pipeline_actions
from course.spec.model import LESSON_GPT, ModelSpec
from course.spec.schedule import Schedule, gpipe_schedule, one_f_one_b, peak_activations, zero_bubble_h1
from course.spec.split import stage_sizes
from course.trace.program import pipeline_program
from course.trace.record import Trace
from course.trace.replay import bubble
from course.trace.simulate import simulate

SCHEDULES = {"GPipe": gpipe_schedule, "1F1B": one_f_one_b, "ZB-H1": zero_bubble_h1}
MOST_STAGES, MOST_MICROBATCHES, MOST_STORED = 8, 64, 99_999
EXAMPLE = "12-11-7·m8·1F1B"
Cost = float | tuple[float, float]  # forward, with a backward of twice that; or (forward, backward)


@dataclass(frozen=True, slots=True)
class Model:
    """Layers to cut and a head that stays on the last stage. Costs: (forward, backward) of one microbatch.

    unit: "s" for seconds, "" where the forward of one layer counts 1. stages: how many it opens with.
    """

    name: str
    layers: tuple[tuple[float, float], ...]
    head: tuple[float, float] = (0.0, 0.0)
    stages: int = 3
    unit: str = ""

    @classmethod
    def of(cls, name: str, costs: Sequence[Cost], head: Cost, stages: int, unit: str = "") -> Model:
        """Raises UsageError for costs that are no numbers of at least 0, and for fewer layers than stages."""
        layers = tuple(_pair(cost) for cost in costs)
        if not 1 <= stages <= min(len(layers), MOST_STAGES):
            raise UsageError(
                f"LayerSplitter(stages={stages!r}): {len(layers)} layers can be cut into 1 to "
                f"{min(len(layers), MOST_STAGES)} stages, none of them empty"
            )
        return cls(name, layers, _pair(head), stages, unit)

    @property
    def costs(self) -> list[tuple[float, float]]:
        """(forward, backward) of each layer, the head's added to the last."""
        (forward, backward), (head_forward, head_backward) = self.layers[-1], self.head
        return [*self.layers[:-1], (forward + head_forward, backward + head_backward)]

    def equal(self) -> tuple[int, ...]:
        """The sizes of an equal split: the first stages are bigger by one where it does not come out even."""
        size, rest = divmod(len(self.layers), self.stages)
        return tuple(size + (stage < rest) for stage in range(self.stages))


def _pair(cost: Cost) -> tuple[float, float]:
    try:
        forward, backward = (cost, 2 * cost) if isinstance(cost, int | float) else map(float, cost)
    except (TypeError, ValueError):
        forward = backward = math.nan
    if not (0 <= forward < math.inf and 0 <= backward < math.inf):
        raise UsageError(f"a layer's cost is a number of at least 0, or (forward, backward), but one is {cost!r}")
    return float(forward), float(backward)


def head_share(spec: ModelSpec) -> float:
    """FLOPs of a GPT's head over those of one of its layers: 2CV / (8CC + 4TC + 4CF) a token (matrix products)."""
    c, f = spec.width, spec.hidden
    return 2 * c * spec.vocab / (8 * c * c + 4 * spec.context * c + 4 * c * f)


GPT3 = ModelSpec(vocab=50257, context=2048, layers=96, heads=96, width=12288)  # Brown et al. 2020, table 2.1
PRESETS = (
    Model.of("30 layers, head costs 4", [1.0] * 30, 4.0, 3),
    # As `parallel.stages.layers_of` has it: the embedding, which multiplies nothing, is a layer too.
    Model.of("the lesson's GPT", [0.0] + [1.0] * LESSON_GPT.layers, round(head_share(LESSON_GPT), 3), 3),
    Model.of("like GPT-3: 96 layers", [1.0] * GPT3.layers, round(head_share(GPT3), 3), 8),
)


@dataclass(frozen=True, slots=True)
class Split:
    """Layers of each stage, microbatches a step, and the name of a schedule (a key of SCHEDULES)."""

    sizes: tuple[int, ...]
    microbatches: int = 8
    schedule: str = "1F1B"

    def __post_init__(self) -> None:
        _require(1 <= len(self.sizes) <= MOST_STAGES, self.code, f"there can be 1 to {MOST_STAGES} stages")
        _require(min(self.sizes) >= 1, self.code, "no stage may be empty")
        most = MOST_MICROBATCHES
        _require(1 <= self.microbatches <= most, self.code, f"there can be 1 to {most} micro-batches")
        _require(self.schedule in SCHEDULES, self.code, f"the schedule is one of {', '.join(SCHEDULES)}")

    @classmethod
    def parse(cls, code: str) -> Split:
        """The split that a share code names. Raises UsageError with a sentence."""
        parts = re.split(r"[·.,;*\s]+", str(code).strip())
        sizes, microbatches, name = [*parts, "", "", ""][:3]
        names = {known.lower(): known for known in SCHEDULES}
        _require(len(parts) == 3, code, "it has three parts: layers of each stage, micro-batches, schedule")
        _require(bool(re.fullmatch(r"\d{1,4}(-\d{1,4})*", sizes)), code, f"{sizes!r} is not like 12-11-7")
        _require(bool(re.fullmatch(r"[mM]\d{1,4}", microbatches)), code, f"{microbatches!r} is not like m8")
        _require(name.lower() in names, code, f"{name!r} is not one of {', '.join(SCHEDULES)}")
        return cls(tuple(map(int, sizes.split("-"))), int(microbatches[1:]), names[name.lower()])

    @property
    def code(self) -> str:
        return f"{'-'.join(map(str, self.sizes))}·m{self.microbatches}·{self.schedule}"

    @property
    def cuts(self) -> tuple[int, ...]:
        """Layers before each cut."""
        return tuple(itertools.accumulate(self.sizes))[:-1]

    @property
    def actions(self) -> Schedule:
        return SCHEDULES[self.schedule](len(self.sizes), self.microbatches)


def _require(condition: bool, code: object, words: str) -> None:
    if not condition:
        raise UsageError(f"{str(code)!r} is no split: {words}; a code reads {EXAMPLE}")


def split_at(model: Model, cuts: Sequence[int], microbatches: int, schedule: str) -> Split:
    """Raises UsageError for cuts out of order."""
    return Split(stage_sizes(len(model.layers), cuts), microbatches, schedule)


def model_with(models: Iterable[Model], split: Split) -> Model:
    """The first model that has the layers which `split` splits. Raises UsageError where there is none."""
    numbers = []
    for model in models:
        if len(model.layers) == sum(split.sizes):
            return model
        numbers.append(len(model.layers))
    known = ", ".join(map(str, dict.fromkeys(numbers)))
    raise UsageError(f"{split.code!r} splits {sum(split.sizes)} layers, but the models here have {known}")


def move_cut(cuts: Sequence[int], index: int, to: int, layers: int) -> tuple[int, ...]:
    """Cut number `index` moved as near to `to` as it can go; it pushes others along, so that no stage is empty."""
    to = max(index + 1, min(layers - len(cuts) + index, to))
    return tuple(to if i == index else (min if i < index else max)(cut, to + i - index) for i, cut in enumerate(cuts))


@dataclass(frozen=True, slots=True)
class Prediction:
    """loads: forward and backward of one microbatch on each stage. memory: the most activations of layers that each
    stage stores at once. step_time: of the whole step; bubble: the idle share of it, over all stages."""

    loads: tuple[float, ...]
    memory: tuple[int, ...]
    step_time: float
    bubble: float
    trace: Trace


def predict(model: Model, split: Split) -> Prediction:
    """What `split` of `model` costs: one simulated step. The head's cost is the last stage's; it stores no layer.

    Where a schedule halves the backward, either half takes half of its time. Raises UsageError where the sizes do not
    add up to the model's layers.
    """
    layers = len(model.layers)
    if sum(split.sizes) != layers:
        raise UsageError(f"{split.code} splits {sum(split.sizes)} layers, but {model.name!r} has {layers}")
    edges = itertools.pairwise((0, *split.cuts, layers))
    forward, backward = zip(*(tuple(map(sum, zip(*model.costs[a:b], strict=True))) for a, b in edges), strict=True)
    schedule = split.actions
    halves = any(action.kind == "W" for action in schedule[0])
    late = [seconds / 2 for seconds in backward] if halves else None
    trace = simulate(pipeline_program(schedule, forward=forward, backward=late or backward, weights=late))
    return Prediction(
        loads=tuple(f + b for f, b in zip(forward, backward, strict=True)),
        memory=stored(split),
        step_time=trace.seconds,
        bubble=bubble(trace),
        trace=trace,
    )


def stored(split: Split) -> tuple[int, ...]:
    """Layers of each stage times the most microbatches it holds at once."""
    return tuple(size * peak_activations(actions) for size, actions in zip(split.sizes, split.actions, strict=True))


def measured_step(found: Any) -> Trace:
    """The actions of the Trace that a run gave, or of the last of several. Raises UsageError where there are none."""
    trace = found[-1] if isinstance(found, tuple | list) and found else found
    steps = pipeline_actions(trace) if isinstance(trace, Trace) else None
    if steps is None or not steps.spans:
        raise UsageError("run must give a Trace, or two, with spans named after actions like F0 and B0")
    return steps
