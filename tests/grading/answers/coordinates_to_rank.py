# ruff: noqa: F811
import itertools

import numpy as np

from tests.grading.bank import right, wrong


def refuse(coordinates, dp, pp, tp):
    for axis, size in {"pp": pp, "dp": dp, "tp": tp}.items():
        if axis not in coordinates or not 0 <= coordinates[axis] < size:
            raise ValueError(f"{coordinates} in dp={dp}, pp={pp}, tp={tp}")


@right("nested")
def coordinates_to_rank(coordinates, *, dp, pp, tp):
    refuse(coordinates, dp, pp, tp)
    return (coordinates["pp"] * dp + coordinates["dp"]) * tp + coordinates["tp"]


@right("a loop, slowest first")
def coordinates_to_rank(coordinates, *, dp, pp, tp):
    rank = 0
    for axis, size in (("pp", pp), ("dp", dp), ("tp", tp)):
        index = coordinates.get(axis, -1)
        if index < 0 or index >= size:
            raise ValueError(axis)
        rank = rank * size + index
    return rank


@right("finds it among all places")
def coordinates_to_rank(coordinates, *, dp, pp, tp):
    places = list(itertools.product(range(pp), range(dp), range(tp)))
    return places.index(tuple(coordinates.get(axis) for axis in ("pp", "dp", "tp")))


@right("numpy")
def coordinates_to_rank(coordinates, *, dp, pp, tp):
    refuse(coordinates, dp, pp, tp)
    return np.ravel_multi_index([coordinates[axis] for axis in ("pp", "dp", "tp")], (pp, dp, tp))


@right("from a copy that is taken apart")
def coordinates_to_rank(coordinates, *, dp, pp, tp):
    refuse(coordinates, dp, pp, tp)
    mine = dict(coordinates)
    return mine.pop("tp") + tp * mine.pop("dp") + tp * dp * mine.pop("pp")


@wrong("MESH_TENSOR_SLOWEST", points=1)
def coordinates_to_rank(coordinates, *, dp, pp, tp):
    refuse(coordinates, dp, pp, tp)
    return (coordinates["tp"] * dp + coordinates["dp"]) * pp + coordinates["pp"]


@wrong("MESH_AXES_SWAPPED", points=1)
def coordinates_to_rank(coordinates, *, dp, pp, tp):
    refuse(coordinates, dp, pp, tp)
    return (coordinates["dp"] * pp + coordinates["pp"]) * tp + coordinates["tp"]


@wrong("MESH_FROM_ONE", points=1)
def coordinates_to_rank(coordinates, *, dp, pp, tp):
    refuse(coordinates, dp, pp, tp)
    return (coordinates["pp"] * dp + coordinates["dp"]) * tp + coordinates["tp"] + 1


@wrong("RANK_OWN_SIZE", points=1)
def coordinates_to_rank(coordinates, *, dp, pp, tp):
    refuse(coordinates, dp, pp, tp)
    return coordinates["pp"] * pp + coordinates["dp"] * dp + coordinates["tp"] * tp


@wrong("RANK_OWN_SIZE", points=1)
def coordinates_to_rank(coordinates, *, dp, pp, tp):
    refuse(coordinates, dp, pp, tp)
    return (coordinates["pp"] * pp + coordinates["dp"]) * dp + coordinates["tp"]


@wrong("RANK_SHORT_STRIDE", points=1)
def coordinates_to_rank(coordinates, *, dp, pp, tp):
    refuse(coordinates, dp, pp, tp)
    return coordinates["pp"] * dp + coordinates["dp"] * tp + coordinates["tp"]


@wrong("RANK_SHORT_STRIDE", points=1)
def coordinates_to_rank(coordinates, *, dp, pp, tp):
    refuse(coordinates, dp, pp, tp)
    return coordinates["pp"] * dp + coordinates["dp"] + coordinates["tp"]


@wrong("RANK_SIZES_SWAPPED", points=1)
def coordinates_to_rank(coordinates, *, dp, pp, tp):
    refuse(coordinates, dp, pp, tp)
    return (coordinates["pp"] * tp + coordinates["dp"]) * dp + coordinates["tp"]


@wrong("RANK_SIZES_SWAPPED", points=1)
def coordinates_to_rank(coordinates, *, dp, pp, tp):
    refuse(coordinates, dp, pp, tp)
    return coordinates["pp"] * dp * tp + coordinates["dp"] * dp + coordinates["tp"]


@wrong("RANK_SUM_OF_INDICES", points=1)
def coordinates_to_rank(coordinates, *, dp, pp, tp):
    refuse(coordinates, dp, pp, tp)
    return sum(coordinates.values())


@wrong("RANK_KEY_ORDER", points=4)
def coordinates_to_rank(coordinates, *, dp, pp, tp):
    refuse(coordinates, dp, pp, tp)
    p, d, t = coordinates.values()
    return (p * dp + d) * tp + t


@wrong("RANK_USED_UP", points=4)
def coordinates_to_rank(coordinates, *, dp, pp, tp):
    refuse(coordinates, dp, pp, tp)
    return (coordinates.pop("pp") * dp + coordinates.pop("dp")) * tp + coordinates.pop("tp")


@wrong("NOT_REFUSED", points=5)
def coordinates_to_rank(coordinates, *, dp, pp, tp):
    return (coordinates["pp"] * dp + coordinates["dp"]) * tp + coordinates["tp"]


@wrong("NOT_REFUSED", points=5)
def coordinates_to_rank(coordinates, *, dp, pp, tp):
    mine = {"pp": 0, "dp": 0, "tp": 0} | coordinates
    refuse(mine, dp, pp, tp)
    return (mine["pp"] * dp + mine["dp"]) * tp + mine["tp"]


@wrong("OTHER_ERROR", points=5)
def coordinates_to_rank(coordinates, *, dp, pp, tp):
    for axis, size in {"pp": pp, "dp": dp, "tp": tp}.items():
        if not 0 <= coordinates[axis] < size:
            raise ValueError(axis)
    return (coordinates["pp"] * dp + coordinates["dp"]) * tp + coordinates["tp"]


@wrong("GENERATOR", points=0)
def coordinates_to_rank(coordinates, *, dp, pp, tp):
    yield (coordinates["pp"] * dp + coordinates["dp"]) * tp + coordinates["tp"]


@wrong(points=1, says="returned a float")
def coordinates_to_rank(coordinates, *, dp, pp, tp):
    refuse(coordinates, dp, pp, tp)
    return ((coordinates["pp"] * dp + coordinates["dp"]) * tp + coordinates["tp"]) / 1


@wrong(points=0, says="raised AttributeError")
def coordinates_to_rank(coordinates, *, dp, pp, tp):
    return (coordinates.pp * dp + coordinates.dp) * tp + coordinates.tp
