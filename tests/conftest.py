"""What all tests share: no skip where nothing may be skipped, and a home of their own for what the course writes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

NOTHING_SKIPPED = "COURSE_NOTHING_SKIPPED"  # set by .ci/run, which installs what these tests need
MAY_BE_SKIPPED_THERE = ("gpu",)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Turn the skip of a test that this machine promised to run into a failure."""
    report = yield
    excused = any(item.get_closest_marker(mark) for mark in MAY_BE_SKIPPED_THERE)
    promised = os.environ.get(NOTHING_SKIPPED) == "1" and not excused
    if report.skipped and promised and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped where {NOTHING_SKIPPED}=1 promises a run: {report.longrepr[2]}"
    return report


@pytest.fixture(scope="session", autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Everything that follows the XDG folders (progress, Jupyter, matplotlib) stays out of the user's home."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
            patch.setenv(name, str(home / name.lower()))
        for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
            patch.setenv(name, str(home / name.lower()))
        yield home
