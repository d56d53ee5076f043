"""Checks of `amdahl_speedup`, `gustafson_speedup` and `parallel_efficiency`: one number from two or three others."""

from __future__ import annotations

import math
import random
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
from course.grading.mistakes import lesson_02 as known
from course.grading.plain import real_number, type_in_words

Case = tuple[float, ...]
Guesses = Sequence[tuple[Mistake, Callable[..., float]]]


@dataclass(frozen=True)
class Formula:
    """A function of a few numbers: its oracle, the cases it is asked, and what mistakes would give.

    `names`: of keyword-only parameters, in the order of a case; empty where they are given by place.
    """

    name: str
    right: Callable[..., float]
    names: tuple[str, ...]
    by_hand: tuple[Case, ...]
    many: tuple[Case, ...]
    ends: tuple[Case, ...]
    impossible: tuple[Case, ...]
    guesses: Guesses

    def shown(self, case: Case) -> str:
        numbers = [f"{number:.9g}" for number in case]
        if self.names:
            numbers = [f"{name}={number}" for name, number in zip(self.names, numbers, strict=True)]
        return f"{self.name}({', '.join(numbers)})"


def _call(learner: Any, names: tuple[str, ...], case: Case) -> Any:
    return learner(**dict(zip(names, case, strict=True))) if names else learner(*case)


def _probe(learner: Any, question: tuple[tuple[str, ...], tuple[Case, ...]], seat: Seat) -> Any:
    names, cases = question
    return [_call(learner, names, case) for case in cases]


def _probe_refusal(learner: Any, question: tuple[tuple[str, ...], Case], seat: Seat) -> Any:
    names, case = question
    return outcome(lambda: _call(learner, names, case))


def _compared(formula: Formula, cases: tuple[Case, ...], bench: Bench) -> Finding | None:
    values = asked(bench, _probe, (formula.names, cases))
    if isinstance(values, Trouble):
        return Finding(f"for one of {', '.join(map(formula.shown, cases[:3]))} {raised(values)}", "", values.advice)
    for case, value in zip(cases, values, strict=True):
        number, want = real_number(value), formula.right(*case)
        if number is None:
            return Finding(
                f"{formula.shown(case)} returned {type_in_words(value)}", "a number", "Return the number.", lazy(value)
            )
        if not _same(number, want):
            advice = "Say this case in words: how long does each part take, on one worker and on all?"
            return Finding(
                f"{formula.shown(case)} returned {number:.6g}", f"{want:.6g}", advice, _mistake(formula, bench)
            )
    return None


def _same(number: float, want: float) -> bool:
    return math.isclose(number, want, rel_tol=1e-5, abs_tol=1e-9)


def _mistake(formula: Formula, bench: Bench) -> Mistake | None:
    """The mistake that explains all that came back, by hand and at random."""
    cases = (*formula.by_hand, *formula.many)
    numbers: list[float | None] = []
    for some in (formula.by_hand, formula.many):
        values = asked(bench, _probe, (formula.names, some))
        if isinstance(values, Trouble):
            return None
        numbers += [real_number(value) for value in values]
    for mistake, guess in formula.guesses:
        pairs = zip(numbers, [guess(*case) for case in cases], strict=True)
        if all(number is not None and _same(number, want) for number, want in pairs):
            return mistake
    return None


def _refuses(formula: Formula, bench: Bench) -> Finding | None:
    questions = ((case, (formula.names, case)) for case in formula.impossible)
    found = (refused(bench, _probe_refusal, question, formula.shown(case)) for case, question in questions)
    return next((finding for finding in found if finding), None)


def _amdahl(s: float, n: float) -> float:
    return 1 / (s + (1 - s) / n)


def _gustafson(s: float, n: float) -> float:
    return s + (1 - s) * n


def _shares(seed: str) -> tuple[Case, ...]:
    source = random.Random(seed)
    return tuple((source.uniform(0.01, 0.9), source.randint(2, 300)) for _ in range(30))


def _times() -> tuple[Case, ...]:
    source = random.Random("efficiency")
    numbers = [(source.uniform(0.01, 50), source.randint(2, 300), source.uniform(0.2, 0.99)) for _ in range(30)]
    return tuple((one, one / (n * share), n) for one, n, share in numbers)


_BY_HAND = ((0.1, 2), (0.1, 10), (0.25, 4), (0.05, 8))
_ENDS = ((0.1, 1), (0.0, 8), (1.0, 8), (0, 1), (1, 1000))
_NO_SHARES = ((-0.1, 4), (1.5, 4), (20, 4), (0.1, 0), (0.1, -2))

AMDAHL = Formula(
    "amdahl_speedup", _amdahl, ("serial", "workers"), _BY_HAND, _shares("amdahl"), (*_ENDS, (0.1, 10**9)), _NO_SHARES,
    (
        (known.AMDAHL_SWAPPED, lambda s, n: _amdahl(1 - s, n)),
        (known.AMDAHL_SERIAL_IGNORED, lambda s, n: n * (1 - s)),
        (known.AMDAHL_SERIAL_IGNORED, lambda s, n: n / (1 - s)),
        (known.AMDAHL_SERIAL_IGNORED, lambda s, n: n),
        (known.AMDAHL_IS_GUSTAFSON, _gustafson),
        (known.AMDAHL_LIMIT, lambda s, n: 1 / s),
        (known.AMDAHL_LIMIT, lambda s, n: min(n, 1 / s)),
        (known.AMDAHL_LIMIT, lambda s, n: 1 / (1 - s)),
        (known.AMDAHL_EFFICIENCY, lambda s, n: _amdahl(s, n) / n),
        (known.AMDAHL_TIME, lambda s, n: s + (1 - s) / n),
        (known.AMDAHL_SUBTRACTS, lambda s, n: 1 / (1 - (1 - s) * n)),
        (known.AMDAHL_SUBTRACTS, lambda s, n: 1 / (1 - (1 - s) / n)),
        (known.AMDAHL_SUBTRACTS, lambda s, n: 1 / (s - (1 - s) / n)),
        (known.PERCENT, lambda s, n: _amdahl(s / 100, n)),
    ),
)  # fmt: skip

GUSTAFSON = Formula(
    "gustafson_speedup", _gustafson, ("serial", "workers"), _BY_HAND, _shares("gustafson"), _ENDS, _NO_SHARES,
    (
        (known.GUSTAFSON_SWAPPED, lambda s, n: _gustafson(1 - s, n)),
        (known.GUSTAFSON_IS_AMDAHL, _amdahl),
        (known.GUSTAFSON_SERIAL_IGNORED, lambda s, n: (1 - s) * n),
        (known.GUSTAFSON_ALL_BUSY, lambda s, n: n),
        (known.GUSTAFSON_MORE_THAN_ALL, lambda s, n: n + s * (n - 1)),
        (known.GUSTAFSON_MORE_THAN_ALL, lambda s, n: s + (1 + s) * n),
        (known.GUSTAFSON_MORE_THAN_ALL, lambda s, n: n + s * n),
        (known.GUSTAFSON_EFFICIENCY, lambda s, n: _gustafson(s, n) / n),
        (known.PERCENT, lambda s, n: _gustafson(s / 100, n)),
    ),
)  # fmt: skip

EFFICIENCY = Formula(
    "parallel_efficiency", lambda one, many, n: one / (n * many), (),
    ((12.0, 4.0, 4), (10.0, 5.0, 4), (9.0, 4.0, 3), (7, 2, 5)), _times(),
    ((3.0, 3.0, 1), (1.0, 0.2, 4), (5, 10, 2), (8.0, 1.0, 8), (1e-4, 1e-6, 128)),
    ((0.0, 1.0, 2), (1.0, 0.0, 2), (-1.0, 1.0, 2), (1.0, -1.0, 2), (-1.0, -1.0, 2), (1.0, 1.0, 0), (1.0, 1.0, -2)),
    (
        (known.EFFICIENCY_IS_SPEEDUP, lambda one, many, n: one / many),
        (known.EFFICIENCY_INVERTED, lambda one, many, n: many / one),
        (known.EFFICIENCY_INVERTED, lambda one, many, n: n * many / one),
        (known.EFFICIENCY_INVERTED, lambda one, many, n: many / (n * one)),
        (known.EFFICIENCY_TIMES_N, lambda one, many, n: n * one / many),
        (known.EFFICIENCY_LOSS, lambda one, many, n: 1 - one / (n * many)),
        (known.EFFICIENCY_SERIAL, lambda one, many, n: (many / one - 1 / n) / (1 - 1 / n)),
        (known.EFFICIENCY_OTHERS_ONLY, lambda one, many, n: one / (many * (n - 1))),
        (known.PERCENT, lambda one, many, n: 100 * one / (n * many)),
    ),
)  # fmt: skip


def _ends(formula: Formula, bench: Bench) -> Finding | None:
    """At the ends; an efficiency that is right but for values above 1 has a name of its own."""
    finding = _compared(formula, formula.ends, bench)
    if finding is None or finding.mistake is not None:
        return finding
    values = asked(bench, _probe, (formula.names, formula.ends))
    numbers = [] if isinstance(values, Trouble) else [real_number(value) for value in values]
    held = [min(1.0, formula.right(*case)) for case in formula.ends]
    if formula is EFFICIENCY and numbers == held:
        return Finding(finding.got, finding.expected, "", known.EFFICIENCY_HELD)
    return finding


_HAND = "four cases worked out by hand"


def _checks(formula: Formula, ends: str, points: tuple[int, int, int, int], expected: str) -> tuple[Check, ...]:
    names = (_HAND, "thirty random cases", ends, "the impossible is refused")
    compared = partial(_compared, formula)
    return (
        Check(names[0], points[0], partial(compared, formula.by_hand), expected),
        Check(names[1], points[1], partial(compared, formula.many), "the same", needs=_HAND),
        Check(names[2], points[2], partial(_ends, formula), "the same", needs=_HAND),
        Check(names[3], points[3], partial(_refuses, formula), "a ValueError"),
    )


CHECKS: dict[str, Sequence[Check]] = {
    "amdahl_speedup": _checks(
        AMDAHL, "one worker, no serial part, nothing but serial", (2, 2, 1, 1), "one worker's time over that of all"
    ),
    "gustafson_speedup": _checks(
        GUSTAFSON, "one worker, no serial part, nothing but serial", (2, 2, 1, 1), "one worker's time over that of all"
    ),
    "parallel_efficiency": _checks(
        EFFICIENCY, "one worker, and more than perfect", (2, 1, 1, 1), "the speed-up over the number of workers"
    ),
}
