"""The memory bar follows its controls, agrees with the planner, and says the same in text."""

from __future__ import annotations

import pytest

from course.errors import UsageError
from course.planner.memory import fits, needed_bytes, peak_memory
from course.spec.chips import chip_of
from course.spec.plan import Plan
from course.spec.shape import shape_of
from course.widgets.memory import MemoryBar


def field(bar, words):
    return next(control for control in bar.children[0].children if control.description == words)


def test_a_control_moves_the_bytes_and_the_picture():
    bar = MemoryBar()
    before, picture = bar.needed, bar._picture.value
    field(bar, "microbatch").value = 4
    assert bar.microbatch == 4 and bar.parts["activations"] == pytest.approx(4 * 9.13e9, rel=0.01)
    field(bar, "recompute").value = "full"
    assert bar.needed < before + 20e9 and bar._picture.value != picture
    field(bar, "GPUs").value, field(bar, "ZeRO stage").value = 64, 3
    assert bar.needed < before / 4 and bar.chip and bar.sentence in bar._picture.value.replace("&#x27;", "'")


def test_traits_set_by_code_reach_the_controls():
    bar = MemoryBar("gpt-2")
    bar.precision, bar.sequence = "float32", 1024
    assert field(bar, "precision").value == "float32" and field(bar, "sequence").value == 1024
    assert bar.parts["weights"] * 2 == bar.parts["optimizer"]


@pytest.mark.parametrize("zero", [0, 1, 3])
def test_it_agrees_with_the_planner(zero):
    bar = MemoryBar("llama-3.1-8b", gpus=8, zero=zero, sequence=4096)
    shape, plan = shape_of(bar.model), Plan(dp=8, global_batch=16, sequence=4096, zero=zero)
    assert bar.needed == needed_bytes(peak_memory(shape, plan), plan) == pytest.approx(sum(bar.parts.values()))
    assert fits(shape, plan, chip_of("h100")) == (bar.needed <= chip_of("h100").memory) == (zero == 3)


def test_picture_table_and_text_say_the_same():
    bar = MemoryBar("gpt-3-175b")
    assert bar.chip == "" and bar.sentence.endswith("fits none of these GPUs.")
    assert bar.table().rows[0] == ("weights", "349 GB") and len(bar.figure().patches) == len(bar.parts) == 7
    assert repr(bar).startswith("MemoryBar(model='gpt-3-175b', precision='bf16', microbatch=1, sequence=2048, ")
    assert bar._repr_mimebundle_()["text/plain"] == repr(bar)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"model": "gpt-5"}, "try gpt-"),
        ({"microbatch": 0}, "try 1 to 1,024"),
        ({"precision": "int8"}, "try one of bf16, float32"),
        ({"zero": 4}, "try one of 0, 1, 2, 3"),
        ({"batch": 3}, "MemoryBar has no 'batch'"),
    ],
)
def test_the_impossible_is_refused(settings, said):
    with pytest.raises(UsageError, match=said):
        MemoryBar(**settings)
