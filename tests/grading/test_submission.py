"""Notebooks that were handed in: one bad cell costs one exercise, and nothing of it runs here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from course.errors import NotebookError
from course.grading.report import Report
from course.grading.submission import grade_notebook

Page = Callable[..., Path]
EXPOSED = """
LATE = 0.0

def _later(a, b):
    return max(a, b)

def exposed_seconds(backward, all_reduces):
    free = LATE
    for ready, seconds in all_reduces:
        free = _later(free, ready) + seconds
    return max(0.0, free - backward)
"""


@pytest.fixture
def page(tmp_path: Path) -> Page:
    def write(*cells: str | nbformat.NotebookNode) -> Path:
        made = [cell if isinstance(cell, nbformat.NotebookNode) else new_code_cell(cell) for cell in cells]
        nbformat.write(new_notebook(cells=made), tmp_path / "page.ipynb")
        return tmp_path / "page.ipynb"

    return write


def graded(path: Path) -> dict[str, Report]:
    return {report.exercise: report for report in grade_notebook(path)}


def test_an_answer_may_use_the_pages_imports_helpers_and_constants(page: Page) -> None:
    reports = graded(page("%%ranks\nnonsense", "1 / 0", EXPOSED))
    assert reports["exposed_seconds"].passed, str(reports["exposed_seconds"])
    assert len(reports) == 7 and not reports["DataParallel"].attempted


def test_broken_cells_cost_their_own_exercise_only(page: Page) -> None:
    broken = new_code_cell("def shard_indices(n:\n    pass", id="shard_indices-answer", metadata={"tags": ["answer"]})
    ending = "import sys\nclass DataParallel:\n    sys.exit(3)"
    raising = "def average_gradients(module, scale=1 / 0):\n    return 1"
    reports = graded(page(broken, ending, raising, EXPOSED))
    assert reports["exposed_seconds"].passed
    assert "cell 1, line 1, is no valid Python" in str(reports["shard_indices"])
    assert "cell 2, line 3, raised SystemExit: 3" in str(reports["DataParallel"])
    assert "cell 3, line 1, raised ZeroDivisionError" in str(reports["average_gradients"])


def test_an_answer_that_takes_its_process_down_is_the_only_one_lost(page: Page) -> None:
    ending = (
        "import os, torch\n"
        "class Trap(type):\n    def __getattribute__(cls, name):\n        os._exit(7)\n"
        "class DataParallel(metaclass=Trap):\n    pass"
    )
    reports = graded(page(EXPOSED, ending))
    assert reports["exposed_seconds"].passed
    assert "ended the process (exit code 7)" in str(reports["DataParallel"])


def test_the_last_definition_counts_as_in_a_notebook(page: Page) -> None:
    reports = graded(page(EXPOSED, "def exposed_seconds(backward, all_reduces):\n    return 0.0"))
    assert reports["exposed_seconds"].attempted and not reports["exposed_seconds"].passed


def test_a_page_without_answers_is_refused(page: Page) -> None:
    with pytest.raises(NotebookError, match="holds no answer"):
        graded(page("def other():\n    return 1"))
