"""Splits of layers that look right: the cuts that each known mistake makes. No check itself."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

from course.grading.mistakes import Mistake
from course.grading.mistakes.lesson_07 import (
    CUTS_WITH_ENDS,
    EMPTY_STAGE,
    EQUAL_LAYERS,
    EVEN_COSTS,
    GREEDY_AVERAGE,
    LAST_LAYERS,
    LAST_TAKES_REST,
    SIZES_NOT_CUTS,
)
from course.spec.split import split_layers, stage_costs

Costs = Sequence[float]
Cuts = Sequence[int]
Guess = Callable[[Costs, int], list[int]]


def _equal(costs: Costs, stages: int) -> list[int]:
    size, more = divmod(len(costs), stages)
    return [s * size + min(s, more) for s in range(1, stages)]


def _rest_last(costs: Costs, stages: int) -> list[int]:
    return [s * (len(costs) // stages) for s in range(1, stages)]


def _even_steps(costs: Costs, stages: int) -> list[int]:
    return [s * len(costs) // stages for s in range(1, stages)]


def _rounded(costs: Costs, stages: int) -> list[int]:
    return [round(s * len(costs) / stages) for s in range(1, stages)]


def _ceiled(costs: Costs, stages: int) -> list[int]:
    return [min(s * -(-len(costs) // stages), len(costs)) for s in range(1, stages)]


def _closes(costs: Costs, stages: int, *, before: bool) -> list[int]:
    """A stage is closed once it has the average; or, with `before`, ahead of the layer that would go beyond it."""
    average, cuts, held = sum(costs) / stages, list[int](), 0.0
    for k, cost in enumerate(costs):
        if before and held and held + cost > average and len(cuts) < stages - 1:
            cuts.append(k)
            held = 0.0
        held += cost
        if not before and held >= average and len(cuts) < stages - 1:
            cuts.append(k + 1)
            held = 0.0
    return cuts


def _nearest(costs: Costs, stages: int) -> list[int]:
    before = [0.0, *itertools.accumulate(costs)]
    wanted = [before[-1] * s / stages for s in range(1, stages)]
    return [min(range(len(before)), key=lambda k, at=at: abs(before[k] - at)) for at in wanted]  # type: ignore[misc]


def _reached(costs: Costs, stages: int) -> list[int]:
    before = [0.0, *itertools.accumulate(costs)]
    wanted = [before[-1] * s / stages for s in range(1, stages)]
    return [next(k for k, done in enumerate(before) if done >= at) for at in wanted]


def _reached_rising(costs: Costs, stages: int) -> list[int]:
    """The same with no more than one cut behind a layer."""
    before, cuts = [0.0, *itertools.accumulate(costs)], list[int]()
    for k, done in enumerate(before[1:], start=1):
        if len(cuts) < stages - 1 and done >= before[-1] * (len(cuts) + 1) / stages:
            cuts.append(k)
    return cuts


def _packed(costs: Costs, stages: int) -> list[int]:
    """Stages filled up to the cost of the slowest one, from the left; what is left over is empty."""
    limit, cuts, held = max(stage_costs(costs, split_layers(costs, stages))), list[int](), 0.0
    for k, cost in enumerate(costs):
        if held + cost > limit * (1 + 1e-9):
            cuts.append(k)
            held = 0.0
        held += cost
    return cuts + [len(costs)] * (stages - 1 - len(cuts))


def _all_cuts(costs: Costs, stages: int) -> Iterator[tuple[int, ...]]:
    return itertools.combinations(range(1, len(costs)), stages - 1)


def _is_evenest(cuts: Cuts, costs: Costs, stages: int) -> bool:
    """Whether these cuts make the sum of squares of the stages' costs as small as can be."""
    if (
        list(cuts) != sorted(set(cuts))
        or len(cuts) != stages - 1
        or (cuts and not 0 < cuts[0] <= cuts[-1] < len(costs))
    ):
        return False
    least = min(_squares(costs, other) for other in _all_cuts(costs, stages))
    return _squares(costs, cuts) <= least * (1 + 1e-9)


def _squares(costs: Costs, cuts: Cuts) -> float:
    return sum(cost * cost for cost in stage_costs(costs, cuts))


def _is_best(cuts: Cuts, costs: Costs, stages: int) -> bool:
    if len(cuts) != stages - 1 or not all(a < b for a, b in itertools.pairwise([0, *cuts, len(costs)])):
        return False
    return max(stage_costs(costs, cuts)) <= max(stage_costs(costs, split_layers(costs, stages))) * (1 + 1e-6)


def _from_sizes(sizes: Cuts) -> list[int]:
    return list(itertools.accumulate(sizes))


_GUESSES: tuple[tuple[Mistake, Guess], ...] = (
    (EQUAL_LAYERS, _equal),
    (EQUAL_LAYERS, _even_steps),
    (EQUAL_LAYERS, _rounded),
    (EQUAL_LAYERS, _ceiled),
    (LAST_TAKES_REST, _rest_last),
    (LAST_TAKES_REST, lambda costs, stages: _closes(costs, stages, before=True)),
    (GREEDY_AVERAGE, lambda costs, stages: _closes(costs, stages, before=False)),
    (GREEDY_AVERAGE, _nearest),
    (GREEDY_AVERAGE, _reached),
    (GREEDY_AVERAGE, _reached_rising),
    (EMPTY_STAGE, _packed),
)

# Right splits, written down another way: how to get the cuts back from what came (given the number of layers).
_WAYS: tuple[tuple[Mistake, Callable[[Cuts, int], Cuts | None]], ...] = (
    (SIZES_NOT_CUTS, lambda found, layers: _from_sizes(found)[:-1] if found and sum(found) == layers else None),
    (SIZES_NOT_CUTS, lambda found, layers: _from_sizes(found)),
    (CUTS_WITH_ENDS, lambda found, layers: found[1:-1] if [0, layers] == [*found[:1], *found[-1:]] else None),
    (CUTS_WITH_ENDS, lambda found, layers: found[:-1] if list(found[-1:]) == [layers] else None),
    (CUTS_WITH_ENDS, lambda found, layers: found[1:] if list(found[:1]) == [0] else None),
    (LAST_LAYERS, lambda found, layers: [cut + 1 for cut in found]),
    (LAST_LAYERS, lambda found, layers: [cut + 1 for cut in found[:-1]] if list(found[-1:]) == [layers - 1] else None),
)


def mistaken(found: Sequence[tuple[Costs, int, Cuts]]) -> Mistake | None:
    """The mistake that explains the cuts found for each of these (costs, stages, cuts)."""
    for mistake, guess in _GUESSES:
        if all(list(cuts) == guess(costs, stages) for costs, stages, cuts in found):
            return mistake
    for mistake, way in _WAYS:
        back = [(costs, stages, way(cuts, len(costs))) for costs, stages, cuts in found]
        if all(cuts is not None and _is_best(cuts, costs, stages) for costs, stages, cuts in back):
            return mistake
    return EVEN_COSTS if all(_is_evenest(cuts, costs, stages) for costs, stages, cuts in found) else None
