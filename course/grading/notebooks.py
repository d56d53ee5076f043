"""Notebooks built and checked: exercises/ made from solutions/, all three folders kept in one canonical form.

How a page in solutions/ is written. Cell tags say what a cell is; the exercise is found by its name, the function or
class that the answer cell defines:

- `conventions` (text): replaced by the conventions of all exercises. One a page.
- `statement` (text): replaced by the table's level, minutes, points and statement of the answer that follows it.
- `answer` (code): the exercise's solution. Replaced by library source where the table has a `source`; in exercises/
  cut down to signature and docstring.
- `grade` (code): calls `grade(name)`.
- `solution` (any): text or code for solutions/ alone; left out of exercises/.

Nothing here runs a cell but `execute`. Source text of answers is cut in `sources`.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from course.errors import NotebookError
from course.grading import sources
from course.grading.exercises import CONVENTIONS, EXERCISES, Exercise, exercises_of

FOLDERS = ("notebooks", "solutions", "exercises")
KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
LANGUAGE = {  # as ipykernel writes it, without the version, which differs from machine to machine
    "codemirror_mode": {"name": "ipython", "version": 3},
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "name": "python",
    "nbconvert_exporter": "python",
    "pygments_lexer": "ipython3",
}
KEPT_CELL_METADATA = ("tags", "jupyter", "slideshow")


@dataclass(frozen=True)
class Built:
    """What a build found: the files that changed (or would), and what is wrong in sentences a person can act on."""

    changed: tuple[Path, ...]
    faults: tuple[str, ...]


def build(root: Path, *, check: bool = False, force: bool = False) -> Built:
    """Bring notebooks/, solutions/ and exercises/ under `root` into their built form; with `check`, write nothing.

    A page in exercises/ that holds somebody's answers is left alone, and said, unless `force` is given.
    """
    faults: list[str] = []
    texts: dict[Path, str] = {}
    for path in _pages(root, "notebooks"):
        texts[path] = _text(_tidied(read(path), outputs=False))
    for path in _pages(root, "solutions"):
        page = read(path)
        faults += _refresh(page, path.stem, f"solutions/{path.name}")
        texts[path] = _text(_tidied(page, outputs=True))
        texts[root / "exercises" / path.name] = _text(_tidied(_unsolved(page), outputs=False))
    solved = {path.stem for path in _pages(root, "solutions")}
    for lesson in sorted({exercise.lesson for exercise in EXERCISES.values()} - solved):
        names = ", ".join(exercise.id for exercise in exercises_of(lesson))
        faults.append(f"solutions/{lesson}.ipynb is missing, but the exercise table has {names} for it")
    for path in _pages(root, "exercises"):
        if path not in texts:
            faults.append(f"exercises/{path.name} has no page in solutions/ to be made from: write it there")
    changed = [path for path, text in sorted(texts.items()) if not _holds(path, text)]
    if not check:
        solved_by_hand = (
            [] if force else [path for path in changed if path.parent.name == "exercises" and _attempted(path)]
        )
        for path in solved_by_hand:
            changed.remove(path)
            faults.append(
                f"exercises/{path.name} holds answers, so it was left alone: keep a copy, then build with --force"
            )
        for path in changed:
            path.parent.mkdir(exist_ok=True)
            path.write_text(texts[path], encoding="utf8", newline="\n")
    return Built(tuple(changed), tuple(faults))


def execute(path: Path, *, timeout: int = 120) -> None:
    """Run a page from top to bottom in a fresh kernel in its own folder and store what its cells put out."""
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    page = read(path)
    client = NotebookClient(
        page,
        timeout=timeout,
        kernel_name=KERNELSPEC["name"],
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": str(path.parent)}},
    )
    try:
        # Grouped: what the ranks print is shown rank by rank at the end of a run, so it is the same each time.
        environment = os.environ | {"COURSE_OUTPUT": "grouped", "COURSE_PROGRESS": "off"}
        client.execute(env=environment)
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        raise NotebookError(f"{path} does not run through: {str(error).strip()}") from error
    path.write_text(_text(_tidied(page, outputs=True)), encoding="utf8", newline="\n")


def read(path: Path) -> NotebookNode:
    """The notebook in a file, in the current format."""
    try:
        return nbformat.read(path, as_version=4)
    except FileNotFoundError:
        raise NotebookError(f"{path} was asked for, but there is no such file: check the path") from None
    except (OSError, UnicodeDecodeError) as error:
        raise NotebookError(f"{path} cannot be read ({error}): check the path and its permissions") from None
    except Exception as error:  # nbformat lets errors of json, jsonschema and its own through
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise NotebookError(
            f"{path} is not a notebook that can be read, it may be empty or damaged ({first[:120]}): "
            f"open it in JupyterLab and save it, or name another page"
        ) from None


def tags(cell: NotebookNode) -> list[str]:
    return list(cell.get("metadata", {}).get("tags", []))


def exercise_in(cell: NotebookNode) -> str | None:
    """The exercise that an answer or grade cell is about: by what it defines or grades, else by its stored name."""
    names = sources.defined_names(cell.source) | sources.called_with(cell.source, "grade")
    if len(known := sorted(names & EXERCISES.keys())) == 1:
        return known[0]
    stored = cell.get("metadata", {}).get("nbgrader", {}).get("grade_id", "") or cell.get("id", "")
    name = re.sub("-(answer|grade)$", "", stored)
    return name if name in EXERCISES else None


def _pages(root: Path, folder: str) -> list[Path]:
    return sorted((root / folder).glob("*.ipynb"))


def _attempted(path: Path) -> bool:
    """Whether an answer cell of this page is more than a stub."""
    cells = read(path).cells if path.is_file() else []
    return any("answer" in tags(cell) and "NotImplementedError" not in cell.source for cell in cells)


def _holds(path: Path, text: str) -> bool:
    return path.is_file() and path.read_bytes() == text.encode()


def _text(page: NotebookNode) -> str:
    nbformat.validate(page)
    return nbformat.writes(page, version=4) + "\n"


# Exercises: refreshed from the table and the library, then cut down to what the learner starts from


def _refresh(page: NotebookNode, lesson: str, where: str) -> list[str]:
    """Put the table's and the library's text into a page of solutions; what does not fit comes back as faults."""
    faults: list[str] = []
    seen: Counter[str] = Counter()
    graded: Counter[str] = Counter()
    statement = None
    if "conventions" not in {tag for cell in page.cells for tag in tags(cell)}:
        faults.append(f"{where} has no cell tagged `conventions`")
    for number, cell in enumerate(page.cells):
        kinds = set(tags(cell)) & {"conventions", "statement", "answer", "grade"}
        if "conventions" in kinds:
            cell.source = f"**Conventions of all exercises.** {CONVENTIONS}"
        elif "statement" in kinds:
            statement = cell
        elif kinds:
            name = exercise_in(cell)
            if name is None or EXERCISES[name].lesson != lesson:
                faults.append(f"{where}, cell {number}, is tagged {kinds.pop()} but names no exercise of {lesson}")
            elif "grade" in kinds:
                graded[name] += 1
            else:
                seen[name] += 1
                statement = _refresh_answer(cell, statement, EXERCISES[name], where, faults)
    for exercise in exercises_of(lesson):
        for kind, count in (("answer", seen[exercise.id]), ("grade", graded[exercise.id])):
            if count != 1:
                faults.append(f"{where} has {count} cells tagged `{kind}` for {exercise.id}, and needs one")
    return faults


def _refresh_answer(
    cell: NotebookNode, statement: NotebookNode | None, exercise: Exercise, where: str, faults: list[str]
) -> None:
    if exercise.source is not None:
        cell.source = sources.library_answer(exercise.source)
    if statement is None:
        faults.append(f"{where} has no cell tagged `statement` above the answer for {exercise.id}")
    else:
        statement.source = statement_text(exercise)


def statement_text(exercise: Exercise) -> str:
    head = f"### `{exercise.id}` · {exercise.level} · {exercise.minutes} minutes · {exercise.points} points"
    return f"{head}\n\n{exercise.statement}"


def _unsolved(page: NotebookNode) -> NotebookNode:
    """The page as the learner gets it."""
    page = deepcopy(page)
    page.cells = [cell for cell in page.cells if "solution" not in tags(cell)]
    for cell in page.cells:
        if "answer" in tags(cell) and (name := exercise_in(cell)):
            cell.source = sources.stub(cell.source, name)
    return page


# One canonical form, whatever wrote the file


def _tidied(page: NotebookNode, *, outputs: bool) -> NotebookNode:
    """The same page with stable ids, fixed metadata and, where `outputs` are kept, only those that nbval compares."""
    cells: list[dict[str, Any]] = []
    counter = 0
    for cell, cell_id in zip(page.cells, _ids(page.cells), strict=True):
        source = cell.source.rstrip()
        tidy = {"cell_type": cell.cell_type, "id": cell_id, "metadata": _metadata(cell), "source": source}
        if cell.cell_type == "code":
            counter += bool(source)
            kept = list(_outputs(cell, counter)) if outputs else []
            tidy |= {"execution_count": counter if outputs and source else None, "outputs": kept}
        cells.append(tidy)
    metadata = {"kernelspec": KERNELSPEC, "language_info": LANGUAGE}
    return nbformat.from_dict({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})


def _ids(cells: Iterable[NotebookNode]) -> Iterator[str]:
    """Ids that say where a cell stands: its exercise and kind, else its section and its number in that section."""
    section, numbers = "top", Counter[str]()
    for cell in cells:
        kind = next((tag for tag in ("answer", "grade", "statement") if tag in tags(cell)), None)
        name = exercise_in(cell) if cell.cell_type == "code" else None
        if cell.cell_type == "markdown" and (stated := re.match(r"### `(\w+)` · ", cell.source)):
            section = name = stated[1]
        elif cell.cell_type == "markdown" and (heading := re.match(r"#+ +(.+)", cell.source)):
            section = re.sub(r"[^a-z0-9]+", "-", heading[1].lower()).strip("-")[:40] or "section"
        stem = f"{name}-{kind}" if kind and name else f"{section}-{numbers[section]}"
        numbers[section] += 1
        numbers[stem] += 1
        yield stem if numbers[stem] == 1 else f"{stem}-{numbers[stem]}"


def _metadata(cell: NotebookNode) -> dict[str, Any]:
    kept = {key: cell.metadata[key] for key in KEPT_CELL_METADATA if cell.metadata.get(key)}
    name = exercise_in(cell) if cell.cell_type == "code" and {"answer", "grade"} & set(tags(cell)) else None
    if name is not None:
        is_grade = "grade" in tags(cell)
        kept["nbgrader"] = {
            "schema_version": 3,
            "grade_id": name if is_grade else f"{name}-answer",
            "grade": is_grade,
            "solution": not is_grade,
            "locked": is_grade,
            "task": False,
        } | ({"points": EXERCISES[name].points} if is_grade else {})
    return kept


def _outputs(cell: NotebookNode, count: int) -> Iterator[dict[str, Any]]:
    """Text that nbval compares: no pictures, no widget views, no traceback, streams of one name in one piece."""
    if {"nbval-ignore-output", "nbval-skip"} & set(tags(cell)):
        return
    streams: dict[str, dict[str, Any]] = {}
    for output in cell.outputs:
        output = deepcopy(dict(output))
        if output["output_type"] == "stream":
            if output["name"] in streams:
                streams[output["name"]]["text"] += output["text"]
                continue
            streams[output["name"]] = output
        elif output["output_type"] == "error":
            output["traceback"] = []
        else:
            output["metadata"] = {}
            dropped = ("image/png", "image/jpeg", "application/vnd.jupyter.widget-view+json")
            output["data"] = {kind: value for kind, value in output["data"].items() if kind not in dropped}
            if output["output_type"] == "execute_result":
                output["execution_count"] = count
        yield output
