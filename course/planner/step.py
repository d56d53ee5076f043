"""Seconds of one training step, term by term: computing, messages of each axis, the bubble, the optimizer.

    step = (pipeline of (layers + head + tensor and context messages) + exposed data-parallel messages + optimizer)
           x (1 + straggling log2(nodes))

Terms are made in `compute`, `traffic` and `pipeline`; the constants are in `constants`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from course.errors import UsageError
from course.planner.compute import Passes, head_passes, layer_passes
from course.planner.constants import Constants, constants_of
from course.planner.flops import model_flops
from course.planner.memory import stage_parameters
from course.planner.pipeline import pipeline_seconds
from course.planner.traffic import axis_ring
from course.spec.chips import Cluster
from course.spec.plan import Plan, stage_layers
from course.spec.shape import ModelShape

OPTIMIZER_BYTES = 34
"""Bytes that Adam moves a parameter: the gradient twice (norm, update), two moments and the float32 weight read and
written, the 16-bit weight written."""


@dataclass(frozen=True, slots=True)
class Step:
    """Seconds of a step, by what takes them; `seconds` is their sum.

    compute: of the slowest stage. tensor, context: exposed messages there. bubble: the pipeline's idle time and its
    messages. data: exposed messages of data parallelism. optimizer, straggling: see the module. flops: model FLOPs.
    """

    compute: float
    tensor: float
    context: float
    bubble: float
    data: float
    optimizer: float
    straggling: float
    flops: float
    peak: float

    @property
    def seconds(self) -> float:
        worked = self.compute + self.tensor + self.context + self.bubble
        return worked + self.data + self.optimizer + self.straggling

    @property
    def mfu(self) -> float:
        """Model FLOPs utilisation: model FLOPs a second over the 16-bit peak of all chips (Chowdhery et al. 2022)."""
        return self.flops / self.seconds / self.peak


def predict_step(shape: ModelShape, plan: Plan, cluster: Cluster, constants: Constants | None = None) -> Step:
    """The Step of a plan on a cluster. Raises UsageError where the shape or the cluster cannot hold the plan."""
    plan.check(shape)
    if plan.num_gpus > cluster.num_gpus:
        raise UsageError(f"{plan} needs {plan.num_gpus} GPUs, but there are {cluster.num_gpus}: try a smaller dp")
    known = constants or constants_of(cluster.chip.family)
    tensor, context = _layer_messages(shape, plan, cluster, known)
    computing, stages = _stages(shape, plan, cluster, known, (tensor, context))
    hop = _hop(shape, plan, cluster, known)
    piped = pipeline_seconds(
        stages, plan.microbatches, chunks=plan.chunks, schedule=plan.schedule, hop=hop, waits=not plan.overlap_pp
    )
    busiest = max(range(plan.pp), key=lambda stage: stages[stage].total)
    layers, m = stage_layers(shape.layers, plan.pp)[busiest], plan.microbatches
    computed = m * computing[busiest].total
    back = _passes_back(plan)
    messages = [m * layers * tensor * (1 + back), m * layers * context * (2 + back)]
    data = _data_messages(shape, plan, cluster, known, computing[0]) + _tied_messages(shape, plan, cluster, known)
    optimizer = _optimizer(shape, plan, cluster, known)
    nodes = max(1.0, plan.num_gpus / cluster.per_node)
    late = known.straggling * math.log2(nodes) * (piped + data + optimizer)
    flops = model_flops(shape, batch=plan.global_batch, sequence=plan.sequence)
    bubble = max(0.0, piped - computed - sum(messages))
    return Step(
        computed, messages[0], messages[1], bubble, data, optimizer, late, flops, plan.num_gpus * cluster.chip.flops
    )


def _passes_back(plan: Plan) -> int:
    """Times that a layer's messages go out in a microbatch's backward: once, and forward again if all is recomputed."""
    return 2 if plan.recompute == "full" else 1


def _layer_messages(shape: ModelShape, plan: Plan, cluster: Cluster, constants: Constants) -> tuple[float, float]:
    """Exposed seconds of tensor and of context parallelism in one pass of one layer.

    Two all-reduces of 2bsh bytes (or a reduce-scatter and an all-gather each, with sequence parallelism: as many bytes;
    Korthikanti et al. 2022, section 4.2.2); keys and values of the whole sequence gathered, and their
    gradients scattered on the way back (Llama 3, section 3.3.2).
    """
    tensor = context = 0.0
    if plan.tp > 1:
        ring = axis_ring("tp", plan, cluster, constants)
        tensor = 2 * ring.all_reduce(2 * plan.tokens * shape.hidden)
        tensor *= 1 - constants.tensor_overlap if plan.overlap_tp else 1
    if plan.cp > 1:
        ring = axis_ring("cp", plan, cluster, constants)
        channels = shape.hidden if plan.repeats_kv else shape.kv_hidden
        context = ring.all_gather(2 * 2 * plan.tokens * plan.cp * channels / plan.tp)
    return tensor, context


def _stages(
    shape: ModelShape, plan: Plan, cluster: Cluster, constants: Constants, messages: tuple[float, float]
) -> tuple[list[Passes], list[Passes]]:
    """Passes of a microbatch on each stage: computing alone, and with the messages inside its layers."""
    layer = layer_passes(shape, plan, cluster.chip, constants)
    head = head_passes(shape, plan, cluster.chip, constants)
    counts = stage_layers(shape.layers, plan.pp)
    computing = [_times(layer, count) for count in counts]
    computing[-1] = _plus(computing[-1], head)
    ahead, back = sum(messages), messages[0] * _passes_back(plan) + messages[1] * (1 + _passes_back(plan))
    stages = [
        _plus(passes, Passes(count * ahead, count * back, 0.0)) for passes, count in zip(computing, counts, strict=True)
    ]
    return computing, stages


def _times(passes: Passes, count: int) -> Passes:
    return Passes(count * passes.forward, count * passes.backward, count * passes.weights)


def _plus(one: Passes, other: Passes) -> Passes:
    return Passes(one.forward + other.forward, one.backward + other.backward, one.weights + other.weights)


def _hop(shape: ModelShape, plan: Plan, cluster: Cluster, constants: Constants) -> float:
    """Seconds of one message between stages: 2bsh bytes, scattered over tp before they are sent and gathered
    by the next stage (Narayanan et al. 2021, section 4.1), or whole from each rank of tp."""
    if plan.pp == 1:
        return 0.0
    ring, nbytes = axis_ring("pp", plan, cluster, constants), 2 * plan.tokens * shape.hidden
    if not plan.scatters_pp:
        return ring.alpha + nbytes / ring.bandwidth
    sent = ring.alpha + nbytes / plan.tp / ring.bandwidth
    if plan.tp == 1 or plan.sequence_parallel:  # with sequence parallelism the next stage wants it split
        return sent
    return sent + axis_ring("tp", plan, cluster, constants).all_gather(nbytes)


def _data_messages(shape: ModelShape, plan: Plan, cluster: Cluster, constants: Constants, first: Passes) -> float:
    """Exposed seconds of data parallelism.

    Gradients are summed once a step (an all-reduce, or a reduce-scatter and an all-gather of the new weights), beside
    the last microbatch's backward; FSDP gathers weights and reduces gradients for every microbatch, beside all of it.
    """
    if plan.dp * plan.cp == 1:
        return 0.0
    ring = axis_ring("dp", plan, cluster, constants)
    parameters = max(stage_parameters(shape, plan, stage) for stage in {0, plan.pp - 1})
    gather, reduce = ring.all_gather(2 * parameters), ring.all_gather(plan.wire_bytes * parameters)
    if plan.zero >= 2 and plan.pp == 1:
        messages = plan.microbatches * ((2 if plan.zero == 3 else 1) * gather + reduce)
        beside = plan.microbatches * first.total
    else:
        messages = 2 * reduce if plan.zero == 0 else reduce + gather
        beside = first.backward + first.weights + (first.forward if plan.zero else 0.0)
    if not plan.overlap_dp:
        return messages
    hidden = min(messages, constants.overlap * beside)
    return messages - hidden + constants.interference * hidden


def _tied_messages(shape: ModelShape, plan: Plan, cluster: Cluster, constants: Constants) -> float:
    """Seconds to sum the gradients of a tied embedding, which the first and the last stage both hold."""
    if not shape.tied or plan.pp == 1:
        return 0.0
    ring = axis_ring("pp", plan, cluster, constants)
    return ring.all_reduce(plan.wire_bytes * shape.vocab * shape.hidden / plan.tp)


def _optimizer(shape: ModelShape, plan: Plan, cluster: Cluster, constants: Constants) -> float:
    """Seconds of Adam on a rank's parameters, or on its share of them where ZeRO shards the states."""
    parameters = stage_parameters(shape, plan, 0) / (plan.dp * plan.cp if plan.zero else 1)
    return OPTIMIZER_BYTES * parameters / (constants.memory * cluster.chip.memory_bandwidth)
