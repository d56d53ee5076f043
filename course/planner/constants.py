"""What chips really reach, of what their data sheets say: one set of physical constants a family of chips.

No number here belongs to a paper, a model or a row. They were fitted by `planner.fit` on half of the published rows
(see `planner.rows.is_kept_aside`); the data sheets' numbers stand in `spec.chips`.
"""

from __future__ import annotations

from dataclasses import dataclass

from course.errors import UsageError


@dataclass(frozen=True, kw_only=True, slots=True)
class Constants:
    """Twelve numbers that turn counts of FLOPs and bytes into seconds. Fractions are of the data sheet's peak."""

    matmul: float
    """Share of the matrix units' peak that an endless 16-bit matrix product reaches: clocks under load, and tiling."""
    matmul_low: float
    """The same at 8 and 4 bits, scaling of the operands included."""
    operand: float
    """Times that the operands of a matrix product (2 (MK + KN + MN) bytes) go through memory unhidden: what makes small
    products slow. With F = 2MNK it is the same as a loss that goes with 1/M + 1/N + 1/K."""
    attention: float
    """Share of the 16-bit peak that fused attention reaches on the half of the scores under the diagonal."""
    flash_2: float
    """The same for FlashAttention-2, which was written for Ampere (on Hopper it leaves most of the units idle; Shah et
    al. 2024, section 1)."""
    memory: float
    """Share of the memory's bandwidth that element-wise kernels reach."""
    kernels: float
    """Seconds that one pass through a layer costs beside its work: launches, and tails of kernels, unhidden."""
    network: float
    """Share of the network cards' bandwidth that collectives between nodes reach."""
    overlap: float
    """Share of the computing time beside which messages of data parallelism can run for nothing."""
    interference: float
    """Slow-down of computing while such messages run: they take memory bandwidth and multiprocessors."""
    tensor_overlap: float
    """Share of the messages of tensor parallelism that is hidden where they run beside their matrix products."""
    straggling: float
    """Time lost for each doubling of the nodes: every step waits for the slowest of all chips."""


TYPICAL = Constants(
    matmul=0.75, matmul_low=0.65, operand=1.0, attention=0.35, flash_2=0.3, memory=0.8, kernels=1e-4, network=0.8,
    overlap=0.8, interference=0.1, tensor_overlap=0.5, straggling=0.005,
)  # fmt: skip
"""What one would guess before measuring; where fits start from, and are drawn to where rows say nothing. Chips that no
row of the fit runs on have these."""

CONSTANTS = {
    "ampere": Constants(
        matmul=0.842, matmul_low=0.646, operand=1.02, attention=0.386, flash_2=0.337, memory=0.695,
        kernels=0.000242, network=0.95, overlap=0.82, interference=0.128, tensor_overlap=0.489,
        straggling=0.00292,
    ),
    "hopper": Constants(
        matmul=0.675, matmul_low=0.863, operand=0.896, attention=0.337, flash_2=0.212, memory=0.602,
        kernels=0.000345, network=0.95, overlap=0.582, interference=0.0709, tensor_overlap=0.581,
        straggling=0.00721,
    ),
    "blackwell": Constants(
        matmul=0.6, matmul_low=0.9, operand=0.421, attention=0.252, flash_2=0.372, memory=0.95,
        kernels=0.000635, network=0.363, overlap=0.863, interference=0.0619, tensor_overlap=0.875,
        straggling=0.00326,
    ),
    "volta": TYPICAL,
    "other": TYPICAL,
}  # fmt: skip
"""By the `family` of a chip."""

ALPHA = 5.6e-6
"""Seconds before the first byte of a message inside a node: 78.6 µs for the 14 of an all-reduce on 8 A100, measured
(VIA-Research/vTrain, trace/a100)."""

NETWORK_ALPHA = 14e-6
"""The same between nodes: NCCL 2.20.3's own estimate (src/graph/tuning.cc, hwLat, protocol Simple)."""

LINK = 0.757
"""Share of the links inside a node that collectives reach: 227.3 of 300 GB/s, measured on 8 A100 (the same points)."""


LEFT_OUT = {
    "bridge": 0.104, "korthikanti": 0.028, "llama3": 0.088, "mcore-h100": 0.093, "megatron-jan21": 0.039,
    "mosaic": 0.077, "other": 0.063, "sc21-t1": 0.016, "titan-dec24": 0.075, "titan-h200": 0.004, "vtrain": 0.089,
    "zerobubble": 0.040,
}  # fmt: skip
"""By family of published runs: mean absolute error of a step under constants fitted without that family
(`python -m course.planner.fit --leave-one-out`). Blackwell's rows are one family, so there constants are typical."""


def constants_of(family: str) -> Constants:
    """The constants of a family of chips. Raises UsageError for one that was never fitted."""
    if family not in CONSTANTS:
        raise UsageError(f"no constants for chips of the family {family!r}: there are {', '.join(CONSTANTS)}")
    return CONSTANTS[family]
