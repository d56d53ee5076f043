# ruff: noqa: F811
import math

import torch

from tests.grading.bank import right, wrong


def refuse(axis, dp, pp, tp):
    if axis not in ("dp", "pp", "tp") or min(dp, pp, tp) < 1:
        raise ValueError(f"{axis} of dp={dp}, pp={pp}, tp={tp}")


def place_of(rank, dp, tp):
    return {"pp": rank // (dp * tp), "dp": rank // tp % dp, "tp": rank % tp}


@right("a dict of lists")
def axis_groups(axis, *, dp, pp, tp):
    refuse(axis, dp, pp, tp)
    groups = {}
    for rank in range(dp * pp * tp):
        place = place_of(rank, dp, tp)
        del place[axis]
        groups.setdefault(tuple(place.values()), []).append(rank)
    return list(groups.values())


@right("a tensor, turned so that the axis is last")
def axis_groups(axis, *, dp, pp, tp):
    refuse(axis, dp, pp, tp)
    mesh = torch.arange(dp * pp * tp).view(pp, dp, tp)
    return sorted(
        mesh.movedim(("pp", "dp", "tp").index(axis), -1).reshape(-1, {"pp": pp, "dp": dp, "tp": tp}[axis]).tolist()
    )


@right("steps from each first rank, as tuples")
def axis_groups(axis, *, dp, pp, tp):
    if min(dp, pp, tp) < 1:
        raise ValueError("sizes")
    try:
        size, stride = {"tp": (tp, 1), "dp": (dp, tp), "pp": (pp, dp * tp)}[axis]
    except KeyError:
        raise ValueError(axis) from None
    firsts = [rank for rank in range(dp * pp * tp) if rank // stride % size == 0]
    return tuple(tuple(range(first, first + size * stride, stride)) for first in firsts)


@wrong("GROUPS_OF_EQUALS", points=1)
def axis_groups(axis, *, dp, pp, tp):
    refuse(axis, dp, pp, tp)
    groups = {}
    for rank in range(dp * pp * tp):
        groups.setdefault(place_of(rank, dp, tp)[axis], []).append(rank)
    return list(groups.values())


@wrong("GROUPS_NEIGHBOURS", points=1)
def axis_groups(axis, *, dp, pp, tp):
    refuse(axis, dp, pp, tp)
    size = {"pp": pp, "dp": dp, "tp": tp}[axis]
    return [list(range(first, first + size)) for first in range(0, dp * pp * tp, size)]


@wrong("GROUPS_OTHER_ORDER", points=1)
def axis_groups(axis, *, dp, pp, tp):
    refuse(axis, dp, pp, tp)
    mesh = torch.arange(dp * pp * tp).view(tp, dp, pp)
    size = {"pp": pp, "dp": dp, "tp": tp}[axis]
    return sorted(mesh.movedim(("tp", "dp", "pp").index(axis), -1).reshape(-1, size).tolist())


@wrong("GROUPS_OTHER_ORDER", points=1)
def axis_groups(axis, *, dp, pp, tp):
    refuse(axis, dp, pp, tp)
    mesh = torch.arange(dp * pp * tp).view(dp, pp, tp)
    size = {"pp": pp, "dp": dp, "tp": tp}[axis]
    return sorted(mesh.movedim(("dp", "pp", "tp").index(axis), -1).reshape(-1, size).tolist())


@wrong("GROUPS_FIRST_ONLY", points=1)
def axis_groups(axis, *, dp, pp, tp):
    refuse(axis, dp, pp, tp)
    size, stride = {"tp": (tp, 1), "dp": (dp, tp), "pp": (pp, dp * tp)}[axis]
    return [[index * stride for index in range(size)]]


@wrong("GROUPS_FIRST_ONLY", points=1)
def axis_groups(axis, *, dp, pp, tp):
    refuse(axis, dp, pp, tp)
    size, stride = {"tp": (tp, 1), "dp": (dp, tp), "pp": (pp, dp * tp)}[axis]
    return [index * stride for index in range(size)]


@wrong("GROUPS_UNSORTED", points=1)
def axis_groups(axis, *, dp, pp, tp):
    refuse(axis, dp, pp, tp)
    groups = {}
    for rank in reversed(range(dp * pp * tp)):
        place = place_of(rank, dp, tp)
        del place[axis]
        groups.setdefault(tuple(place.values()), []).append(rank)
    return list(groups.values())


@wrong("GROUPS_UNSORTED", points=1)
def axis_groups(axis, *, dp, pp, tp):
    refuse(axis, dp, pp, tp)
    groups = {}
    for rank in range(dp * pp * tp):
        place = place_of(rank, dp, tp)
        del place[axis]
        groups.setdefault(tuple(reversed(place.values())), []).append(rank)
    return [groups[key] for key in sorted(groups)]


@wrong("GROUPS_SINGLES_LEFT_OUT", points=5)
def axis_groups(axis, *, dp, pp, tp):
    refuse(axis, dp, pp, tp)
    groups = {}
    for rank in range(dp * pp * tp):
        place = place_of(rank, dp, tp)
        del place[axis]
        groups.setdefault(tuple(place.values()), []).append(rank)
    return [group for group in groups.values() if len(group) > 1]


@wrong("GROUPS_OF_INDICES", points=1)
def axis_groups(axis, *, dp, pp, tp):
    refuse(axis, dp, pp, tp)
    size = {"pp": pp, "dp": dp, "tp": tp}[axis]
    return [list(range(size)) for _ in range(dp * pp * tp // size)]


@wrong("GROUPS_FLAT", points=1)
def axis_groups(axis, *, dp, pp, tp):
    refuse(axis, dp, pp, tp)
    mesh = torch.arange(math.prod((dp, pp, tp))).view(pp, dp, tp)
    return mesh.movedim(("pp", "dp", "tp").index(axis), -1).flatten().tolist()


@wrong("NOT_REFUSED", points=6)
def axis_groups(axis, *, dp, pp, tp):
    groups = {}
    for rank in range(dp * pp * tp):
        place = place_of(rank, dp, tp)
        place.pop(axis, None)
        groups.setdefault(tuple(place.values()), []).append(rank)
    return list(groups.values())


@wrong("OTHER_ERROR", points=6)
def axis_groups(axis, *, dp, pp, tp):
    if min(dp, pp, tp) < 1:
        raise ValueError
    groups = {}
    for rank in range(dp * pp * tp):
        place = place_of(rank, dp, tp)
        del place[axis]
        groups.setdefault(tuple(place.values()), []).append(rank)
    return list(groups.values())


@wrong("GENERATOR", points=0)
def axis_groups(axis, *, dp, pp, tp):
    size, stride = {"tp": (tp, 1), "dp": (dp, tp), "pp": (pp, dp * tp)}[axis]
    for rank in range(dp * pp * tp):
        if rank // stride % size == 0:
            yield list(range(rank, rank + size * stride, stride))


@wrong(points=1, says="returned a list of 6 with a range in it")
def axis_groups(axis, *, dp, pp, tp):
    refuse(axis, dp, pp, tp)
    size, stride = {"tp": (tp, 1), "dp": (dp, tp), "pp": (pp, dp * tp)}[axis]
    return [range(r, r + size * stride, stride) for r in range(dp * pp * tp) if r // stride % size == 0]


@wrong(points=1, says="returned a dict of 6")
def axis_groups(axis, *, dp, pp, tp):
    refuse(axis, dp, pp, tp)
    groups = {}
    for rank in range(dp * pp * tp):
        place = place_of(rank, dp, tp)
        del place[axis]
        groups.setdefault(tuple(place.values()), []).append(rank)
    return groups


@wrong("GROUPS_REPEATED", points=1)
def axis_groups(axis, *, dp, pp, tp):
    refuse(axis, dp, pp, tp)
    size, stride = {"tp": (tp, 1), "dp": (dp, tp), "pp": (pp, dp * tp)}[axis]
    firsts = [rank - rank // stride % size * stride for rank in range(dp * pp * tp)]
    return [list(range(first, first + size * stride, stride)) for first in firsts]
