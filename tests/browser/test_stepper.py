"""The ring stepper under a real mouse and keyboard, and its state as the kernel sees it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from course.grading.notebooks import KERNELSPEC
from tests.browser.lab import LabPage, wait_until

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(240)]


def test_rounds_are_stepped_by_mouse_and_by_keyboard(lab: Callable[[Path], LabPage], tmp_path: Path) -> None:
    cells = [
        new_code_cell("from course.widgets import RingStepper\nstepper = RingStepper()\nstepper", id="widget"),
        new_code_cell("stepper.algorithm, stepper.n, stepper.step, stepper.messages", id="state"),
    ]
    (tmp_path / "pages").mkdir()
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": KERNELSPEC}), tmp_path / "pages" / "ring.ipynb")
    page = lab(tmp_path / "pages")
    page.open("ring.ipynb")
    page.run_all()
    widget = page.cell("widget")

    def shows(words: str) -> None:
        wait_until(lambda: words in widget.locator("[role=status]").inner_text(), words, 20)

    widget.get_by_role("button", name="Next").click()
    shows("1 of 6 rounds done")
    page.page.keyboard.press("Enter")  # the button has the focus
    shows("2 of 6 rounds done")
    widget.locator("input[type=number]").nth(1).focus()
    page.page.keyboard.press("ArrowUp")
    page.page.keyboard.press("Tab")
    shows("3 of 6 rounds done, next they keep what comes")
    widget.locator("select").select_option("tree")
    shows("tree: 3 of 4 rounds done")
    widget.locator("input[type=number]").nth(0).fill("8")
    page.page.keyboard.press("Tab")
    shows("tree: 3 of 6 rounds done")
    assert page.run("state") == "('tree', 8, 3, 7)" and page.page_errors == []
