"""Clusters to find the best layout of: made-up prices, oracles, cases, and what mistakes would choose on them.

Nothing is asked or judged here.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from course.grading.mistakes import Mistake
from course.grading.mistakes import lesson_10_runs as known

Layout = tuple[int, int, int]  # dp, tp, pp


@dataclass(frozen=True)
class Cluster:
    """What a learner is asked, and made-up prices. states, kept: bytes. work, tensor, data, hop: seconds."""

    gpus: int
    layers: int
    heads: int
    batch: int
    memory: float
    states: float = 64.0
    kept: float = 2.0
    work: float = 64.0
    tensor: float = 0.05
    data: float = 4.0
    hop: float = 0.01
    thin: float = 0.02  # what products lose with every further rank that shares them

    def nbytes(self, dp: int, tp: int, pp: int) -> float:
        return self.states / (tp * pp) + self.kept / tp

    def bound(self, dp: int, tp: int, pp: int) -> float:
        return self.work / (dp * tp * pp) * (1 + (pp - 1) * dp / self.batch) * (1 + self.thin * (tp - 1))

    def seconds(self, dp: int, tp: int, pp: int) -> float:
        messages = self.tensor * (tp - 1) * self.batch / dp / pp + self.data * (dp - 1) / dp / (tp * pp)
        return self.bound(dp, tp, pp) + messages + self.hop * (pp - 1)

    def __str__(self) -> str:
        numbers = f"gpus={self.gpus}, layers={self.layers}, heads={self.heads}, batch={self.batch}"
        return f"best_layout({numbers}, memory={self.memory:.6g}, ...)"

    @cached_property
    def all(self) -> list[Layout]:
        """Every (dp, tp, pp) that uses all GPUs."""
        n = self.gpus
        pairs = ((tp, pp) for tp in range(1, n + 1) if n % tp == 0 for pp in range(1, n // tp + 1))
        return [(n // (tp * pp), tp, pp) for tp, pp in pairs if n // tp % pp == 0]

    @cached_property
    def even(self) -> list[Layout]:
        """Those that divide the model and the batch."""
        return [layout for layout in self.all if self.divides(*layout)]

    @cached_property
    def fitting(self) -> list[Layout]:
        return [layout for layout in self.even if self.nbytes(*layout) <= self.memory]

    @cached_property
    def least(self) -> float:
        """The oracle: seconds of the fastest layout that fits."""
        return min(self.seconds(*layout) for layout in self.fitting)

    def divides(self, dp: int, tp: int, pp: int) -> bool:
        return not (self.batch % dp or self.heads % tp or self.layers % pp)

    def is_best(self, layout: Layout) -> bool:
        return layout in self.fitting and self.seconds(*layout) <= self.least * (1 + 1e-9)


# --- the cases --------------------------------------------------------------------------------------------------------

HAND = (
    Cluster(24, 8, 12, 24, 12.0, kept=4.0, tensor=0.2, data=8.0),
    Cluster(48, 8, 12, 24, 6.0, kept=4.0, tensor=0.01, data=2.0, hop=0.05),
    Cluster(96, 24, 12, 24, 12.0, tensor=0.01, hop=0.1),
    Cluster(96, 12, 24, 24, 24.0, data=1.0, hop=0.1),
)
EDGES = (
    Cluster(1, 6, 4, 8, 66.0),  # one GPU, filled to the last byte
    Cluster(8, 8, 8, 8, 8.0, kept=0.0, tensor=9.0),  # only where all eight share the model, to the last byte
    Cluster(7, 14, 7, 21, 1000.0),  # a prime
    Cluster(16, 8, 8, 8, 40.0, work=0.0, tensor=0.0, data=0.0, hop=0.0),  # all equally fast
    Cluster(12, 5, 4, 6, 100.0, data=0.0),
)
TOO_SMALL = (
    Cluster(16, 8, 4, 16, 2.0),  # nothing fits
    Cluster(10, 3, 7, 3, 1000.0),  # nothing divides
    Cluster(0, 8, 4, 16, 1000.0),
    Cluster(-8, 8, 4, 16, 1000.0),
)


def needed(case: Cluster) -> list[Layout]:
    """The layouts of which nobody can say, without asking, that they are slower than the best."""
    return [layout for layout in case.fitting if case.bound(*layout) <= case.least * (1 + 1e-9)]


# --- what mistakes would choose ---------------------------------------------------------------------------------------

Choice = tuple[Mistake, Callable[[Cluster], Iterable[Layout]], Callable[[Cluster, Layout], Any]]


def _time(case: Cluster, layout: Layout) -> float:
    return case.seconds(*layout)


def _under(case: Cluster, dp_of: int, tp_of: int, pp_of: int) -> list[Layout]:
    """Layouts that fit and divide these sizes. Everything divides 0."""
    even = ((dp, tp, pp) for dp, tp, pp in case.all if not (dp_of % dp or tp_of % tp or pp_of % pp))
    return [layout for layout in even if case.nbytes(*layout) <= case.memory]


def _first_dip(case: Cluster) -> list[Layout]:
    """Where seconds rise for the first time, by rising bound."""
    order = sorted(case.fitting, key=lambda layout: case.bound(*layout))
    rises = (a for a, b in itertools.pairwise(order) if _time(case, b) > _time(case, a))
    return [next(rises, order[-1])] if order else []


def _power(n: int) -> bool:
    return n & (n - 1) == 0


CHOICES: tuple[Choice, ...] = (
    (known.LAYOUT_MEMORY_IGNORED, lambda case: case.even, _time),
    (known.LAYOUT_NOT_DIVIDED, lambda case: _under(case, 0, case.heads, case.layers), _time),
    (known.LAYOUT_NOT_DIVIDED, lambda case: _under(case, case.batch, 0, case.layers), _time),
    (known.LAYOUT_NOT_DIVIDED, lambda case: _under(case, case.batch, case.heads, 0), _time),
    (known.LAYOUT_NOT_DIVIDED, lambda case: _under(case, 0, 0, case.layers), _time),
    (known.LAYOUT_NOT_DIVIDED, lambda case: _under(case, 0, case.heads, 0), _time),
    (known.LAYOUT_NOT_DIVIDED, lambda case: _under(case, case.batch, 0, 0), _time),
    (known.LAYOUT_NOT_DIVIDED, lambda case: _under(case, 0, 0, 0), _time),
    (known.LAYOUT_NOT_DIVIDED, lambda case: _under(case, case.batch, case.layers, case.heads), _time),
    (known.LAYOUT_NOT_DIVIDED, lambda case: _under(case, case.layers, case.heads, case.batch), _time),
    (known.LAYOUT_NOT_DIVIDED, lambda case: _under(case, case.heads, case.batch, case.layers), _time),
    (known.LAYOUT_BY_BOUND, lambda case: case.fitting, lambda case, layout: case.bound(*layout)),
    (known.LAYOUT_STOPS_EARLY, _first_dip, _time),
    (known.LAYOUT_LEAST_MEMORY, lambda case: case.fitting, lambda case, layout: case.nbytes(*layout)),
    (known.LAYOUT_SLOWEST, lambda case: case.fitting, lambda case, layout: -case.seconds(*layout)),
    (known.LAYOUT_POWERS_OF_TWO, lambda case: [x for x in case.fitting if _power(x[1]) and _power(x[2])], _time),
    (known.LAYOUT_STOPS_AT_EIGHT, lambda case: [x for x in case.fitting if x[1] <= 8], _time),
    (known.LAYOUT_STOPS_AT_EIGHT, lambda case: [x for x in case.fitting if max(x[1:]) <= 8], _time),
    (known.LAYOUT_NO_ONES, lambda case: [x for x in case.fitting if min(x) > 1], _time),
    (known.LAYOUT_NO_ONES, lambda case: [x for x in case.fitting if min(x[1:]) > 1], _time),
    (known.LAYOUT_FULL_NOT_TAKEN, lambda case: [x for x in case.fitting if case.nbytes(*x) < case.memory], _time),
    (known.LAYOUT_FIRST_THAT_FITS, lambda case: case.fitting, lambda case, x: (x[1], x[2])),
    (known.LAYOUT_FIRST_THAT_FITS, lambda case: case.fitting, lambda case, x: (x[2], x[1])),
    (known.LAYOUT_FIRST_THAT_FITS, lambda case: case.fitting, lambda case, x: (x[0], x[1])),
    (known.LAYOUT_FIRST_THAT_FITS, lambda case: case.fitting, lambda case, x: (x[0], x[2])),
    (known.LAYOUT_FIRST_THAT_FITS, lambda case: case.fitting, lambda case, x: -x[0]),
    (known.LAYOUT_FIRST_THAT_FITS, lambda case: case.all, lambda case, x: -x[0]),
    (known.LAYOUT_FIRST_THAT_FITS, lambda case: case.all, lambda case, x: -x[1]),
    (known.LAYOUT_FIRST_THAT_FITS, lambda case: case.all, lambda case, x: -x[2]),
)  # fmt: skip


def chosen(choice: Choice, case: Cluster) -> list[Layout]:
    _, layouts, key = choice
    keys = {layout: key(case, layout) for layout in layouts(case)}
    return [layout for layout, value in keys.items() if value == min(keys.values())]


def _random() -> tuple[Cluster, ...]:
    """Clusters that need some layouts' seconds, not all, and the last byte; each tells one mistake from the best."""
    source = random.Random("layouts")
    cases: list[Cluster] = []
    while len(cases) < 30:
        sizes = (source.choice((12, 16, 24, 36, 48, 64, 72)), source.choice((6, 8, 12, 18, 24, 32)))
        case = Cluster(
            *sizes, source.choice((4, 6, 8, 12, 16, 24)), source.choice((12, 24, 32, 48, 96)), math.inf,
            kept=source.uniform(0, 40), work=source.uniform(20, 90), tensor=source.choice((0.001, 0.01, 0.1)),
            data=source.uniform(0, 6), hop=source.choice((0.0, 0.02, 0.2)),
        )  # fmt: skip
        if not case.even:
            continue
        case = replace(case, memory=case.nbytes(*source.choice(case.even)))
        few = 2 < len(needed(case)) < len(case.fitting)
        mistaken = chosen(CHOICES[len(cases) % len(CHOICES)], case)
        if few and not any(map(case.is_best, mistaken)):
            cases.append(case)
    return tuple(cases)


RANDOM = _random()
