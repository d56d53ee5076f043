"""Fixtures of the browser tests: a folder to serve, JupyterLab over it, a page in Chromium."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.browser.lab import LabPage, LabServer, browser_page, chromium


@pytest.fixture
def shot() -> Callable[[LabPage, str], None]:
    """Keep a picture of a page under a name, where COURSE_SCREENSHOTS names a folder to look at afterwards."""

    def save(page: LabPage, name: str) -> None:
        if folder := os.environ.get("COURSE_SCREENSHOTS"):
            page.shoot(Path(folder) / f"{re.sub(r'[^a-z0-9]+', '-', name.lower())}.png")

    return save


@pytest.fixture
def lab(
    tmp_path: Path, request: pytest.FixtureRequest, shot: Callable[[LabPage, str], None]
) -> Iterator[Callable[[Path], LabPage]]:
    """Call it with a folder to get a page over that folder; its last state is kept as a picture."""
    if chromium() is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    pytest.importorskip("playwright", reason="playwright is not installed: pip install -e '.[test]'")
    pages: list[LabPage] = []
    with browser_page() as page:

        def start(folder: Path) -> LabPage:
            pages.append(LabPage(page, LabServer(folder, tmp_path / f"server{len(pages)}")))
            return pages[-1]

        try:
            yield start
        finally:
            for opened in pages[-1:]:
                shot(opened, request.node.name)
            for opened in pages:
                opened.server.close()
