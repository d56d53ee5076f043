"""Plain arithmetic on one rank: what calls returned against a formula, and the mistake that explains all of it.

No check itself; each exercise brings its cases, its formula and its guesses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from course.grading.bench import Bench, Probe
from course.grading.check import Finding
from course.grading.checks.hello import lazy
from course.grading.mistakes import Mistake
from course.grading.mistakes.any_exercise import NOT_REFUSED, OTHER_ERROR
from course.grading.plain import real_number, type_in_words

Guess = tuple[Mistake, Callable[[Any], float]]  # what a known mistake gives for a case


def compared(
    bench: Bench,
    probe: Probe,
    cases: Sequence[Any],
    *,
    want: Callable[[Any], float],
    shown: Callable[[Any], str],
    guesses: Sequence[Guess] = (),
    advice: str = "",
) -> Finding | None:
    """A finding where a call returned another number than `want`; `probe` sends home one value a case."""
    values = bench.run(probe, tuple(cases), n=1).values[0]
    for case, value in zip(cases, values, strict=True):
        number = real_number(value)
        if number is None:
            got = f"{shown(case)} returned {type_in_words(value)}"
            return Finding(got, "one number", "Return one number.", lazy(value))
        if not same(number, want(case)):
            mistake = _explained(cases, values, guesses)
            return Finding(f"{shown(case)} returned {in_digits(number)}", in_digits(want(case)), advice, mistake)
    return None


def _explained(cases: Sequence[Any], values: Sequence[Any], guesses: Sequence[Guess]) -> Mistake | None:
    numbers = [real_number(value) for value in values]
    for mistake, guess in guesses:
        pairs = zip(cases, numbers, strict=True)
        if all(number is not None and same(number, guess(case)) for case, number in pairs):
            return mistake
    return None


def same(number: float, want: float) -> bool:
    """Whether two counts agree, up to the rounding of floats."""
    return math.isclose(number, want, rel_tol=1e-9, abs_tol=1e-9)


def in_digits(number: float) -> str:
    """A count with its thousands set apart; three decimals where it is not whole."""
    if not math.isfinite(number):
        return f"{number}"
    return f"{number:,.0f}" if number == round(number) else f"{number:,.3f}"


def refused(
    bench: Bench, probe: Probe, cases: Sequence[Any], shown: Callable[[Any], str], did: str = ""
) -> Finding | None:
    """A finding where the impossible is not refused with ValueError; `probe` sends home `cost.outcome` of each call.

    did: what a call did that should have been refused, where it is not a value that it returned.
    """
    for case, (error, value) in zip(cases, bench.run(probe, tuple(cases), n=1).values[0], strict=True):
        if not error:
            return Finding(f"{shown(case)} {did or 'returned ' + type_in_words(value)}", "", "", NOT_REFUSED)
        if error != "ValueError":
            return Finding(f"{shown(case)} raised {error}", "", "", OTHER_ERROR)
    return None
