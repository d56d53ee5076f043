"""The tensor splitter under a real mouse and keyboard, and its state as the kernel sees it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from course.grading.notebooks import KERNELSPEC
from tests.browser.lab import LabPage, wait_until

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(240)]


def test_cuts_are_moved_by_mouse_and_by_keyboard(lab: Callable[[Path], LabPage], tmp_path: Path) -> None:
    cells = [
        new_code_cell("from course.widgets import TensorSplitter\nsplitter = TensorSplitter()\nsplitter", id="widget"),
        new_code_cell("splitter.second, splitter.a_cuts, splitter.b_cuts, splitter.sent", id="state"),
    ]
    (tmp_path / "pages").mkdir()
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": KERNELSPEC}), tmp_path / "pages" / "tensor.ipynb")
    page = lab(tmp_path / "pages")
    page.open("tensor.ipynb")
    page.run_all()
    widget = page.cell("widget")

    def shows(words: str) -> None:
        wait_until(lambda: words in widget.locator("[role=status]").inner_text(), words, 20)

    shows("Every column of B needs all of g(x A)")
    widget.locator("select").nth(1).select_option("rows")
    shows("Nothing is sent between A and B. Sent by all ranks: 64 elements forward, 64 backward.")
    handles = widget.locator(".noUi-handle:visible")
    handles.nth(0).focus()
    page.page.keyboard.press("ArrowRight")
    shows("move 1 columns: 4")
    box = handles.nth(1).bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.page.mouse.move(x, y)
    page.page.mouse.down()
    page.page.mouse.move(x + 40, y, steps=5)
    page.page.mouse.up()
    wait_until(lambda: "move 1 columns" not in widget.locator("[role=status]").inner_text(), "the dragged cut", 20)
    second, a_cuts, b_cuts, sent = eval(page.run("state"))
    assert second == "rows" and a_cuts == [17] and b_cuts[0] > 17
    assert sent == [64 + 4 * (b_cuts[0] - 17)] * 2 and page.page_errors == []
