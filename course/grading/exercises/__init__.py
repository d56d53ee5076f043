"""The exercise table, one file a lesson: a frozen record an exercise, in the order the pages print them.

Texts and numbers only. What is checked stands in `checks`, the names of mistakes in `mistakes`. A check may test only
what the statement here and the conventions printed above every exercise page say.
"""

from __future__ import annotations

from course.grading.exercises import (
    lesson_00,
    lesson_01,
    lesson_02,
    lesson_03,
    lesson_04,
    lesson_05,
    lesson_07,
    lesson_08,
    lesson_09,
    lesson_10,
)
from course.grading.exercises.exercise import CONVENTIONS, Exercise, Level

EXERCISES: dict[str, Exercise] = {
    exercise.id: exercise
    for lesson in (
        lesson_00,
        lesson_01,
        lesson_02,
        lesson_03,
        lesson_04,
        lesson_05,
        lesson_07,
        lesson_08,
        lesson_09,
        lesson_10,
    )
    for exercise in lesson.EXERCISES
}


def exercises_of(lesson: str) -> tuple[Exercise, ...]:
    """The exercises of one lesson ("05_data_parallel"), in the order its page prints them."""
    return tuple(exercise for exercise in EXERCISES.values() if exercise.lesson == lesson)


__all__ = ["CONVENTIONS", "EXERCISES", "Exercise", "Level", "exercises_of"]
