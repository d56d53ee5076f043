"""What carries bytes between chips: links, each with what a message and a byte cost on it, and where that is written.

Numbers only; what a collective costs on a link is reckoned in `planner.network`. Standard library only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from course.errors import UsageError


@dataclass(frozen=True, slots=True)
class Link:
    """One direction between two neighbours: seconds = alpha + nbytes / bandwidth for one message.

    alpha: seconds a message takes before its first byte. bandwidth: bytes a second, one way. source: where both
    numbers come from. Raises UsageError when they cannot be.
    """

    name: str
    alpha: float
    bandwidth: float
    source: str

    def __post_init__(self) -> None:
        if not 0 <= self.alpha < math.inf:
            raise UsageError(f"Link({self.name!r}, alpha={self.alpha!r}): alpha is in seconds, at least 0")
        if not 0 < self.bandwidth < math.inf:
            raise UsageError(
                f"Link({self.name!r}, bandwidth={self.bandwidth!r}): bandwidth is in bytes a second, above 0"
            )


_STEP = "alpha: NCCL 2.20.3's own estimate of one ring step (src/graph/tuning.cc, hwLat, protocol Simple)"

NVLINK_A100 = Link(
    "NVLink, A100",
    alpha=78.6e-6 / 14,  # an all-reduce of 8 GPUs is 14 messages one after another
    bandwidth=227.3e9,  # the links carry 300 GB/s each way
    source="fit through NCCL all-reduces of 1 MiB to 1 GiB measured on 8 A100 in one node "
    "(VIA-Research/vTrain, trace/a100, nccl-tests): 78.6 µs in all and 227.3 GB/s",
)
NVLINK_H100 = Link(
    "NVLink, H100", 3.4e-6, 450e9, f"bandwidth: NVIDIA H100 SXM data sheet, 900 GB/s both ways together; {_STEP}"
)
PCIE_4 = Link(
    "PCIe 4.0 x16", 5.7e-6, 31.5e9, f"bandwidth: PCI-SIG, 16 lanes of 16 GT/s, 128 of 130 bits are data; {_STEP}"
)
INFINIBAND_HDR = Link(
    "InfiniBand HDR", 14.0e-6, 25e9, f"bandwidth: 200 Gbit/s a port, one for each GPU of a DGX A100 (NVIDIA); {_STEP}"
)
INFINIBAND_NDR = Link(
    "InfiniBand NDR", 14.0e-6, 50e9, f"bandwidth: 400 Gbit/s a port, one for each GPU of a DGX H100 (NVIDIA); {_STEP}"
)
ETHERNET_10 = Link(
    "Ethernet, 10 Gbit/s",
    14.0e-6,
    1.25e9,
    f"bandwidth: the line rate by name (IEEE 802.3ae); {_STEP}, which is for any network and too low for plain TCP",
)

LINKS = (NVLINK_H100, NVLINK_A100, PCIE_4, INFINIBAND_NDR, INFINIBAND_HDR, ETHERNET_10)
"""Fastest first, by bandwidth within and then between machines."""
