"""Checks of `axis_groups`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from course.grading.bench import Bench, Seat, Trouble
from course.grading.check import Check, Finding
from course.grading.checks import mesh
from course.grading.checks.alone import asked, raised
from course.grading.checks.cost import outcome, refused
from course.grading.checks.hello import lazy
from course.grading.checks.mesh import KEYS, NO_MESHES, OTHERS, UNEQUAL, Mesh
from course.grading.mistakes import Mistake
from course.grading.mistakes import lesson_09 as known
from course.grading.plain import type_in_words, whole_numbers

Groups = list[list[int]]


def _probe(learner: Any, cases: tuple[tuple[str, Mesh], ...], seat: Seat) -> Any:
    return [learner(axis, **case.sizes) for axis, case in cases]


def _probe_refusal(learner: Any, case: tuple[str, Mesh], seat: Seat) -> Any:
    return outcome(lambda: learner(case[0], **case[1].sizes))


def _shown(axis: str, case: Mesh) -> str:
    return f'axis_groups("{axis}", {case})'


def _grouped(bench: Bench, meshes: Sequence[Mesh]) -> Finding | None:
    cases = tuple((axis, case) for case in meshes for axis in reversed(KEYS))
    values = asked(bench, _probe, cases)
    if isinstance(values, Trouble):
        return Finding(
            f"for one of {', '.join(_shown(*case) for case in cases[:3])} {raised(values)}", "", values.advice
        )
    for (axis, case), value in zip(cases, values, strict=True):
        found, want = _groups(value), mesh.groups(axis, case.sizes)
        if found == want:
            continue
        got = f"{_shown(axis, case)} returned {_in_words(value, found)}"
        advice = "Draw the mesh as a table and mark one group of each axis."
        return Finding(got, _some(want), advice, lazy(value) or _mistake(axis, case, value, found))
    return None


def _groups(value: Any) -> Groups | None:
    """The lists of whole numbers in a list; None for anything else."""
    if type(value) not in (list, tuple):
        return None
    found = [whole_numbers(group) for group in value]
    return None if any(group is None for group in found) else [group or [] for group in found]


def _in_words(value: Any, found: Groups | None) -> str:
    if found is not None:
        return _some(found) if found else "an empty list"
    inside = f" with {type_in_words(next(iter(value)))} in it" if type(value) in (list, tuple, set) and value else ""
    return type_in_words(value) + inside


def _some(groups: Groups) -> str:
    """The first groups, for a sentence."""
    shown = ", ".join(str(group) for group in groups[:4])
    return f"{shown} and {len(groups) - 4} more" if len(groups) > 4 else shown


def _mistake(axis: str, case: Mesh, value: Any, found: Groups | None) -> Mistake | None:
    want = mesh.groups(axis, case.sizes)
    if found is None:
        flat = whole_numbers(value)
        if flat == want[0]:
            return known.GROUPS_FIRST_ONLY
        return known.GROUPS_FLAT if flat and sorted(flat) == list(case.ranks) else None
    if found == want[:1]:
        return known.GROUPS_FIRST_ONLY
    if sorted(sorted(group) for group in found) == want:
        return known.GROUPS_UNSORTED
    if len(found) == len(case.ranks) and sorted({tuple(sorted(group)) for group in found}) == list(map(tuple, want)):
        return known.GROUPS_REPEATED
    return next(
        (mistake for mistake, guess in _guesses(axis, case) if sorted(map(sorted, found)) == sorted(guess)), None
    )


def _guesses(axis: str, case: Mesh) -> Iterator[tuple[Mistake, Groups]]:
    sizes, want = case.sizes, mesh.groups(axis, case.sizes)
    size = sizes[axis]
    equals: dict[int, list[int]] = {}
    for rank in case.ranks:
        equals.setdefault(mesh.coordinates(rank, sizes)[axis], []).append(rank)
    yield known.GROUPS_OF_EQUALS, list(equals.values())
    if size == 1:
        yield known.GROUPS_SINGLES_LEFT_OUT, []
    yield known.GROUPS_OF_INDICES, [list(range(size)) for _ in want]
    yield known.GROUPS_NEIGHBOURS, [list(case.ranks[k : k + size]) for k in range(0, math.prod(case), size)]
    for _, order in mesh.other_orders():
        yield known.GROUPS_OTHER_ORDER, mesh.groups(axis, sizes, order)


_NO_AXES = (*(("tp", case) for case in NO_MESHES), *((axis, UNEQUAL) for axis in ("cp", "TP", "")))


def _refuses(bench: Bench) -> Finding | None:
    return next((f for case in _NO_AXES if (f := refused(bench, _probe_refusal, case, _shown(*case)))), None)


_MESH = f"all groups of {UNEQUAL}"

CHECKS: dict[str, Sequence[Check]] = {
    "axis_groups": (
        Check(_MESH, 4, lambda bench: _grouped(bench, (UNEQUAL,)), "each group once, sorted"),
        Check(
            "eight other meshes, some with axes of size 1", 2, lambda bench: _grouped(bench, OTHERS), "", needs=_MESH
        ),
        Check("the impossible is refused", 1, _refuses, "a ValueError"),
    )
}
