"""Checks of `training_cost`: hours by the clock and money, for runs like published ones and for random ones."""

from __future__ import annotations

import math
import random

from course.grading.checks.reckoning import Case, Group, Guesses, Reckoning, checks
from course.grading.mistakes import lesson_10_runs as known

NAMES = ("tokens", "flops_per_token", "gpus", "peak_flops", "mfu", "goodput", "price", "spare_gpus")

RUNS: tuple[Case, ...] = (
    (300e9, 1.05e12, 1024, 312e12, 0.44, 0.9, 2.0),
    (15.6e12, 2.54e12, 16384, 989e12, 0.41, 0.85, 2.5),
    (10**9, 6 * 10**9, 2, 10**14, 0.5, 0.8, 3),
    (2e9, 7e9, 8, 1e14, 0.25, 0.5, 1.25),
)
SPARES: tuple[Case, ...] = (
    (15.6e12, 2.54e12, 16384, 989e12, 0.41, 0.85, 2.5, 512),
    (1e9, 6e9, 2, 1e14, 0.5, 0.8, 3.0, 1),
    (2e9, 7e9, 8, 1e14, 0.25, 0.5, 1.25, 8),
)
ENDS: tuple[Case, ...] = (
    (1e9, 6e9, 1, 1e14, 1.0, 1.0, 2.0),
    (1e9, 6e9, 4, 1e14, 1, 0.5, 2.0, 0),
    (1e9, 6e9, 4, 1e14, 0.5, 1, 0.0),
)
IMPOSSIBLE: tuple[Case, ...] = (
    (1e9, 6e9, 0, 1e14, 0.5, 0.8, 3.0),
    (1e9, 6e9, 2, 1e14, 0.0, 0.8, 3.0),
    (1e9, 6e9, 2, 1e14, 41.0, 0.8, 3.0),
    (1e9, 6e9, 2, 1e14, 0.5, 0.0, 3.0),
    (1e9, 6e9, 2, 1e14, 0.5, 1.5, 3.0),
    (1e9, 6e9, 2, 1e14, 0.5, 0.8, -3.0),
    (1e9, 6e9, 2, 1e14, 0.5, 0.8, 3.0, -1),
    (-1e9, 6e9, 2, 1e14, 0.5, 0.8, 3.0),
    (1e9, 6e9, 2, -1e14, 0.5, 0.8, 3.0),
)

HOUR = 3600.0
Pair = tuple[float, float]


def cost(
    tokens: float,
    flops_per_token: float,
    gpus: float,
    peak_flops: float,
    mfu: float,
    goodput: float,
    price: float,
    spare_gpus: float = 0,
) -> Pair:
    """The oracle: (hours, cost)."""
    hours = tokens * flops_per_token / (gpus * peak_flops * mfu * goodput) / HOUR
    return hours, hours * (gpus + spare_gpus) * price


def _random() -> tuple[Case, ...]:
    source = random.Random("price")
    cases: list[Case] = []
    for _ in range(20):
        gpus = source.randint(2, 20000)
        run = (source.uniform(1e9, 2e13), 6 * source.uniform(1e8, 5e11), gpus, source.choice((125e12, 312e12, 989e12)))
        shares = (source.uniform(0.2, 0.6), source.uniform(0.5, 0.98))
        cases.append((*run, *shares, source.uniform(0.5, 6), source.randint(0, gpus // 4)))
    return tuple(cases)


def _times(case: Case, hours: float, money: float | None = None) -> Pair:
    """The right pair, each times a factor (by default the same)."""
    right = cost(*case)
    return right[0] * hours, right[1] * (hours if money is None else money)


def _spares(case: Case) -> float:
    return case[7] if len(case) > 7 else 0


def _working(case: Case) -> float:
    """The share of the GPUs that do not stand by."""
    return case[2] / (case[2] + _spares(case))


def _losses_added(*case: float) -> Pair:
    """Where what utilisation and goodput leave undone is added up."""
    left = case[4] + case[5] - 1
    return _times(case, case[4] * case[5] / left) if left > 0 else (math.inf, math.inf)


_GUESSES: Guesses = (
    (known.COST_SWAPPED, lambda *case: cost(*case)[::-1]),
    (known.COST_GPU_HOURS, lambda *case: _times(case, case[2], 1)),
    (known.COST_GPU_HOURS, lambda *case: _times(case, case[2] + _spares(case), 1)),
    (known.COST_GPUS_TWICE, lambda *case: _times(case, case[2])),
    (known.COST_ONE_GPU, lambda *case: _times(case, 1, 1 / (case[2] + _spares(case)))),
    (known.COST_SECONDS, lambda *case: _times(case, HOUR)),
    (known.COST_SECONDS, lambda *case: _times(case, HOUR, 1)),
    (known.COST_SECONDS, lambda *case: _times(case, 60)),
    (known.COST_DAYS, lambda *case: _times(case, 1 / 24)),
    (known.COST_DAYS, lambda *case: _times(case, 1 / 24, 1)),
    (known.COST_LOST_TIME_FREE, lambda *case: _times(case, 1, case[5])),
    (known.COST_GOODPUT_IGNORED, lambda *case: _times(case, case[5])),
    (known.COST_GOODPUT_IGNORED, lambda *case: _times(case, case[5], 1)),
    (known.COST_GOODPUT_UPSIDE_DOWN, lambda *case: _times(case, case[5] ** 2)),
    (known.COST_GOODPUT_ADDED, lambda *case: _times(case, case[5] * (2 - case[5]))),
    (known.COST_GOODPUT_ADDED, _losses_added),
    (known.COST_MFU_IGNORED, lambda *case: _times(case, case[4])),
    (known.COST_MFU_UPSIDE_DOWN, lambda *case: _times(case, case[4] ** 2)),
    (known.COST_FLOPS_AGAIN, lambda *case: _times(case, 3)),
    (known.COST_FLOPS_AGAIN, lambda *case: _times(case, 6)),
)  # fmt: skip
_WITH_SPARES: Guesses = (
    (known.COST_SPARES_FREE, lambda *case: _times(case, 1, _working(case))),
    (known.COST_SPARES_WORK, lambda *case: _times(case, _working(case))),
    (known.COST_SPARES_WORK, lambda *case: _times(case, _working(case), 1)),
    (known.COST_SPARES_WORK, lambda *case: _times(case, _working(case), _working(case) ** 2)),
)

_HAND, _SPARES, _EXPECTED = "two large runs, two small ones", "with GPUs that stand by", "hours by the clock, and money"
_ADVICE = (
    "How many FLOP/s does the cluster do while it works? Divide, turn seconds into hours, then think of lost time."
)
_PAID = "Who stands by is paid for every hour, and does no work."

CHECKS = {
    "training_cost": checks(
        Reckoning("training_cost", NAMES, cost, ("hours", "cost")),
        (
            Group(_HAND, 2, RUNS, _GUESSES, _EXPECTED, _ADVICE),
            Group(_SPARES, 1, SPARES, (*_WITH_SPARES, *_GUESSES), "the same hours, and a higher cost", _PAID, _HAND),
            Group("twenty random runs", 2, _random(), (*_GUESSES, *_WITH_SPARES), _EXPECTED, _ADVICE, _HAND),
            Group("utilisation or goodput of 1, a price of 0", 1, ENDS, _GUESSES, _EXPECTED, _ADVICE, _HAND),
        ),
        IMPOSSIBLE,
        _HAND,
    )
}
