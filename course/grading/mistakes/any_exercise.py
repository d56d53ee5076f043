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
NOT_REFUSED = Mistake(
    "the impossible gets an answer",
    "Some number comes out, and nobody complains.",
    "A wrong argument is found soonest where it comes in. Check it first, and `raise ValueError`.",
)
OTHER_ERROR = Mistake(
    "another error than asked for",
    "It does stop.",
    "It stops by accident, with a message about something else. Check the arguments first, and `raise ValueError`.",
)
