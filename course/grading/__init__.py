"""Judging: the exercise table, the checks that run in ranks, named mistakes, the report and the progress store.

Importing this loads no torch; grading does.
"""

from course.grading.exercises import CONVENTIONS, EXERCISES, Exercise, exercises_of
from course.grading.judge import grade
from course.grading.nudges import hint, solution
from course.grading.tally import progress

__all__ = ["CONVENTIONS", "EXERCISES", "Exercise", "exercises_of", "grade", "hint", "progress", "solution"]
