"""JupyterLab in a real browser, on a small notebook: what the other browser tests rely on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import nbformat
import psutil
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from course.grading.notebooks import KERNELSPEC
from tests.browser.lab import LabPage, wait_until

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]


def test_cells_are_typed_run_and_read_and_a_restart_leaves_nothing_behind(
    lab: Callable[[Path], LabPage], tmp_path: Path
) -> None:
    waits = "[sys.executable, '-c', 'input()']"
    start_child = f"import subprocess, sys\nchild = subprocess.Popen({waits}, stdin=subprocess.PIPE)"
    cells = [
        new_code_cell("a = 20", id="first"),
        new_code_cell("a + 1", id="second"),
        new_code_cell(start_child, id="third"),
    ]
    (tmp_path / "pages").mkdir()
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": KERNELSPEC}), tmp_path / "pages" / "small.ipynb")

    page = lab(tmp_path / "pages")
    page.open("small.ipynb")
    page.run_all()
    assert page.output("second") == "21" and page.errors() == []

    page.type_into("second", "def double(n):\n    if n:\n        return 2 * n\ndouble(a)")
    assert page.run("second") == "40"
    page.type_into("first", "1 / 0")
    assert "ZeroDivisionError" in page.run("first")
    assert len(page.errors()) == 1

    behind = page.server.behind_kernels()
    assert behind
    page.restart_kernel()
    wait_until(lambda: not any(map(psutil.Process.is_running, behind)), "the kernel's child to end", 10)
    assert "NameError" in page.run("second")
    assert page.page_errors == []
