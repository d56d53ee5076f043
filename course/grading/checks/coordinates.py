"""Checks of `rank_to_coordinates` and `coordinates_to_rank`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
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
from course.grading.plain import plain, type_in_words, whole_numbers

Place = tuple[tuple[str, int], ...]  # a dict that can be a case
_BY_HAND = "Write down the first twelve ranks of this mesh, one line a rank, and compare."

# --- a rank's place ---------------------------------------------------------------------------------------------------


def _probe_places(learner: Any, cases: tuple[Mesh, ...], seat: Seat) -> Any:
    return [[learner(rank, **case.sizes) for rank in case.ranks] for case in cases]


def _probe_no_rank(learner: Any, case: tuple[int, Mesh], seat: Seat) -> Any:
    return outcome(lambda: learner(case[0], **case[1].sizes))


def _shown(rank: int, case: Mesh) -> str:
    return f"rank_to_coordinates({rank}, {case})"


def _is_dict(bench: Bench) -> Finding | None:
    values = asked(bench, _probe_places, (UNEQUAL,))
    if isinstance(values, Trouble):
        return Finding(f"with {UNEQUAL} {raised(values)}", "", values.advice)
    for rank, value in enumerate(values[0]):
        if _place(value) is None:
            keys = f" with {', '.join(map(repr, value))}" if type(value) is dict else ""
            got = f"{_shown(rank, UNEQUAL)} returned {type_in_words(value)}{keys}"
            return Finding(
                got, "", 'Return a dict of three whole numbers: {"pp": ..., "dp": ..., "tp": ...}.', lazy(value)
            )
    return None


def _place(value: Any) -> dict[str, int] | None:
    if type(value) is not dict or set(value) != set(KEYS):
        return None
    numbers = whole_numbers([value[key] for key in KEYS])
    return dict(zip(KEYS, numbers, strict=True)) if numbers else None


def _places(bench: Bench, cases: tuple[Mesh, ...]) -> Finding | None:
    values = asked(bench, _probe_places, cases)
    if isinstance(values, Trouble):
        return Finding(f"with one of {'; '.join(map(str, cases))} {raised(values)}", "", values.advice)
    for case, found in zip(cases, values, strict=True):
        for rank, value in enumerate(found):
            want = mesh.coordinates(rank, case.sizes)
            if (place := _place(value)) != want:
                said = type_in_words(value) if place is None else _in_words(place)
                got = f"{_shown(rank, case)} returned {said}"
                return Finding(got, _in_words(want), _BY_HAND, _misplaced(case, found))
    return None


def _in_words(place: dict[str, int]) -> str:
    return ", ".join(f"{key} {place[key]}" for key in KEYS)


def _misplaced(case: Mesh, found: Sequence[Any]) -> Mistake | None:
    """The mistake that explains where all ranks of a mesh were put."""
    places = [_place(value) for value in found]
    if any(place is None for place in places):
        return None
    for mistake, guess in _whole_guesses(case):
        if places == [guess(rank) for rank in case.ranks]:
            return mistake
    for axis in reversed(KEYS):
        numbers = [place[axis] for place in places if place]
        if numbers != [mesh.coordinates(rank, case.sizes)[axis] for rank in case.ranks]:
            return next((m for m, guess in _of_axis(axis, case) if numbers == [guess(r) for r in case.ranks]), None)
    return None


def _whole_guesses(case: Mesh) -> Iterator[tuple[Mistake, Callable[[int], dict[str, int]]]]:
    for mistake, order in mesh.other_orders():
        yield mistake, lambda rank, order=order: mesh.coordinates(rank, case.sizes, order)
    yield known.MESH_FROM_ONE, lambda rank: {k: v + 1 for k, v in mesh.coordinates(rank, case.sizes).items()}
    yield known.MESH_FROM_ONE, lambda rank: mesh.coordinates((rank - 1) % len(case.ranks), case.sizes)
    for keys in itertools.permutations(KEYS):
        yield (
            known.MESH_KEYS_MIXED,
            lambda rank, keys=keys: {
                key: mesh.coordinates(rank, case.sizes)[other] for key, other in zip(KEYS, keys, strict=True)
            },
        )


def _of_axis(axis: str, case: Mesh) -> Iterator[tuple[Mistake, Callable[[int], int]]]:
    """What known mistakes make of one axis' index."""
    sizes = case.sizes
    size, stride = sizes[axis], {"tp": 1, "dp": sizes["tp"], "pp": sizes["tp"] * sizes["dp"]}[axis]
    if axis == "tp":
        yield known.MESH_DP_FOR_TP, lambda rank: rank % sizes["dp"]
    if axis == "dp":
        yield known.MESH_DP_FOR_TP, lambda rank: rank // sizes["dp"] % sizes["dp"]
    if axis != "pp":
        yield known.MESH_NO_MODULO, lambda rank: rank // stride
    if axis != "tp":
        yield known.MESH_ONLY_MODULO, lambda rank: rank % size
        for divisor in {*case, *(a * b for a, b in itertools.combinations(case, 2))} - {stride}:
            yield known.MESH_WRONG_DIVISOR, lambda rank, divisor=divisor: rank // divisor
            yield known.MESH_WRONG_DIVISOR, lambda rank, divisor=divisor: rank // divisor % size
    for other in set(case) - {size}:
        yield known.MESH_WRONG_MODULO, lambda rank, other=other: rank // stride % other


_NO_RANKS = (*((rank, UNEQUAL) for rank in (24, 25, 100, -1)), (1, Mesh(1, 1, 1)), *((0, case) for case in NO_MESHES))


def _ranks_refused(bench: Bench) -> Finding | None:
    return next((f for case in _NO_RANKS if (f := refused(bench, _probe_no_rank, case, _shown(*case)))), None)


# --- and back ---------------------------------------------------------------------------------------------------------


def _probe_ranks(learner: Any, case: tuple[tuple[str, ...], tuple[Mesh, ...]], seat: Seat) -> Any:
    """For each place of each mesh the rank, and the dict as it is afterwards; the keys in the order of `case[0]`."""
    keys, cases = case
    answers = []
    for sizes in cases:
        for rank in sizes.ranks:
            place = mesh.coordinates(rank, sizes.sizes)
            given = {key: place[key] for key in keys}
            answers.append((plain(learner(given, **sizes.sizes)), given))
    return answers


def _probe_no_place(learner: Any, case: tuple[Place, Mesh], seat: Seat) -> Any:
    return outcome(lambda: learner(dict(case[0]), **case[1].sizes))


def _ranks(bench: Bench, cases: tuple[Mesh, ...], keys: tuple[str, ...] = KEYS) -> Finding | None:
    values = asked(bench, _probe_ranks, (keys, cases))
    if isinstance(values, Trouble):
        return Finding(f"with one of {'; '.join(map(str, cases))} {raised(values)}", "", values.advice)
    places = [(rank, case) for case in cases for rank in case.ranks]
    for (rank, case), (value, _) in zip(places, values, strict=True):
        place = {key: mesh.coordinates(rank, case.sizes)[key] for key in keys}
        got = f"coordinates_to_rank({place}, {case}) returned "
        numbers = whole_numbers([value])
        if numbers is None:
            return Finding(got + type_in_words(value), "a whole number", "Return the rank, an int.", lazy(value))
        if numbers[0] != rank:
            wrong = keys != KEYS
            return Finding(
                f"{got}{numbers[0]}", str(rank), _BY_HAND, known.RANK_KEY_ORDER if wrong else _misranked(bench)
            )
    return None


def _misranked(bench: Bench) -> Mistake | None:
    values = asked(bench, _probe_ranks, (KEYS, (UNEQUAL,)))
    if isinstance(values, Trouble):
        return None
    found = [(whole_numbers([value]) or [None])[0] for value, _ in values]
    places = [mesh.coordinates(rank, UNEQUAL.sizes) for rank in UNEQUAL.ranks]
    for mistake, guess in _rank_guesses(*UNEQUAL):
        if found == [guess(place["pp"], place["dp"], place["tp"]) for place in places]:
            return mistake
    return None


def _rank_guesses(dp: int, pp: int, tp: int) -> Iterator[tuple[Mistake, Callable[[int, int, int], int]]]:
    """What known mistakes make of the indices (pp, dp, tp)."""
    sizes = {"dp": dp, "pp": pp, "tp": tp}
    for mistake, order in mesh.other_orders():
        yield mistake, lambda p, d, t, order=order: mesh.rank_of({"pp": p, "dp": d, "tp": t}, sizes, order)
    yield known.MESH_FROM_ONE, lambda p, d, t: (p * dp + d) * tp + t + 1
    yield known.RANK_OWN_SIZE, lambda p, d, t: p * pp + d * dp + t * tp
    yield known.RANK_OWN_SIZE, lambda p, d, t: p * pp + d * dp + t
    yield known.RANK_OWN_SIZE, lambda p, d, t: (p * pp + d) * dp + t
    yield known.RANK_OWN_SIZE, lambda p, d, t: p * pp * dp + d * dp + t
    yield known.RANK_SUM_OF_INDICES, lambda p, d, t: p + d + t
    for step in (1, dp, tp, dp + tp):
        yield known.RANK_SHORT_STRIDE, lambda p, d, t, step=step: p * step + d * tp + t
    yield known.RANK_SHORT_STRIDE, lambda p, d, t: p * dp + d + t
    for a, b in itertools.product((dp, pp, tp), repeat=2):
        yield known.RANK_SIZES_SWAPPED, lambda p, d, t, a=a, b=b: (p * a + d) * b + t
        yield known.RANK_SIZES_SWAPPED, lambda p, d, t, a=a, b=b: p * dp * tp * a // b + d * tp + t
        yield known.RANK_SIZES_SWAPPED, lambda p, d, t, a=a: p * dp * tp + d * a + t


def _any_keys(bench: Bench) -> Finding | None:
    for keys in (("tp", "dp", "pp"), ("dp", "pp", "tp")):
        if finding := _ranks(bench, (UNEQUAL,), keys):
            return finding
    for given, after in asked(bench, _probe_ranks, (KEYS, (UNEQUAL,))):
        if set(after) != set(KEYS):
            got = f"after the call that returned {given}, the caller's dict has {len(after)} of its 3 entries"
            return Finding(got, "the dict as it was", "", known.RANK_USED_UP)
    return None


_AT_HOME: Place = (("pp", 0), ("dp", 0), ("tp", 0))
_NO_PLACES: tuple[tuple[Place, Mesh], ...] = (
    *(((*_AT_HOME[:k], (key, index), *_AT_HOME[k + 1 :]), UNEQUAL) for k, key in enumerate(KEYS)
      for index in (UNEQUAL.sizes[key], -1)),
    *((tuple(item for item in _AT_HOME if item[0] != key), UNEQUAL) for key in KEYS),
    *((_AT_HOME, case) for case in NO_MESHES),
)  # fmt: skip


def _places_refused(bench: Bench) -> Finding | None:
    for case in _NO_PLACES:
        shown = f"coordinates_to_rank({dict(case[0])}, {case[1]})"
        if finding := refused(bench, _probe_no_place, case, shown):
            return finding
    return None


_DICT = "a dict of pp, dp and tp"
_MESH = f"the whole mesh {UNEQUAL}"
_MORE = "eight other meshes, some with axes of size 1"
_REFUSED = "the impossible is refused"

CHECKS: dict[str, Sequence[Check]] = {
    "rank_to_coordinates": (
        Check(_DICT, 1, _is_dict, "a dict with the keys pp, dp and tp"),
        Check(_MESH, 3, lambda bench: _places(bench, (UNEQUAL,)), "the index on each axis", needs=_DICT),
        Check(_MORE, 2, lambda bench: _places(bench, OTHERS), "the index on each axis", needs=_MESH),
        Check(_REFUSED, 1, _ranks_refused, "a ValueError", needs=_DICT),
    ),
    "coordinates_to_rank": (
        Check(_MESH, 2, lambda bench: _ranks(bench, (UNEQUAL,)), "the rank"),
        Check(_MORE, 1, lambda bench: _ranks(bench, OTHERS), "the rank", needs=_MESH),
        Check("keys in any order, left as they are", 2, _any_keys, "the rank", needs=_MESH),
        Check(_REFUSED, 1, _places_refused, "a ValueError"),
    ),
}
