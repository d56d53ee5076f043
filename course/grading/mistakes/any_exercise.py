"""Mistakes that any exercise can meet."""

from course.grading.mistakes.mistake import Mistake

GENERATOR = Mistake(
    "a generator came back",
    "The body reads like a function's, but a `yield` in it means that calling it runs nothing.",
    "Collect the results and hand them back with `return`.",
)
COROUTINE = Mistake(
    "a coroutine came back",
    "`async def` reads like `def`, but calling it runs nothing.",
    "Ranks run plain functions: nothing here has to be awaited.",
)
PRINTED = Mistake(
    "printed, not returned",
    "The right numbers appear on the screen.",
    "What is printed is gone: a caller, and the grader, only see what comes after `return`.",
)
