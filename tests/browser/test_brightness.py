"""The brightness slider in a real browser: mouse on the slider, keys in the field and on the slider."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from course.grading.notebooks import KERNELSPEC
from tests.browser.lab import LabPage, wait_until

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(240)]

SHOW = """
from course.pixels import brighten_numpy, photograph
from course.widgets import BrightnessSlider

slider = BrightnessSlider(photograph(), {"NumPy": brighten_numpy}, amount=60)
slider
"""


def test_mouse_and_keys_move_the_picture(lab: Callable[[Path], LabPage], tmp_path: Path) -> None:
    cells = [new_code_cell(SHOW, id="show"), new_code_cell("slider.amount", id="amount")]
    (tmp_path / "pages").mkdir()
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": KERNELSPEC}), tmp_path / "pages" / "small.ipynb")
    page = lab(tmp_path / "pages")
    page.open("small.ipynb")
    page.run_all()
    widget = page.cell("show").locator(".jp-OutputArea-output")
    field = widget.locator("input[type=number]")

    def mean() -> int:
        return int(re.search(r"(\d+) after", widget.inner_text())[1])

    start = mean()
    field.fill("-100")
    field.press("Enter")
    wait_until(lambda: mean() < start, "the picture to darken")
    assert page.run("amount") == "-100"

    handle = widget.locator(".noUi-handle")
    handle.focus()
    handle.press("ArrowRight")
    wait_until(lambda: field.input_value() == "-99", "the field to follow the slider")

    box = widget.locator(".noUi-target").bounding_box()
    page.page.mouse.click(box["x"] + box["width"] * 0.98, box["y"] + box["height"] / 2)
    wait_until(lambda: mean() > 250, "the picture to turn white")
    assert int(page.run("amount")) > 230 and page.errors() == [] == page.page_errors
