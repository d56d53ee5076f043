"""Which layout: all that fit a cluster, priced and ranked.

The choice of what to try is here; the price of one layout is in `step` and `memory`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from course.errors import UsageError
from course.planner.constants import Constants
from course.planner.memory import Memory, fits, is_room, peak_memory
from course.planner.step import Step, predict_step
from course.spec.chips import Cluster
from course.spec.plan import RECOMPUTE, Plan, stage_layers
from course.spec.shape import ModelShape

if TYPE_CHECKING:
    from course.planner.rows import Row

LARGEST_MICROBATCH = 8
MOST_CHUNKS = 8
MOST_DOUBLINGS = 12
LONGEST_ALONE = 32768
"""Tokens of a sequence up to which splitting it (cp) is not tried."""


@dataclass(frozen=True, slots=True)
class Priced:
    """A plan with its step and memory."""

    plan: Plan
    step: Step
    memory: Memory


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found. plans: fastest first. tried: layouts looked at; priced: of them, those that fit memory."""

    plans: tuple[Priced, ...]
    tried: int
    priced: int


def find_plans(shape: ModelShape, cluster: Cluster, start: Plan, *, best: int = 10) -> Found:
    """The fastest layouts of `shape` on the whole cluster, for the batch, sequence and software of `start`.

    Tried: tp within a node, pp up to the layers, dp that divides the batch, cp for long sequences, microbatches of 1 to
    8, chunks of up to 8 with equal stages, ZeRO-1, ZeRO-2 and (without a pipeline) ZeRO-3, the four kinds of
    recomputation. More recomputation is slower, so the first kind that fits is the only one priced. With a pipeline
    ZeRO-2 is kept where ZeRO-1 needs more recomputation: it sends the same messages. Raises UsageError where nothing
    fits.
    """
    tried = 0
    priced: list[Priced] = []
    for sizes in _axes(shape, cluster, start):
        for plan in _ways(shape, cluster, replace(start, microbatch=1, **sizes)):
            for recompute in RECOMPUTE:
                tried += 1
                candidate = replace(plan, recompute=recompute)
                memory = peak_memory(shape, candidate)
                if is_room(memory, candidate, cluster.chip):
                    if not (priced and plan.pp > 1 and priced[-1].plan == replace(candidate, zero=1)):
                        priced.append(Priced(candidate, predict_step(shape, candidate, cluster), memory))
                    break
    if not priced:
        raise UsageError(_why_none(shape, cluster, start, tried))
    priced.sort(key=lambda found: found.step.seconds)
    return Found(tuple(priced[:best]), tried, len(priced))


def _why_none(shape: ModelShape, cluster: Cluster, start: Plan, tried: int) -> str:
    """One sentence: which numbers do not divide, or how many chips hold the model."""
    n, chip = cluster.num_gpus, cluster.chip
    if not tried:
        batch = f"a batch of {start.global_batch}"
        near = min(_usable(shape, cluster, start), key=lambda size: abs(size - n))
        return f"no layout of {shape.name} uses {n} chips: its heads, layers and {batch} do not divide: try {near}"
    for more in (n << k for k in range(1, MOST_DOUBLINGS)):
        larger = replace(cluster, num_gpus=more)
        for sizes in _axes(shape, larger, start):
            least = replace(start, microbatch=1, recompute="full", sequence_parallel=sizes["tp"] > 1, **sizes)
            zeros = (1, 2, 3) if least.pp == 1 else (1, 2)
            if any(fits(shape, replace(least, zero=zero), chip) for zero in zeros):
                return f"{shape.name} fits {n} x {chip.name} in none of {tried} layouts: try {more} chips"
    return f"{shape.name} fits {n} x {chip.name} in none of {tried} layouts, nor more chips: try a shorter sequence"


def _usable(shape: ModelShape, cluster: Cluster, start: Plan) -> set[int]:
    """Numbers of chips for which there are layouts, sequences not split."""
    tensor = [t for t in _divisors(shape.heads) if t <= cluster.per_node and not shape.ffn % t]
    stages = [p for p in range(1, shape.layers + 1) if not shape.layers % p or not (shape.layers + 2) % p]
    return {t * p * d for t in tensor for p in stages for d in _divisors(start.global_batch)}


def _axes(shape: ModelShape, cluster: Cluster, start: Plan) -> Iterator[dict[str, Any]]:
    """Sizes of the axes that use every chip and divide the shape and the batch."""
    n, batch = cluster.num_gpus, start.global_batch
    tensor = [t for t in _divisors(n) if t <= cluster.per_node and not shape.heads % t and not shape.ffn % t]
    contexts = [c for c in _divisors(n) if c == 1 or (start.sequence // c >= LONGEST_ALONE // 4 and c <= 64)]
    for tp, cp in itertools.product(tensor, contexts if start.sequence > LONGEST_ALONE else [1]):
        for pp in _divisors(n // (tp * cp)):
            dp = n // (tp * cp * pp)
            even = not shape.layers % pp or not (shape.layers + 2) % pp
            if even and pp <= shape.layers and not batch % dp and not start.sequence % cp:
                yield {"tp": tp, "cp": cp, "pp": pp, "dp": dp}


def _ways(shape: ModelShape, cluster: Cluster, plan: Plan) -> Iterator[Plan]:
    """Microbatches, chunks and ZeRO stages for given axes."""
    each = plan.global_batch // plan.dp
    layers = max(stage_layers(shape.layers, plan.pp))
    chunks = [v for v in _divisors(layers) if v <= MOST_CHUNKS] if plan.pp > 1 else [1]
    for microbatch in (b for b in _divisors(each) if b <= LARGEST_MICROBATCH):
        for v in chunks:
            if v > 1 and (each // microbatch) % plan.pp:
                continue
            for zero in (1,) if plan.dp == 1 else (1, 2, 3) if plan.pp == 1 else (1, 2):
                yield replace(plan, microbatch=microbatch, chunks=v, zero=zero, sequence_parallel=plan.tp > 1)


def _divisors(n: int) -> list[int]:
    small = [k for k in range(1, int(n**0.5) + 1) if n % k == 0]
    return small + [n // k for k in reversed(small) if k * k != n]


def chosen_plan(row: Row, constants: Constants | None = None) -> Plan:
    """The plan of a published run, with what its source does not print chosen by search."""
    if "axes" in row.free:
        return find_plans(row.shape, row.cluster, row.plan, best=1).plans[0].plan
    return fastest_of(row.shape, row.plan, row.cluster, row.free, constants)


def fastest_of(
    shape: ModelShape, plan: Plan, cluster: Cluster, free: Sequence[str], constants: Constants | None = None
) -> Plan:
    """`plan` with the fields named in `free` (microbatch, chunks, recompute) chosen: the fastest that fits. Chunks are
    at least those of `plan`.

    For published runs whose source does not print them: their engineers chose, so the planner does. Where nothing fits
    although the run ran, the fastest of all.
    """
    if not free:
        return plan
    layers = max(stage_layers(shape.layers, plan.pp))
    each = plan.global_batch // plan.dp
    values: dict[str, list[Any]] = {
        "microbatch": [b for b in _divisors(each) if b <= LARGEST_MICROBATCH],
        "chunks": [v for v in _divisors(layers) if v >= plan.chunks],
        "recompute": list(RECOMPUTE),
    }
    names = [name for name in values if name in free]
    chosen = itertools.product(*[values[name] for name in names])
    choices = [replace(plan, **dict(zip(names, value, strict=True))) for value in chosen]
    fitting = [choice for choice in choices if fits(shape, choice, cluster.chip)] or choices
    return min(fitting, key=lambda choice: predict_step(shape, choice, cluster, constants).seconds)
