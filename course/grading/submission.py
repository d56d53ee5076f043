"""A notebook that was handed in, graded from outside: its answers are defined and judged in a process of their own.

The caller's process never runs the learner's code. A cell that cannot be defined, or that takes its process down, costs
its own exercise and no other. Run as a module, this file is that process.
"""

from __future__ import annotations

import json
import linecache
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from course.errors import CourseError, NotebookError
from course.grading import notebooks, sources
from course.grading.exercises import EXERCISES, Exercise, exercises_of
from course.grading.judge import judge
from course.grading.report import Line, Report

SECONDS = 180  # for one exercise, starting a process included


def grade_notebook(path: Path) -> Iterator[Report]:
    """One report for each exercise of the page's lesson, in the table's order, as they are done.

    Raises NotebookError for a file that is no notebook, or that holds no answer to any exercise.
    """
    exercises, found = _asked(path)
    waiting = [exercise for exercise in exercises if exercise.id in found]
    done: dict[str, Report] = {}
    while waiting:
        reports, ending = _in_a_process(path, [exercise.id for exercise in waiting])
        done |= reports
        waiting = [exercise for exercise in waiting if exercise.id not in done]
        if waiting:  # the one that was being judged took the process with it
            done[waiting[0].id] = _unreadable(waiting[0], ending)
            waiting = waiting[1:]
    for exercise in exercises:
        yield done.get(exercise.id) or Report(
            exercise.id, exercise.level, exercise.points, attempted=False, unfinished="This page has no cell for it."
        )


def _asked(path: Path) -> tuple[tuple[Exercise, ...], set[str]]:
    """The exercises of the lesson that the page belongs to, and the ids of those it has a cell for."""
    code = [cell for cell in notebooks.read(path).cells if cell.cell_type == "code"]
    found = {name for cell in code if _is_answer(cell) and (name := notebooks.exercise_in(cell))}
    lessons = {EXERCISES[name].lesson for name in found}
    if not found:
        raise NotebookError(f"{path} holds no answer to an exercise of the course: name a page of exercises/, solved")
    return tuple(exercise for lesson in sorted(lessons) for exercise in exercises_of(lesson)), found


def _is_answer(cell: Any) -> bool:
    """Whether a cell defines an exercise, or was made to (and does not parse any more)."""
    return "answer" in notebooks.tags(cell) or bool(sources.defined_names(cell.source) & EXERCISES.keys())


def _in_a_process(path: Path, names: Sequence[str]) -> tuple[dict[str, Report], str]:
    """The reports that a process of its own came to, and in words how it ended."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "reports"
        results.touch()
        command = [sys.executable, "-m", "course.grading.submission", str(path), str(results), *names]
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                timeout=SECONDS * len(names), check=False,
            )  # fmt: skip
            code = done.returncode
            ending = f"its code ended the process ({f'signal {-code}' if code < 0 else f'exit code {code}'})"
        except subprocess.TimeoutExpired:
            ending = "its code was still running after minutes"
        reports = [Report.from_dict(json.loads(line)) for line in results.read_text().splitlines()]
    return {report.exercise: report for report in reports}, ending


def _unreadable(exercise: Exercise, got: str, advice: str = "Run the page from top to bottom and mend this.") -> Report:
    line = Line("the answer can be defined", "fail", exercise.points, "A cell that runs.", f"{got}.", advice)
    return Report(exercise.id, exercise.level, exercise.points, (line,))


# In the process of its own


def _main(path: str, results: str, *names: str) -> None:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    faults: dict[str, str] = {}
    for number, cell in enumerate(notebooks.read(Path(path)).cells, start=1):
        fault = _define(cell.source, f"cell {number}", namespace) if cell.cell_type == "code" else ""
        if fault and _is_answer(cell) and (name := notebooks.exercise_in(cell)):
            namespace.pop(name, None)
            faults[name] = fault
    for name in names:
        report = _report(EXERCISES[name], namespace, faults)
        with open(results, "a", encoding="utf8") as file:
            file.write(json.dumps(report.to_dict()) + "\n")


def _define(source: str, where: str, namespace: dict[str, Any]) -> str:
    """Define what a cell defines; what went wrong, in words, or nothing."""
    linecache.cache[where] = (len(source), None, source.splitlines(keepends=True), where)
    try:
        exec(compile(sources.definitions(source), where, "exec"), namespace)
    except SyntaxError as error:
        return f"{where}, line {error.lineno}, is no valid Python: {error.msg}"
    except (Exception, SystemExit) as error:
        line = next((f.lineno for f in reversed(traceback.extract_tb(error.__traceback__)) if f.filename == where), "?")
        return f"{where}, line {line}, raised {type(error).__name__}: {error}"
    return ""


def _report(exercise: Exercise, namespace: dict[str, Any], faults: dict[str, str]) -> Report:
    if exercise.id not in namespace:
        return _unreadable(exercise, faults.get(exercise.id, f"{exercise.id} is not defined at the top of any cell"))
    try:
        return judge(exercise, namespace[exercise.id])
    except CourseError as error:
        return _unreadable(exercise, str(error).rstrip("."), "This says nothing about the answer: grade it again.")


if __name__ == "__main__":
    _main(*sys.argv[1:])
