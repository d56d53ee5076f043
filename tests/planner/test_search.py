"""The search finds what was chosen by people, in bounds, and never what does not fit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from course.errors import UsageError
from course.planner.memory import fits
from course.planner.search import fastest_of, find_plans
from course.planner.step import predict_step
from course.spec.chips import Cluster, chip_of
from course.spec.plan import Plan
from course.spec.shape import shape_of


def test_llama_3_405b_on_16384_gpus() -> None:
    """Llama 3, table 4: tp=8, pp=16, dp=128 with an interleaved schedule, 400 TFLOP/s a GPU."""
    shape, cluster = shape_of("llama-3.1-405b"), Cluster(chip=chip_of("h100"), num_gpus=16384)
    found = find_plans(shape, cluster, Plan(global_batch=2048, sequence=8192, overlap_tp=True), best=5)
    best = found.plans[0].plan
    assert (best.tp, best.pp, best.dp) == (8, 16, 128) and best.chunks > 1
    assert found.plans[0].step.mfu == pytest.approx(0.41, abs=0.04)
    assert found.tried >= found.priced >= len(found.plans) == 5
    seconds = [priced.step.seconds for priced in found.plans]
    assert seconds == sorted(seconds)


def test_every_plan_uses_every_gpu_and_fits() -> None:
    shape, cluster = shape_of("llama-3.1-8b"), Cluster(chip=chip_of("h100"), num_gpus=16)
    found = find_plans(shape, cluster, Plan(global_batch=64, sequence=8192), best=1000)
    assert len(found.plans) == found.priced > 20
    for priced in found.plans:
        assert priced.plan.num_gpus == 16 and fits(shape, priced.plan, cluster.chip)


def test_nothing_fits_and_the_number_of_chips_that_is_named_does() -> None:
    shape, start = shape_of("llama-3.1-405b"), Plan(global_batch=64, sequence=8192)
    cluster = Cluster(chip=chip_of("a100-40gb"), num_gpus=8)
    with pytest.raises(UsageError, match="fits 8 x a100-40gb in none of .* try 256 chips"):
        find_plans(shape, cluster, start)
    assert find_plans(shape, replace(cluster, num_gpus=256), start).priced > 0
    with pytest.raises(UsageError, match="none of"):
        find_plans(shape, replace(cluster, num_gpus=128), start)


@pytest.mark.parametrize(("gpus", "near"), [(7, 8), (100_000_000, 16384), (1000, 1024)])
def test_numbers_of_chips_that_no_layout_uses(gpus: int, near: int) -> None:
    shape, start = shape_of("llama-3.1-8b"), Plan(global_batch=64, sequence=8192)
    cluster = Cluster(chip=chip_of("h100"), num_gpus=gpus)
    with pytest.raises(UsageError, match=f"no layout of llama-3.1-8b uses {gpus} chips: .* try {near}$"):
        find_plans(shape, cluster, start)
    assert find_plans(shape, replace(cluster, num_gpus=near), start).tried > 0


def test_what_no_number_of_chips_holds() -> None:
    with pytest.raises(UsageError, match="nor more chips: try a shorter sequence"):
        find_plans(
            shape_of("llama-3.1-8b"), Cluster(chip=chip_of("h100"), num_gpus=8), Plan(global_batch=8, sequence=10**9)
        )


def test_free_fields_are_the_fastest_that_fit() -> None:
    shape, cluster = shape_of("llama-3.1-70b"), Cluster(chip=chip_of("h100"), num_gpus=64)
    plan = Plan(tp=8, pp=4, dp=2, global_batch=64, sequence=8192, zero=1, sequence_parallel=True)
    chosen = fastest_of(shape, plan, cluster, ("microbatch", "chunks", "recompute"))
    assert fits(shape, chosen, cluster.chip) and (chosen.tp, chosen.pp, chosen.dp) == (8, 4, 2)
    one_free = fastest_of(shape, plan, cluster, ("chunks",))
    assert one_free.microbatch == 1 and one_free.recompute == "none"
    slower = predict_step(shape, one_free, cluster).seconds if fits(shape, one_free, cluster.chip) else float("inf")
    assert predict_step(shape, chosen, cluster).seconds <= slower
    assert fastest_of(shape, plan, cluster, ()) is plan
