"""Layers to stages: where to cut a model so that the slowest stage is as fast as can be.

Pure arithmetic on costs, standard library only. Costs are measured and stages made in `parallel.pipeline`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from course.errors import UsageError


def split_layers(costs: Sequence[float], stages: int, *, memory: Sequence[int] | None = None) -> tuple[int, ...]:
    """The cuts that make the slowest of `stages` contiguous stages as cheap as can be: (layers before each cut, ...).

    costs: seconds (or any unit) of each layer, in order, none negative. memory: for each stage the most layers it may
    hold. No stage is empty. There are `stages - 1` cuts; of several best splits any may come back.

    Dynamic programming over stages and layers: best[s][j] = min over i of max(best[s-1][i], sum(costs[i:j])), where i
    only moves to the right as j does: O(stages * layers).
    Raises UsageError for more stages than layers, a negative cost, or where no split fits `memory`.
    """
    limits = _limits(costs, stages, memory)
    before = (0.0, *itertools.accumulate(costs))
    layers = len(costs)
    best = [math.inf] * (layers + 1)
    best[0] = 0.0
    came_from: list[list[int]] = []
    for stage, limit in enumerate(limits):
        rest = stages - 1 - stage  # stages still to be filled, a layer each at least
        row, choice = [math.inf] * (layers + 1), [0] * (layers + 1)
        start = stage
        for end in range(stage + 1, layers - rest + 1):
            start = max(start, end - limit)
            slowest = max(best[start], before[end] - before[start])
            while start + 1 < end and (later := max(best[start + 1], before[end] - before[start + 1])) <= slowest:
                start, slowest = start + 1, later
            row[end], choice[end] = slowest, start
        best = row
        came_from.append(choice)
    if math.isinf(best[layers]):
        raise UsageError(
            f"split_layers: {layers} layers do not fit {stages} stages that hold {', '.join(map(str, limits))}: "
            "try more stages, or a higher memory limit"
        )
    cuts = [layers]
    for choice in reversed(came_from[1:]):
        cuts.append(choice[cuts[-1]])
    return tuple(reversed(cuts[1:]))


def _limits(costs: Sequence[float], stages: int, memory: Sequence[int] | None) -> tuple[int, ...]:
    layers = len(costs)
    if not isinstance(stages, int) or isinstance(stages, bool) or stages < 1:
        raise UsageError(f"split_layers(stages={stages!r}): stages must be a whole number of at least 1")
    if stages > layers:
        raise UsageError(f"split_layers: {stages} stages need at least {stages} layers, but there are {layers}")
    if any(not 0 <= cost < math.inf for cost in costs):
        raise UsageError("split_layers: costs must be at least 0 and finite")
    if memory is None:
        return (layers,) * stages
    if len(memory) != stages:
        raise UsageError(f"split_layers: memory must hold one number a stage, {stages} in all, but has {len(memory)}")
    return tuple(int(limit) for limit in memory)


def stage_sizes(layers: int, cuts: Sequence[int]) -> tuple[int, ...]:
    """Layers of each stage. Raises UsageError for cuts that are out of order or leave a stage empty."""
    edges = (0, *cuts, layers)
    sizes = tuple(end - start for start, end in itertools.pairwise(edges))
    if any(size < 1 for size in sizes):
        raise UsageError(
            f"cuts {tuple(cuts)} of {layers} layers: cuts must rise from 1 to {layers - 1}, so that no stage is empty"
        )
    return sizes


def stage_costs(costs: Sequence[float], cuts: Sequence[int]) -> tuple[float, ...]:
    """The cost of each stage: the sum over its layers."""
    stage_sizes(len(costs), cuts)
    return tuple(sum(costs[start:end]) for start, end in itertools.pairwise((0, *cuts, len(costs))))
