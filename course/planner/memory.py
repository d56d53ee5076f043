"""How many bytes a chip holds at its fullest: states, activations, logits, buffers.

Rajbhandari et al. 2020 (ZeRO) for the states, Korthikanti et al. 2022 for the activations. No seconds here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from course.planner.flops import embedding_parameters, layer_parameters
from course.spec.chips import Chip
from course.spec.plan import Plan, stage_layers
from course.spec.shape import ModelShape

LOGIT_BYTES = 14
"""Bytes a logit: 2 as computed, 4 as float32, 4 for log-softmax and 4 for its gradient."""

FUSED_LOGIT_BYTES = 6
"""Bytes a logit where the loss is one compiled kernel: 2 as computed, 4 for the gradient."""

CONTEXT = 2 * 2**30
"""Bytes of the driver's context and libraries (1.5 to 2 GB on an A100, BLOOM's chronicles)."""

COMMUNICATOR = 0.75 * 2**30
"""Bytes that NCCL keeps for the group of each axis: buffers of its channels to every neighbour."""


FRAGMENTED = 0.08
"""Share of what is allocated that the caching allocator holds beside it, in blocks that fit nothing else."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes on the fullest chip, by what they are for."""

    states: float
    activations: float
    logits: float
    buffers: float

    @property
    def total(self) -> float:
        return self.states + self.activations + self.logits + self.buffers

    @property
    def reserved(self) -> float:
        """Bytes that the caching allocator holds for `total`."""
        return (1 + FRAGMENTED) * self.total


def states_bytes(parameters: float, *, dp: int, zero: int, grad_bytes: int = 2) -> float:
    """Bytes of weights, gradients and Adam's states of so many parameters on one of dp ranks, in mixed precision.

    2 + g + 12 a parameter; ZeRO-1 shards the 12, ZeRO-2 the g + 12, ZeRO-3 all (ZeRO, section 5).
    7.5e9 at dp=64: 120, 31.4, 16.6 and 1.9 GB.
    """
    kept = {0: 2 + grad_bytes + 12, 1: 2 + grad_bytes, 2: 2, 3: 0}[zero]
    return parameters * (kept + (2 + grad_bytes + 12 - kept) / dp)


def layer_activation_bytes(shape: ModelShape, plan: Plan, *, itemsize: int = 2, mask_bytes: int = 1) -> float:
    """Bytes that one layer keeps of one microbatch until its backward.

    itemsize: bytes of an activation, 4 for float32. mask_bytes: of one element of dropout's masks; 1 on a GPU, on a CPU
    PyTorch keeps them in the activation's own type.

    In 16 bits, for a GPT with stored scores and dropout: sbh(10 + 24/t + 5as/(ht)); with sequence parallelism
    (sbh/t)(34 + 5as/h); full recomputation keeps the input alone, 2sbh (Korthikanti, section 4). Fused attention keeps
    no scores; without dropout no masks: 32 for a GPT. Selective drops the scores, or with fused attention the outputs
    of norms and of the MLP's activation. Alternate keeps the inputs and every other product (torchtitan's policy).
    """
    n, h, t, fused = plan.tokens, shape.hidden, plan.tp, plan.attention != "stored"
    split = t if plan.sequence_parallel else 1
    ffn = shape.ffn * shape.active_experts
    if plan.recompute == "full":
        return itemsize * n * h / split
    if plan.recompute == "alternate":
        products = 3 * h + 2 * shape.kv_hidden + (shape.ffn_matrices - 1) * ffn
        return itemsize * n * (h / split + h / t + products / 2 / t)
    dropped, drop = plan.recompute == "selective", int(plan.dropout)
    norms = itemsize * (2 if dropped and fused else 4) * h + 2 * drop * mask_bytes * h  # of two norms, in and out
    tensors = shape.ffn_matrices - 1 if dropped and fused else _mlp_tensors(shape, plan)
    inside = itemsize * (2 * h + 2 * shape.kv_hidden + tensors * ffn)
    scores = 0 if fused or dropped else (itemsize * (1 + drop) + drop * mask_bytes) * shape.heads
    return n * (norms / split + (inside + scores * plan.sequence) / t)


def _mlp_tensors(shape: ModelShape, plan: Plan) -> int:
    """Tensors of ffn channels that an MLP keeps: before and after GELU; gate, up and product, and SiLU if not fused."""
    return 2 if shape.ffn_matrices == 2 else 3 if plan.compiled else 4


def microbatches_held(plan: Plan, stage: int) -> float:
    """Microbatches whose activations a stage holds at once, in units of all its layers.

    1F1B: min(m, p - stage). Interleaved: p(1 + (p-1)/(pv)) on the first (Korthikanti, section 4.2.3). ZB-2p holds twice
    as many; ZB-1p and ZB-V hold p on every stage (Qi et al. 2024).
    """
    m, p = plan.microbatches, plan.pp
    if plan.schedule in ("zb-1p", "zb-v"):
        return min(m, p)
    if plan.schedule == "zb-2p":
        return min(m, 2 * p - 1)
    if plan.chunks > 1:
        return min(m, p * (1 + (p - 1) / (p * plan.chunks)) - 2 * stage / plan.chunks)
    return min(m, p - stage)


def stage_parameters(shape: ModelShape, plan: Plan, stage: int) -> float:
    """Parameters of one rank of a stage: its layers, the embedding on the first, the head and last norm on the last."""
    layers = stage_layers(shape.layers, plan.pp)[stage] * layer_parameters(shape)
    first, last = stage == 0, stage == plan.pp - 1
    total = layers + first * embedding_parameters(shape) + last * 2 * shape.hidden
    if last and (plan.pp > 1 or not shape.tied):
        total += shape.vocab * shape.hidden
    return total / plan.tp


def peak_memory(shape: ModelShape, plan: Plan) -> Memory:
    """The Memory of the fullest stage."""
    stages = sorted({0, min(1, plan.pp - 1), plan.pp - 1})
    return max((_stage_memory(shape, plan, stage) for stage in stages), key=lambda memory: memory.total)


def _stage_memory(shape: ModelShape, plan: Plan, stage: int) -> Memory:
    n, h = plan.tokens, shape.hidden
    parameters = stage_parameters(shape, plan, stage)
    states = _states(parameters, plan)
    layers = stage_layers(shape.layers, plan.pp)[stage]
    kept = layers * layer_activation_bytes(shape, plan) * microbatches_held(plan, stage)
    kept += 2 * n * h * min(plan.microbatches, plan.pp) * plan.dropout * (stage == 0)  # the embedding's mask and output
    logits = logit_bytes(plan) * n * shape.vocab / plan.tp if stage == plan.pp - 1 else 0.0
    return Memory(states, kept, logits, _buffers(shape, plan))


def logit_bytes(plan: Plan) -> int:
    """Bytes that a logit of the last stage holds, and about as many go through memory for the loss."""
    return FUSED_LOGIT_BYTES if plan.fused_loss else LOGIT_BYTES


def _states(parameters: float, plan: Plan) -> float:
    """The states of a rank. FSDP (ZeRO-3) shards float32 weights, gradients and moments, 16 bytes a parameter too;
    with a pipeline its weights and gradients stay whole from the first microbatch to the last."""
    if plan.zero < 3:
        return states_bytes(parameters, dp=plan.dp * plan.cp, zero=plan.zero, grad_bytes=plan.grad_bytes)
    whole = (2 + plan.grad_bytes) * parameters if plan.pp > 1 else 0.0
    return states_bytes(parameters, dp=plan.dp * plan.cp, zero=3) + whole


def _buffers(shape: ModelShape, plan: Plan) -> float:
    """What is there for a moment: a layer recomputed with its gradients, gathered inputs, ZeRO-3's gathered layers."""
    buffers = 2.0 * plan.tokens * shape.hidden * (2 if plan.sequence_parallel else 1)
    if plan.recompute != "none":
        buffers += layer_activation_bytes(shape, replace(plan, recompute="none"))
    if plan.zero == 3 and plan.pp == 1:
        buffers += 2 * (2 + plan.grad_bytes) * layer_parameters(shape) / plan.tp
    return buffers


def fits(shape: ModelShape, plan: Plan, chip: Chip) -> bool:
    """Whether the fullest chip holds it, beside what is never ours."""
    return is_room(peak_memory(shape, plan), plan, chip)


def is_room(memory: Memory, plan: Plan, chip: Chip) -> bool:
    """Whether `memory` as the allocator holds it, the context and the groups of each axis go into the chip."""
    axes = sum(size > 1 for size in (plan.dp, plan.tp, plan.pp, plan.cp))
    return memory.reserved + CONTEXT + axes * COMMUNICATOR <= chip.memory
