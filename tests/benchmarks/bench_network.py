"""Does seconds = alpha + nbytes / bandwidth hold on these ranks? The fit beside the medians it was made from.

One point is one round of a ring: every rank sends one message and receives one, and the last to finish counts.
`make bench` prints each point; the fit must be within 25 % of them in the median, over 1 kB to 64 MB.
"""

from __future__ import annotations

import statistics
import sys
import time

import cloudpickle
import pytest
import torch
import torch.distributed as dist

from course.planner import fit_alpha_beta
from course.ranks import Ranks

SIZES = [1_000 * 4**k for k in range(8)] + [64_000_000]
BYTES_A_SIZE = 400_000_000  # how often each is measured: often where it is small


def rounds(nbytes: int, repeats: int, rank: int, world_size: int) -> list[float]:
    """Seconds of each round on this rank."""
    t = torch.ones(nbytes // 4)
    arrived, taken = torch.empty_like(t), []
    for _ in range(repeats):
        dist.barrier()
        start = time.perf_counter()
        works = [dist.irecv(arrived, (rank - 1) % world_size), dist.isend(t, (rank + 1) % world_size)]
        for work in works:
            work.wait()
        taken.append(time.perf_counter() - start)
    return taken


@pytest.mark.parametrize("n", [2, 4])
def test_the_fit_is_near_what_was_measured(n: int, capsys: pytest.CaptureFixture[str]) -> None:
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    points = []
    with Ranks(n, live=False, stall=60.0) as ranks:
        for nbytes in SIZES:
            repeats = min(200, max(7, BYTES_A_SIZE // nbytes))
            each = ranks.run(rounds, nbytes, repeats).values
            points.append((nbytes, statistics.median(max(taken) for taken in zip(*each, strict=True))))
    alpha, bandwidth = fit_alpha_beta(points)
    off = [(alpha + nbytes / bandwidth) / seconds - 1 for nbytes, seconds in points]
    median = statistics.median(abs(o) for o in off)
    with capsys.disabled():
        print(f"\n  {n} ranks: alpha {alpha * 1e6:.0f} µs, bandwidth {bandwidth / 1e9:.2f} GB/s; ", end="")
        print(f"off by {median:.1%} in the median: ", end="")
        print(", ".join(f"{nbytes:,} B {o:+.0%}" for (nbytes, _), o in zip(points, off, strict=True)), end="")
    assert median < 0.25
