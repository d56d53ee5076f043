"""What went wrong in a `hybrid_step`: told from what `forward_backward` left on each rank, and what was made of it.

No check. Every known mistake says over which axes it adds up each kind of parameter, and with which weights; what it
would give is computed from the gradients that the ranks had.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from course.grading.bench import Result
from course.grading.checks import hybrid_model as hm
from course.grading.checks.hybrid_model import Mesh
from course.grading.checks.messages import close
from course.grading.mistakes import Mistake
from course.grading.mistakes import lesson_09 as clip
from course.grading.mistakes import lesson_09_challenge as known
from course.grading.plain import TensorData, real_number

TOLERANCE = 1e-3  # in recognising: rounding of what was computed on the ranks
Axes = tuple[str, ...]


def one(case: Mesh, rank: int) -> float:
    return 1.0


@dataclass(frozen=True)
class Recipe:
    """Over which axes gradients of each kind are summed, each rank's times `weight`, and by what the sum is divided."""

    copy: Axes = ("dp", "tp")
    shard: Axes = ("dp",)
    tied: Axes = ("dp", "ends")
    weight: Callable[[Mesh, int], float] = Mesh.share
    averaged: Axes = ()  # of the axes above, those that are averaged over
    kinds: tuple[str, ...] = field(default=("copy", "shard", "tied"))  # for which they are

    def axes(self, name: str) -> Axes:
        axes: Axes = getattr(self, kind(name))
        return axes

    def gives(self, case: Mesh, rank: int, name: str, local: Sequence[dict[str, Any]]) -> list[float] | None:
        """What rank `rank` comes to hold, of what each rank had; None where shapes do not agree."""
        axes = self.axes(name)
        ranks = [r for r in case.ranks(rank, axes) if name in local[r]]
        columns = [hm.numbers_of(local[r][name]) for r in ranks]
        if len({len(column) for column in columns}) != 1:
            return None
        weights = [self.weight(case, r) for r in ranks]
        if kind(name) in self.kinds:
            weights = [w / len(case.ranks(rank, self.averaged)) for w in weights]
        return [
            sum(w * number for w, number in zip(weights, numbers, strict=True))
            for numbers in zip(*columns, strict=True)
        ]


RIGHT = Recipe()


def kind(name: str) -> str:
    return "tied" if name == "tokens" else "copy" if hm.cut_of(name) is None else "shard"


@cache
def wanted(case: Mesh, rank: int, step: int) -> dict[str, list[float]]:
    """This rank's part of the gradient of one process, not clipped."""
    whole = hm.whole(case.samples, case.max_norm).gradients[step]
    return {name: hm.flat(hm.shard_of(whole[name], name, case, rank)) for name in hm.names_of(case, rank)}


def holders(case: Mesh, rank: int, name: str) -> list[int]:
    """All ranks that hold the same numbers of a parameter."""
    return case.ranks(rank, tuple(dict.fromkeys((*RIGHT.axes(name), "dp"))))


# --- data -------------------------------------------------------------------------------------------------------------


def behind_data(result: Result, x: TensorData, case: Mesh) -> Mistake | None:
    """The mistake behind parts that are not those of the index along dp."""
    found = [value["steps"][0]["passes"][0]["x"] for value in result.values if value["steps"][0]["passes"]]
    if all(data == x for data in found) and case.dp > 1:
        return known.HYBRID_WHOLE_BATCH
    copies = [{found[rank] for rank in case.ranks(d * case.tp, ("pp", "tp"))} for d in range(case.dp)]
    return known.HYBRID_PART_BY_RANK if any(len(copy) > 1 for copy in copies) else None


# --- gradients --------------------------------------------------------------------------------------------------------


def _mean(case: Mesh, rank: int) -> float:
    return 1 / case.dp


def _of_all(case: Mesh, rank: int) -> float:
    return 1 / case.n


ALL: Axes = ("dp", "pp", "tp")

_GUESSES: tuple[tuple[Mistake, Recipe], ...] = (
    (known.HYBRID_COPIES_NOT_SUMMED, Recipe(copy=("dp",))),
    (known.HYBRID_COPIES_AVERAGED, Recipe(averaged=("tp",), kinds=("copy",))),
    (known.HYBRID_SHARDS_SUMMED, Recipe(shard=("dp", "tp"), tied=("dp", "ends", "tp"))),
    (known.HYBRID_SHARDS_SUMMED, Recipe(shard=("dp", "tp"))),
    (known.HYBRID_TIED_NOT_SUMMED, Recipe(tied=("dp",))),
    (known.HYBRID_TIED_AVERAGED, Recipe(averaged=("ends",), kinds=("tied",))),
    (known.HYBRID_DP_FORGOTTEN, Recipe(copy=("tp",), shard=(), tied=("ends",), weight=one)),
    (known.HYBRID_DP_FORGOTTEN, Recipe(copy=("tp",), shard=(), tied=("ends",))),
    (known.HYBRID_DP_SUMMED, Recipe(weight=one)),
    (known.HYBRID_MEAN_OF_MEANS, Recipe(weight=_mean)),
    (known.HYBRID_DIVIDED_BY_ALL, Recipe(weight=_of_all)),
    *((known.HYBRID_OTHER_PARTS, Recipe(ALL, ALL, ALL, weight)) for weight in (Mesh.share, one, _of_all)),
    (known.HYBRID_OTHER_PARTS, Recipe(shard=ALL, copy=ALL)),
    (known.HYBRID_OTHER_PARTS, Recipe(copy=ALL)),
    (known.HYBRID_OTHER_PARTS, Recipe(tied=ALL)),
)


def behind_gradients(result: Result, case: Mesh) -> Mistake | None:
    """The mistake that explains the gradients of all ranks, as the optimizer met them."""
    for mistake, recipe in _GUESSES:
        if recipe.weight is _mean and case.samples % case.dp == 0:
            continue
        if follows(result, case, recipe):
            return mistake
    norm = hm.whole(case.samples, case.max_norm).norms[0]
    return clip.CLIP_SCALES_UP if scaled(result, case, lambda rank: case.max_norm / norm) else None


def local(result: Result) -> list[dict[str, Any]]:
    """What `forward_backward` left on each rank, by name."""
    passes = [value["steps"][0]["passes"] for value in result.values]
    return [notes[0]["gradients"] if notes else {} for notes in passes]


def follows(result: Result, case: Mesh, recipe: Recipe) -> bool:
    """Whether all gradients are what this recipe gives."""
    held = local(result)

    def guess(rank: int, name: str) -> list[float] | None:
        return recipe.gives(case, rank, name, held)

    return explains(result, case, guess)


def scaled(result: Result, case: Mesh, factor: Callable[[int], float]) -> bool:
    """Whether all gradients are the right ones times each rank's factor."""

    def guess(rank: int, name: str) -> list[float]:
        return [factor(rank) * number for number in wanted(case, rank, 0)[name]]

    return explains(result, case, guess)


def explains(result: Result, case: Mesh, guess: Callable[[int, str], Sequence[float] | None]) -> bool:
    """Whether each gradient of the first step is what `guess(rank, name)` says."""
    for rank, value in enumerate(result.values):
        taken = value["steps"][0]["taken"]
        for name in hm.names_of(case, rank):
            want = guess(rank, name)
            if len(taken) != 1 or want is None or not close(hm.numbers_of(taken[0][name]), want, TOLERANCE):
                return False
    return True


# --- the second step, the loss ----------------------------------------------------------------------------------------


def behind_update(result: Result, case: Mesh) -> Mistake | None:
    """The mistake behind weights that are right after one step and wrong after two."""
    for rank, value in enumerate(result.values):
        first, second = (step["taken"][0] if step["taken"] else {} for step in value["steps"])
        for name in (name for name in hm.names_of(case, rank) if kind(name) == "shard"):
            want = [a + b for a, b in zip(wanted(case, rank, 1)[name], hm.numbers_of(first.get(name)), strict=False)]
            if not close(hm.numbers_of(second.get(name)), want, TOLERANCE):
                return None
    return known.HYBRID_NOT_ZEROED


def behind_loss(result: Result, case: Mesh) -> Mistake | None:
    """The mistake behind losses that are not the batch's."""
    returned = [value["steps"][0]["returned"] for value in result.values]
    found = [real_number(value) for value in returned]
    own = [value["steps"][0]["passes"][0]["loss"] for value in result.values]
    copy = [next(own[r] for r in case.ranks(rank, ("pp",)) if own[r] is not None) for rank in range(case.n)]
    last = [loss is not None for loss in own]
    if not all(last) and all(f in (None, 0.0) for f, is_last in zip(found, last, strict=True) if not is_last):
        return known.HYBRID_LOSS_ON_ONE_STAGE
    want = hm.whole(case.samples, case.max_norm).losses[0]
    guesses: tuple[tuple[Mistake, Callable[[int], float]], ...] = (
        (known.HYBRID_LOSS_OF_A_PART, lambda r: copy[r]),
        (known.HYBRID_LOSS_OF_A_PART, lambda r: copy[r] * case.share(r)),
        (known.HYBRID_LOSS_COUNTED, lambda r: case.tp * want),
        (known.HYBRID_DP_SUMMED, lambda r: sum(copy[k] for k in case.ranks(r, ("dp",)))),
        (known.HYBRID_MEAN_OF_MEANS, lambda r: sum(copy[k] for k in case.ranks(r, ("dp",))) / case.dp),
        (known.HYBRID_DIVIDED_BY_ALL, lambda r: sum(filter(None, own)) / case.n),
    )
    for mistake, guess in guesses:
        if all(f is not None and math.isclose(f, guess(r), rel_tol=TOLERANCE) for r, f in enumerate(found)):
            return mistake
    return None
