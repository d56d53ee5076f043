"""Checks of `exposed_seconds`: arithmetic over a backward pass and a queue of all-reduces."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

from course.grading.bench import Bench, Seat
from course.grading.check import Check, Finding
from course.grading.checks.hello import lazy
from course.grading.mistakes import Mistake
from course.grading.mistakes.lesson_05 import (
    LAST_ONLY,
    NO_OVERLAP,
    NO_QUEUE,
    NOT_CLAMPED,
    ONE_BLOCK,
    SUM_OF_OVERHANGS,
    WHOLE_STEP,
)
from course.grading.plain import real_number, type_in_words

Buckets = tuple[tuple[float, float], ...]
Case = tuple[float, Buckets]

# A late bucket behind a busy link; a gap in the link's time; one that is ready at the very end.
BY_HAND: tuple[Case, ...] = (
    (1.0, ((0.2, 0.5), (0.4, 0.5), (0.9, 0.2))),
    (1.0, ((0.1, 0.2), (0.9, 0.3))),
    (2.0, ((0.5, 0.25), (1.0, 0.25), (2.0, 0.75))),
    (1.0, ((0.25, 0.25), (1.0, 0.0))),
)
HIDDEN: tuple[Case, ...] = ((1.0, ((0.2, 0.1), (0.5, 0.3))), (3.0, ((1.0, 2.0),)))
NONE_SENT: tuple[Case, ...] = ((1.0, ()),)


def _random() -> tuple[Case, ...]:
    source = random.Random("exposed")
    cases = []
    for _ in range(20):
        backward = source.uniform(0.5, 2.0)
        ready = sorted(source.uniform(0.0, backward) for _ in range(source.randint(1, 6)))
        cases.append((backward, tuple((at, source.uniform(0.0, 0.6)) for at in ready)))
    return tuple(cases)


def exposed(backward: float, all_reduces: Buckets) -> float:
    """The oracle: the link is free at `end`."""
    end = 0.0
    for ready, seconds in all_reduces:
        end = max(end, ready) + seconds
    return max(0.0, end - backward)


def _probe(learner: Any, cases: tuple[Case, ...], seat: Seat) -> Any:
    return [learner(backward, list(all_reduces)) for backward, all_reduces in cases]


def _end(all_reduces: Buckets) -> float:
    return exposed(0.0, all_reduces)


_GUESSES: tuple[tuple[Mistake, Callable[[float, Buckets], float]], ...] = (
    (NO_OVERLAP, lambda backward, sent: sum(seconds for _, seconds in sent)),
    (ONE_BLOCK, lambda backward, sent: max(0.0, sum(seconds for _, seconds in sent) - backward)),
    (ONE_BLOCK, lambda backward, sent: max(0.0, sent[0][0] + sum(seconds for _, seconds in sent) - backward)),
    (NO_QUEUE, lambda backward, sent: max(0.0, max(ready + seconds for ready, seconds in sent) - backward)),
    (LAST_ONLY, lambda backward, sent: max(0.0, sum(sent[-1]) - backward)),
    (LAST_ONLY, lambda backward, sent: sent[-1][1]),
    (WHOLE_STEP, lambda backward, sent: _end(sent)),
    (WHOLE_STEP, lambda backward, sent: max(backward, _end(sent))),
    (SUM_OF_OVERHANGS, lambda backward, sent: sum(max(0.0, ready + seconds - backward) for ready, seconds in sent)),
    (NOT_CLAMPED, lambda backward, sent: _end(sent) - backward),
)


def _compared(bench: Bench, cases: tuple[Case, ...]) -> Finding | None:
    values = bench.run(_probe, cases, n=1).values[0]
    for (backward, sent), value in zip(cases, values, strict=True):
        number = real_number(value)
        asked = f"exposed_seconds({backward:.4g}, {_shown(sent)})"
        if number is None:
            return Finding(f"{asked} returned {type_in_words(value)}", "a number", "", lazy(value))
        want = exposed(backward, sent)
        if not math.isclose(number, want, rel_tol=1e-6, abs_tol=1e-6):
            advice = "Draw this case: backward above, the link below."
            return Finding(f"{asked} returned {number:.6g}", f"{want:.6g}", advice, _mistake(bench))
    return None


def _shown(sent: Buckets) -> str:
    return "[" + ", ".join(f"({ready:.4g}, {seconds:.4g})" for ready, seconds in sent) + "]"


def _mistake(bench: Bench) -> Mistake | None:
    cases = (*BY_HAND, *_random())
    values = [*bench.run(_probe, BY_HAND, n=1).values[0], *bench.run(_probe, _random(), n=1).values[0]]
    numbers = [real_number(value) for value in values]
    for mistake, guess in _GUESSES:
        predicted = [guess(backward, sent) for backward, sent in cases]
        pairs = zip(numbers, predicted, strict=True)
        if all(n is not None and math.isclose(n, p, rel_tol=1e-6, abs_tol=1e-6) for n, p in pairs):
            return mistake
    return None


def _by_hand(bench: Bench) -> Finding | None:
    return _compared(bench, BY_HAND)


def _many(bench: Bench) -> Finding | None:
    return _compared(bench, _random())


def _hidden(bench: Bench) -> Finding | None:
    return _compared(bench, HIDDEN)


def _nothing(bench: Bench) -> Finding | None:
    return _compared(bench, NONE_SENT)


HAND = "four cases worked out by hand"

CHECKS = {
    "exposed_seconds": (
        Check(HAND, 2, _by_hand, "the seconds from the end of backward to the end of the last all-reduce"),
        Check("twenty random backward passes", 2, _many, "the same", needs=HAND),
        Check("all hidden: nothing is exposed", 1, _hidden, "0", needs=HAND),
        Check("nothing sent: nothing is exposed", 1, _nothing, "0", needs=HAND),
    )
}
