"""Plans that cannot be are refused with what to try; layers go onto stages as the papers say."""

from __future__ import annotations

import pytest

from course.errors import UsageError
from course.spec.plan import Plan, stage_layers
from course.spec.shape import shape_of


def test_derived_sizes() -> None:
    plan = Plan(dp=2, tp=4, pp=8, cp=2, microbatch=2, global_batch=64, sequence=8192)
    assert (plan.num_gpus, plan.microbatches, plan.tokens) == (128, 16, 8192)
    assert str(plan).startswith("dp=2,tp=4,pp=8,cp=2")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"tp": 0}, "tp"),
        ({"dp": 2.0}, "dp"),
        ({"dp": 3, "global_batch": 8}, "does not divide by dp=3 x microbatch=1: try 9"),
        ({"recompute": "some"}, "none, selective, alternate, full"),
        ({"schedule": "gpipe"}, "1f1b"),
        ({"zero": 4}, "0, 1, 2 and 3"),
        ({"cp": 3}, "sequence of 2048 does not divide by cp=3"),
    ],
)
def test_the_impossible_is_refused(wrong: dict, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Plan(**wrong)


def test_a_shape_that_does_not_divide() -> None:
    with pytest.raises(UsageError, match="32 heads do not divide by tp=6: try tp=4"):
        Plan(tp=6).check(shape_of("llama-3.1-8b"))
    with pytest.raises(UsageError, match="try pp=34"):
        Plan(pp=35).check(shape_of("llama-3.1-8b"))


@pytest.mark.parametrize(
    ("layers", "pp", "stages"),
    [
        (8, 4, (2, 2, 2, 2)),
        (22, 8, (2, 3, 3, 3, 3, 3, 3, 2)),  # Zero Bubble's 1.5B: the first and the last have one less
        (126, 16, (7, *(8,) * 14, 7)),  # Llama 3 405B
        (9, 4, (3, 2, 2, 2)),
        (5, 1, (5,)),
    ],
)
def test_layers_of_stages(layers: int, pp: int, stages: tuple[int, ...]) -> None:
    assert stage_layers(layers, pp) == stages and sum(stages) == layers
