"""Lesson 10: oracles against torch's counter, the planner and plain search, and cases that tell mistakes apart."""

from __future__ import annotations

import math

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from course.grading.checks import clusters, flops, layouts, price, saving, step_time, utilisation
from course.planner import checkpoint_interval, model_flops, plan_run, training_cost
from course.planner.compute import Passes
from course.planner.pipeline import pipeline_seconds
from course.planner.run import seconds_to_failure
from course.spec.shape import ModelShape


@pytest.mark.parametrize("case", [flops.GPTS[2], flops.GPTS[3], flops.GROUPED[2], flops.GROUPED[3]])
def test_torch_counts_the_same_flops(case: tuple[int, ...]) -> None:
    layers, hidden, heads, kv_heads, ffn, matrices, vocab, batch, sequence = case

    def product(x: torch.Tensor, channels: int) -> torch.Tensor:
        return x @ torch.empty(x.shape[-1], channels, device="meta", requires_grad=True)

    x = torch.empty(batch, sequence, hidden, device="meta", requires_grad=True)
    with FlopCounterMode(display=False) as counter:
        for _ in range(layers):
            q = product(x, hidden).view(batch, sequence, heads, -1).transpose(1, 2)
            k, v = (
                product(x, kv_heads * hidden // heads)
                .view(batch, sequence, kv_heads, -1)
                .repeat_interleave(heads // kv_heads, 2)
                .transpose(1, 2)
                for _ in "kv"
            )
            x = product((q @ k.transpose(2, 3) @ v).transpose(1, 2).reshape(batch, sequence, hidden), hidden)
            inside = sum(product(x, ffn) for _ in range(matrices - 1))
            x = product(inside, hidden)
        product(x, vocab).sum().backward()
    assert flops.flops(*case) == counter.get_total_flops()


def test_the_planner_counts_the_same_flops() -> None:
    for case in (*flops.GPTS, *flops.GROUPED):
        named = dict(zip(flops.NAMES, case, strict=True))
        run = {name: int(named.pop(name)) for name in ("batch", "sequence")}
        assert flops.flops(*case) == pytest.approx(model_flops(ModelShape(name="case", **named), **run), rel=1e-12)


def test_palm_is_as_its_paper_has_it() -> None:
    assert utilisation.utilisation(*utilisation.RUNS[0]) == pytest.approx(0.462, abs=5e-4)  # PaLM, table 3


def test_the_planner_takes_as_long_for_a_step() -> None:
    for case in (*step_time.PIPELINES, *step_time.CHUNKED, *step_time.TENSOR):
        parts = step_time.Parts(*case)
        passes = Passes(parts.f + parts.messages / 2, parts.b + parts.messages / 2, 0.0)
        planned = pipeline_seconds([passes] * int(parts.p), int(parts.m), chunks=int(parts.v))
        assert step_time.seconds(*case) == pytest.approx(planned, rel=1e-12)


def test_no_number_of_steps_loses_less_than_the_best() -> None:
    for case in (*saving.CLUSTERS, *saving.CLOSE, *saving.RANDOM):
        found = saving.best(case)
        tried = range(1, 3 * found + 10)
        assert saving.lost(found, case) <= min(saving.lost(steps, case) for steps in tried)


def test_the_best_number_of_steps_is_next_to_the_planner_s_interval() -> None:
    save, step, mtbf, gpus = saving.CLUSTERS[0]
    interval = checkpoint_interval(save, mtbf / gpus)
    assert mtbf / gpus == pytest.approx(seconds_to_failure(gpus))
    assert abs(saving.best(saving.CLUSTERS[0]) - interval / step) < 1


def test_rounding_is_right_where_there_are_many_steps_and_wrong_where_there_are_few() -> None:
    def is_right(case: saving.Case) -> bool:
        return max(1, round(saving.young(*case))) == saving.best(case)

    assert all(map(is_right, (*saving.CLUSTERS, *saving.RANDOM)))
    assert sum(map(is_right, saving.CLOSE)) == len(saving.CLOSE) - 2


def test_the_planner_asks_as_much_for_a_run() -> None:
    for case in (*price.RUNS, *price.SPARES):
        tokens, each, gpus, peak, mfu, goodput, a_gpu_hour, *spares = case
        seconds = tokens * each / (gpus * peak * mfu)
        run = plan_run(step_seconds=seconds, steps=1, num_gpus=int(gpus), goodput=goodput)
        hours, cost = price.cost(*case)
        assert hours == pytest.approx(run.hours)
        assert cost == pytest.approx(training_cost(run.gpu_hours + run.hours * sum(spares), a_gpu_hour))


@pytest.mark.parametrize("case", (*clusters.HAND, *clusters.RANDOM), ids=str)
def test_no_layout_is_faster_than_its_bound_and_some_need_not_be_asked(case: clusters.Cluster) -> None:
    assert all(case.bound(*layout) <= case.seconds(*layout) for layout in case.all)
    assert all(math.prod(layout) == case.gpus for layout in case.all) and len(set(case.all)) == len(case.all)
    assert 2 < len(clusters.needed(case)) < len(case.fitting)
    assert any(map(case.is_best, clusters.needed(case)))


@pytest.mark.parametrize("case", (*clusters.HAND, *clusters.EDGES, *clusters.RANDOM), ids=str)
def test_prices_are_told_as_they_are(case: clusters.Cluster) -> None:
    """What feedback on best_layout writes out gives the seconds and bytes that the check uses."""
    told = layouts.prices(case)
    for layout in case.all:
        names: dict[str, float] = dict(zip(("dp", "tp", "pp"), layout, strict=True))
        for name in ("nbytes", "bound", "seconds"):
            names[name] = eval(told[name], {}, names)
            assert names[name] == pytest.approx(getattr(case, name)(*layout), rel=1e-4)


@pytest.mark.parametrize("cases", [clusters.HAND, clusters.RANDOM], ids=["hand", "random"])
@pytest.mark.parametrize("choice", clusters.CHOICES, ids=lambda choice: choice[0].name)
def test_each_mistake_misses_the_best_layout_somewhere(
    choice: clusters.Choice, cases: tuple[clusters.Cluster, ...]
) -> None:
    assert any(not any(map(case.is_best, clusters.chosen(choice, case))) for case in cases)
