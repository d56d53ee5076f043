"""Links carry their sources, refuse the impossible, and the measured one predicts the measurements it came from."""

from __future__ import annotations

import dataclasses
import math
import statistics

import pytest

from course.errors import UsageError
from course.planner import all_reduce_seconds
from course.spec import LINKS, Link
from course.spec.cluster import NVLINK_A100

# NCCL all-reduce on 8 A100 with NVLink (VIA-Research/vTrain, trace/a100): MiB, microseconds.
MEASURED = [(1, 92.8), (2, 93.2), (4, 95.8), (8, 134.3), (16, 232.4), (32, 358.1), (64, 579.9), (256, 2162.3)]


def test_every_link_says_where_both_numbers_come_from():
    assert len({link.name for link in LINKS}) == len(LINKS)
    for link in LINKS:
        assert "alpha: " in link.source and "bandwidth: " in link.source or "fit through" in link.source
        assert 1e-6 < link.alpha < 100e-6 and 1e9 < link.bandwidth < 500e9


def test_the_measured_link_gives_the_measured_times():
    off = [
        abs(all_reduce_seconds(mib * 2**20, 8, alpha=NVLINK_A100.alpha, bandwidth=NVLINK_A100.bandwidth) * 1e6 / us - 1)
        for mib, us in MEASURED
    ]
    assert statistics.median(off) < 0.1 and max(off) < 0.2


@pytest.mark.parametrize(("alpha", "bandwidth"), [(-1e-6, 1e9), (math.nan, 1e9), (1e-6, 0.0), (1e-6, math.inf)])
def test_a_link_that_cannot_be_is_refused_by_name(alpha, bandwidth):
    with pytest.raises(UsageError, match="Link\\('wet string'"):
        Link("wet string", alpha, bandwidth, "nobody")


def test_a_link_does_not_change():
    with pytest.raises(dataclasses.FrozenInstanceError):
        LINKS[0].alpha = 0.0
