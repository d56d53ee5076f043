# ruff: noqa: F811
import itertools

import numpy as np
import torch

from tests.grading.bank import right, wrong


def refuse(rank, dp, pp, tp):
    if min(dp, pp, tp) < 1 or not 0 <= rank < dp * pp * tp:
        raise ValueError(f"rank {rank} of dp={dp}, pp={pp}, tp={tp}")


@right("three lines")
def rank_to_coordinates(rank, *, dp, pp, tp):
    refuse(rank, dp, pp, tp)
    return {"pp": rank // (dp * tp), "dp": rank // tp % dp, "tp": rank % tp}


@right("a clock, tp first in the dict")
def rank_to_coordinates(rank, *, dp, pp, tp):
    if dp < 1 or pp < 1 or tp < 1:
        raise ValueError
    rest, t = divmod(rank, tp)
    rest, d = divmod(rest, dp)
    if rest not in range(pp):
        raise ValueError
    return {"tp": t, "dp": d, "pp": rest}


@right("looks it up in a list of all places")
def rank_to_coordinates(rank, *, dp, pp, tp):
    refuse(rank, dp, pp, tp)
    p, d, t = list(itertools.product(range(pp), range(dp), range(tp)))[rank]
    return {"dp": d, "pp": p, "tp": t}


@right("numpy, whose numbers are whole, too")
def rank_to_coordinates(rank, *, dp, pp, tp):
    refuse(rank, dp, pp, tp)
    return dict(zip(("pp", "dp", "tp"), np.unravel_index(rank, (pp, dp, tp)), strict=True))


@right("torch")
def rank_to_coordinates(rank, *, dp, pp, tp):
    refuse(rank, dp, pp, tp)
    place = (torch.arange(dp * pp * tp).view(pp, dp, tp) == rank).nonzero()[0].tolist()
    return {"pp": place[0], "dp": place[1], "tp": place[2]}


@wrong("MESH_TENSOR_SLOWEST", points=2)
def rank_to_coordinates(rank, *, dp, pp, tp):
    refuse(rank, dp, pp, tp)
    return {"pp": rank % pp, "dp": rank // pp % dp, "tp": rank // (pp * dp)}


@wrong("MESH_TENSOR_SLOWEST", points=2)
def rank_to_coordinates(rank, *, dp, pp, tp):
    refuse(rank, dp, pp, tp)
    return {"dp": rank % dp, "pp": rank // dp % pp, "tp": rank // (dp * pp)}


@wrong("MESH_AXES_SWAPPED", points=2)
def rank_to_coordinates(rank, *, dp, pp, tp):
    refuse(rank, dp, pp, tp)
    return {"dp": rank // (pp * tp), "pp": rank // tp % pp, "tp": rank % tp}


@wrong("MESH_AXES_SWAPPED", points=2)
def rank_to_coordinates(rank, *, dp, pp, tp):
    refuse(rank, dp, pp, tp)
    return {"pp": rank // (dp * tp), "dp": rank % dp, "tp": rank // dp % tp}


@wrong("MESH_WRONG_DIVISOR", points=2)
def rank_to_coordinates(rank, *, dp, pp, tp):
    refuse(rank, dp, pp, tp)
    return {"pp": rank // (pp * dp), "dp": rank // tp % dp, "tp": rank % tp}


@wrong("MESH_WRONG_DIVISOR", points=2)
def rank_to_coordinates(rank, *, dp, pp, tp):
    refuse(rank, dp, pp, tp)
    return {"pp": rank // tp, "dp": rank // tp % dp, "tp": rank % tp}


@wrong("MESH_WRONG_DIVISOR", points=2)
def rank_to_coordinates(rank, *, dp, pp, tp):
    refuse(rank, dp, pp, tp)
    return {"pp": rank // (dp * tp), "dp": rank // pp % dp, "tp": rank % tp}


@wrong("MESH_NO_MODULO", points=2)
def rank_to_coordinates(rank, *, dp, pp, tp):
    refuse(rank, dp, pp, tp)
    return {"pp": rank // (dp * tp), "dp": rank // tp, "tp": rank % tp}


@wrong("MESH_NO_MODULO", points=2)
def rank_to_coordinates(rank, *, dp, pp, tp):
    refuse(rank, dp, pp, tp)
    return {"pp": rank // (dp * tp), "dp": rank // tp % dp, "tp": rank}


@wrong("MESH_ONLY_MODULO", points=2)
def rank_to_coordinates(rank, *, dp, pp, tp):
    refuse(rank, dp, pp, tp)
    return {"pp": rank % pp, "dp": rank % dp, "tp": rank % tp}


@wrong("MESH_WRONG_MODULO", points=2)
def rank_to_coordinates(rank, *, dp, pp, tp):
    refuse(rank, dp, pp, tp)
    return {"pp": rank // (dp * tp), "dp": rank // tp % pp, "tp": rank % tp}


@wrong("MESH_DP_FOR_TP", points=2)
def rank_to_coordinates(rank, *, dp, pp, tp):
    refuse(rank, dp, pp, tp)
    return {"pp": rank // (dp * tp), "dp": rank // dp % dp, "tp": rank % tp}


@wrong("MESH_DP_FOR_TP", points=2)
def rank_to_coordinates(rank, *, dp, pp, tp):
    refuse(rank, dp, pp, tp)
    return {"pp": rank // (dp * dp), "dp": rank // dp % dp, "tp": rank % dp}


@wrong("MESH_FROM_ONE", points=2)
def rank_to_coordinates(rank, *, dp, pp, tp):
    refuse(rank, dp, pp, tp)
    return {"pp": rank // (dp * tp) + 1, "dp": rank // tp % dp + 1, "tp": rank % tp + 1}


@wrong("MESH_KEYS_MIXED", points=2)
def rank_to_coordinates(rank, *, dp, pp, tp):
    refuse(rank, dp, pp, tp)
    return {"tp": rank // (dp * tp), "dp": rank // tp % dp, "pp": rank % tp}


@wrong("MESH_KEYS_MIXED", points=2)
def rank_to_coordinates(rank, *, dp, pp, tp):
    refuse(rank, dp, pp, tp)
    return dict(zip(("dp", "pp", "tp"), np.unravel_index(rank, (pp, dp, tp)), strict=True))


@wrong(points=5, says="expected: pp 0, dp 0, tp 1")
def rank_to_coordinates(rank, *, dp, pp, tp):
    refuse(rank, dp, pp, tp)
    if 1 in (dp, pp, tp):
        return {"pp": rank % pp, "dp": rank % dp, "tp": rank % tp}
    return {"pp": rank // (dp * tp), "dp": rank // tp % dp, "tp": rank % tp}


@wrong("NOT_REFUSED", points=6)
def rank_to_coordinates(rank, *, dp, pp, tp):
    return {"pp": rank // (dp * tp), "dp": rank // tp % dp, "tp": rank % tp}


@wrong("NOT_REFUSED", points=6)
def rank_to_coordinates(rank, *, dp, pp, tp):
    if min(dp, pp, tp) < 1 or not 0 <= rank <= dp * pp * tp:
        raise ValueError
    return {"pp": rank // (dp * tp), "dp": rank // tp % dp, "tp": rank % tp}


@wrong("OTHER_ERROR", points=6)
def rank_to_coordinates(rank, *, dp, pp, tp):
    assert min(dp, pp, tp) >= 1 and 0 <= rank < dp * pp * tp
    return {"pp": rank // (dp * tp), "dp": rank // tp % dp, "tp": rank % tp}


@wrong("OTHER_ERROR", points=6)
def rank_to_coordinates(rank, *, dp, pp, tp):
    if not 0 <= rank < abs(dp * pp * tp):
        raise ValueError
    place = list(itertools.product(range(pp), range(dp), range(tp)))[rank]
    return dict(zip(("pp", "dp", "tp"), place, strict=True))


@wrong("GENERATOR", points=0)
def rank_to_coordinates(rank, *, dp, pp, tp):
    yield "pp", rank // (dp * tp)
    yield "dp", rank // tp % dp
    yield "tp", rank % tp


@wrong(points=0, says="returned a tuple of 3")
def rank_to_coordinates(rank, *, dp, pp, tp):
    refuse(rank, dp, pp, tp)
    return rank // (dp * tp), rank // tp % dp, rank % tp


@wrong(points=0, says="returned a dict of 3 with 'pp', 'dp', 'tp'")
def rank_to_coordinates(rank, *, dp, pp, tp):
    return {"pp": rank / (dp * tp), "dp": rank / tp % dp, "tp": rank % tp}


@wrong(points=0, says="raised TypeError")
def rank_to_coordinates(rank, dp, pp):
    return {"pp": rank // dp, "dp": rank % dp}
