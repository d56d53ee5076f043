"""Checks of `serial_fraction`: least squares of a + b/n, on times that give each other fit away."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

from course.grading.bench import Bench, Seat, Trouble
from course.grading.check import Check, Finding
from course.grading.checks.alone import asked, raised
from course.grading.checks.cost import outcome, refused
from course.grading.checks.fitting import line
from course.grading.checks.hello import lazy
from course.grading.mistakes import Mistake
from course.grading.mistakes.lesson_02 import (
    FRACTION_AVERAGED,
    FRACTION_IN_SECONDS,
    FRACTION_LINE_IN_N,
    FRACTION_NOT_HELD,
    FRACTION_PARALLEL,
    FRACTION_RATIO,
    FRACTION_RELATIVE,
    FRACTION_THROUGH_ONE_POINT,
    FRACTION_TWO_POINTS,
    PERCENT,
)
from course.grading.plain import real_number, type_in_words

Times = tuple[tuple[float, float], ...]  # (workers, seconds)

EXACT: tuple[Times, ...] = tuple(
    tuple((n, seconds * (serial + (1 - serial) / n)) for n in (1, 2, 4, 8))
    for seconds, serial in ((10.0, 0.2), (0.03, 0.65), (3600.0, 0.02))
)
ANYHOW: tuple[Times, ...] = (((4, 3.0), (2, 4.0)), ((6, 11.0), (3, 12.0), (6, 11.0)), ((16, 2.0), (2, 9.0), (4, 5.0)))
BEYOND: tuple[tuple[str, Times], ...] = (
    ("times that fall faster than 1/n", ((1, 1.0), (2, 0.45), (4, 0.2))),
    ("times that rise", ((1, 1.0), (2, 1.1), (4, 1.3))),
)
IMPOSSIBLE: tuple[tuple[str, Sequence[float], Sequence[float]], ...] = (
    ("no measurement", (), ()),
    ("one measurement", (2,), (1.0,)),
    ("one number of workers, measured twice", (4, 4), (1.0, 1.1)),
    ("three numbers of workers and two times", (1, 2, 4), (1.0, 0.6)),
    ("two numbers of workers and three times", (1, 2), (1.0, 0.6, 0.4)),
    ("0 workers", (0, 1, 2), (2.0, 1.0, 0.6)),
    ("a time of 0", (1, 2, 4), (1.0, 0.0, 0.3)),
    ("a negative time", (1, 2, 4), (1.0, 0.6, -0.3)),
)


def _noisy() -> tuple[Times, ...]:
    """Measurements that err by their own size, some numbers of workers twice, the one worker first."""
    source = random.Random("serial")
    cases = []
    for seconds, serial in ((10.0, 0.3), (0.08, 0.15), (500.0, 0.5)):
        counts = [1, 2, 3, 4, 6, 8, 2, 8]
        times = [(n, seconds * (serial + (1 - serial) / n) * source.uniform(0.85, 1.15)) for n in counts]
        cases.append(tuple(times))
    return tuple(cases)


def _line(times: Times, power: float = 0.0) -> tuple[float, float]:
    """(a, b) of seconds = a + b/n, errors weighed with seconds ** -power."""
    return line(tuple((1 / n, seconds) for n, seconds in times), [seconds**-power for _, seconds in times])


def _share(pair: tuple[float, float]) -> float:
    return pair[0] / (pair[0] + pair[1])


def share(times: Times) -> float:
    """The oracle, not held within 0 and 1."""
    return _share(_line(times))


def _in_n(times: Times) -> tuple[float, float]:
    return line(times, [1.0] * len(times))


def _karp_flatt(times: Times) -> float:
    """The mean of what each point says by itself, beside the first."""
    first = times[0][1]
    single = [(seconds / first - 1 / n) / (1 - 1 / n) for n, seconds in times if n > 1]
    return sum(single) / len(single)


def _through_first(times: Times) -> float:
    """The share with which s + (1 - s)/n fits seconds over the first of them."""
    first = times[0][1]
    pairs = [(1 - 1 / n, seconds / first - 1 / n) for n, seconds in times]
    return sum(x * y for x, y in pairs) / sum(x * x for x, _ in pairs)


_GUESSES: tuple[tuple[Mistake, Callable[[Times], float]], ...] = (
    (FRACTION_IN_SECONDS, lambda times: _line(times)[0]),
    (FRACTION_IN_SECONDS, lambda times: _line(times)[1]),
    (FRACTION_PARALLEL, lambda times: 1 - share(times)),
    (FRACTION_RATIO, lambda times: _line(times)[0] / _line(times)[1]),
    (FRACTION_RATIO, lambda times: _line(times)[1] / _line(times)[0]),
    (FRACTION_LINE_IN_N, lambda times: _share(_in_n(times))),
    (FRACTION_LINE_IN_N, lambda times: min(1.0, _share(_in_n(times)))),
    (FRACTION_LINE_IN_N, lambda times: max(0.0, 1 - _share(_in_n(times)))),
    (FRACTION_RELATIVE, lambda times: _share(_line(times, 1.0))),
    (FRACTION_TWO_POINTS, lambda times: _share(_line((times[0], times[-1])))),
    (FRACTION_TWO_POINTS, lambda times: _share(_line((times[0], times[1])))),
    (FRACTION_TWO_POINTS, lambda times: _share(_line((min(times), max(times))))),
    (FRACTION_TWO_POINTS, lambda times: times[-1][1] / times[0][1]),
    (FRACTION_TWO_POINTS, lambda times: min(t for _, t in times) / max(t for _, t in times)),
    (FRACTION_THROUGH_ONE_POINT, _through_first),
    (FRACTION_THROUGH_ONE_POINT, lambda times: _line(times)[0] / times[0][1]),
    (FRACTION_AVERAGED, _karp_flatt),
    (PERCENT, lambda times: 100 * share(times)),
)


def _probe(learner: Any, cases: tuple[Times, ...], seat: Seat) -> Any:
    return [learner([n for n, _ in times], [seconds for _, seconds in times]) for times in cases]


def _probe_refusal(learner: Any, case: tuple[Sequence[float], Sequence[float]], seat: Seat) -> Any:
    return outcome(lambda: learner(list(case[0]), list(case[1])))


def _compared(bench: Bench, cases: tuple[Times, ...], what: str) -> Finding | None:
    values = asked(bench, _probe, cases)
    if isinstance(values, Trouble):
        return Finding(f"{what}: {raised(values)}", "", values.advice)
    for times, value in zip(cases, values, strict=True):
        number, want = real_number(value), share(times)
        if number is None:
            return Finding(f"{what}: returned {type_in_words(value)}", "a number", "Return the share.", lazy(value))
        if not _same(number, want):
            advice = "Draw these seconds over 1/n, and your line."
            return Finding(f"{what}: returned {number:.4g}{_listed(times)}", f"{want:.4g}", advice, _mistake(bench))
    return None


def _same(number: float, want: float) -> bool:
    return math.isclose(number, want, rel_tol=1e-4, abs_tol=1e-5)


def _listed(times: Times) -> str:
    pairs = ", ".join(f"{n}: {seconds:.4g} s" for n, seconds in times)
    return f" for {pairs}" if len(times) < 5 else ""


def _mistake(bench: Bench) -> Mistake | None:
    values = asked(bench, _probe, _noisy())
    if isinstance(values, Trouble):
        return None
    numbers = [real_number(value) for value in values]
    for mistake, guess in _GUESSES:
        pairs = zip(numbers, map(guess, _noisy()), strict=True)
        if all(number is not None and _same(number, want) for number, want in pairs):
            return mistake
    return None


def _exact(bench: Bench) -> Finding | None:
    return _compared(bench, EXACT, "for times that obey the law")


def _best(bench: Bench) -> Finding | None:
    return _compared(bench, _noisy(), "for eight noisy times")


def _anyhow(bench: Bench) -> Finding | None:
    return _compared(bench, ANYHOW, "without a time of one worker")


def _held(bench: Bench) -> Finding | None:
    for what, times in BEYOND:
        finding = _compared(bench, (times,), what)
        values = asked(bench, _probe, (times,))
        number = None if isinstance(values, Trouble) else real_number(values[0])
        want = min(1.0, max(0.0, share(times)))
        if number is not None and _same(number, want):
            continue
        if finding is None:
            return Finding(f"{what}: returned {number:.4g}", f"{want:g}", "", FRACTION_NOT_HELD)
        return Finding(finding.got, f"{want:g}", "Below 0 there is 0, above 1 there is 1.")
    return None


def _refuses(bench: Bench) -> Finding | None:
    found = (refused(bench, _probe_refusal, (workers, seconds), what) for what, workers, seconds in IMPOSSIBLE)
    return next((finding for finding in found if finding), None)


_LAW = "times that obey the law"

CHECKS: dict[str, Sequence[Check]] = {
    "serial_fraction": (
        Check(_LAW, 2, _exact, "the share that these times were made with"),
        Check("noisy times", 2, _best, "the share of least squares", needs=_LAW),
        Check("any order, and no time of one worker", 1, _anyhow, "the share of least squares", needs="noisy times"),
        Check("held within 0 and 1", 1, _held, "0 and 1", needs=_LAW),
        Check("the impossible is refused", 2, _refuses, "a ValueError"),
    )
}
