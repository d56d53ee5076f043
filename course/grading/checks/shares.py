"""Gradients that are split over ranks in several ways at once: what each rank is given, and what is true of all of it.

No check itself. A case names the kind of each entry: "world" is split over all ranks, "pair" over ranks 0 and 1, and
over 2 and 3 once more, and "whole" is held by every rank.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from course.grading.bench import Seat
from course.grading.checks.gradients import float32
from course.grading.plain import plain
from course.ranks import calls_made

Gradients = tuple[tuple[float, ...] | None, ...]  # one a parameter
MAX_NORM = 1.5


@dataclass(frozen=True, slots=True)
class Shares:
    """A case: the number of ranks, the kind of each entry, the size of the numbers and what is missing."""

    n: int
    kinds: tuple[str, ...]
    scale: float = 1.0
    max_norm: float = MAX_NORM
    holes: bool = False

    def ranks(self, kind: str, rank: int) -> tuple[int, ...]:
        """The ranks that hold an entry of this kind together with `rank`."""
        first = rank // 2 * 2
        return {"world": tuple(range(self.n)), "pair": (first, first + 1), "whole": (rank,)}[kind]

    def given(self, entry: int, rank: int) -> Gradients:
        """The gradients of one entry on one rank, float32."""
        kind = self.kinds[entry]
        part = self.ranks(kind, rank).index(rank)
        source = random.Random(f"{self.kinds} {entry} {part}")
        sizes = (30 + 4 * entry, 7, 21)
        made = [tuple(float32(self.scale * source.gauss(0.2, 1.0)) for _ in range(size)) for size in sizes]
        if self.holes and kind != "whole" and part == 1:
            return ()
        return (made[0], None, made[2]) if self.holes else tuple(made)

    def square(self, entry: int, rank: int) -> float:
        """The sum of squares of what one rank holds of an entry."""
        return sum(number * number for gradient in self.given(entry, rank) for number in gradient or ())

    def summed(self, entry: int, rank: int) -> float:
        """The sum of squares of a whole entry."""
        return sum(self.square(entry, other) for other in self.ranks(self.kinds[entry], rank))

    @property
    def norm(self) -> float:
        return math.sqrt(sum(self.summed(entry, 0) for entry in range(len(self.kinds))))

    @property
    def factor(self) -> float:
        return self.max_norm / self.norm if self.norm > self.max_norm else 1.0

    def __str__(self) -> str:
        words = {"world": "split over all ranks", "pair": "split over pairs of ranks", "whole": "held by all ranks"}
        entries = ", then ".join(words[kind] for kind in self.kinds)
        return f"with {self.n} rank{'s' if self.n > 1 else ''} and entries {entries}"


def probe(learner: Any, case: Shares, seat: Seat) -> Any:
    """Runs in the rank: `learner(entries, max_norm)`, and what it left behind."""
    groups = _groups(case)
    entries = [
        (_parameters(case.given(entry, seat.rank)), groups[kind][seat.rank]) for entry, kind in enumerate(case.kinds)
    ]
    before = [plain(p) for parameters, _ in entries for p in parameters]
    first_call = calls_made()
    held = [list(parameters) for parameters, _ in entries]
    returned = plain(learner(entries, case.max_norm))
    return {
        "returned": returned,
        "first_call": first_call,
        "gradients": [[p.grad for p in parameters] for parameters in held],
        "changed": [plain(p) for parameters in held for p in parameters] != before,
    }


def _groups(case: Shares) -> dict[str, Sequence[Any]]:
    """For each kind the group of each rank; every rank makes all groups."""
    import torch.distributed as dist

    pairs = [dist.new_group([k, k + 1]) for k in range(0, case.n, 2)] if "pair" in case.kinds else []
    return {
        "world": [dist.group.WORLD] * case.n,
        "pair": [pair for pair in pairs for _ in range(2)],
        "whole": [None] * case.n,
    }


def _parameters(gradients: Gradients) -> list[Any]:
    import torch

    made: list[Any] = []
    for size, gradient in zip((30, 7, 21), gradients, strict=False):
        p = torch.nn.Parameter(torch.linspace(-3, 5, len(gradient) if gradient else size))
        p.grad = None if gradient is None else torch.tensor(gradient)
        made.append(p)
    return made
