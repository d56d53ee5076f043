"""Every page of the course: built, lint-free, written as the course writes, and run from top to bottom."""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from course.grading import notebooks
from tests.notebooks.running import ROOT, nbval, run_all, sources

BUILT = {
    "00_start_here",
    "01_simd_brightening",
    "04_does_it_fit",
    "05_data_parallel",
    "07_pipeline_parallel",
    "08_tensor_parallel",
    "09_hybrid_parallel",
    "10_plan_a_cluster",
}


def pages(folder: str) -> list[Path]:
    return sorted((ROOT / folder).glob("*.ipynb"))


def each(folder: str, *, slow: bool = False) -> pytest.MarkDecorator:
    """One test a page; with `slow` all but lesson 00's wait for the slow tests."""
    marks = [[pytest.mark.slow] if slow and not page.stem.startswith("00") else [] for page in pages(folder)]
    cases = [pytest.param(page, id=page.stem, marks=m) for page, m in zip(pages(folder), marks, strict=True)]
    return pytest.mark.parametrize("page", cases)


@pytest.mark.parametrize("folder", notebooks.FOLDERS)
def test_no_built_lesson_is_missing(folder: str) -> None:
    assert {page.stem for page in pages(folder)} >= BUILT


def test_a_build_would_change_nothing_and_finds_no_fault() -> None:
    built = notebooks.build(ROOT, check=True)
    assert not built.faults, "\n".join(built.faults)
    assert not built.changed, f"run `course build`: {[str(path.relative_to(ROOT)) for path in built.changed]}"


@pytest.mark.parametrize("command", [("check",), ("format", "--check")], ids=["check", "format"])
def test_ruff_finds_nothing_in_notebooks(command: tuple[str, ...]) -> None:
    folders = [folder for folder in notebooks.FOLDERS if (ROOT / folder).is_dir()]
    ruff = [sys.executable, "-m", "ruff", *command, *folders]
    done = subprocess.run(ruff, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.timeout(400)
@each("notebooks", slow=True)
def test_a_lesson_runs_through(page: Path) -> None:
    passed, said = nbval(page, strict=False)
    assert passed, said


@pytest.mark.timeout(400)
@each("solutions", slow=True)
def test_a_solution_gives_what_it_shows(page: Path) -> None:
    passed, said = nbval(page, strict=True)
    assert passed, said


@pytest.mark.timeout(400)
@each("exercises")
def test_an_unsolved_page_runs_through(page: Path) -> None:
    passed, said = run_all(page)
    assert passed, said


@each("notebooks")
def test_a_lesson_is_short_and_plain(page: Path) -> None:
    texts = [cell.source for cell in sources(page, "markdown")]
    code = [cell.source for cell in sources(page, "code")]
    words = [len(text.split()) for text in texts]
    lines = [len(source.splitlines()) for source in code if source]
    assert max(words) <= 120 and statistics.mean(words) <= 60, words
    assert max(lines) <= 20 and statistics.median(lines) <= 8, lines
    shouted = [text for text in texts if re.search(r"!(?![\[=])", re.sub(r"`[^`]*`", "", text))]
    assert not shouted, shouted


@each("notebooks")
def test_a_lesson_asks_for_a_guess_before_it_answers(page: Path) -> None:
    guesses = sum("predict(" in cell.source for cell in sources(page, "code"))
    assert guesses >= (0 if page.stem.startswith("00") else 3)


@each("notebooks")
def test_the_first_cell_imports_and_the_last_closes_the_ranks_if_there_are_any(page: Path) -> None:
    code = [cell.source for cell in sources(page, "code") if cell.source]
    assert re.search(r"^(from|import) ", code[0], re.MULTILINE)
    if any(re.search(r"^%%ranks|\bRanks\(", source, re.MULTILINE) for source in code):
        assert re.search(r"\.close\(\)", code[-1])
