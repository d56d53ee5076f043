"""The exercise table: ids, points, hints, and that it and the checks agree."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys

import pytest

from course.grading.checks import checks_of
from course.grading.exercises import EXERCISES, Exercise, exercises_of

ALL = pytest.mark.parametrize("exercise", EXERCISES.values(), ids=lambda exercise: exercise.id)


@ALL
def test_points_are_those_of_the_checks(exercise: Exercise) -> None:
    assert exercise.points == sum(check.points for check in checks_of(exercise.id))


@ALL
def test_checks_lean_on_checks_made_before(exercise: Exercise) -> None:
    names = [check.name for check in checks_of(exercise.id)]
    assert len(set(names)) == len(names)
    for place, check in enumerate(checks_of(exercise.id)):
        assert not check.needs or check.needs in names[:place]


@ALL
def test_the_source_is_a_library_object_of_that_name(exercise: Exercise) -> None:
    if exercise.source is not None:
        module, _, name = exercise.source.rpartition(".")
        assert name == exercise.id
        assert callable(getattr(importlib.import_module(module), name))


@ALL
def test_statement_and_hints_are_fit_to_print(exercise: Exercise) -> None:
    assert exercise.id in exercise.statement
    assert len(exercise.hints) >= 3
    for text in (exercise.statement, *exercise.hints):
        assert text.count("`") % 2 == 0
        assert not re.search(r"[!\u2600-\U0001faff]", text)


def test_a_lesson_lists_its_exercises() -> None:
    assert [exercise.id for exercise in exercises_of("00_start_here")] == ["hello_rank"]
    assert len(exercises_of("05_data_parallel")) == 7
    assert exercises_of("99_nothing") == ()


def test_the_table_and_progress_load_no_torch() -> None:
    heavy = {"torch", "matplotlib", "IPython"}
    code = f"import sys, course.grading as g; g.progress(); print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
