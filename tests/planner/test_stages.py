"""Alpa's two levels with the planner's own costs: every layer and chip is used, splits and cuts are the cheapest."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from course.errors import UsageError
from course.planner.constants import CONSTANTS
from course.planner.stages import LEAVES, SPLITS, WANTS, _layer, _product, _products, _reshard, _ring, plan_stages
from course.spec.chips import Cluster, chip_of
from course.spec.plan import Plan
from course.spec.shape import shape_of

A100 = Cluster(chip=chip_of("a100-80gb"), num_gpus=512)
H100 = Cluster(chip=chip_of("h100"), num_gpus=64)


@pytest.mark.parametrize("gpus", [1, 8, 64])
def test_every_layer_and_every_chip_is_used_once(gpus: int) -> None:
    shape = shape_of("gpt-2")
    found = plan_stages(shape, replace(H100, num_gpus=gpus), Plan(global_batch=64, sequence=1024))
    assert [stage.first for stage in found.stages] == [0, *(stage.last for stage in found.stages[:-1])]
    assert found.stages[-1].last == shape.layers
    assert sum(stage.rows * stage.columns for stage in found.stages) == gpus and found.seconds > 0


def test_megatron_s_splits_are_found_where_samples_are_few() -> None:
    found = plan_stages(shape_of("gpt-3-175b"), A100, Plan(global_batch=1536, sequence=2048))
    assert {stage.splits for stage in found.stages} == {("columns", "rows", "columns", "rows")}


def test_samples_are_split_where_there_are_enough() -> None:
    found = plan_stages(shape_of("gpt-2"), replace(H100, num_gpus=8), Plan(global_batch=512, sequence=1024))
    assert {stage.splits for stage in found.stages} == {("batch",) * 4}


@pytest.mark.parametrize("samples", [1, 8])
def test_the_splits_are_the_cheapest_of_all(samples: int) -> None:
    """Two layers, every one of 81 x 81 ways through them added up by hand."""
    shape, plan = shape_of("llama-3.1-8b"), Plan(microbatch=samples, global_batch=samples, recompute="full")
    known, products = CONSTANTS["ampere"], _products(shape)
    ring = _ring(plan, A100, 1, 8, known)

    def price(path: tuple[str, ...]) -> float:
        cost = sum(_product(products[k % 4], split, plan, A100, ring, known) for k, split in enumerate(path)) + sum(
            _reshard(LEAVES[a], WANTS[b], ring, 2 * plan.tokens * products[k % 4][2])
            for k, (a, b) in enumerate(itertools.pairwise(path))
        )
        return cost

    least = [min(map(price, itertools.product(SPLITS, repeat=4 * layers))) for layers in (1, 2)]
    layer = _layer(shape, plan, A100, 1, 8, known)
    assert layer.each - layer.alone == pytest.approx(least[1] - 2 * least[0], rel=1e-6, abs=1e-9)
    assert price(layer.splits * 2) >= least[1]


def test_what_cannot_be() -> None:
    with pytest.raises(UsageError, match="try 4 of the 7 chips"):
        plan_stages(shape_of("gpt-2"), replace(H100, num_gpus=7), Plan(global_batch=64))
    with pytest.raises(UsageError, match="in no cut into stages: try 16 chips"):
        plan_stages(shape_of("llama-3.1-405b"), replace(H100, num_gpus=8), Plan(global_batch=64))
