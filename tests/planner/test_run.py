"""Hours, money and failures."""

from __future__ import annotations

import pytest

from course.errors import UsageError
from course.planner.run import PUBLISHED, checkpoint_interval, goodput, plan_run, seconds_to_failure, training_cost
from course.planner.step import predict_step
from course.spec.chips import Cluster, chip_of
from course.spec.plan import Plan
from course.spec.shape import shape_of


def test_stable_diffusion_v1_cost_600_000() -> None:
    run = PUBLISHED[0]
    assert training_cost(run.gpu_hours, 4.0) == run.cost == 600_000


def test_llama_3_405b_s_hours_are_its_steps_and_its_interruptions() -> None:
    """15.6e12 tokens at the step time of the layout its authors used, with the goodput of their failures."""
    plan = Plan(tp=8, pp=16, dp=128, chunks=8, global_batch=2048, sequence=8192, zero=2, sequence_parallel=True,
                overlap_tp=True)  # fmt: skip
    step = predict_step(shape_of("llama-3.1-405b"), plan, Cluster(chip=chip_of("h100"), num_gpus=16384))
    share = goodput(checkpoint_seconds=30, restart_seconds=600, mean_seconds_to_failure=seconds_to_failure(16384))
    steps = round(15.6e12 / 2048 / 8192)
    run = plan_run(step_seconds=step.seconds, steps=steps, num_gpus=16384, goodput=share)
    published = next(run for run in PUBLISHED if run.name == "Llama 3.1 405B")
    assert run.gpu_hours == pytest.approx(published.gpu_hours, rel=0.1)


def test_a_run_adds_up() -> None:
    run = plan_run(step_seconds=36, steps=100, num_gpus=8, price=2.0)
    assert (run.hours, run.gpu_hours, run.cost) == (1.0, 8.0, 16.0)
    assert plan_run(step_seconds=36, steps=100, num_gpus=8, goodput=0.5).hours == 2.0


def test_young_and_llama_3() -> None:
    assert checkpoint_interval(50, 10_000) == 1000
    assert seconds_to_failure(16384) / 3600 == pytest.approx(3.09, abs=0.01)  # one every three hours
    assert seconds_to_failure(8192) == 2 * seconds_to_failure(16384)


def test_young_s_interval_is_the_best() -> None:
    c, r, m = 60.0, 600.0, 11_000.0
    best = goodput(checkpoint_seconds=c, restart_seconds=r, mean_seconds_to_failure=m)
    for t in (0.5, 0.9, 1.1, 2.0):
        interval = t * checkpoint_interval(c, m)
        assert 1 - c / interval - (interval / 2 + r) / m < best
    assert 0.7 < best < 0.9
    assert goodput(checkpoint_seconds=60, restart_seconds=1e6, mean_seconds_to_failure=1e3) == 0


@pytest.mark.parametrize(
    ("wrong", "word"),
    [({"price": -1.0}, "price"), ({"steps": 0}, "steps"), ({"goodput": 1.5}, "goodput"), ({"num_gpus": 0}, "num_gpus")],
)
def test_the_impossible_is_refused(wrong: dict, word: str) -> None:
    with pytest.raises(UsageError, match=word):
        plan_run(**{"step_seconds": 1.0, "steps": 1, "num_gpus": 1, **wrong})
    with pytest.raises(UsageError):
        checkpoint_interval(0, 1)
    with pytest.raises(UsageError):
        training_cost(-1, 1)
