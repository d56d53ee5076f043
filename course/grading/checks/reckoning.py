"""Exercises that reckon numbers from numbers: cases asked by keyword, in groups, against a formula.

A mistake is recognised by the numbers that it would give for all cases of a group. Formulas and cases stand in the
files of their exercises.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from course.grading.bench import Bench, Seat, Trouble
from course.grading.check import Check, Finding
from course.grading.checks.alone import asked, raised
from course.grading.checks.cost import outcome, refused
from course.grading.checks.hello import lazy
from course.grading.mistakes import Mistake
from course.grading.mistakes.any_exercise import PRINTED
from course.grading.mistakes.lesson_10 import ROUNDED
from course.grading.plain import ArrayData, TensorData, real_number, type_in_words

Case = tuple[float, ...]
Formula = Callable[..., Any]
Guesses = Sequence[tuple[Mistake, Formula]]


@dataclass(frozen=True)
class Reckoning:
    """A function of named numbers. `names`: its keyword parameters, in the order of a case; a case that stops early
    leaves the last ones to their defaults. `results`: what each number that comes back is called."""

    name: str
    names: tuple[str, ...]
    right: Formula
    results: tuple[str, ...] = ("",)

    def shown(self, case: Case) -> str:
        given = zip(self.names, case, strict=False)
        return f"{self.name}({', '.join(f'{name}={number:.9g}' for name, number in given)})"

    def in_words(self, numbers: Sequence[float]) -> str:
        return ", ".join(f"{name} {number:.6g}".strip() for name, number in zip(self.results, numbers, strict=True))


@dataclass(frozen=True)
class Group:
    """The cases of one check, and the mistakes that they can tell apart."""

    name: str
    points: int
    cases: tuple[Case, ...]
    guesses: Guesses
    expected: str
    advice: str
    needs: str = ""


def checks(
    reckoning: Reckoning, groups: Sequence[Group], impossible: tuple[Case, ...], needs: str
) -> tuple[Check, ...]:
    """A check for each group, and a last one for what has to be refused."""
    return (
        *(
            Check(group.name, group.points, partial(_compared, reckoning, group), group.expected, needs=group.needs)
            for group in groups
        ),
        Check("the impossible is refused", 1, partial(_refuses, reckoning, impossible), "a ValueError", needs=needs),
    )


def _call(learner: Any, names: tuple[str, ...], case: Case) -> Any:
    return learner(**dict(zip(names, case, strict=False)))


def _probe(learner: Any, question: tuple[tuple[str, ...], tuple[Case, ...]], seat: Seat) -> Any:
    names, cases = question
    return [_call(learner, names, case) for case in cases]


def _probe_refusal(learner: Any, question: tuple[tuple[str, ...], Case], seat: Seat) -> Any:
    names, case = question
    return outcome(lambda: _call(learner, names, case))


def _compared(reckoning: Reckoning, group: Group, bench: Bench) -> Finding | None:
    question = (reckoning.names, group.cases)
    values = asked(bench, _probe, question)
    if isinstance(values, Trouble):
        some = " or ".join(map(reckoning.shown, group.cases[:2]))
        return Finding(f"for a case such as {some} {raised(values)}", "", values.advice)
    read = [numbers(value, len(reckoning.results)) for value in values]
    for case, value, found in zip(group.cases, values, read, strict=True):
        if found is None:
            printed = value is None and any(bench.run(_probe, question, n=1).output)
            got = f"{reckoning.shown(case)} returned {type_in_words(value)}"
            kind = "a number" if len(reckoning.results) == 1 else f"the pair ({', '.join(reckoning.results)})"
            return Finding(got, kind, f"Return {kind}.", PRINTED if printed else lazy(value))
        want = _tuple(reckoning.right(*case))
        if not same(found, want):
            got = f"{reckoning.shown(case)} returned {reckoning.in_words(found)}"
            return Finding(got, reckoning.in_words(want), group.advice, _mistake(reckoning, group, read))
    return None


def numbers(value: Any, count: int) -> tuple[float, ...] | None:
    """The `count` numbers that came back; None for anything else."""
    if count == 1:
        number = real_number(value)
        return None if number is None else (number,)
    if type(value) in (TensorData, ArrayData) and len(value.shape) == 1:
        value = value.numbers
    if type(value) not in (list, tuple) or len(value) != count:
        return None
    found = [real_number(item) for item in value]
    return None if None in found else tuple(number for number in found if number is not None)


def _tuple(value: Any) -> tuple[float, ...]:
    return value if type(value) is tuple else (value,)


def same(found: Sequence[float], want: Sequence[float]) -> bool:
    """Whether all agree, as float32 would have it."""
    return all(math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-12) for a, b in zip(found, want, strict=True))


def _mistake(reckoning: Reckoning, group: Group, read: Sequence[tuple[float, ...] | None]) -> Mistake | None:
    """The first mistake that explains all that came back for the group, by itself or together with another one."""
    found = [number for answer in read if answer is not None for number in answer]
    if None in read or not any(found):
        return None
    right = _flat(reckoning.right, group.cases)
    known = [(mistake, _flat(guess, group.cases)) for mistake, guess in group.guesses]
    for mistake, guess in known:
        if same(found, guess):
            return mistake
    each = len(reckoning.results)
    if _is_rounded(found[::each], right[::each]):
        return ROUNDED
    for (mistake, one), (_, other) in itertools.combinations(known, 2):
        added = [a + b - c for a, b, c in zip(one, other, right, strict=True)]
        multiplied = [a * b / c if c else a for a, b, c in zip(one, other, right, strict=True)]
        if same(found, added) or same(found, multiplied):
            return mistake
    return None


def _is_rounded(found: Sequence[float], right: Sequence[float]) -> bool:
    """Whether all are the right ones to so many decimals, or the whole numbers below or above them."""
    ways: list[Callable[[float], float]] = [partial(round, ndigits=digits) for digits in range(5)]
    alike = (same(found, [way(number) for number in right]) for way in (*ways, math.floor, math.ceil))
    return not same(found, right) and any(alike)


def _flat(formula: Formula, cases: Sequence[Case]) -> list[float]:
    """All numbers that a formula gives for the cases."""
    return [number for case in cases for number in _tuple(formula(*case))]


def _refuses(reckoning: Reckoning, impossible: tuple[Case, ...], bench: Bench) -> Finding | None:
    for case in impossible:
        if finding := refused(bench, _probe_refusal, (reckoning.names, case), reckoning.shown(case)):
            return finding
    return None
