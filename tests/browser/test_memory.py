"""The memory bar under a real keyboard: numbers typed and stepped, choices made, and the state in the kernel."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from course.grading.notebooks import KERNELSPEC
from tests.browser.lab import LabPage, wait_until

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(240)]


def test_a_model_is_made_to_fit_by_keyboard(lab: Callable[[Path], LabPage], tmp_path: Path) -> None:
    cells = [
        new_code_cell("from course.widgets import MemoryBar\nbar = MemoryBar()\nbar", id="widget"),
        new_code_cell("bar.model, bar.microbatch, bar.gpus, bar.zero, bar.recompute, bar.chip", id="state"),
    ]
    (tmp_path / "pages").mkdir()
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": KERNELSPEC}), tmp_path / "pages" / "memory.ipynb")
    page = lab(tmp_path / "pages")
    page.open("memory.ipynb")
    page.run_all()
    widget = page.cell("widget")

    def shows(words: str) -> None:
        wait_until(lambda: words in widget.locator("[role=status]").inner_text(), words, 60)

    shows("most of it optimizer")
    widget.get_by_label("GPUs", exact=True).fill("64")
    page.page.keyboard.press("Tab")
    shows("fits b200")
    widget.get_by_label("ZeRO stage", exact=True).select_option("3")
    shows("fits rtx-4090")
    widget.get_by_label("microbatch", exact=True).focus()
    page.page.keyboard.press("ArrowUp")
    page.page.keyboard.press("Tab")
    shows("fits a100-40gb")
    widget.get_by_label("recompute", exact=True).select_option("full")
    shows("fits rtx-4090")
    model, microbatch, gpus, zero, recompute, chip = eval(page.run("state"))
    assert (model, microbatch, gpus, zero, recompute) == ("llama-3.1-8b", 2, 64, 3, "full")
    assert chip == "rtx-4090" and page.page_errors == []
