"""Accelerators and clusters of them: peaks, memory, links, each number with where it is written.

Links between machines by name are in `spec.cluster`; what a chip really reaches is in `planner.constants`. Standard
library only.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from course.errors import UsageError


@dataclass(frozen=True, kw_only=True, slots=True)
class Chip:
    """One accelerator. Rates are dense and a second; `link` and `network` one way."""

    name: str
    family: str  # whose physical constants hold for it
    flops: float  # in 16 bits
    fp8: float = 0.0  # 0 where it has no such units
    fp4: float = 0.0
    memory: float  # bytes that nvidia-smi shows: gibibytes, sold as GB
    memory_bandwidth: float
    link: float  # bytes/s to the chips of its node
    network: float  # bytes/s to other nodes, over the usual card
    node: int = 8  # chips that `link` joins
    source: str

    def peak(self, precision: str) -> float:
        """FLOP/s of the matrix units at "bf16", "fp8" or "fp4". Raises UsageError where the chip has none."""
        peak = {"bf16": self.flops, "fp8": self.fp8, "fp4": self.fp4}.get(precision, 0.0)
        if not peak:
            raise UsageError(f"{self.name} has no {precision} matrix units: try bf16")
        return peak


GIB = 2**30
_NVIDIA = "NVIDIA data sheet, dense rates"

CHIPS = {
    chip.name: chip
    for chip in (
        Chip(name="a100-40gb", family="ampere", flops=312e12, memory=40 * GIB, memory_bandwidth=1.555e12, link=300e9,
             network=25e9, source=f"A100 SXM4 40GB, {_NVIDIA}; one 200 Gbit/s card a chip (DGX A100)"),
        Chip(name="a100-80gb", family="ampere", flops=312e12, memory=80 * GIB, memory_bandwidth=2.039e12, link=300e9,
             network=25e9, source=f"A100 SXM4 80GB, {_NVIDIA}; one 200 Gbit/s card a chip (DGX A100)"),
        Chip(name="v100-32gb", family="volta", flops=125e12, memory=32 * GIB, memory_bandwidth=0.9e12, link=150e9,
             network=12.5e9, source=f"V100 SXM2 32GB, {_NVIDIA}"),
        Chip(name="h100", family="hopper", flops=989.4e12, fp8=1978.9e12, memory=80 * GIB, memory_bandwidth=3.35e12,
             link=450e9, network=50e9, source=f"H100 SXM5 80GB, {_NVIDIA}; one 400 Gbit/s card a chip (DGX H100)"),
        Chip(name="h100-96gb-500w", family="hopper", flops=912e12, fp8=1825e12, memory=96 * GIB,
             memory_bandwidth=2.4e12, link=450e9, network=50e9,
             source="torchtitan, benchmarks of December 2024: 96 GB HBM2e, 2.4 TB/s, 500 W; its peak is said to be "
             "between NVL (835) and SXM (989): half way"),
        Chip(name="h200", family="hopper", flops=989.4e12, fp8=1978.9e12, memory=140 * GIB, memory_bandwidth=4.8e12,
             link=450e9, network=50e9, source=f"H200 SXM, {_NVIDIA}"),
        Chip(name="h800", family="hopper", flops=989.4e12, fp8=1978.9e12, memory=80 * GIB, memory_bandwidth=3.35e12,
             link=200e9, network=50e9, source="H100 SXM5 with NVLink cut to 400 GB/s both ways (DeepSeek-V3, 2024)"),
        Chip(name="b200", family="blackwell", flops=2250e12, fp8=4500e12, fp4=9000e12, memory=179 * GIB,
             memory_bandwidth=8e12, link=900e9, network=50e9, source=f"B200, {_NVIDIA}"),
        Chip(name="gb200", family="blackwell", flops=2500e12, fp8=5000e12, fp4=10000e12, memory=186 * GIB,
             memory_bandwidth=8e12, link=900e9, network=50e9, node=72, source=f"GB200 NVL72, {_NVIDIA}"),
        Chip(name="gb300", family="blackwell", flops=2500e12, fp8=5000e12, fp4=15000e12, memory=279 * GIB,
             memory_bandwidth=8e12, link=900e9, network=100e9, node=72, source=f"GB300 NVL72, {_NVIDIA}"),
        Chip(name="mi300x", family="other", flops=1307.4e12, fp8=2614.9e12, memory=192 * GIB, memory_bandwidth=5.3e12,
             link=448e9, network=50e9, source="AMD MI300X data sheet, dense; 7 links of 64 GB/s one way"),
        Chip(name="rtx-4090", family="other", flops=165.2e12, fp8=330.3e12, memory=24 * GIB, memory_bandwidth=1.008e12,
             link=31.5e9, network=12.5e9, source="NVIDIA Ada whitepaper, dense with float32 sums; PCIe 4.0 x16"),
        Chip(name="t4", family="volta", flops=65e12, memory=16 * GIB, memory_bandwidth=0.32e12, link=15.75e9,
             network=3.1e9, source=f"T4, {_NVIDIA}; PCIe 3.0 x16"),
        Chip(name="tpu-v4", family="other", flops=275e12, memory=32 * GIB, memory_bandwidth=1.2e12, link=150e9,
             network=3.1e9, node=4096, source="Google Cloud, TPU v4: 275 TFLOP/s, 32 GiB, 1200 GB/s; a torus of 4096"),
        Chip(name="tpu-v5e", family="other", flops=197e12, memory=16 * GIB, memory_bandwidth=0.819e12, link=200e9,
             network=3.1e9, node=256, source="Google Cloud, TPU v5e: 197 TFLOP/s, 16 GiB, 819 GB/s; a torus of 256"),
        Chip(name="tpu-v5p", family="other", flops=459e12, memory=95 * GIB, memory_bandwidth=2.765e12, link=300e9,
             network=3.1e9, node=8960, source="Google Cloud, TPU v5p: 459 TFLOP/s, 95 GiB, 2765 GB/s, 4800 Gbit/s"),
    )
}  # fmt: skip
"""Chips by name."""


def chip_of(name: str) -> Chip:
    """The chip of this name. Raises UsageError with the nearest names where it is not in the catalogue."""
    if name not in CHIPS:
        near = difflib.get_close_matches(str(name).lower(), CHIPS, n=3, cutoff=0.0)
        raise UsageError(f"no chip is called {name!r}: try {', '.join(near)}")
    return CHIPS[name]


@dataclass(frozen=True, kw_only=True, slots=True)
class Cluster:
    """So many chips. node: chips that share a node's links; network: bytes/s one way a chip has to other nodes.

    Both default to the chip's own. Raises UsageError for sizes that cannot be.
    """

    chip: Chip
    num_gpus: int
    node: int = 0
    network: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.num_gpus, int) or isinstance(self.num_gpus, bool) or self.num_gpus < 1:
            raise UsageError(f"a cluster of {self.num_gpus!r} chips: it needs a whole number of at least 1")
        if self.node < 0 or self.network < 0:
            raise UsageError(f"Cluster(node={self.node}, network={self.network}): neither can be negative")

    @property
    def per_node(self) -> int:
        return self.node or self.chip.node

    @property
    def network_bandwidth(self) -> float:
        return self.network or self.chip.network
