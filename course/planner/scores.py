"""How far predictions are from what was measured: errors of a family, and whether layouts come in the right order.

Pure arithmetic on pairs of numbers.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

CLOSE = 0.03
"""Measured times that differ by less are not ranked: runs repeat no better."""

SMALLEST_GROUP = 8


class Pair(NamedTuple):
    """A prediction and its measurement, of row `id`; `group` says which layouts compete, `plan` tells them apart."""

    id: str
    predicted: float
    measured: float
    group: str = ""
    plan: Hashable = None

    @property
    def error(self) -> float:
        """predicted / measured - 1."""
        return self.predicted / self.measured - 1


def error_table(pairs: Sequence[Pair]) -> dict[str, object]:
    """{"n", "mape", "bias", "worst", "worst_id"}: mean absolute and mean error as fractions, the worst and its row."""
    errors = [pair.error for pair in pairs]
    worst = max(pairs, key=lambda pair: abs(pair.error))
    return {
        "n": len(pairs),
        "mape": sum(map(abs, errors)) / len(errors),
        "bias": sum(errors) / len(errors),
        "worst": worst.error,
        "worst_id": worst.id,
    }


def kendall_tau(pairs: Sequence[Pair]) -> float | None:
    """(right - wrong) / all, over pairs of layouts whose measured times differ by more than 3 %; a tie in prediction
    counts as neither (Kendall 1938). None without such a pair."""
    right = wrong = total = 0
    for one, other in itertools.combinations(pairs, 2):
        if abs(one.measured - other.measured) <= CLOSE * min(one.measured, other.measured):
            continue
        if one.plan == other.plan and one.plan is not None:
            continue  # the same layout run twice: nothing to rank
        total += 1
        order = (one.predicted - other.predicted) * (one.measured - other.measured)
        right += order > 0
        wrong += order < 0
    return (right - wrong) / total if total else None


def kendall_table(pairs: Sequence[Pair]) -> dict[str, float]:
    """Kendall's tau of each group of at least 8 layouts."""
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(pair.group, []).append(pair)
    taus: Mapping[str, float | None] = {
        name: kendall_tau(group) for name, group in groups.items() if name and len(group) >= SMALLEST_GROUP
    }
    return {name: tau for name, tau in taus.items() if tau is not None}
