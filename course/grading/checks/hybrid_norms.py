"""How a `hybrid_step` went wrong in clipping: told from each rank's factor. No check."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from course.grading.bench import Result
from course.grading.checks import hybrid_missteps as ms
from course.grading.checks import hybrid_model as hm
from course.grading.checks.hybrid_model import Mesh
from course.grading.mistakes import Mistake
from course.grading.mistakes import lesson_09 as clip
from course.grading.mistakes import lesson_09_challenge as known


def behind_norm(result: Result, case: Mesh) -> Mistake | None:
    """The mistake behind gradients that are scaled otherwise; without clipping they are right."""
    for mistake, norm in _norms(case):
        factors = [min(1.0, case.max_norm / max(norm(rank), 1e-12)) for rank in range(case.n)]
        if ms.scaled(result, case, factors.__getitem__):
            return mistake
    if ms.scaled(result, case, lambda rank: 1.0):
        return clip.CLIP_NOT_SCALED
    if _one_end_scaled(result, case):
        return known.HYBRID_ONE_END_SCALED
    return known.HYBRID_CLIPPED_EARLY if _clipped_early(result, case) else None


def _one_end_scaled(result: Result, case: Mesh) -> bool:
    """Whether all is right but for the tied weight, which one end has left as it was."""
    factor = case.max_norm / hm.whole(case.samples, case.max_norm).norms[0]

    def left_on(stage: int, rank: int, name: str) -> list[float]:
        left = name == "tokens" and case.place(rank)["pp"] == stage
        return [number * (1.0 if left else factor) for number in ms.wanted(case, rank, 0)[name]]

    return case.pp > 1 and any(ms.explains(result, case, partial(left_on, stage)) for stage in (0, case.pp - 1))


def _square(case: Mesh, rank: int, *kinds: str) -> float:
    """The sum of squares of what a rank holds, of some kinds or of all."""
    found = ms.wanted(case, rank, 0).items()
    return sum(x * x for name, numbers in found if not kinds or ms.kind(name) in kinds for x in numbers)


def _norms(case: Mesh) -> Sequence[tuple[Mistake, Callable[[int], float]]]:
    """The norm that each known mistake finds on each rank."""
    norm = hm.whole(case.samples, case.max_norm).norms[0]

    def shards(rank: int) -> float:
        return sum(_square(case, r, "shard") for r in case.ranks(rank, ("pp", "tp")))

    def copies(rank: int) -> float:
        return sum(_square(case, r, "copy") for r in case.ranks(rank, ("pp",)))

    def tied(rank: int) -> float:
        return sum(_square(case, r, "tied") for r in case.ranks(rank, ("tp",)))

    def at_first(rank: int) -> float:
        return tied(case.ranks(rank, ("pp",))[0])

    ends = min(case.pp, 2)
    return (
        (clip.CLIP_LOCAL_NORM, lambda r: math.sqrt(_square(case, r))),
        (known.HYBRID_TIED_TWICE, lambda r: math.sqrt(shards(r) + copies(r) + ends * at_first(r))),
        (clip.CLIP_COUNTED_OFTEN, lambda r: math.sqrt(shards(r) + case.tp * copies(r) + at_first(r))),
        (clip.CLIP_COUNTED_OFTEN, lambda r: math.sqrt(shards(r) + case.tp * copies(r) + ends * at_first(r))),
        (clip.CLIP_COUNTED_OFTEN, lambda r: math.sqrt(case.dp) * norm),
        (clip.CLIP_COUNTED_OFTEN, lambda r: math.sqrt(sum(_square(case, other) for other in range(case.n)))),
        (clip.CLIP_WHOLE_LEFT_OUT, lambda r: math.sqrt(shards(r) + at_first(r))),
        (clip.CLIP_WHOLE_LEFT_OUT, lambda r: math.sqrt(shards(r) + copies(r))),
        (known.HYBRID_STAGE_NORM, lambda r: math.sqrt(_of_stage(case, r))),
        (known.HYBRID_STAGE_NORM, lambda r: math.sqrt(_of_stage(case, r) - _later(case, r) * tied(r))),
        (clip.CLIP_NORMS_ADDED, lambda r: sum(math.sqrt(_square(case, k)) for k in case.ranks(r, ("pp", "tp")))),
        (clip.CLIP_NO_ROOT, lambda r: norm**2),
    )


def _of_stage(case: Mesh, rank: int) -> float:
    """The squares of one stage, whole."""
    members = case.ranks(rank, ("tp",))
    return sum(_square(case, r, "shard", "tied") for r in members) + _square(case, rank, "copy")


def _later(case: Mesh, rank: int) -> int:
    """Whether this is not the first stage."""
    return int(case.place(rank)["pp"] > 0)


def _clipped_early(result: Result, case: Mesh) -> bool:
    """Whether each copy's gradient was clipped before the average over dp, or each rank's before any sum."""
    local = ms.local(result)
    before = replace(ms.RIGHT, copy=("tp",), shard=(), tied=("ends",), weight=ms.one)
    complete = [
        {name: before.gives(case, rank, name, local) or [] for name in hm.names_of(case, rank)}
        for rank in range(case.n)
    ]

    def of_copy(case: Mesh, rank: int) -> float:
        """The norm of this copy's gradient."""
        total = 0.0
        for r in case.ranks(rank, ("pp", "tp")):
            place = case.place(r)
            for name, numbers in complete[r].items():
                counts = {"shard": True, "copy": place["tp"] == 0, "tied": place["pp"] == 0}[ms.kind(name)]
                total += counts * sum(x * x for x in numbers)
        return case.share(rank) * min(1.0, case.max_norm / math.sqrt(total))

    def alone(case: Mesh, rank: int) -> float:
        total = sum(x * x for data in local[rank].values() for x in hm.numbers_of(data))
        return case.share(rank) * min(1.0, case.max_norm / math.sqrt(total))

    return any(ms.follows(result, case, replace(ms.RIGHT, weight=weight)) for weight in (of_copy, alone))
