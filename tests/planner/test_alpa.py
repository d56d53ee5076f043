"""Both levels against trying everything."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from course.errors import UsageError
from course.planner.alpa import Stage, cut_into_stages, shard_operators


@pytest.mark.parametrize("seed", range(8))
def test_shards_against_every_choice(seed: int) -> None:
    source = random.Random(seed)
    names = ("rows", "columns", "whole")
    operators = [{name: source.random() for name in names} for _ in range(5)]
    cost = {pair: source.random() / 2 for pair in itertools.product(names, repeat=2)}
    seconds, chosen = shard_operators(operators, lambda before, after: cost[before, after])

    def price(path: tuple[str, ...]) -> float:
        return sum(op[name] for op, name in zip(operators, path, strict=True)) + sum(
            cost[pair] for pair in itertools.pairwise(path)
        )

    assert seconds == pytest.approx(price(chosen))
    assert seconds == pytest.approx(min(map(price, itertools.product(names, repeat=5))))


def test_megatron_s_pair_is_found() -> None:
    """Columns then rows: one sum at the end, and nothing between (Shoeybi et al. 2019)."""
    costs = {("columns", "rows"): 0.0, ("columns", "columns"): 1.0, ("rows", "columns"): 1.0, ("rows", "rows"): 1.0}
    mlp = [{"columns": 1.0, "rows": 1.1}, {"columns": 1.1, "rows": 1.0}]
    assert shard_operators(mlp, lambda *pair: costs[pair])[1] == ("columns", "rows")


def every_cut(layers: int, devices: int, sizes: list[int]) -> list[tuple[Stage, ...]]:
    if layers == 0:
        return [()] if devices == 0 else []
    return [
        (*rest, Stage(first, layers, size))
        for first in range(layers)
        for size in sizes
        if size <= devices
        for rest in every_cut(first, devices - size, sizes)
    ]


@pytest.mark.parametrize("microbatches", [1, 4, 32])
@pytest.mark.parametrize("seed", range(4))
def test_stages_against_every_cut(seed: int, microbatches: int) -> None:
    source = random.Random(seed)
    layers, devices = 5, 6
    costs = [source.uniform(0.5, 2) for _ in range(layers)]

    def stage_seconds(first: int, last: int, size: int) -> float:
        if last - first > 3 * size:
            return math.inf  # does not fit memory
        return sum(costs[first:last]) / size**0.8

    seconds, stages = cut_into_stages(layers, devices, microbatches, stage_seconds)

    def price(cut: tuple[Stage, ...]) -> float:
        times = [stage_seconds(*stage) for stage in cut]
        return sum(times) + (microbatches - 1) * max(times)

    assert seconds == pytest.approx(price(stages))
    assert seconds == pytest.approx(min(map(price, every_cut(layers, devices, [1, 2, 4]))))


def test_many_microbatches_want_a_pipeline_and_one_does_not() -> None:
    def stage_seconds(first: int, last: int, size: int) -> float:
        return (last - first) / size**0.7  # splitting a layer over more devices pays less and less

    assert len(cut_into_stages(8, 8, 64, stage_seconds)[1]) == 8
    assert len(cut_into_stages(8, 8, 1, stage_seconds)[1]) == 1


def test_what_cannot_be() -> None:
    with pytest.raises(UsageError, match="no cut of 2 layers uses 8 devices"):
        cut_into_stages(2, 8, 4, lambda *_: 1.0, meshes=[1])
    with pytest.raises(UsageError):
        shard_operators([{}], lambda *_: 0.0)
