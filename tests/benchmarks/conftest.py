"""Functions of a bench travel to the ranks as those of a cell do."""

from __future__ import annotations

from collections.abc import Iterator

import cloudpickle
import pytest


@pytest.fixture(scope="module", autouse=True)
def by_value(request: pytest.FixtureRequest) -> Iterator[None]:
    cloudpickle.register_pickle_by_value(request.module)
    yield
    cloudpickle.unregister_pickle_by_value(request.module)
