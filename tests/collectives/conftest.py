"""One gang for the tests of a module; `ranks.resize(n)` changes its size. Functions travel as those of a cell do."""

from __future__ import annotations

from collections.abc import Iterator

import cloudpickle
import pytest

from course.ranks import Ranks


@pytest.fixture(scope="module", autouse=True)
def by_value(request: pytest.FixtureRequest) -> Iterator[None]:
    cloudpickle.register_pickle_by_value(request.module)
    yield
    cloudpickle.unregister_pickle_by_value(request.module)


@pytest.fixture(scope="module")
def ranks() -> Iterator[Ranks]:
    with Ranks(4, threads=1, live=False, stall=5.0) as gang:
        yield gang
