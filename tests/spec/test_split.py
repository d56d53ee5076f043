"""Cuts against brute force, and the splits that cannot be."""

from __future__ import annotations

import itertools
import random

import pytest

from course.errors import UsageError
from course.spec.split import split_layers, stage_costs, stage_sizes


def brute_force(costs, stages, memory):
    """The smallest bottleneck over all splits, or None where none fits."""
    possible = [
        max(stage_costs(costs, cuts))
        for cuts in itertools.combinations(range(1, len(costs)), stages - 1)
        if memory is None or all(s <= m for s, m in zip(stage_sizes(len(costs), cuts), memory, strict=True))
    ]
    return min(possible, default=None)


def test_no_split_is_better_on_a_thousand_random_models():
    source = random.Random(7)
    refused = 0
    for _ in range(1000):
        layers = source.randint(1, 10)
        stages = source.randint(1, layers)
        costs = [source.choice([source.random(), source.randint(0, 5)]) for _ in range(layers)]
        memory = [source.randint(1, layers) for _ in range(stages)] if source.random() < 0.5 else None
        best = brute_force(costs, stages, memory)
        if best is None:
            refused += 1
            with pytest.raises(UsageError, match="do not fit"):
                split_layers(costs, stages, memory=memory)
            continue
        cuts = split_layers(costs, stages, memory=memory)
        assert max(stage_costs(costs, cuts)) == pytest.approx(best)
        if memory:
            assert all(s <= m for s, m in zip(stage_sizes(layers, cuts), memory, strict=True))
    assert refused > 50


def test_many_layers_over_many_stages():
    source = random.Random(1)
    costs = [source.random() for _ in range(1000)]
    cuts = split_layers(costs, 64)
    assert len(cuts) == 63 and min(stage_sizes(1000, cuts)) >= 1
    assert max(stage_costs(costs, cuts)) < 1.1 * sum(costs) / 64


def test_a_heavy_head_gets_fewer_layers_beside_it():
    assert stage_sizes(31, split_layers([1.0] * 30 + [4.0], 3)) in {(12, 11, 8), (11, 12, 8), (12, 12, 7)}


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: split_layers([1, 1], 3), "3 stages need at least 3 layers, but there are 2"),
        (lambda: split_layers([1, 1], 0), "stages=0"),
        (lambda: split_layers([1, -1], 2), "at least 0"),
        (lambda: split_layers([1, 1, 1], 2, memory=[1]), "one number a stage, 2 in all, but has 1"),
        (lambda: split_layers([1, 1, 1, 1], 2, memory=[1, 2]), "do not fit 2 stages that hold 1, 2"),
        (lambda: stage_sizes(4, (2, 2)), "no stage is empty"),
        (lambda: stage_sizes(4, (3, 1)), "must rise"),
    ],
)
def test_the_impossible_is_refused_in_a_sentence(call, says):
    with pytest.raises(UsageError, match=says):
        call()
