"""A mesh by hand, for the checks of lesson 09: where each rank sits, in this and in any other order of the axes.

No check itself. Oracles are plain arithmetic; the library's own version stands in `spec.layout`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from course.grading.mistakes import Mistake
from course.grading.mistakes.lesson_09 import MESH_AXES_SWAPPED, MESH_TENSOR_SLOWEST

KEYS = ("pp", "dp", "tp")
ORDER = ("tp", "dp", "pp")  # fastest first
Coordinates = Mapping[str, int]


class Mesh(NamedTuple):
    """The sizes of the three axes."""

    dp: int
    pp: int
    tp: int

    @property
    def sizes(self) -> dict[str, int]:
        return self._asdict()

    @property
    def ranks(self) -> range:
        return range(math.prod(self))

    def __str__(self) -> str:
        return ", ".join(f"{axis}={size}" for axis, size in self.sizes.items())


UNEQUAL = Mesh(dp=3, pp=2, tp=4)
OTHERS = (
    Mesh(dp=2, pp=3, tp=4),
    Mesh(dp=4, pp=3, tp=2),
    Mesh(dp=1, pp=3, tp=2),
    Mesh(dp=5, pp=1, tp=3),
    Mesh(dp=2, pp=5, tp=1),
    Mesh(dp=1, pp=1, tp=6),
    Mesh(dp=1, pp=4, tp=1),
    Mesh(dp=1, pp=1, tp=1),
)
NO_MESHES = (Mesh(0, 2, 2), Mesh(2, 0, 2), Mesh(2, 2, 0), Mesh(-2, 2, -2))


def coordinates(rank: int, sizes: Mapping[str, int], order: Sequence[str] = ORDER) -> dict[str, int]:
    """Where a rank sits, with the axes in this order, fastest first."""
    found = {}
    for axis in order:
        rank, found[axis] = divmod(rank, sizes[axis])
    return found


def rank_of(place: Coordinates, sizes: Mapping[str, int], order: Sequence[str] = ORDER) -> int:
    """The rank at a place, with the axes in this order, fastest first."""
    rank = 0
    for axis in reversed(order):
        rank = rank * sizes[axis] + place[axis]
    return rank


def groups(axis: str, sizes: Mapping[str, int], order: Sequence[str] = ORDER) -> list[list[int]]:
    """The ranks that differ in this axis alone, sorted."""
    found: dict[tuple[int, ...], list[int]] = {}
    for rank in range(math.prod(sizes.values())):
        place = coordinates(rank, sizes, order)
        found.setdefault(tuple(place[other] for other in KEYS if other != axis), []).append(rank)
    return sorted(found.values())


def other_orders() -> Iterator[tuple[Mistake, tuple[str, ...]]]:
    """Each wrong order of the axes, fastest first, and what that mistake is called."""
    for order in itertools.permutations(KEYS):
        if order != ORDER:
            yield MESH_TENSOR_SLOWEST if order[-1] == "tp" else MESH_AXES_SWAPPED, order
