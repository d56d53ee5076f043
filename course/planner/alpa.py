"""Alpa's two levels (Zheng et al. 2022): how each operator of a stage is sharded, and where the model is cut into
stages and how many devices each gets. Both exact for a chain of operators or layers; costs come from the caller.

Inside a stage every choice of shards has its seconds, and going from one to the next may need a resharding (section 4,
there an integer program for any graph; on a chain dynamic programming is enough). Between stages the pipeline takes
(sum of the stages) + (m-1) x (the slowest) (section 5, equation 2).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from course.errors import UsageError

Reshard = Callable[[str, str], float]  # (shards before, shards after) -> seconds
StageSeconds = Callable[[int, int, int], float]  # (first layer, layer after the last, devices) -> seconds a microbatch


class Stage(NamedTuple):
    """Layers first to last - 1 on so many devices."""

    first: int
    last: int
    devices: int


def shard_operators(operators: Sequence[Mapping[str, float]], reshard: Reshard) -> tuple[float, tuple[str, ...]]:
    """(seconds, the shards of each operator) of the cheapest way through a chain of operators.

    operators: {name of a sharding: its seconds} each. Raises UsageError where an operator has no choice.
    """
    if not operators or not all(operators):
        raise UsageError("shard_operators needs at least one operator, and a sharding for each")
    ways: dict[str, tuple[float, tuple[str, ...]]] = {
        name: (seconds, (name,)) for name, seconds in operators[0].items()
    }
    for choices in operators[1:]:
        ways = {name: _cheapest(ways, name, seconds, reshard) for name, seconds in choices.items()}
    return min(ways.values())


def _cheapest(
    ways: Mapping[str, tuple[float, tuple[str, ...]]], name: str, seconds: float, reshard: Reshard
) -> tuple[float, tuple[str, ...]]:
    return min((cost + reshard(before, name) + seconds, (*path, name)) for before, (cost, path) in ways.items())


def cut_into_stages(
    layers: int, devices: int, microbatches: int, stage_seconds: StageSeconds, *, meshes: Sequence[int] = ()
) -> tuple[float, tuple[Stage, ...]]:
    """(seconds of a step, stages) of the fastest pipeline that uses every device.

    meshes: numbers of devices a stage may have; by default the powers of two. For each value the slowest stage may
    have, the least sum of stages under it is found by dynamic programming. Raises UsageError where nothing fits
    (stage_seconds may give infinity for what does not fit memory).
    """
    sizes = [size for size in meshes or [2**k for k in range(devices.bit_length())] if size <= devices]
    prices = {
        (first, last, size): stage_seconds(first, last, size)
        for first in range(layers)
        for last in range(first + 1, layers + 1)
        for size in sizes
    }
    best: tuple[float, tuple[Stage, ...]] = (math.inf, ())
    for slowest in sorted(set(prices.values()) - {math.inf}):
        if (microbatches - 1) * slowest >= best[0]:
            break  # slower stages can only be worse
        total, stages = _least_sum(layers, devices, prices, slowest)
        used = max((prices[stage] for stage in stages), default=math.inf)
        best = min(best, (total + (microbatches - 1) * used, stages))
    if not best[1]:
        raise UsageError(f"no cut of {layers} layers uses {devices} devices: try other meshes than {sizes}")
    return best


def _least_sum(
    layers: int, devices: int, prices: Mapping[tuple[int, int, int], float], slowest: float
) -> tuple[float, tuple[Stage, ...]]:
    """The least sum of stages, none over `slowest`, that hold all layers and use all devices."""
    ways: dict[tuple[int, int], tuple[float, tuple[Stage, ...]]] = {(layers, 0): (0.0, ())}  # (first layer, devices)
    for first in range(layers - 1, -1, -1):
        for (begin, last, size), price in prices.items():
            if begin != first or price > slowest:
                continue
            for left in range(devices - size + 1):
                cost, stages = ways.get((last, left), (math.inf, ()))
                way = (cost + price, (Stage(first, last, size), *stages))
                if way < ways.get((first, left + size), (math.inf, ())):
                    ways[first, left + size] = way
    return ways.get((0, devices), (math.inf, ()))
