"""What the splitter knows without a widget: predictions, cuts that push, codes, and the best split of each round."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course.spec.split import stage_costs
from course.trace.program import pipeline_program
from course.trace.simulate import simulate
from course.widgets.rounds import best_split, goal_of
from course.widgets.splits import PRESETS, SCHEDULES, Model, Split, move_cut, predict, split_at, stored

OPENING = PRESETS[0]


@given(data=st.data(), schedule=st.sampled_from(sorted(SCHEDULES)), microbatches=st.integers(1, 12))
@settings(max_examples=40, deadline=None)
def test_any_split_is_predicted_as_the_simulator_has_it(data, schedule, microbatches):
    costs = data.draw(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=4, max_size=9))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(costs) - 1), max_size=3)))
    model = Model.of("drawn", costs, (2, 3), 1)
    split = split_at(model, cuts, microbatches, schedule)
    found = predict(model, split)
    forward = list(stage_costs([f for f, _ in costs], cuts))
    backward = list(stage_costs([b for _, b in costs], cuts))
    forward[-1] += 2
    backward[-1] += 3
    halves = {"weights": [b / 2 for b in backward]} if schedule == "ZB-H1" else {}
    given_backward = halves.get("weights", backward)
    trace = simulate(pipeline_program(split.actions, forward=forward, backward=given_backward, **halves))
    assert found.step_time == trace.seconds and found.trace.spans == trace.spans
    assert list(found.loads) == [f + b for f, b in zip(forward, backward, strict=True)]


def test_memory_is_layers_times_microbatches_held():
    assert stored(Split((12, 11, 7))) == (36, 22, 7)
    assert stored(Split((12, 11, 7), schedule="GPipe")) == (96, 88, 56)
    assert stored(Split((12, 11, 7), schedule="ZB-H1")) == (36, 33, 21)


@given(data=st.data(), layers=st.integers(2, 40))
def test_a_moved_cut_pushes_others_and_leaves_no_stage_empty(data, layers):
    cuts = sorted(data.draw(st.sets(st.integers(1, layers - 1), min_size=1, max_size=7)))
    index, to = data.draw(st.integers(0, len(cuts) - 1)), data.draw(st.integers(-5, layers + 5))
    moved = move_cut(cuts, index, to, layers)
    assert all(a < b for a, b in itertools.pairwise((0, *moved, layers)))
    nearest = max(index + 1, min(layers - len(cuts) + index, to))
    assert moved[index] == nearest
    between = range(min(cuts[index], nearest), max(cuts[index], nearest) + 1)
    far = [i for i, cut in enumerate(cuts) if i != index and abs(cut - nearest) > len(cuts) and cut not in between]
    assert all(moved[i] == cuts[i] for i in far)


def every_split(schedule: str, microbatches: int):
    for a, b in itertools.combinations(range(1, 30), 2):
        yield Split((a, b - a, 30 - b), microbatches, schedule)


@pytest.mark.parametrize(
    ("schedule", "microbatches", "limit"), [("1F1B", 8, 0), ("1F1B", 8, 27), ("1F1B", 16, 27), ("ZB-H1", 16, 36)]
)
def test_the_measure_of_each_round_is_the_best_of_all_406_splits(schedule, microbatches, limit):
    fitting = (s for s in every_split(schedule, microbatches) if not limit or max(stored(s)) <= limit)
    shortest = min(predict(OPENING, split).step_time for split in fitting)
    best = best_split(OPENING, 3, microbatches, schedule, limit)
    assert predict(OPENING, best).step_time == shortest
    goals = [goal_of(OPENING, 3, number) for number in (1, 2, 3, 4)]
    assert [goal.limit for goal in goals] == [0, 27, 27, 36]
    assert predict(OPENING, best).bubble in [goal.bubble for goal in goals]


@pytest.mark.parametrize("stages", range(1, 9))
def test_every_round_can_be_won_on_any_number_of_stages(stages):
    model = Model.of("twelve", [1.0] * 12, 2.0, stages)
    for number in (1, 2, 3, 4):
        goal = goal_of(model, stages, number)
        schedule = "ZB-H1" if number == 4 else "1F1B"
        best = best_split(model, stages, goal.microbatches, schedule, goal.limit)
        assert goal.met_by(best, predict(model, best))


@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=8),
    microbatches=st.integers(1, 64),
    schedule=st.sampled_from(sorted(SCHEDULES)),
)
def test_a_code_names_its_split(sizes, microbatches, schedule):
    split = Split(tuple(sizes), microbatches, schedule)
    assert Split.parse(split.code) == split
    assert Split.parse(split.code.lower().replace("·", " ")) == split
