"""Checks of `checkpoint_interval`: a whole number of steps, compared by the time that it loses."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from course.grading.bench import Bench, Seat, Trouble
from course.grading.check import Check, Finding
from course.grading.checks.alone import asked, raised
from course.grading.checks.cost import outcome, refused
from course.grading.checks.hello import lazy
from course.grading.mistakes import Mistake
from course.grading.mistakes import lesson_10_runs as known
from course.grading.mistakes.any_exercise import PRINTED
from course.grading.plain import real_number, type_in_words

NAMES = ("save_seconds", "step_seconds", "gpu_mtbf_seconds", "gpus")
Case = tuple[float, float, float, int]  # in the order of NAMES

DAY = 86400.0
LLAMA = 54 * DAY * 16384 / 419  # of one GPU: 419 interruptions in 54 days on 16,384 (Llama 3, table 5)

CLUSTERS: tuple[Case, ...] = (
    (60.0, 5.0, LLAMA, 16384),
    (300.0, 2.0, 5 * 365 * DAY, 1024),
    (20, 1, 100 * DAY, 8),
    (240.0, 0.5, 90 * DAY, 96),
)
CLOSE: tuple[Case, ...] = (  # where the best number of steps is small: 1.45 and 2.47 before rounding, then below one
    (1.0, 10.0, 42050.0, 400),
    (1.0, 10.0, 122018.0, 400),
    (1.0, 10.0, 71442.0, 400),
    (0.5, 30.0, 3600.0, 4),
    (1.0, 60.0, 1000.0, 1),
)
IMPOSSIBLE: tuple[Case, ...] = (
    (60.0, 5.0, LLAMA, 0),
    (60.0, 5.0, LLAMA, -8),
    (0.0, 5.0, LLAMA, 8),
    (-60.0, 5.0, LLAMA, 8),
    (60.0, 0.0, LLAMA, 8),
    (60.0, -5.0, LLAMA, 8),
    (60.0, 5.0, 0.0, 8),
    (60.0, 5.0, -LLAMA, 8),
)


def _random() -> tuple[Case, ...]:
    source = random.Random("saving")
    cases: list[Case] = []
    while len(cases) < 20:
        case = (
            source.uniform(5, 600),
            source.uniform(0.3, 30),
            source.uniform(100, 3000) * DAY,
            source.randint(2, 20000),
        )
        if 5 <= young(*case) <= 5000:
            cases.append(case)
    return tuple(cases)


def lost(steps: float, case: Case) -> float:
    """The oracle: the share of time that saving every so many steps loses."""
    save, step, mtbf, gpus = case
    return save / (steps * step) + steps * step / 2 / (mtbf / gpus)


def best(case: Case) -> int:
    """A number of steps that loses least: one of the two around Young's interval."""
    below = max(1, math.floor(young(*case)))
    return min((below, below + 1), key=lambda steps: lost(steps, case))


def young(save: float, step: float, mtbf: float, gpus: float) -> float:
    """Young's interval, in steps and not yet whole."""
    return math.sqrt(2 * save * mtbf / gpus) / step


RANDOM = _random()


def _daly(save: float, step: float, mtbf: float, gpus: float) -> float:
    """Daly's higher-order interval (2006, equation 37), in steps."""
    ratio = save * gpus / (2 * mtbf)
    return math.sqrt(2 * save * mtbf / gpus) * (1 + math.sqrt(ratio) / 3 + ratio / 9) / step - save / step


# What a mistake would give before rounding.
_GUESSES: Sequence[tuple[Mistake, Callable[..., float]]] = (
    (known.INTERVAL_ONE_GPU, lambda c, s, m, n: math.sqrt(2 * c * m) / s),
    (known.INTERVAL_TIMES_GPUS, lambda c, s, m, n: math.sqrt(2 * c * m * n) / s),
    (known.INTERVAL_NO_TWO, lambda c, s, m, n: math.sqrt(c * m / n) / s),
    (known.INTERVAL_NO_TWO, lambda c, s, m, n: math.sqrt(c * m / n / 2) / s),
    (known.INTERVAL_NO_ROOT, lambda c, s, m, n: 2 * c * m / n / s),
    (known.INTERVAL_NO_ROOT, lambda c, s, m, n: c * m / n / s),
    (known.INTERVAL_IN_SECONDS, lambda c, s, m, n: math.sqrt(2 * c * m / n)),
    (known.INTERVAL_IN_SECONDS, lambda c, s, m, n: math.sqrt(2 * c * m / n) / 60),
    (known.INTERVAL_MTBF, lambda c, s, m, n: m / n / s),
    (known.INTERVAL_STEP_IN_ROOT, lambda c, s, m, n: math.sqrt(2 * c * m / n / s)),
    (known.INTERVAL_STEP_IN_ROOT, lambda c, s, m, n: math.sqrt(2 * c * m / n) * s),
    (known.INTERVAL_GPUS_OUTSIDE, lambda c, s, m, n: math.sqrt(2 * c * m) / n / s),
    (known.INTERVAL_DALY, _daly),
    (known.INTERVAL_DALY, lambda c, s, m, n: (math.sqrt(2 * c * m / n) - c) / s),
    (known.INTERVAL_DALY, lambda c, s, m, n: math.sqrt(2 * c * (m / n + c)) / s),
    (known.INTERVAL_DALY, lambda c, s, m, n: math.sqrt(2 * c * (m / n + c)) / s - c / s),
)


def _call(learner: Any, case: Case) -> Any:
    return learner(**dict(zip(NAMES, case, strict=True)))


def _probe(learner: Any, cases: tuple[Case, ...], seat: Seat) -> Any:
    return [_call(learner, case) for case in cases]


def _probe_refusal(learner: Any, case: Case, seat: Seat) -> Any:
    return outcome(lambda: _call(learner, case))


def _shown(case: Case) -> str:
    return f"checkpoint_interval({', '.join(f'{n}={x:.9g}' for n, x in zip(NAMES, case, strict=True))})"


def _compared(cases: tuple[Case, ...], bench: Bench) -> Finding | None:
    values = asked(bench, _probe, cases)
    if isinstance(values, Trouble):
        return Finding(f"for a case such as {_shown(cases[0])} {raised(values)}", "", values.advice)
    found = [real_number(value) for value in values]
    for case, value, steps in zip(cases, values, found, strict=True):
        got = f"{_shown(case)} returned "
        if steps is None:
            printed = value is None and any(bench.run(_probe, cases, n=1).output)
            return Finding(
                got + type_in_words(value), "a number of steps", "Return an int.", PRINTED if printed else lazy(value)
            )
        if not math.isfinite(steps) or steps != int(steps) or steps < 1:
            want, mistake = "a whole number of steps, at least 1", _not_whole(steps, cases, found)
            if mistake not in (None, known.INTERVAL_NOT_WHOLE, known.INTERVAL_ZERO):  # the formula is wrong, too
                want += f"; here {best(case)}"
            return Finding(f"{got}{steps:.6g}", want, "", mistake)
        if lost(steps, case) > lost(best(case), case) * (1 + 1e-9):
            want = f"{best(case)} steps, which lose {100 * lost(best(case), case):.4g} % of the time"
            got = f"{got}{steps:.0f} steps, which lose {100 * lost(steps, case):.4g} %"
            advice = (
                "Write the share that is lost as a function of k and look at it for a few k, below and above yours."
            )
            return Finding(got, want, advice, _mistake(cases, found))
    return None


def _not_whole(steps: float, cases: tuple[Case, ...], found: Sequence[float | None]) -> Mistake | None:
    """What stands behind a number of steps that is none: another formula, else the rounding."""
    if not math.isfinite(steps) or steps < 0:
        return None
    other = _mistake(cases, found)
    if other not in (None, known.INTERVAL_ROUNDED):
        return other
    return known.INTERVAL_ZERO if steps == 0 else known.INTERVAL_NOT_WHOLE


def _mistake(cases: tuple[Case, ...], found: Sequence[float | None]) -> Mistake | None:
    """The formula that is within one step of all that came back; the rounding where that is Young's own."""
    for mistake, guess in _formulas(cases):
        pairs = zip(cases, found, strict=True)
        if all(steps is not None and abs(steps - guess(*case)) <= 1 for case, steps in pairs):
            whole = all(steps is not None and steps == int(steps) for steps in found)
            return mistake if whole or mistake is not known.INTERVAL_ROUNDED else known.INTERVAL_NOT_WHOLE
    return None


def _formulas(cases: tuple[Case, ...]) -> Iterator[tuple[Mistake, Callable[..., float]]]:
    """Formulas of mistakes, Young's own, then mistakes two at a time; for CLOSE, whose few steps fit several, his."""
    singles = () if cases is CLOSE else _GUESSES
    yield from singles
    yield known.INTERVAL_ROUNDED, young
    for (mistake, one), (_, other) in itertools.combinations(singles, 2):
        yield mistake, partial(_both, one, other)


def _both(one: Callable[..., float], other: Callable[..., float], *case: float) -> float:
    return one(*case) * other(*case) / young(*case)


def _refuses(bench: Bench) -> Finding | None:
    found = (refused(bench, _probe_refusal, case, _shown(case)) for case in IMPOSSIBLE)
    return next((finding for finding in found if finding), None)


_HAND, _EXPECTED = "four clusters, one of them like Llama 3's", "the number of steps that loses least"

CHECKS: dict[str, Sequence[Check]] = {
    "checkpoint_interval": (
        Check(_HAND, 3, partial(_compared, CLUSTERS), _EXPECTED),
        Check("twenty random clusters", 2, partial(_compared, RANDOM), _EXPECTED, needs=_HAND),
        Check("a step or two between checkpoints", 2, partial(_compared, CLOSE), _EXPECTED, needs=_HAND),
        Check("the impossible is refused", 1, _refuses, "a ValueError", needs=_HAND),
    )
}
