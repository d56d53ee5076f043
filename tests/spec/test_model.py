"""ModelSpec refuses sizes that make no model, and is a plain frozen value."""

from __future__ import annotations

import dataclasses

import pytest

from course.errors import UsageError
from course.spec import LESSON_GPT, ModelSpec


def test_derived_sizes():
    assert (LESSON_GPT.hidden, LESSON_GPT.head_width) == (512, 32)
    assert ModelSpec(width=96, heads=3, feedforward=100).hidden == 100


def test_a_spec_is_frozen_hashable_and_equal_by_value():
    assert ModelSpec() == LESSON_GPT and hash(ModelSpec()) == hash(LESSON_GPT)
    assert dataclasses.replace(LESSON_GPT, layers=30) != LESSON_GPT
    with pytest.raises(dataclasses.FrozenInstanceError):
        LESSON_GPT.layers = 5


@pytest.mark.parametrize(
    "wrong, sentence",
    [
        ({"layers": 0}, r"layers=0\): layers must be a whole number of at least 1"),
        ({"width": 12.0}, "width must be a whole number"),
        ({"vocab": True}, "vocab must be a whole number"),
        ({"feedforward": -1}, "feedforward must be a whole number"),
        ({"width": 12, "heads": 5}, "heads must divide width: try 1, 2, 3, 4, 6, 12"),
        ({"dropout": 1.0}, "dropout is a probability"),
        ({"dropout": "0.1"}, "dropout is a probability"),
        ({"attention": "flash"}, "attention must be 'sdpa' or 'explicit'"),
    ],
)
def test_impossible_sizes_are_refused_in_one_sentence(wrong, sentence):
    with pytest.raises(UsageError, match=sentence):
        ModelSpec(**wrong)
