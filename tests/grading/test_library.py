"""Where a solution page holds a plain version of its own, the library's function has to pass the same checks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from course import collectives, planner
from course.grading.exercises import EXERCISES
from course.grading.judge import judge
from course.parallel import hybrid, tensor
from course.ranks import Ranks
from course.spec import layout

OTHER_ARGUMENTS = {"model_flops", "checkpoint_interval", "training_cost"}
"""Functions of the planner that are asked otherwise than the exercise of that name; test_lesson_10 compares them."""

PLAIN = {
    name: getattr(room, name)
    for name, exercise in EXERCISES.items()
    for room in (collectives, planner, tensor, layout, hybrid)
    if exercise.source is None and hasattr(room, name) and name not in OTHER_ARGUMENTS
}


@pytest.fixture(scope="module")
def ranks() -> Iterator[Ranks]:
    with Ranks(3, device="cpu", live=False) as gang:
        yield gang


def test_lessons_03_08_and_09_are_among_them() -> None:
    assert {"ring_all_reduce", "broadcast_tree", "all_reduce_seconds"} <= PLAIN.keys()
    assert {"ParallelMLP", "ParallelAttention", "copy_to_ranks", "vocab_parallel_cross_entropy"} <= PLAIN.keys()
    assert {"axis_groups", "place_axes", "clip_gradients_sharded"} <= PLAIN.keys()


@pytest.mark.parametrize("name", PLAIN)
def test_the_library_passes_the_checks_of_the_exercise(name: str, ranks: Ranks) -> None:
    report = judge(EXERCISES[name], PLAIN[name], ranks=ranks)
    assert report.passed, str(report)
