"""A gang for the tests of a module, and functions sent as a notebook sends them: by value."""

from __future__ import annotations

from collections.abc import Iterator

import cloudpickle
import pytest

from course.ranks import Ranks


@pytest.fixture(scope="module", autouse=True)
def by_value(request: pytest.FixtureRequest) -> Iterator[None]:
    """Functions of the test module travel like functions typed in a cell, not as imports."""
    cloudpickle.register_pickle_by_value(request.module)
    yield
    cloudpickle.unregister_pickle_by_value(request.module)


@pytest.fixture(scope="module")
def ranks() -> Iterator[Ranks]:
    with Ranks(3, stall=2.0) as gang:
        yield gang


@pytest.fixture(scope="module")
def pair() -> Iterator[Ranks]:
    with Ranks(2, stall=2.0) as gang:
        yield gang


@pytest.fixture(autouse=True)
def usable_after(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whatever a test did to a gang, the next run works and all its ranks agree."""
    yield
    for name in ("ranks", "pair"):
        if name in request.fixturenames:
            gang = request.getfixturevalue(name)
            if not gang.closed:
                assert gang.run(_sum_of_ones).values == [gang.world_size] * gang.world_size


def _sum_of_ones() -> int:
    import torch
    import torch.distributed as dist

    one = torch.ones(1)
    dist.all_reduce(one)
    return int(one.item())
