"""The ring of this course beside torch's own gloo all_reduce: same ranks, traced as a learner has them, taken in turn.

Run by `make bench`, which prints medians, their ratio, and the ratio round by round. Promised on 2 idle cores with 4
ranks: at most 1.5 times torch's at 16 MB, at most 2 times at 4 kB.
"""

from __future__ import annotations

import statistics
import sys
import time

import cloudpickle
import pytest
import torch
import torch.distributed as dist

from course.collectives import naive_all_reduce, ring_all_reduce, tree_all_reduce
from course.ranks import Ranks

RANKS, WARM_UP = 4, 5
PROMISED = {4_096: 2.0, 16_000_000: 1.5}


def ring_in_4_pieces(t):
    ring_all_reduce(t, segments=4)


ARMS = {
    "torch": dist.all_reduce,
    "ring": ring_all_reduce,
    "ring, 4 pieces": ring_in_4_pieces,
    "tree": tree_all_reduce,
    "naive": naive_all_reduce,
}


def timed(nbytes, names, rounds):
    """Seconds of each way's rounds; a round starts with all ranks together. Every sum is checked."""
    t, seconds = torch.empty(nbytes // 4), {name: [] for name in names}
    for i in range(WARM_UP + rounds):
        for name in sorted(names, reverse=i % 2 == 1):  # whoever comes first changes from round to round
            t.fill_(1.0)
            dist.barrier()
            start = time.perf_counter()
            ARMS[name](t)
            spent = time.perf_counter() - start
            if not t.eq(dist.get_world_size()).all():
                raise RuntimeError(f"{name} gave wrong sums")
            if i >= WARM_UP:
                seconds[name].append(spent)
    return seconds


def slowest(values, name):
    """Seconds of each round: those of the rank that took longest."""
    return [max(times) for times in zip(*(seconds[name] for seconds in values), strict=True)]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("nbytes, rounds", [(4_096, 200), (16_000_000, 25)])
def test_all_reduce_beside_torchs(nbytes, rounds, capsys):
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with Ranks(RANKS, live=False, stall=60.0) as ranks:
        pair = ranks.run(timed, nbytes, ("torch", "ring"), rounds, timeout=300).values
        everyone = ranks.run(timed, nbytes, tuple(ARMS), rounds // 4, timeout=300).values
    torchs, ring = (slowest(pair, name) for name in ("torch", "ring"))
    ratio = statistics.median(ring) / statistics.median(torchs)
    by_round = statistics.median(a / b for a, b in zip(ring, torchs, strict=True))
    others = {name: statistics.median(slowest(everyone, name)) * 1e3 for name in ARMS}
    with capsys.disabled():
        print(
            f"\n  {nbytes:,} bytes on {RANKS} ranks, {rounds} rounds in turn: torch's all_reduce "
            f"{statistics.median(torchs) * 1e3:.2f} ms, ring {statistics.median(ring) * 1e3:.2f} ms: "
            f"{ratio:.2f} times (round by round {by_round:.2f})\n  all ways in turn, ms: "
            + ", ".join(f"{name} {milliseconds:.2f}" for name, milliseconds in others.items()),
            end="",
        )
    assert ratio < PROMISED[nbytes]
