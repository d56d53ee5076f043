"""The formula against the ranks of a split: what each holds at its fullest, tracked, for dp, ZeRO-1, tp and pp."""

from __future__ import annotations

from dataclasses import replace

import cloudpickle
import pytest
import torch

from course.gpt import make_gpt
from course.lesson.memory import TrackMemory
from course.parallel.hybrid import HybridGPT
from course.planner.memory import peak_memory
from course.ranks import Ranks
from course.spec import LESSON_GPT
from course.spec.layout import Layout
from course.spec.plan import Plan
from course.spec.shape import ModelShape

SPEC = replace(LESSON_GPT, layers=8)
SHAPE = ModelShape(name="ours", layers=8, hidden=128, heads=4, kv_heads=4, vocab=256, ffn=512, positions=64)
SAMPLES = 8  # a microbatch


@pytest.fixture(scope="module")
def ranks():
    cloudpickle.register_pickle_by_value(__import__(__name__, fromlist=["x"]))
    with Ranks(2, threads=1, live=False) as gang:
        yield gang
    cloudpickle.unregister_pickle_by_value(__import__(__name__, fromlist=["x"]))


def peak_of_this_rank(layout, microbatches, zero):
    model = HybridGPT(make_gpt(0, spec=SPEC)[0], layout, microbatches=microbatches)
    optimizer = model.make_optimizer(zero=zero)
    x = torch.zeros(SAMPLES * microbatches * layout.dp, SPEC.context, dtype=torch.int64)

    def step():
        optimizer.zero_grad()
        model.step(x, x)
        optimizer.step()

    step()
    with TrackMemory(model, getattr(optimizer, "optim", optimizer)) as memory:  # ZeRO's own states are inside
        step()
    return memory.peak


@pytest.mark.parametrize(
    ("layout", "microbatches", "zero"),
    [
        (Layout(dp=2), 2, False),
        (Layout(dp=2), 2, True),
        (Layout(tp=2), 2, False),
        (Layout(pp=2), 4, False),
    ],
    ids=["dp", "dp with ZeRO-1", "tp", "pp"],
)
def test_the_fullest_rank_is_within_a_tenth_of_the_formula(ranks, layout, microbatches, zero):
    plan = Plan(
        dp=layout.dp, tp=layout.tp, pp=layout.pp, microbatch=SAMPLES,
        global_batch=SAMPLES * microbatches * layout.dp, sequence=SPEC.context, precision="float32", zero=int(zero),
    )  # fmt: skip
    run = ranks.run(peak_of_this_rank, layout, microbatches, zero)
    assert max(run.values) == pytest.approx(peak_memory(SHAPE, plan).total, rel=0.1)
    if layout.pp == 1:
        assert max(run.values) == pytest.approx(min(run.values), rel=0.01)  # nobody holds more than the others
    else:
        assert run.values[0] > run.values[1]  # 1F1B: the first stage holds two microbatches, the last one
