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

FLOAT32_LOGIT_BYTES = 12
"""Bytes a logit in float32: 4 for log-softmax, 4 for its gradient, 4 for that of the logit."""

CONTEXT = 2 * 2**30
"""Bytes of the driver's context and libraries (1.5 to 2 GB on an A100, BLOOM's chronicles)."""

COMMUNICATOR = 0.75 * 2**30
"""Bytes that NCCL keeps for the group of each axis: buffers of its channels to every neighbour."""


FRAGMENTED = 0.07
"""Share of what is allocated that the caching allocator holds beside it, in blocks that fit nothing else. Runs that ran
out of memory say it is at least 0.042, runs that did not at most 0.077."""


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
    return sum(state_parts(parameters, dp=dp, zero=zero, sizes=(2, grad_bytes, 12)))


def state_parts(parameters: float, *, dp: int, zero: int, sizes: tuple[int, int, int]) -> tuple[float, float, float]:
    """`states_bytes` one by one: weights, gradients, optimizer, of `sizes` bytes a parameter.

    (2, g, 12) in mixed precision, where the optimizer keeps float32 weights and Adam's two moments, (4, 4, 8) in
    float32.
    """
    weights, gradients, optimizer = (parameters * size for size in sizes)
    return (
        weights / (dp if zero >= 3 else 1),
        gradients / (dp if zero >= 2 else 1),
        optimizer / (dp if zero >= 1 else 1),
    )


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
    """The Memory of the fullest stage.

    Gradients count in full, as they are there from the second microbatch on: the peak of a step of one microbatch is
    lower by what backward has not made yet.
    """
    return max((_stage_memory(shape, plan, stage) for stage in _stages(plan)), key=lambda memory: memory.total)


def memory_parts(shape: ModelShape, plan: Plan) -> dict[str, float]:
    """Bytes of `peak_memory`, its states one by one: weights, gradients, optimizer, activations, logits, buffers."""
    stage = max(_stages(plan), key=lambda stage: _stage_memory(shape, plan, stage).total)
    weights, gradients, optimizer = _states(stage_parameters(shape, plan, stage), plan)
    memory = _stage_memory(shape, plan, stage)
    return {
        "weights": weights, "gradients": gradients, "optimizer": optimizer, "activations": memory.activations,
        "logits": memory.logits, "buffers": memory.buffers,
    }  # fmt: skip


def _stages(plan: Plan) -> list[int]:
    """Stages that one of which is the fullest."""
    return sorted({0, min(1, plan.pp - 1), plan.pp - 1})


def _stage_memory(shape: ModelShape, plan: Plan, stage: int) -> Memory:
    n, h, size = plan.tokens, shape.hidden, _itemsize(plan)
    states = sum(_states(stage_parameters(shape, plan, stage), plan))
    layers = stage_layers(shape.layers, plan.pp)[stage]
    kept = layers * layer_activation_bytes(shape, plan, itemsize=size) * microbatches_held(plan, stage)
    kept += size * n * h * min(plan.microbatches, plan.pp) * plan.dropout * (stage == 0)  # the embedding's mask, output
    logits = logit_bytes(plan) * n * shape.vocab / plan.tp if stage == plan.pp - 1 else 0.0
    return Memory(states, kept, logits, _buffers(shape, plan))


def _itemsize(plan: Plan) -> int:
    """Bytes of an activation."""
    return 4 if plan.precision == "float32" else 2


def logit_bytes(plan: Plan) -> int:
    """Bytes that a logit of the last stage holds, and about as many go through memory for the loss."""
    if plan.fused_loss:
        return 2 + plan.logit_grad_bytes
    return FLOAT32_LOGIT_BYTES if plan.precision == "float32" else LOGIT_BYTES


def _states(parameters: float, plan: Plan) -> tuple[float, float, float]:
    """Bytes of weights, gradients and optimizer. FSDP (ZeRO-3) shards float32 weights, gradients and moments, 16 bytes
    a parameter too; with a pipeline its weights and gradients stay whole from the first microbatch to the last."""
    float32, sharded, dp = plan.precision == "float32", plan.zero == 3, plan.dp * plan.cp
    sizes = (4, 4, 8) if float32 else (2, 2 if sharded else plan.grad_bytes, 12)
    weights, gradients, optimizer = state_parts(parameters, dp=dp, zero=plan.zero, sizes=sizes)
    if sharded and plan.pp > 1:
        weights, gradients = weights + _itemsize(plan) * parameters, gradients + plan.grad_bytes * parameters
    return weights, gradients, optimizer


def _buffers(shape: ModelShape, plan: Plan) -> float:
    """What is there for a moment: a layer recomputed with its gradients, gathered inputs, ZeRO-3's gathered layers. And
    a bucket of gradients, copied together to be summed."""
    size = _itemsize(plan)
    buffers = plan.bucket_bytes + float(size * plan.tokens * shape.hidden * (2 if plan.sequence_parallel else 1))
    if plan.recompute != "none":
        buffers += layer_activation_bytes(shape, replace(plan, recompute="none"), itemsize=size)
    if plan.zero == 3 and plan.pp == 1:
        buffers += 2 * (size + plan.grad_bytes) * layer_parameters(shape) / plan.tp
    return buffers


def fits(shape: ModelShape, plan: Plan, chip: Chip) -> bool:
    """Whether the fullest chip holds it, beside what is never ours."""
    return is_room(peak_memory(shape, plan), plan, chip)


def is_room(memory: Memory, plan: Plan, chip: Chip) -> bool:
    """Whether `memory` as the allocator holds it, the context and the groups of each axis go into the chip."""
    return needed_bytes(memory, plan) <= chip.memory


def needed_bytes(memory: Memory, plan: Plan) -> float:
    """Bytes that a chip must have for `memory`: as the allocator holds it, with the context and each axis's group."""
    axes = sum(size > 1 for size in (plan.dp, plan.tp, plan.pp, plan.cp))
    return memory.reserved + CONTEXT + axes * COMMUNICATOR
