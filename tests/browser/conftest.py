"""Fixtures of the browser tests: a folder to serve, JupyterLab over it, a page in Chromium."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.browser.lab import LabPage, LabServer, browser_page, chromium


@pytest.fixture
def lab(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[[Path], LabPage]]:
    """Call it with a folder to get a page over that folder. COURSE_SCREENSHOTS=folder keeps a picture of each test."""
    if chromium() is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    pytest.importorskip("playwright", reason="playwright is not installed: pip install -e '.[test]'")
    servers: list[LabServer] = []
    with browser_page() as page:

        def start(folder: Path) -> LabPage:
            servers.append(LabServer(folder, tmp_path / f"server{len(servers)}"))
            return LabPage(page, servers[-1])

        try:
            yield start
        finally:
            if (shots := os.environ.get("COURSE_SCREENSHOTS")) and servers:
                LabPage(page, servers[-1]).shoot(
                    Path(shots) / f"{re.sub(r'[^a-z0-9]+', '-', request.node.name.lower())}.png"
                )
            for server in servers:
                server.close()
