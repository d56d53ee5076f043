"""Classic mistakes, one file a lesson: what each is called, why it looks right, a hint that does not give the answer.

Words only. How a mistake is recognised, from what came back, stands beside the check that meets it.
"""

from __future__ import annotations

from course.grading.mistakes import (
    any_exercise,
    lesson_00,
    lesson_01,
    lesson_02,
    lesson_03,
    lesson_04,
    lesson_04_counts,
    lesson_05,
    lesson_07,
    lesson_08,
    lesson_09,
    lesson_09_challenge,
    lesson_10,
    lesson_10_runs,
    lesson_10_steps,
)
from course.grading.mistakes.mistake import Mistake

MISTAKES: dict[str, Mistake] = {
    name: value
    for lesson in (
        any_exercise,
        lesson_00,
        lesson_01,
        lesson_02,
        lesson_03,
        lesson_04,
        lesson_04_counts,
        lesson_05,
        lesson_07,
        lesson_08,
        lesson_09,
        lesson_09_challenge,
        lesson_10,
        lesson_10_runs,
        lesson_10_steps,
    )
    for name, value in vars(lesson).items()
    if isinstance(value, Mistake)
}

__all__ = ["MISTAKES", "Mistake"]
