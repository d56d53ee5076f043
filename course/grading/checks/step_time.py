"""Checks of `step_seconds`: a step put together from its parts, one part a check."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from course.grading.checks.reckoning import Case, Group, Guesses, Reckoning, checks
from course.grading.mistakes import Mistake
from course.grading.mistakes import lesson_10_steps as known

NAMES = ("forward", "backward", "layers", "stages", "microbatches", "chunks", "tp_seconds", "dp_seconds")

PIPELINES: tuple[Case, ...] = ((1.0, 2.0, 4, 4, 8), (0.5, 1.5, 6, 3, 4), (0.25, 0.5, 8, 1, 5), (3, 5, 2, 5, 2))
CHUNKED: tuple[Case, ...] = (
    (1.0, 2.0, 4, 4, 8, 2),
    (0.5, 1.5, 6, 3, 9, 3),
    (2, 3, 8, 2, 6, 4),
    (1.0, 1.5, 5, 8, 16, 5),
)
TENSOR: tuple[Case, ...] = (
    (1.0, 2.0, 4, 4, 8, 1, 0.05),
    (0.5, 1.5, 6, 3, 5, 1, 0.1),
    (2.0, 3.0, 9, 1, 4, 1, 0.02),
    (1.0, 2.0, 8, 4, 8, 2, 0.03),
)
DATA: tuple[Case, ...] = (
    (1.0, 2.0, 4, 4, 8, 1, 0.0, 5.0),
    (0.5, 1.5, 6, 3, 5, 1, 0.1, 4.0),
    (0.5, 1.5, 6, 1, 5, 1, 0.0, 16.5),
    (1.0, 2.0, 4, 4, 8, 2, 0.05, 1.25),
    (0.5, 1.5, 6, 3, 5, 1, 0.1, 1.5),
)
IMPOSSIBLE: tuple[Case, ...] = (
    (1.0, 2.0, 4, 0, 8),
    (1.0, 2.0, 4, 4, 0),
    (1.0, 2.0, 0, 4, 8),
    (1.0, 2.0, 4, 4, 8, 0),
    (-1.0, 2.0, 4, 4, 8),
    (1.0, -2.0, 4, 4, 8),
    (1.0, 2.0, 4, 4, 8, 1, -0.1),
    (1.0, 2.0, 4, 4, 8, 1, 0.0, -1.0),
)


def _random() -> tuple[Case, ...]:
    source = random.Random("steps")
    cases: list[Case] = []
    for _ in range(30):
        forward, stages, chunks = source.uniform(0.01, 1.0), source.randint(1, 16), source.choice((1, 1, 2, 3))
        backward = forward * source.uniform(1.5, 3.2)
        sizes = (chunks * source.randint(1, 8), stages, stages * source.randint(1, 8), chunks if stages > 1 else 1)
        cases.append((forward, backward, *sizes, source.uniform(0, 0.1) * forward, source.uniform(0, 5) * backward))
    return tuple(cases)


class Parts:
    """A case with its defaults filled in. f, b: passes without messages; t: one all-reduce of tp; m of them: whole."""

    def __init__(self, *case: float) -> None:
        filled = (*case, *(1, 0.0, 0.0)[len(case) - 5 :])
        self.f, self.b, self.layers, self.p, self.m, self.v, self.t, self.d = filled

    @property
    def messages(self) -> float:
        """Tensor-parallel seconds of one microbatch on one stage."""
        return 4 * self.layers * self.t

    @property
    def a(self) -> float:
        """Seconds of one microbatch on one stage."""
        return self.f + self.b + self.messages

    @property
    def pipeline(self) -> float:
        return (self.m + (self.p - 1) / self.v) * self.a

    @property
    def exposed(self) -> float:
        return max(0.0, self.d - self.b)


def seconds(*case: float) -> float:
    """The oracle: microbatches and bubble, then what is left of the gradients' all-reduce."""
    parts = Parts(*case)
    return parts.pipeline + parts.exposed


def _all(*mistaken: tuple[Mistake, Callable[[Parts], float]]) -> Guesses:
    """Guesses about a whole step from formulas about its parts."""
    return [(mistake, lambda *case, formula=formula: formula(Parts(*case))) for mistake, formula in mistaken]


def _with_tensor(s: Parts, nbusy: float, nidle: float) -> float:
    """The step with other tensor-parallel seconds in the microbatches, and in the bubble."""
    computed = s.f + s.b
    return s.m * (computed + nbusy) + (s.p - 1) / s.v * (computed + nidle) + s.exposed


_PIPELINE = _all(
    (known.STEP_NO_BUBBLE, lambda s: s.m * s.a + s.exposed),
    (known.STEP_BUBBLE_OF_ONE_PASS, lambda s: s.pipeline - (s.p - 1) / s.v * s.b + s.exposed),
    (known.STEP_BUBBLE_OF_ONE_PASS, lambda s: s.pipeline - (s.p - 1) / s.v * s.f + s.exposed),
    (known.STEP_ONE_STAGE_MORE, lambda s: (s.m + s.p / s.v) * s.a + s.exposed),
    (known.STEP_ONE_STAGE_MORE, lambda s: (s.m + 2 * (s.p - 1) / s.v) * s.a + s.exposed),
    (known.STEP_STAGES_IN_TURN, lambda s: s.m * s.p * s.a + s.exposed),
    (known.STEP_STAGES_IN_TURN, lambda s: s.pipeline * s.p + s.exposed),
    (known.STEP_SPLIT_AGAIN, lambda s: s.pipeline / s.p + s.exposed),
    (known.STEP_SPLIT_AGAIN, lambda s: s.m * s.a / s.p + s.exposed),
    (known.STEP_SHARE_OF_WHOLE, lambda s: s.m * s.a * (1 + (s.p - 1) / (s.v * s.m + s.p - 1)) + s.exposed),
    (
        known.STEP_SHARE_OF_WHOLE,
        lambda s: s.m * s.a / (1 - (s.p - 1) / (s.v * s.m)) + s.exposed if s.v * s.m > s.p - 1 else 0,
    ),
    (known.STEP_ONE_MICROBATCH, lambda s: s.p * s.a + s.exposed),
    (known.STEP_DATA_BELOW_ZERO, lambda s: s.pipeline + s.d - s.b),
)
_CHUNKS = _all(
    (known.STEP_CHUNKS_IGNORED, lambda s: (s.m + s.p - 1) * s.a + s.exposed),
    (known.STEP_CHUNKS_SHORTEN_ALL, lambda s: (s.m + s.p - 1) * s.a / s.v + s.exposed),
    (known.STEP_CHUNKS_SHORTEN_ALL, lambda s: (s.m / s.v + s.p - 1) * s.a + s.exposed),
    (known.STEP_CHUNKS_LENGTHEN, lambda s: (s.m + (s.p - 1) * s.v) * s.a + s.exposed),
    (known.STEP_CHUNKS_LENGTHEN, lambda s: (s.v * s.m + s.p - 1) * s.a + s.exposed),
    (known.STEP_CHUNKS_LENGTHEN, lambda s: (s.m + s.p * s.v - 1) * s.a + s.exposed),
    (known.STEP_CHUNKS_LENGTHEN, lambda s: (s.m + (s.p * s.v - 1) / s.v) * s.a + s.exposed),
)
_TENSOR = _all(
    (known.STEP_TENSOR_LEFT_OUT, lambda s: _with_tensor(s, 0, 0)),
    (known.STEP_TENSOR_NOT_IN_BUBBLE, lambda s: _with_tensor(s, s.messages, 0)),
    (known.STEP_TENSOR_ONCE_A_STEP, lambda s: _with_tensor(s, s.messages / s.m, 0)),
    (known.STEP_TENSOR_ONE_DIRECTION, lambda s: _with_tensor(s, s.messages / 2, s.messages / 2)),
    (known.STEP_TENSOR_ONE_DIRECTION, lambda s: _with_tensor(s, s.messages / 2, 0)),
    (known.STEP_TENSOR_ONE_DIRECTION, lambda s: _with_tensor(s, s.messages / 4, s.messages / 4)),
    (known.STEP_TENSOR_TOO_MANY, lambda s: _with_tensor(s, 2 * s.messages, 2 * s.messages)),
    (known.STEP_TENSOR_TOO_MANY, lambda s: _with_tensor(s, 1.5 * s.messages, 1.5 * s.messages)),
    (known.STEP_TENSOR_ONE_LAYER, lambda s: _with_tensor(s, 4 * s.t, 4 * s.t)),
    (known.STEP_TENSOR_ONE_LAYER, lambda s: _with_tensor(s, 2 * s.t, 2 * s.t)),
    (known.STEP_TENSOR_ONE_LAYER, lambda s: _with_tensor(s, s.t, s.t)),
    (known.STEP_TENSOR_ALL_STAGES, lambda s: _with_tensor(s, s.p * s.messages, s.p * s.messages)),
    (known.STEP_TENSOR_ALL_STAGES, lambda s: _with_tensor(s, s.messages / s.p, s.messages / s.p)),
)  # fmt: skip
_DATA = _all(
    (known.STEP_DATA_LEFT_OUT, lambda s: s.pipeline),
    (known.STEP_DATA_ALL_EXPOSED, lambda s: s.pipeline + s.d),
    (known.STEP_DATA_BELOW_ZERO, lambda s: s.pipeline + s.d - s.b),
    (known.STEP_DATA_HIDDEN_PART, lambda s: s.pipeline + min(s.d, s.b)),
    (known.STEP_DATA_BESIDE_ALL, lambda s: s.pipeline + max(0.0, s.d - s.m * s.b)),
    (known.STEP_DATA_BESIDE_ALL, lambda s: max(s.pipeline, s.d)),
    (known.STEP_DATA_BESIDE_ALL, lambda s: s.pipeline + max(0.0, s.d - s.m * (s.f + s.b))),
    (known.STEP_DATA_BESIDE_MORE, lambda s: s.pipeline + max(0.0, s.d - s.b - s.messages / 2)),
    (known.STEP_DATA_BESIDE_MORE, lambda s: s.pipeline + max(0.0, s.d - s.f - s.b)),
    (known.STEP_DATA_BESIDE_MORE, lambda s: s.pipeline + max(0.0, s.d - s.a)),
    (known.STEP_DATA_EACH_MICROBATCH, lambda s: s.pipeline + s.m * s.exposed),
    (known.STEP_DATA_EACH_MICROBATCH, lambda s: s.pipeline + s.m * s.d),
)
_EVERY: Guesses = (*_PIPELINE, *_CHUNKS, *_TENSOR, *_DATA)

_ALONE, _CHUNKS_NAME = "four pipelines alone", "with chunks"
_TENSOR_NAME, _DATA_NAME = "with tensor parallel all-reduces", "with the gradients' all-reduce"

GROUPS: Sequence[Group] = (
    Group(
        _ALONE, 2, PIPELINES, _PIPELINE, "all microbatches of a stage, and its idle time",
        "Draw it: a row a stage, a box a microbatch. How long is the row of stage 0, empty places and all?",
    ),
    Group(
        _CHUNKS_NAME, 1, CHUNKED, (*_PIPELINE, *_CHUNKS), "the same work, a shorter bubble",
        "With chunks a stage does as much as before. What gets shorter is filling and draining.", needs=_ALONE,
    ),
    Group(
        _TENSOR_NAME, 2, TENSOR, (*_TENSOR, *_PIPELINE, *_CHUNKS), "passes that are longer by their all-reduces",
        "How many all-reduces does one microbatch make on one stage? Make its time longer, then go on as before.",
        needs=_ALONE,
    ),
    Group(
        _DATA_NAME, 2, DATA, (*_DATA, *_TENSOR, *_CHUNKS), "the step, and what is left of the all-reduce after it",
        "Which part of the all-reduce finds computing to hide behind, and which does not?", needs=_ALONE,
    ),
    Group("thirty random steps", 2, _random(), _EVERY, "the same", "Put the parts together one by one.", needs=_ALONE),
)  # fmt: skip

CHECKS = {"step_seconds": checks(Reckoning("step_seconds", NAMES, seconds), GROUPS, IMPOSSIBLE, _ALONE)}
