"""Who sits where: ranks laid out on the axes pp, dp and tp, and back.

    rank = (pp_index * dp + dp_index) * tp + tp_index        tp fastest, pp slowest

Pure arithmetic, standard library only. Groups of real ranks are made in `parallel.hybrid`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from course.errors import UsageError
from course.spec.model import ModelSpec

AXES = ("pp", "dp", "tp")  # slowest first


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """How many ways the batch (dp), the layers (pp) and each layer (tp) are split. Printed as "dp=2,pp=2,tp=2".

    Raises UsageError for sizes that are no whole numbers of at least 1.
    """

    dp: int = 1
    pp: int = 1
    tp: int = 1

    def __post_init__(self) -> None:
        for axis in AXES:
            size = getattr(self, axis)
            if not isinstance(size, int) or isinstance(size, bool) or size < 1:
                raise UsageError(f"Layout({axis}={size!r}): {axis} must be a whole number of at least 1")

    def __str__(self) -> str:
        return f"dp={self.dp},pp={self.pp},tp={self.tp}"

    @property
    def world_size(self) -> int:
        return self.dp * self.pp * self.tp

    @property
    def sizes(self) -> dict[str, int]:
        return {axis: getattr(self, axis) for axis in AXES}

    @classmethod
    def parse(cls, text: str) -> Layout:
        """ "dp=2,tp=4" -> Layout(dp=2, tp=4). Raises UsageError that names the part it cannot read."""
        sizes: dict[str, int] = {}
        for part in filter(None, (part.strip() for part in text.split(","))):
            found = re.fullmatch(r"(dp|pp|tp)\s*=\s*(\d+)", part)
            if found is None or found[1] in sizes:
                raise UsageError(f"layout {text!r}: cannot read {part!r}; write it as dp=2,pp=2,tp=2, each axis once")
            sizes[found[1]] = int(found[2])
        return cls(**sizes)

    def check(self, world_size: int, spec: ModelSpec | None = None, *, batch: int | None = None) -> None:
        """Raises UsageError, with the layouts that do fit, where this one does not fit the ranks, model or batch.

        batch: samples a step over all ranks; every rank of dp needs as many.
        """
        reason = self._misfit(world_size, spec, batch)
        if reason:
            near = [str(layout) for layout in layouts_of(world_size) if not layout._misfit(world_size, spec, batch)]
            near.sort(key=lambda text: self._distance(Layout.parse(text)))
            raise UsageError(f"{reason}: try {' or '.join(near[:3]) or 'fewer ranks'}")

    def _misfit(self, world_size: int, spec: ModelSpec | None, batch: int | None) -> str:
        if self.world_size != world_size:
            return f"{self} needs {self.world_size} ranks, but this run has {world_size}"
        if batch is not None and batch % self.dp:
            return f"{self}: a batch of {batch} does not divide by dp={self.dp}"
        if spec is None:
            return ""
        if spec.layers + 2 < self.pp:
            return (
                f"{self}: {spec.layers} blocks, embedding and head make {spec.layers + 2} layers, not {self.pp} stages"
            )
        for what, size in (("heads", spec.heads), ("hidden channels", spec.hidden)):
            if size % self.tp:
                return f"{self}: {size} {what} do not divide by tp={self.tp}"
        if spec.vocab < self.tp:
            return f"{self}: a vocabulary of {spec.vocab} cannot be split over tp={self.tp}"
        return ""

    def _distance(self, other: Layout) -> int:
        return sum(abs(getattr(self, axis) - getattr(other, axis)) for axis in AXES)


def layouts_of(world_size: int) -> tuple[Layout, ...]:
    """All layouts of so many ranks."""
    divisors = [k for k in range(1, world_size + 1) if world_size % k == 0]
    return tuple(
        Layout(dp=dp, pp=pp, tp=world_size // (dp * pp))
        for pp, dp in itertools.product(divisors, repeat=2)
        if world_size % (dp * pp) == 0
    )


def rank_to_coordinates(rank: int, *, dp: int, pp: int, tp: int) -> dict[str, int]:
    """{"pp": ..., "dp": ..., "tp": ...}: where a rank sits on each axis. Raises UsageError for a rank beyond."""
    layout = Layout(dp=dp, pp=pp, tp=tp)
    if not 0 <= rank < layout.world_size:
        raise UsageError(f"rank {rank}: {layout} has ranks 0 to {layout.world_size - 1}")
    return {"pp": rank // (dp * tp), "dp": rank // tp % dp, "tp": rank % tp}


def coordinates_to_rank(coordinates: Mapping[str, int], *, dp: int, pp: int, tp: int) -> int:
    """The rank at {"pp": ..., "dp": ..., "tp": ...}. Raises UsageError for a coordinate that is missing or beyond."""
    sizes = Layout(dp=dp, pp=pp, tp=tp).sizes
    for axis, size in sizes.items():
        if axis not in coordinates or not 0 <= coordinates[axis] < size:
            raise UsageError(
                f"coordinates {dict(coordinates)}: {axis} must be from 0 to {size - 1}, found {coordinates.get(axis)}"
            )
    return (coordinates["pp"] * dp + coordinates["dp"]) * tp + coordinates["tp"]


def axis_groups(axis: str, *, dp: int, pp: int, tp: int) -> list[list[int]]:
    """The groups of an axis: ranks that differ in it alone, each list sorted, the lists by their first rank."""
    sizes = Layout(dp=dp, pp=pp, tp=tp).sizes
    if axis not in sizes:
        raise UsageError(f"axis_groups({axis!r}): the axes are {', '.join(AXES)}")
    groups: dict[tuple[tuple[str, int], ...], list[int]] = {}
    for rank in range(dp * pp * tp):
        others = {k: v for k, v in rank_to_coordinates(rank, dp=dp, pp=pp, tp=tp).items() if k != axis}
        groups.setdefault(tuple(others.items()), []).append(rank)
    return sorted(groups.values())


def place_axes(nbytes: Mapping[str, float], sizes: Mapping[str, int], per_node: int) -> tuple[str, ...]:
    """The order of axes, fastest first, for which the fewest bytes cross from node to node.

    nbytes: what a rank sends along each axis in a step, to the next rank of its ring. sizes: ranks along each axis.
    per_node: consecutive ranks that share a node. All orders are tried; of equal ones the first comes back.
    """
    if set(nbytes) != set(sizes) or per_node < 1:
        raise UsageError(
            f"place_axes: bytes are given for {sorted(nbytes)} and sizes for {sorted(sizes)}, with {per_node} ranks a "
            "node: name the same axes in both, and at least 1 rank a node"
        )
    return min(itertools.permutations(sizes), key=lambda order: bytes_across(order, nbytes, sizes, per_node))


def bytes_across(order: Sequence[str], nbytes: Mapping[str, float], sizes: Mapping[str, int], per_node: int) -> float:
    """Bytes that cross from node to node in a step, with axes laid out in `order`, fastest first."""
    world_size, total, stride = 1, 0.0, 1
    for size in sizes.values():
        world_size *= size
    for axis in order:
        size = sizes[axis]
        hops = 0
        for rank in range(world_size if size > 1 else 0):
            index = rank // stride % size
            following = rank + ((index + 1) % size - index) * stride
            hops += rank // per_node != following // per_node
        total += hops * nbytes[axis]
        stride *= size
    return total
