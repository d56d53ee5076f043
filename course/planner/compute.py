"""Seconds that one chip computes for one microbatch: a layer, and the head with its loss. No messages here.

A matrix product costs its FLOPs at the rate of an endless one, and its operands through memory; everything else costs
its bytes through memory, at 16 bits. Counts are per rank: t divides them where tensor parallelism does.
"""

from __future__ import annotations

from typing import NamedTuple

from course.planner.constants import Constants
from course.planner.flops import layer_parameters
from course.planner.memory import logit_bytes
from course.spec.chips import Chip
from course.spec.plan import Plan
from course.spec.shape import ModelShape


class Passes(NamedTuple):
    """Seconds of a microbatch forward, backward to the input (recomputation included), backward to the weights."""

    forward: float
    backward: float
    weights: float

    @property
    def total(self) -> float:
        return self.forward + self.backward + self.weights


CAST_BYTES = 5
"""Bytes an operand's element moves to be scaled and cast to 8 bits: read for the largest, read again, written."""


def matmul_seconds(m: int, n: int, k: int, chip: Chip, constants: Constants, plan: Plan, *, low: bool = True) -> float:
    """Seconds of (m, k) @ (k, n): 2mnk FLOPs at the reachable rate, and 2(mk + kn + mn) bytes beside them.

    At the plan's precision, or in 16 bits if not `low`; unfused casts go through memory too.
    """
    precision = plan.precision if low else "bf16"
    share = constants.matmul if precision == "bf16" else constants.matmul_low
    traffic = constants.operand * 2 * (m * k + k * n + m * n)
    if plan.casts and precision != "bf16":
        traffic += CAST_BYTES / constants.memory * (m * k + k * n)
    return 2 * m * n * k / (share * chip.peak(precision)) + traffic / chip.memory_bandwidth


def layer_passes(shape: ModelShape, plan: Plan, chip: Chip, constants: Constants) -> Passes:
    """The Passes of one layer."""
    products = _products(shape, plan, chip, constants)
    core_forward, core_backward, core_again = _attention(shape, plan, chip, constants)
    moved_forward, moved_backward = _moved_bytes(shape, plan)
    rate = constants.memory * chip.memory_bandwidth
    forward = products + core_forward + moved_forward / rate + constants.kernels
    backward = products + core_backward + moved_backward / rate + constants.kernels
    backward += {
        "none": 0.0,
        "selective": core_again if plan.attention == "stored" else moved_forward / rate / 2,
        "alternate": (products + moved_forward / rate) / 2,
        "full": forward,
    }[plan.recompute]
    added = _accumulation(layer_parameters(shape), plan) / rate
    return Passes(forward, backward, products + added + constants.kernels)


def _accumulation(parameters: float, plan: Plan) -> float:
    """Bytes moved to add the gradients of a microbatch to those of the microbatches before.

    Of a parameter 6 in 16 bits: the new gradient and the sum are read, the sum is written. 10 where the sum is in
    float32 (DeepSpeed's bf16 optimizer). None where the matrix product adds up, as its output goes through memory
    anyway; FSDP reduces each microbatch's gradients instead (`step`).
    """
    if plan.fused_sums or (plan.zero >= 2 and plan.pp == 1):
        return 0.0
    each = 10 if plan.grad_bytes == 6 else 6
    return each * parameters / plan.tp * (1 - 1 / plan.microbatches)


def _products(shape: ModelShape, plan: Plan, chip: Chip, constants: Constants) -> float:
    """Forward seconds of the four (or five) products with weights; each of the two backward ones costs the same."""
    n, h, t = plan.tokens, shape.hidden, plan.tp
    up = (shape.ffn_matrices - 1) * shape.ffn // t
    each = ((h + 2 * shape.kv_hidden) // t, h), (h, h // t), (up, h), (h, shape.ffn // t)
    seconds = [matmul_seconds(n, width, depth, chip, constants, plan) for width, depth in each]
    return seconds[0] + seconds[1] + shape.active_experts * (seconds[2] + seconds[3])


def _attention(shape: ModelShape, plan: Plan, chip: Chip, constants: Constants) -> tuple[float, float, float]:
    """Seconds of scores, softmax and weighted sum: forward, backward, and again in selective recomputation.

    Fused: half of the square, backward 2.5 times (Dao 2023, section 4.1). Stored: the whole square as products, and
    each score goes through memory 13 bytes forward and 19 backward (8 and 12 without dropout), 11 (or 6) to do again.
    """
    square = 4.0 * plan.tokens * plan.sequence * shape.hidden / plan.tp  # FLOPs forward
    if plan.attention != "stored":
        share = constants.attention if plan.attention == "fused" else constants.flash_2
        forward = square / 2 / (share * chip.flops)
        return forward, 2.5 * forward, 0.0
    scores = plan.tokens * plan.sequence * shape.heads / plan.tp
    ahead, back, again = (13, 19, 11) if plan.dropout else (8, 12, 6)
    flops = square / (constants.matmul * chip.flops)
    rate = constants.memory * chip.memory_bandwidth
    return flops + ahead * scores / rate, 2 * flops + back * scores / rate, flops / 2 + again * scores / rate


def _moved_bytes(shape: ModelShape, plan: Plan) -> tuple[float, float]:
    """Bytes that element-wise operations move, forward and backward.

    A norm reads and writes (4h bytes a token), bias, dropout and residual read two and write one (6h, and a mask); an
    activation reads its inputs and writes its output. Not compiled, each goes through memory twice.
    """
    n, h, drop = plan.tokens, shape.hidden, plan.dropout
    split = plan.tp if plan.sequence_parallel else 1
    ffn = shape.ffn * shape.active_experts
    act_forward, act_backward = (4, 6) if shape.ffn_matrices == 2 else (6, 10)
    times = 1 if plan.compiled else 2
    turned = 4 * (h + shape.kv_hidden)  # rotary positions, or the transposes to heads
    forward = n * ((20 + 2 * drop) * h / split + (act_forward * ffn + turned) / plan.tp)
    backward = n * ((16 + 10 * drop) * h / split + (act_backward * ffn + turned) / plan.tp)
    return times * forward, times * backward


def head_passes(shape: ModelShape, plan: Plan, chip: Chip, constants: Constants) -> Passes:
    """The Passes of the last norm, the product with the vocabulary and the loss; 16 bits whatever the layers have."""
    logits = plan.tokens * shape.vocab / plan.tp
    product = matmul_seconds(plan.tokens, shape.vocab // plan.tp, shape.hidden, chip, constants, plan, low=False)
    rate = constants.memory * chip.memory_bandwidth
    loss = logit_bytes(plan) * logits / rate
    return Passes(product + loss, product + loss, product + _accumulation(shape.vocab * shape.hidden, plan) / rate)
