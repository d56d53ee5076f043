"""The bytes along the axes of a mesh: what ranks that train are seen to send, and what can be reckoned by hand."""

from __future__ import annotations

import pytest

from course import Ranks
from course.errors import UsageError
from course.gpt import make_gpt
from course.parallel.hybrid import HybridGPT
from course.planner.axes import axis_bytes
from course.spec import LESSON_GPT, ModelSpec
from course.spec.layout import AXES, Layout
from course.trace.statistics import collective_traffic


def steps(layout, rank, world_size):
    import torch

    model = HybridGPT(make_gpt(0)[0], layout, microbatches=2)
    for _ in range(2):
        torch.distributed.barrier()  # the first step agrees on shapes, too
        model.step(*torch.randint(0, 256, (2, 16, 64)))


@pytest.mark.parametrize("layout", [Layout(dp=2, pp=2), Layout(dp=2, tp=2), Layout(pp=4), Layout(pp=2, tp=2)], ids=str)
def test_ranks_that_train_send_as_much(layout):
    with Ranks(layout.world_size, live=False) as ranks:
        trace = ranks.run(steps, layout).trace
    begun = {span.rank: span.end for span in trace.of(name="barrier")}
    begun |= {rank: max(s.end for s in trace.of(rank=rank, name="barrier")) for rank in begun}
    stride = {"tp": 1, "dp": layout.tp, "pp": layout.tp * layout.dp}
    sent = dict.fromkeys(AXES, 0.0)
    for span in (span for span in trace.spans if span.start >= begun[span.rank]):
        if span.kind == "send":
            sent["pp"] += span.nbytes
        elif span.kind == "collective" and len(span.group) > 1:
            axis = next(a for a in AXES if layout.sizes[a] > 1 and span.group[1] - span.group[0] == stride[a])
            sent[axis] += collective_traffic(span.name, span.nbytes, span.group, span.rank)[0]
    expected = axis_bytes(LESSON_GPT, **layout.sizes, batch=16)
    for axis in AXES:
        assert sent[axis] / layout.world_size == pytest.approx(expected[axis], rel=0.03, abs=100), axis


def test_the_parameters_are_those_of_the_model():
    for spec in (LESSON_GPT, ModelSpec(layers=2, width=32, feedforward=40, tied=False)):
        model, _ = make_gpt(0, spec=spec)
        nbytes = sum(p.nbytes for p in model.parameters())
        assert axis_bytes(spec, pp=1, dp=2, tp=1, batch=2)["dp"] == nbytes  # two ranks: 2(n-1)/n is 1


def test_an_axis_of_one_rank_sends_nothing_and_none_is_refused():
    assert axis_bytes(LESSON_GPT, pp=1, dp=1, tp=1, batch=8) == {"pp": 0, "dp": 0, "tp": 0}
    with pytest.raises(UsageError, match="each is at least 1"):
        axis_bytes(LESSON_GPT, pp=0, dp=1, tp=1, batch=8)
