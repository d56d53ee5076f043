"""Checks of `place_axes`: the bytes that cross nodes in the order that came back, against the fewest of all orders."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from course.grading.bench import Bench, Seat, Trouble
from course.grading.check import Check, Finding
from course.grading.checks.alone import asked, raised
from course.grading.checks.cost import outcome, refused
from course.grading.checks.hello import lazy
from course.grading.mistakes import Mistake
from course.grading.mistakes import lesson_09 as known
from course.grading.plain import type_in_words

Order = tuple[str, ...]


class Traffic(NamedTuple):
    """What a learner is asked: bytes and size of each axis, in the order of the dicts, and ranks a node."""

    axes: tuple[tuple[str, float, int], ...]
    per_node: int

    @property
    def nbytes(self) -> dict[str, float]:
        return {axis: nbytes for axis, nbytes, _ in self.axes}

    @property
    def sizes(self) -> dict[str, int]:
        return {axis: size for axis, _, size in self.axes}

    def __str__(self) -> str:
        return f"place_axes({self.nbytes}, {self.sizes}, {self.per_node})"


def _probe(learner: Any, cases: tuple[Traffic, ...], seat: Seat) -> Any:
    return [learner(case.nbytes, case.sizes, case.per_node) for case in cases]


def _probe_refusal(
    learner: Any, case: tuple[tuple[tuple[str, float], ...], tuple[tuple[str, int], ...], int], seat: Seat
) -> Any:
    return outcome(lambda: learner(dict(case[0]), dict(case[1]), case[2]))


# --- the oracle, and what mistakes would count instead ----------------------------------------------------------------


def across(
    order: Sequence[str],
    case: Traffic,
    *,
    wrap: bool = True,
    first_ring: bool = False,
    node: Callable[[int], int] | None = None,
) -> float:
    """Bytes from node to node. Without `wrap` the last of a ring sends nothing; with `first_ring` only the ring of
    rank 0 counts; `node`: another idea of where a rank sits."""
    node = node or (lambda rank: rank // case.per_node)
    total, stride = 0.0, 1
    for axis in order:
        size = case.sizes[axis]
        for rank in range(math.prod(case.sizes.values())):
            index = rank // stride % size
            if (not wrap and index == size - 1) or (first_ring and rank != index * stride):
                continue
            to = rank + ((index + 1) % size - index) * stride
            total += case.nbytes[axis] * (node(rank) != node(to))
        stride *= size
    return total


def _alike(case: Traffic) -> Traffic:
    """The same mesh with one byte a message."""
    return Traffic(tuple((axis, 1.0, size) for axis, _, size in case.axes), case.per_node)


def _other_places(order: Sequence[str], case: Traffic) -> float:
    """Bytes between different places of a node, whichever nodes."""
    return across(order, case, node=lambda rank: rank % case.per_node)


def _out_of_rings(order: Sequence[str], case: Traffic) -> float:
    """Bytes from node to node where the last rank of a ring sends to the first of another one."""
    total, stride, n = 0.0, 1, math.prod(case.sizes.values())
    for axis in order:
        crossing = sum(rank // case.per_node != (rank + stride) % n // case.per_node for rank in range(n))
        total += case.nbytes[axis] * crossing
        stride *= case.sizes[axis]
    return total


def _inversions(order: Sequence[str], key: Callable[[str], float]) -> float:
    """How far an order is from rising by `key`."""
    return sum(key(a) > key(b) for a, b in itertools.combinations(order, 2))


def _hops(order: Sequence[str], case: Traffic) -> float:
    """Bytes times how far each message goes, whatever the nodes."""
    total, stride = 0.0, 1
    for axis in order:
        total += case.nbytes[axis] * stride * (case.sizes[axis] > 1)
        stride *= case.sizes[axis]
    return total


_COUNTED_INSTEAD: tuple[tuple[Mistake, Callable[[Order, Traffic], float]], ...] = (
    (known.PLACE_SLOWEST_FIRST, lambda order, case: across(order[::-1], case)),
    (known.PLACE_MOST_ACROSS, lambda order, case: -across(order, case)),
    (known.PLACE_NO_WRAP, lambda order, case: across(order, case, wrap=False)),
    (known.PLACE_FIRST_RING, lambda order, case: across(order, case, first_ring=True)),
    (known.PLACE_OUT_OF_RING, _out_of_rings),
    (known.PLACE_UNWEIGHTED, lambda order, case: across(order, _alike(case))),
    (known.PLACE_NOT_THE_NODE, _other_places),
    (known.PLACE_BUSIEST_FIRST, lambda order, case: _inversions(order, lambda axis: -case.nbytes[axis])),
    (known.PLACE_BUSIEST_FIRST, lambda order, case: _inversions(order, lambda axis: case.nbytes[axis])),
    (known.PLACE_TOTALS_SORTED, lambda order, case: _inversions(order, lambda a: -case.nbytes[a] * case.sizes[a])),
    (known.PLACE_TOTALS_SORTED, lambda order, case: _inversions(order, lambda a: case.nbytes[a] * (1 - case.sizes[a]))),
    (known.PLACE_TOTALS_SORTED, lambda order, case: _inversions(order, lambda a: -case.nbytes[a] / case.sizes[a])),
    (known.PLACE_BY_SIZE, lambda order, case: _inversions(order, lambda axis: case.sizes[axis])),
    (known.PLACE_BY_SIZE, lambda order, case: _inversions(order, lambda axis: -case.sizes[axis])),
    (known.PLACE_FIXED, lambda order, case: _inversions(order, lambda axis: [*case.sizes].index(axis))),
    (known.PLACE_FIXED, lambda order, case: _inversions(order, lambda axis: -[*case.sizes].index(axis))),
    (known.PLACE_FIXED, lambda order, case: _inversions(order, lambda axis: ord(axis[0]))),
    (known.PLACE_FIXED, lambda order, case: _inversions(order, lambda axis: -ord(axis[0]))),
    (known.PLACE_NODE_IGNORED, _hops),
)  # fmt: skip


def _orders(case: Traffic) -> Iterator[Order]:
    return itertools.permutations(case.sizes)


# --- the cases --------------------------------------------------------------------------------------------------------

HAND = (
    Traffic((("pp", 10.0, 2), ("dp", 100.0, 2), ("tp", 1000.0, 4)), 4),
    Traffic((("pp", 1000.0, 2), ("dp", 100.0, 2), ("tp", 10.0, 4)), 4),
    Traffic((("tp", 5.0, 4), ("dp", 4.0, 3)), 3),  # the busier axis does not fit into a node
    Traffic((("dp", 30.0, 8), ("tp", 20.0, 2), ("pp", 50.0, 1)), 8),
)
EVEN = (
    Traffic((("pp", 7.0, 2), ("dp", 7.0, 2), ("tp", 7.0, 2)), 4),  # ties
    Traffic((("pp", 7.0, 2), ("dp", 3.0, 2), ("tp", 9.0, 2)), 8),  # all on one node
    Traffic((("pp", 7.0, 2), ("dp", 3.0, 2), ("tp", 9.0, 2)), 1),  # nobody shares one
    Traffic((("dp", 3.0, 1), ("tp", 9.0, 1)), 8),
    Traffic((("dp", 3.0, 6),), 4),
    Traffic((("pp", 0.0, 2), ("dp", 0.0, 3)), 2),
)


def _random_cases() -> tuple[Traffic, ...]:
    source = random.Random("places")
    cases: list[Traffic] = []
    while len(cases) < 30:
        names = source.sample(["pp", "dp", "tp", "cp", "expert"], source.choice((3, 3, 4)))
        axes = tuple((name, float(source.randint(1, 1000)), source.choice((1, 2, 3, 4, 5, 6))) for name in names)
        case = Traffic(axes, source.choice((2, 3, 4, 5, 6, 8)))
        if 12 <= math.prod(case.sizes.values()) <= 96:
            cases.append(case)
    return tuple(cases)


RANDOM = _random_cases()


# --- what is compared -------------------------------------------------------------------------------------------------


def _ordered(bench: Bench, cases: tuple[Traffic, ...]) -> Finding | None:
    values = asked(bench, _probe, cases)
    if isinstance(values, Trouble):
        return Finding(f"for one of {', '.join(map(str, cases[:2]))} {raised(values)}", "", values.advice)
    for case, value in zip(cases, values, strict=True):
        if not _complete(value, case):
            said = (
                f"{type_in_words(value)}: {', '.join(map(str, value))}"
                if type(value) in (list, tuple)
                else type_in_words(value)
            )
            got = f"{case} returned {said}"
            return Finding(got, "each axis once, fastest first", "Return the names of the axes.", lazy(value))
        found, fewest = across(value, case), min(across(order, case) for order in _orders(case))
        if found > fewest * (1 + 1e-9):
            got = f"{case} returned {', '.join(value)}: {found:.10g} bytes cross"
            best = next(order for order in _orders(case) if across(order, case) == fewest)
            advice = f"Lay out {', '.join(value)} and {', '.join(best)} on paper, node by node, and mark what crosses."
            return Finding(got, f"{fewest:.10g} bytes", advice, _mistake(bench))
    return None


def _complete(value: Any, case: Traffic) -> bool:
    """Whether all axes are there, each once."""
    return type(value) in (list, tuple) and sorted(map(str, value)) == sorted(case.sizes)


def _mistake(bench: Bench) -> Mistake | None:
    """The first thing counted instead of bytes across for which all that came back is best."""
    cases = (*HAND, *RANDOM)
    found: list[Any] = []
    for some in (HAND, RANDOM):
        values = asked(bench, _probe, some)
        if isinstance(values, Trouble):
            return None
        found += values
    if not all(_complete(value, case) for case, value in zip(cases, found, strict=True)):
        return known.PLACE_FIXED if all(value == found[0] for value in found) else None
    for mistake, count in _COUNTED_INSTEAD:
        pairs = zip(cases, found, strict=True)
        if all(count(tuple(value), case) <= min(count(o, case) for o in _orders(case)) for case, value in pairs):
            return mistake
    return None


_TWO = (("dp", 1.0), ("tp", 2.0))
_IMPOSSIBLE = (
    (_TWO, (("dp", 2), ("tp", 2)), 0),
    (_TWO, (("dp", 2), ("tp", 2)), -4),
    (_TWO, (("dp", 2), ("pp", 2)), 2),
    (_TWO, (("dp", 2),), 2),
    (_TWO[:1], (("dp", 2), ("tp", 2)), 2),
)


def _refuses(bench: Bench) -> Finding | None:
    for nbytes, sizes, per_node in _IMPOSSIBLE:
        shown = f"place_axes({dict(nbytes)}, {dict(sizes)}, {per_node})"
        if finding := refused(bench, _probe_refusal, (nbytes, sizes, per_node), shown):
            return finding
    return None


_HAND = "four cases worked out by hand"

CHECKS: dict[str, Sequence[Check]] = {
    "place_axes": (
        Check(_HAND, 3, lambda bench: _ordered(bench, HAND), "an order with the fewest bytes across"),
        Check("thirty random meshes", 4, lambda bench: _ordered(bench, RANDOM), "the fewest bytes", needs=_HAND),
        Check("ties, one node, one axis", 2, lambda bench: _ordered(bench, EVEN), "any of the best", needs=_HAND),
        Check("the impossible is refused", 1, _refuses, "a ValueError"),
    )
}
