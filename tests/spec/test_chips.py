"""The catalogue: every chip with a source, and numbers that hang together."""

from __future__ import annotations

import pytest

from course.errors import UsageError
from course.spec.chips import CHIPS, Cluster, chip_of


@pytest.mark.parametrize("chip", CHIPS.values(), ids=lambda chip: chip.name)
def test_every_chip_is_plausible(chip) -> None:
    assert chip.source and chip.flops > 1e13 and chip.memory > 1e10
    assert chip.memory_bandwidth > chip.link > chip.network > 1e9
    assert chip.fp8 == 0 or chip.fp8 == pytest.approx(2 * chip.flops, rel=2e-3)
    assert chip.peak("bf16") == chip.flops


def test_what_a_chip_has_not() -> None:
    with pytest.raises(UsageError, match="no fp8"):
        CHIPS["a100-80gb"].peak("fp8")
    with pytest.raises(UsageError, match="h100"):
        chip_of("h-100")


def test_clusters_take_the_chip_s_own_numbers() -> None:
    cluster = Cluster(chip=CHIPS["h100"], num_gpus=16)
    assert (cluster.per_node, cluster.network_bandwidth) == (8, 50e9)
    assert Cluster(chip=CHIPS["h100"], num_gpus=16, node=4, network=1e9).network_bandwidth == 1e9


@pytest.mark.parametrize("wrong", [{"num_gpus": 0}, {"num_gpus": 8, "node": -1}, {"num_gpus": 8, "network": -1.0}])
def test_clusters_that_cannot_be(wrong: dict) -> None:
    with pytest.raises(UsageError):
        Cluster(chip=CHIPS["h100"], **wrong)
