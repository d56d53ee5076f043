"""The four rounds of the layer splitter: what each unlocks, what it asks for, and the best split it is judged by.

A round asks for an idle share (bubble) no larger than that of the best split; any split that reaches it wins.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from course.spec.split import split_layers
from course.widgets.splits import Model, Prediction, Split, predict, split_at, stored

ROUNDS = 4
UNLOCKED_IN = {"memory_limit": 2, "microbatches": 3, "schedule": 4}  # cuts can be moved from the start
MICROBATCHES = 8  # of the first rounds; twice as many are the measure of the later ones
EXACT = 1e-9


@dataclass(frozen=True, slots=True)
class Goal:
    """What a round asks for. bubble: at most; limit: stored layers a stage at most, 0 for any number."""

    words: str
    bubble: float
    limit: int = 0
    microbatches: int = MICROBATCHES  # at most

    def met_by(self, split: Split, prediction: Prediction) -> bool:
        return (
            prediction.bubble <= self.bubble + EXACT
            and split.microbatches <= self.microbatches
            and (not self.limit or max(prediction.memory) <= self.limit)
        )


@functools.lru_cache(maxsize=64)
def goal_of(model: Model, stages: int, number: int) -> Goal:
    """The goal of round `number` (1 to ROUNDS) for a model on so many stages."""
    fastest = best_split(model, stages, MICROBATCHES, "1F1B")
    if number == 1:
        return Goal("Move the cuts until the step is as short as it can be", predict(model, fastest).bubble)
    if number < ROUNDS:
        limit = _tight_limit(model, stages, max(stored(fastest)))
        most = MICROBATCHES if number == 2 else 2 * MICROBATCHES
        words = {
            2: f"A device now stores the activations of {limit} layers at most. Find the best split that fits",
            3: f"You may change the micro-batches too, up to {most}. Keep within {limit} stored layers",
        }[number]
        return Goal(words, predict(model, best_split(model, stages, most, "1F1B", limit)).bubble, limit, most)
    most = 2 * MICROBATCHES
    unlimited = best_split(model, stages, most, "ZB-H1")
    limit = max(stored(unlimited))
    words = f"You may change the schedule too. Keep within {limit} stored layers and {most} micro-batches"
    return Goal(words, predict(model, unlimited).bubble, limit, most)


def _tight_limit(model: Model, stages: int, wanted: int) -> int:
    """Three quarters of what the fastest split stores, or the least with which 1F1B runs in all rounds."""
    held = stored(Split((1,) * stages, 2 * MICROBATCHES, "1F1B"))
    limit = max([*held, wanted * 3 // 4])
    while sum(limit // most for most in held) < len(model.layers):
        limit += 1
    return limit


@functools.lru_cache(maxsize=256)
def best_split(model: Model, stages: int, microbatches: int, schedule: str, limit: int = 0) -> Split:
    """The split with the shortest step, where no stage stores more than `limit` layers.

    From the optimum of `split_layers` (the fastest slowest stage) cuts move one layer at a time, alone or neighbours
    together, for as long as the simulated step gets shorter. For 30 layers on 3 stages that is the optimum of all 406
    splits; in general it need not be. Raises UsageError where no split fits.
    """
    held = stored(Split((1,) * stages, microbatches, schedule))
    totals = [sum(cost) for cost in model.layers]
    totals[-1] += sum(model.head)
    memory = [limit // most for most in held] if limit else None
    best = split_at(model, split_layers(totals, stages, memory=memory), microbatches, schedule)
    while better := _shorter(model, best, limit):
        best = better
    return best


def _shorter(model: Model, split: Split, limit: int) -> Split | None:
    """A split near by whose step is shorter, if there is one."""
    shortest = predict(model, split).step_time
    fitting = (near for near in _near(split) if not limit or max(stored(near)) <= limit)
    return next((near for near in fitting if predict(model, near).step_time < shortest), None)


def _near(split: Split) -> Iterator[Split]:
    """The splits where one cut, or several next to each other, lie one layer further left or right."""
    for first in range(1, len(split.sizes)):
        for after in range(first, len(split.sizes)):
            for step in (-1, 1):
                sizes = _shifted(split.sizes, first, after, step)
                if min(sizes) >= 1:
                    yield Split(sizes, split.microbatches, split.schedule)


def _shifted(sizes: Sequence[int], first: int, after: int, step: int) -> tuple[int, ...]:
    """Stage first - 1 grows by `step` and stage `after` shrinks: the stages between them move along."""
    changed = list(sizes)
    changed[first - 1] += step
    changed[after] -= step
    return tuple(changed)
