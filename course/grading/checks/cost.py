"""Checks of `all_reduce_seconds` and `fit_alpha_beta`: arithmetic on what messages cost."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

from course.grading.bench import Bench, Probe, Seat
from course.grading.check import Check, Finding
from course.grading.checks.hello import lazy
from course.grading.mistakes import Mistake
from course.grading.mistakes.any_exercise import NOT_REFUSED, OTHER_ERROR
from course.grading.mistakes.lesson_03 import (
    ALPHA_ONCE,
    BITS,
    ONE_HALF_ONLY,
    SENT_AT_ONCE,
    TIMES_BANDWIDTH,
    TREE_COST,
    WHOLE_MESSAGES,
)
from course.grading.plain import real_number, type_in_words

Case = tuple[float, int, float, float]  # nbytes, n, alpha, bandwidth

CASES: tuple[Case, ...] = (
    (16e6, 4, 50e-6, 1e9),
    (4096, 8, 20e-6, 10e9),
    (400e6, 3, 5e-6, 50e9),
    (1000.0, 6, 0.0, 1e6),
    (0, 5, 1e-3, 1e9),
    (7, 2, 0.25, 2.0),
)
ALONE: tuple[Case, ...] = ((16e6, 1, 50e-6, 1e9), (0, 1, 0.0, 2.0))
IMPOSSIBLE: tuple[Case, ...] = (
    (1000, 0, 1e-6, 1e9),
    (1000, -2, 1e-6, 1e9),
    (-1, 4, 1e-6, 1e9),
    (1000, 4, -1e-6, 1e9),
    (1000, 4, 1e-6, 0.0),
    (1000, 4, 1e-6, -1e9),
)


def _random() -> tuple[Case, ...]:
    source = random.Random("rings")
    return tuple(
        (
            float(source.randint(1, 10**9)),
            source.randint(2, 512),
            10 ** source.uniform(-6, -2),
            10 ** source.uniform(6, 11),
        )
        for _ in range(20)
    )


def seconds(nbytes: float, n: int, alpha: float, bandwidth: float) -> float:
    """The oracle: 2(n-1) steps of one chunk."""
    return 2 * (n - 1) * (alpha + nbytes / n / bandwidth)


_GUESSES: tuple[tuple[Mistake, Callable[[float, int, float, float], float]], ...] = (
    (ALPHA_ONCE, lambda s, n, a, b: a + 2 * (n - 1) / n * s / b),
    (ALPHA_ONCE, lambda s, n, a, b: 2 * a + 2 * (n - 1) / n * s / b),
    (ONE_HALF_ONLY, lambda s, n, a, b: (n - 1) * (a + s / n / b)),
    (WHOLE_MESSAGES, lambda s, n, a, b: 2 * (n - 1) * (a + s / b)),
    (WHOLE_MESSAGES, lambda s, n, a, b: (n - 1) * (a + s / b)),
    (TREE_COST, lambda s, n, a, b: 2 * math.ceil(math.log2(n)) * (a + s / b)),
    (TREE_COST, lambda s, n, a, b: 2 * math.log2(n) * (a + s / b)),
    (TREE_COST, lambda s, n, a, b: 2 * math.ceil(math.log2(n)) * a + 2 * (n - 1) / n * s / b),
    (TREE_COST, lambda s, n, a, b: 2 * math.log2(n) * a + 2 * (n - 1) / n * s / b),
    (SENT_AT_ONCE, lambda s, n, a, b: 2 * n * (a + s / n / b)),
    (SENT_AT_ONCE, lambda s, n, a, b: 2 * n * a + 2 * s / b),
    (SENT_AT_ONCE, lambda s, n, a, b: 2 * (n - 1) * a + 2 * s / b),
    (BITS, lambda s, n, a, b: 2 * (n - 1) * (a + 8 * s / n / b)),
    (BITS, lambda s, n, a, b: 2 * (n - 1) * (a + s / n / b / 8)),
    (TIMES_BANDWIDTH, lambda s, n, a, b: 2 * (n - 1) * (a + s / n * b)),
    (TIMES_BANDWIDTH, lambda s, n, a, b: 2 * (n - 1) * a + 2 * (n - 1) / n * s * b),
)


def _probe(learner: Any, cases: tuple[Case, ...], seat: Seat) -> Any:
    return [learner(nbytes, n, alpha=alpha, bandwidth=bandwidth) for nbytes, n, alpha, bandwidth in cases]


def _probe_refusal(learner: Any, case: Case, seat: Seat) -> Any:
    return outcome(lambda: learner(case[0], case[1], alpha=case[2], bandwidth=case[3]))


def _compared(bench: Bench, cases: tuple[Case, ...]) -> Finding | None:
    values = bench.run(_probe, cases, n=1).values[0]
    for case, value in zip(cases, values, strict=True):
        number, want = real_number(value), seconds(*case)
        if number is None:
            return Finding(
                f"{_shown(case)} returned {type_in_words(value)}", "a number", "Return one number.", lazy(value)
            )
        if not same(number, want):
            advice = "Write down the messages that one rank sends, one after the other."
            return Finding(f"{_shown(case)} returned {number:.6g}", f"{want:.6g}", advice, _mistake(bench))
    return None


def same(number: float, want: float) -> bool:
    return math.isclose(number, want, rel_tol=1e-6, abs_tol=1e-12)


def _shown(case: Case) -> str:
    return f"all_reduce_seconds({case[0]:.9g}, {case[1]}, alpha={case[2]:.4g}, bandwidth={case[3]:.4g})"


def _mistake(bench: Bench) -> Mistake | None:
    numbers = [real_number(value) for value in bench.run(_probe, CASES, n=1).values[0]]
    for mistake, guess in _GUESSES:
        if all(number is not None and same(number, guess(*case)) for case, number in zip(CASES, numbers, strict=True)):
            return mistake
    return None


def _by_hand(bench: Bench) -> Finding | None:
    return _compared(bench, CASES)


def _many(bench: Bench) -> Finding | None:
    return _compared(bench, _random())


def _alone(bench: Bench) -> Finding | None:
    return _compared(bench, ALONE)


def refused(bench: Bench, probe: Probe, case: Any, shown: str) -> Finding | None:
    """A finding where the impossible was not refused with ValueError; `probe` sends home `outcome` of the call."""
    error, value = bench.run(probe, case, n=1).values[0]
    if not error:
        number = real_number(value)
        said = type_in_words(value) if number is None else f"{number:.6g}"
        return Finding(f"{shown} returned {said}", "", "", NOT_REFUSED)
    return None if error == "ValueError" else Finding(f"{shown} raised {error}", "", "", OTHER_ERROR)


def outcome(call: Callable[[], Any]) -> tuple[str, Any]:
    """Runs in the rank: the name of the error that a call raised, or "" and what came back."""
    try:
        return "", call()
    except NotImplementedError:
        raise
    except ValueError:
        return "ValueError", None
    except Exception as error:
        return type(error).__name__, None


def _refuses(bench: Bench) -> Finding | None:
    return next((f for case in IMPOSSIBLE if (f := refused(bench, _probe_refusal, case, _shown(case)))), None)


HAND = "six cases worked out by hand"

CHECKS: dict[str, Sequence[Check]] = {
    "all_reduce_seconds": (
        Check(HAND, 2, _by_hand, "the seconds of all steps of the ring"),
        Check("twenty random links", 2, _many, "the same", needs=HAND),
        Check("one rank sends nothing", 1, _alone, "0", needs=HAND),
        Check("the impossible is refused", 1, _refuses, "a ValueError", needs=HAND),
    )
}
