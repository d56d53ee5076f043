"""The cluster planner under a real keyboard: a layout that does not fit, one that does, and the planner's best."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from course.grading.notebooks import KERNELSPEC
from tests.browser.lab import LabPage, wait_until

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(240)]


def test_a_layout_is_typed_and_compared_with_the_best(lab: Callable[[Path], LabPage], tmp_path: Path) -> None:
    cells = [
        new_code_cell("from course.widgets import ClusterPlanner\ngame = ClusterPlanner()\ngame", id="widget"),
        new_code_cell("game.tp, game.pp, game.chunks, game.fits, game.best, game.planners", id="state"),
    ]
    (tmp_path / "pages").mkdir()
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": KERNELSPEC}), tmp_path / "pages" / "game.ipynb")
    page = lab(tmp_path / "pages")
    page.open("game.ipynb")
    page.run_all()
    widget = page.cell("widget")

    def shows(words: str) -> None:
        wait_until(lambda: words in widget.locator("[role=status]").inner_text(), words, 20)

    def write(label: str, value: int) -> None:
        widget.get_by_label(label, exact=True).fill(str(value))
        page.page.keyboard.press("Tab")

    shows("To fit: a larger pp")
    widget.get_by_role("button", name="Name layouts near it that fit").focus()
    page.page.keyboard.press("Enter")
    shows("Near ones that fit: tp")
    write("pp", 16)
    shows("too much")
    widget.get_by_label("recompute", exact=True).select_option("selective")
    shows("which fits")
    widget.get_by_label("chunks a stage", exact=True).focus()
    page.page.keyboard.press("ArrowUp")
    page.page.keyboard.press("Tab")
    wait_until(lambda: widget.locator("svg text", has_text="now (best)").count() == 2, "a better one", 20)
    widget.get_by_role("button", name="Show the planner's best").focus()
    page.page.keyboard.press("Enter")
    shows("The planner's best:")
    shows("s more (")
    tp, pp, chunks, fits, best, planners = eval(page.run("state"))
    assert (tp, pp, chunks, fits) == (8, 16, 2, True) and best > planners > 0 and page.page_errors == []
