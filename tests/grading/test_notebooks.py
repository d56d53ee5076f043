"""The notebook pipeline on a small course of its own: two exercises, one made from a library, one plain."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from course.errors import NotebookError
from course.grading import exercises, notebooks, sources
from course.grading.exercises import Exercise


def exercise(name: str, source: str | None) -> Exercise:
    return Exercise(
        id=name,
        lesson="01_small",
        level="core",
        minutes=5,
        points=3,
        source=source,
        statement=f"Write {name}.",
        hints=(),
    )


def tagged(cell: nbformat.NotebookNode, *tags: str) -> nbformat.NotebookNode:
    cell.metadata["tags"] = list(tags)
    return cell


def solution_page() -> nbformat.NotebookNode:
    plain = 'def plain(a: int) -> int:\n    """Returns a."""\n    return a'
    cells = [
        new_markdown_cell("# 01 · Small"),
        tagged(new_markdown_cell("old"), "conventions"),
        new_code_cell("def grade(f):\n    return f.__name__"),
        tagged(new_markdown_cell("old"), "statement"),
        tagged(new_code_cell("def made(n):\n    return 0"), "answer"),
        tagged(new_code_cell("grade(made)"), "grade"),
        tagged(new_markdown_cell("Why it works."), "solution"),
        tagged(new_markdown_cell("old"), "statement"),
        tagged(new_code_cell(plain), "answer"),
        tagged(new_code_cell("grade(plain)"), "grade"),
        new_code_cell("print('one')\nprint('two')\n41 + 1"),
        tagged(new_code_cell("import time\ntime.time()"), "nbval-ignore-output"),
    ]
    return new_notebook(
        cells=cells, metadata={"widgets": {"state": {}}, "language_info": {"name": "python", "version": "3.9"}}
    )


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    table = {e.id: e for e in (exercise("made", "course.room.made"), exercise("plain", None))}
    for module in (exercises, notebooks):
        monkeypatch.setattr(module, "EXERCISES", table)
    package = tmp_path / "package"
    package.mkdir()
    (package / "room.py").write_text('def made(n: int) -> int:\n    """Returns n + 1."""\n    return n + 1\n')
    monkeypatch.setattr(sources, "PACKAGE", package)
    for folder in notebooks.FOLDERS:
        (tmp_path / folder).mkdir()
    nbformat.write(solution_page(), tmp_path / "solutions" / "01_small.ipynb")
    nbformat.write(
        new_notebook(cells=[new_code_cell("1", outputs=[new_output("stream", text="x")])]),
        tmp_path / "notebooks" / "01_small.ipynb",
    )
    return tmp_path


def page(root: Path, folder: str) -> nbformat.NotebookNode:
    return notebooks.read(root / folder / "01_small.ipynb")


def change(root: Path, folder: str, edit) -> None:
    changed = page(root, folder)
    edit(changed)
    nbformat.write(changed, root / folder / "01_small.ipynb")


def test_a_build_makes_exercises_and_a_second_changes_no_byte(root: Path) -> None:
    first = notebooks.build(root)
    assert first.faults == () and len(first.changed) == 3
    stored = {path: path.read_bytes() for path in root.glob("*/*.ipynb")}
    assert len(stored) == 3
    assert notebooks.build(root) == notebooks.Built((), ())
    assert notebooks.build(root, check=True) == notebooks.Built((), ())
    assert stored == {path: path.read_bytes() for path in root.glob("*/*.ipynb")}


def test_answers_become_stubs_and_are_refreshed_from_the_library(root: Path) -> None:
    notebooks.build(root)
    solved = "\n".join(cell.source for cell in page(root, "solutions").cells)
    open_page = page(root, "exercises")
    text = "\n".join(cell.source for cell in open_page.cells)
    assert "return n + 1" in solved and "return a" in solved and "Why it works." in solved
    assert "return n + 1" not in text and "return a" not in text and "Why it works." not in text
    assert 'def made(n: int) -> int:\n    """Returns n + 1."""' in text and text.count("NotImplementedError") == 2
    assert "### `made` · core · 5 minutes · 3 points\n\nWrite made." in text
    assert exercises.CONVENTIONS in text
    assert all(
        not cell.outputs and cell.execution_count is None for cell in open_page.cells if cell.cell_type == "code"
    )


def test_ids_and_metadata_are_fixed_and_machine_free(root: Path) -> None:
    notebooks.build(root)
    built = page(root, "exercises")
    assert [cell.id for cell in built.cells][2:7] == [
        "01-small-2",
        "made-statement",
        "made-answer",
        "made-grade",
        "plain-statement",
    ]
    assert set(built.metadata) == {"kernelspec", "language_info"} and "version" not in built.metadata.language_info
    by_id = {cell.id: cell for cell in built.cells}
    common = {"schema_version": 3, "task": False}
    for cell_id, expected in {
        "made-answer": {"grade_id": "made-answer", "grade": False, "solution": True, "locked": False},
        "made-grade": {"grade_id": "made", "grade": True, "solution": False, "locked": True, "points": 3},
    }.items():
        assert by_id[cell_id].metadata.nbgrader == common | expected


def test_a_stale_page_fails_the_check_and_nothing_is_written(root: Path) -> None:
    notebooks.build(root)
    (root / "package" / "room.py").write_text('def made(n: int) -> int:\n    """Returns n."""\n    return n\n')
    stored = {path: path.read_bytes() for path in root.glob("*/*.ipynb")}
    changed = {path.parent.name for path in notebooks.build(root, check=True).changed}
    assert changed == {"solutions", "exercises"}
    assert stored == {path: path.read_bytes() for path in root.glob("*/*.ipynb")}


def test_outputs_are_stripped_from_lessons_and_kept_as_text_in_solutions(root: Path) -> None:
    def put_outputs(changed: nbformat.NotebookNode) -> None:
        cell, timed = changed.cells[-2], changed.cells[-1]
        data = {"text/plain": "42", "image/png": "aGk=", "application/vnd.jupyter.widget-view+json": {}}
        cell.outputs = [
            new_output("stream", text="one\n"),
            new_output("execute_result", data=data, execution_count=17),
            new_output("stream", text="two\n"),
        ]
        timed.outputs = [new_output("execute_result", data={"text/plain": "123.4"}, execution_count=18)]

    change(root, "solutions", put_outputs)
    notebooks.build(root)
    assert page(root, "notebooks").cells[0].outputs == []
    kept, timed = page(root, "solutions").cells[-2:]
    assert [dict(output) for output in kept.outputs] == [
        {"output_type": "stream", "name": "stdout", "text": "one\ntwo\n"},
        {"output_type": "execute_result", "metadata": {}, "execution_count": 6, "data": {"text/plain": "42"}},
    ]
    assert kept.execution_count == 6 and timed.outputs == []


def test_the_table_and_the_pages_must_agree(root: Path) -> None:
    notebooks.build(root)

    def drop_an_answer(changed: nbformat.NotebookNode) -> None:
        changed.cells = [cell for cell in changed.cells if cell.id not in ("plain-answer", "top-1")]
        changed.cells.append(tagged(new_code_cell("def stranger():\n    pass"), "answer"))
        changed.cells.append(tagged(new_code_cell("grade(made)"), "grade"))

    change(root, "solutions", lambda changed: changed.cells.pop(1))
    change(root, "solutions", drop_an_answer)
    faults = "\n".join(notebooks.build(root, check=True).faults)
    assert "0 cells tagged `answer` for plain" in faults
    assert "2 cells tagged `grade` for made" in faults
    assert "tagged answer but names no exercise" in faults
    assert "no cell tagged `conventions`" in faults


def test_a_lesson_of_the_table_without_a_page_and_a_page_without_a_solution_are_faults(root: Path) -> None:
    notebooks.build(root)
    (root / "solutions" / "01_small.ipynb").unlink()
    first, second = notebooks.build(root, check=True).faults
    assert "solutions/01_small.ipynb is missing" in first and "made, plain" in first
    assert "exercises/01_small.ipynb has no page in solutions/" in second


def test_a_build_leaves_a_learners_answers_alone(root: Path) -> None:
    notebooks.build(root)

    def solve(changed: nbformat.NotebookNode) -> None:
        next(cell for cell in changed.cells if cell.id == "plain-answer").source = "def plain(a):\n    return a"

    change(root, "exercises", solve)
    built = notebooks.build(root)
    assert built.changed == () and "holds answers" in built.faults[0] and "--force" in built.faults[0]
    assert "return a" in (root / "exercises" / "01_small.ipynb").read_text()
    assert notebooks.build(root, check=True).changed
    assert notebooks.build(root, force=True).faults == ()
    assert "return a" not in (root / "exercises" / "01_small.ipynb").read_text()


def test_executing_stores_outputs_that_nbval_then_accepts_and_a_wrong_one_that_it_refuses(root: Path) -> None:
    notebooks.build(root)
    solutions = root / "solutions" / "01_small.ipynb"
    notebooks.execute(solutions)
    assert notebooks.build(root, check=True).changed == ()
    outputs = page(root, "solutions").cells[-2].outputs
    assert outputs[0].text == "one\ntwo\n" and outputs[1].data["text/plain"] == "42"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--nbval",
        "--nbval-current-env",
        "-p",
        "no:cacheprovider",
        str(solutions),
    ]
    assert subprocess.run(command, cwd=root, capture_output=True, check=False).returncode == 0
    solutions.write_text(solutions.read_text().replace('"42"', '"43"'))
    assert subprocess.run(command, cwd=root, capture_output=True, check=False).returncode == 1


def test_a_page_that_fails_is_named_with_its_error(root: Path) -> None:
    change(root, "solutions", lambda changed: changed.cells.append(new_code_cell("1 / 0")))
    with pytest.raises(NotebookError, match=r"01_small\.ipynb does not run through(.|\n)*ZeroDivisionError"):
        notebooks.execute(root / "solutions" / "01_small.ipynb")


@pytest.mark.parametrize("content", [b"", b"not json", b'{"a": 1}', b"\xff\xfe", json.dumps([1]).encode()])
def test_what_is_not_a_notebook_gets_one_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.ipynb"
    path.write_bytes(content)
    with pytest.raises(NotebookError, match=r"x\.ipynb (is not a notebook|cannot be read)") as caught:
        notebooks.read(path)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(NotebookError, match="no such file"):
        notebooks.read(tmp_path / "none.ipynb")
