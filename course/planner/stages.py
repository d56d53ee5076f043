"""Alpa's two levels on a decoder (Zheng et al. 2022): how the products of a layer are sharded over a stage's chips, and
where the layers are cut into stages. The dynamic programs are in `alpa`; here are the costs they are given.

A stage's chips form a mesh of two axes. Each row of it takes a share of every microbatch. Inside a row each of a
layer's four products is split by samples ("batch"), by output channels ("columns") or by input channels ("rows"); where
two neighbours do not agree, the activation between them is resharded (Alpa, table 3). Weights, gradients and Adam's
states are split over the stage whatever the products do, and layers keep the inputs of one microbatch alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from course.errors import UsageError
from course.planner.alpa import Stage, cut_into_stages, shard_operators
from course.planner.compute import head_passes, layer_passes, matmul_seconds
from course.planner.constants import Constants, constants_of
from course.planner.flops import layer_parameters
from course.planner.memory import is_room, peak_memory
from course.planner.traffic import Ring, axis_ring
from course.spec.chips import Cluster
from course.spec.plan import Plan
from course.spec.shape import ModelShape

MOST_GROUPS = 8
"""Groups of layers that stages are made of, as Alpa clusters operators."""

MOST_UNITS = 16
"""Pieces of the cluster that stages are given."""

SPLITS = ("batch", "columns", "rows")
LEAVES = {"batch": "tokens", "columns": "channels", "rows": "whole"}
WANTS = {"batch": "tokens", "columns": "whole", "rows": "channels"}
"""How a product leaves its output over the chips (rows are summed, so each chip has all), and wants its input."""


@dataclass(frozen=True, slots=True)
class Sharded:
    """A stage: its layers from first to last - 1, its mesh, and the split of each product of a layer in a row of it."""

    first: int
    last: int
    rows: int
    columns: int
    splits: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Layer:
    """Seconds of a microbatch in the first layer of a stage and in each further one, on a mesh, with its splits."""

    alone: float
    each: float
    rows: int
    columns: int
    splits: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AlpaPlan:
    """seconds of a step without the optimizer; microbatches of a step; stages in order."""

    seconds: float
    microbatches: int
    stages: tuple[Sharded, ...]


def plan_stages(shape: ModelShape, cluster: Cluster, start: Plan) -> AlpaPlan:
    """The fastest stages for the batch, sequence and software of `start`, of steps in 1, 4, 16 and 64 microbatches.

    Raises UsageError where the chips are no power of two, or hold the model in no cut.
    """
    if cluster.num_gpus & (cluster.num_gpus - 1):
        raise UsageError(
            f"stages of Alpa have a power of two of chips each: try {1 << (cluster.num_gpus.bit_length() - 1)} of the "
            f"{cluster.num_gpus} chips"
        )
    known = constants_of(cluster.chip.family)
    found = [_cut(shape, cluster, start, m, known) for m in (1, 4, 16, 64) if not start.global_batch % m]
    best = min((plan for plan in found if plan), key=lambda plan: plan.seconds, default=None)
    if best is None:
        raise UsageError(
            f"{shape.name} fits {cluster.num_gpus} x {cluster.chip.name} in no cut into stages: "
            f"try {2 * cluster.num_gpus} chips"
        )
    return best


def _cut(shape: ModelShape, cluster: Cluster, start: Plan, microbatches: int, known: Constants) -> AlpaPlan | None:
    """The fastest cut for so many microbatches, None where nothing fits."""
    size = max(k for k in range(1, shape.layers + 1) if k == 1 or shape.layers // k >= MOST_GROUPS)
    edges = [*range(0, shape.layers, size), shape.layers]
    unit = max(1, cluster.num_gpus // MOST_UNITS)
    plan = replace(
        start, dp=1, tp=1, pp=1, cp=1, chunks=1, recompute="full", microbatch=start.global_batch // microbatches
    )
    meshes: dict[int, Layer] = {}

    def seconds(first: int, last: int, units: int) -> float:
        chips = units * unit
        if chips not in meshes:
            meshes[chips] = _mesh(shape, plan, cluster, chips, known)
        layer, layers = meshes[chips], edges[last] - edges[first]
        if not _has_room(shape, plan, cluster, layers, chips, last == len(edges) - 1):
            return math.inf
        head = head_passes(shape, plan, cluster.chip, known).total / chips if last == len(edges) - 1 else 0.0
        total: float = layer.alone + (layers - 1) * layer.each + head
        return total

    try:
        total, stages = cut_into_stages(len(edges) - 1, cluster.num_gpus // unit, microbatches, seconds)
    except UsageError:
        return None
    return AlpaPlan(total, microbatches, tuple(_named(stage, edges, meshes[stage.devices * unit]) for stage in stages))


def _named(stage: Stage, edges: list[int], layer: Layer) -> Sharded:
    return Sharded(edges[stage.first], edges[stage.last], layer.rows, layer.columns, layer.splits)


def _has_room(shape: ModelShape, plan: Plan, cluster: Cluster, layers: int, chips: int, last: bool) -> bool:
    """Whether chips hold these layers: all of it split over them, as tensor parallelism would."""
    part = replace(shape, layers=layers, vocab=shape.vocab if last else 1)
    memory = peak_memory(part, replace(plan, global_batch=plan.microbatch))
    each = replace(memory, states=memory.states / chips, activations=memory.activations / chips,
                   logits=memory.logits / chips, buffers=memory.buffers / chips)  # fmt: skip
    return is_room(each, plan, cluster.chip)


def _mesh(shape: ModelShape, plan: Plan, cluster: Cluster, chips: int, known: Constants) -> Layer:
    """The mesh of so many chips on which a layer is fastest; rows lie within a node."""
    layers = [Layer(math.inf, math.inf, 1, chips, ())]
    for columns in (1 << k for k in range(chips.bit_length())):
        rows = chips // columns
        if columns <= min(cluster.per_node, shape.heads) and not plan.microbatch % rows:
            layers.append(_layer(shape, plan, cluster, rows, columns, known))
    return min(layers, key=lambda layer: layer.each)


def _layer(shape: ModelShape, plan: Plan, cluster: Cluster, rows: int, columns: int, known: Constants) -> Layer:
    """A layer on a mesh: the cheapest splits of its products in a row, and the sum of gradients between rows."""
    ring, own = _ring(plan, cluster, 1, columns, known), replace(plan, microbatch=plan.microbatch // rows)
    own = replace(own, global_batch=own.microbatch * (plan.global_batch // plan.microbatch))
    products = _products(shape)
    whole = sum(4 * matmul_seconds(own.tokens, wide, deep, cluster.chip, known, own) for wide, deep, _ in products)
    rest = max(0.0, layer_passes(shape, own, cluster.chip, known).total - whole) / columns
    gradients = plan.wire_bytes * layer_parameters(shape) / columns
    rest += _ring(plan, cluster, columns, rows, known).all_reduce(gradients) / own.microbatches
    operators = [
        {f"{index} {split}": _product(sizes, split, own, cluster, ring, known) for split in SPLITS}
        for index, sizes in enumerate(products)
    ]

    def reshard(before: str, after: str) -> float:
        index, left = before.split()
        nbytes = 2 * own.tokens * products[int(index)][2]
        return _reshard(LEAVES[left], WANTS[after.split()[1]], ring, nbytes)

    one, _ = shard_operators(operators, reshard)
    two, chosen = shard_operators(operators * 2, reshard)
    splits = tuple(name.split()[1] for name in chosen[len(operators) :])
    return Layer(one + rest, two - one + rest, rows, columns, splits)


def _ring(plan: Plan, cluster: Cluster, stride: int, n: int, known: Constants) -> Ring:
    """n chips, every stride-th."""
    return axis_ring("dp", replace(plan, tp=stride, dp=n, microbatch=1, global_batch=n), cluster, known)


def _products(shape: ModelShape) -> list[tuple[int, int, int]]:
    """(output channels, input channels, channels that go on to the next product) of a layer's four products."""
    h, ffn = shape.hidden, shape.ffn * shape.active_experts
    return [(h + 2 * shape.kv_hidden, h, h), (h, h, h), ((shape.ffn_matrices - 1) * ffn, h, ffn), (h, ffn, h)]


def _product(
    sizes: tuple[int, int, int], split: str, plan: Plan, cluster: Cluster, ring: Ring, known: Constants
) -> float:
    """Seconds of a product over the ring's chips: forward twice (it is recomputed) and backward, with its sums."""
    wide, deep, _ = sizes
    shares = {
        "batch": (plan.tokens, wide, deep),
        "columns": (wide, plan.tokens, deep),
        "rows": (deep, plan.tokens, wide),
    }
    if split == "batch" and plan.microbatch % ring.n:
        return math.inf
    cut, *others = shares[split]
    seconds = 4 * matmul_seconds(max(1, cut // ring.n), others[0], others[1], cluster.chip, known, plan)
    if ring.n == 1:
        return seconds
    if split == "batch":  # gradients of the weights, once a step
        return seconds + ring.all_reduce(plan.wire_bytes * wide * deep) / plan.microbatches
    if split == "columns":  # gradients of the input
        return seconds + ring.all_reduce(2 * plan.tokens * deep)
    return seconds + 2 * ring.all_reduce(2 * plan.tokens * wide)


def _reshard(left: str, wanted: str, ring: Ring, nbytes: float) -> float:
    """Seconds to bring an activation from one split to another, forward twice, and its gradient back."""
    if left == wanted or ring.n == 1:
        return 0.0
    gather = ring.all_gather(nbytes)
    if left == "whole":
        return gather  # a share is there already; gradients are gathered
    return 3 * (gather if wanted == "whole" else gather / ring.n)  # all-to-all: each chip keeps 1/n of what it has
