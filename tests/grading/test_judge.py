"""`grade`: which exercise is meant, whether it was attempted, what is kept, and what nbgrader gets."""

from __future__ import annotations

import ast
import functools
from pathlib import Path
from typing import Any

import nbformat
import pytest
import torch.distributed as dist

import course.grading as grading
from course.errors import GradingError
from course.grading.exercises import EXERCISES
from course.grading.judge import find, is_stub, judge, lookup
from course.grading.report import Report
from tests.grading.bank import answers

SOLUTIONS = Path(__file__).resolve().parents[2] / "solutions"


def made(source: str, name: str) -> Any:
    """The object that a notebook cell with this source would define."""
    namespace: dict[str, Any] = {"__name__": "__main__", "dist": dist}
    exec(source, namespace)
    return namespace[name]


RIGHT = made("def hello_rank():\n    return dist.get_rank(), dist.get_world_size()", "hello_rank")
HALF = made("def hello_rank():\n    return dist.get_rank(), 4", "hello_rank")


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "progress.json"))
    return tmp_path / "progress.json"


# --- stubs -----------------------------------------------------------------------------------------------------------

STUBS = [
    "def hello_rank(): pass",
    "def hello_rank(): ...",
    "def hello_rank():\n    'what it returns'",
    "def hello_rank():\n    'what it returns'\n    raise NotImplementedError",
    "def hello_rank():\n    raise NotImplementedError('hello_rank is yours to write')",
    "def hello_rank(a, *, b: int = 2) -> int:\n    'doc'\n    raise NotImplementedError(\"yours\")",
    "def hello_rank(): return None",
    "class hello_rank:\n    'doc'\n    def __init__(self, m): raise NotImplementedError\n    def go(self): ...",
    "class hello_rank: pass",
]
ATTEMPTS = [
    "def hello_rank(): return 0",
    "def hello_rank(): return ()",
    "def hello_rank(): dist.get_rank()",
    "def hello_rank(): raise ValueError",
    "def hello_rank():\n    x = 1\n    raise NotImplementedError",
    "def hello_rank():\n    if dist.get_rank():\n        raise NotImplementedError",
    "class hello_rank:\n    def __init__(self): self.x = 1\n    def finish(self): raise NotImplementedError",
    "class Base:\n    def go(self): return 1\nclass hello_rank(Base): pass",
    "hello_rank = lambda: (0, 1)",
    "def hello_rank(): yield 1",
]


@pytest.mark.parametrize("source", STUBS)
def test_a_stub_is_known_without_running_it(source: str) -> None:
    stub = made(source, "hello_rank")
    assert is_stub(stub)


@pytest.mark.parametrize("source", ATTEMPTS)
def test_anything_more_is_an_attempt(source: str) -> None:
    assert not is_stub(made(source, "hello_rank"))


def test_a_stub_is_not_wrong_and_leaves_no_trace(own_store: Path, capfd: pytest.CaptureFixture[str]) -> None:
    report = grading.grade(made(STUBS[3], "hello_rank"))
    assert isinstance(report, Report) and not report.attempted and report.points == 0
    assert not own_store.exists()
    assert capfd.readouterr() == ("", "")


def test_not_implemented_at_run_time_is_not_wrong_either() -> None:
    source = "def hello_rank():\n    rank = dist.get_rank()\n    raise NotImplementedError('the rest')"
    report = grading.grade(made(source, "hello_rank"))
    assert isinstance(report, Report) and not report.attempted


# --- which exercise --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (5, "grade(5): expected a function or class that is an exercise, found an int; try grade(hello_rank)"),
        (None, "found a NoneType"),
        ([1, 2], "grade([1, 2]): expected a function or class"),
        ("hello_rnak", 'grade: "hello_rnak" is not an exercise; the nearest is "hello_rank"'),
        ("data_parallel", 'the nearest is "DataParallel"'),
        ("average_gradient", 'the nearest is "average_gradients"'),
        ("", "is not an exercise; the nearest is"),
        (functools.partial(print), "is not an exercise; the nearest is"),
        (print, '"print" is not an exercise; the nearest is'),
        (lambda: 1, '"<lambda>" is not an exercise; the nearest is'),
        ("average_gradients", "nothing called average_gradients is defined here; run the cell that defines it"),
    ],
)
def test_a_wrong_call_is_one_sentence_that_says_what_to_try(asked: Any, sentence: str) -> None:
    with pytest.raises(GradingError) as caught:
        grading.grade(asked)
    assert sentence in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("ask", [grading.hint, grading.solution])
@pytest.mark.parametrize("asked", ["hello_rnak", 5])
def test_hint_and_solution_say_the_same(ask: Any, asked: Any) -> None:
    with pytest.raises(GradingError, match="hello_rank"):
        ask(asked)


def test_an_id_or_another_name_is_looked_up_among_the_notebooks_names() -> None:
    answer = lambda: 1  # noqa: E731
    assert find("hello_rank", {"hello_rank": RIGHT}) == (lookup("hello_rank", "grade"), RIGHT)
    assert find(answer, {"hello_rank": answer})[0].id == "hello_rank"
    assert find(functools.wraps(RIGHT)(lambda: 1))[0].id == "hello_rank"


# --- grading and keeping ---------------------------------------------------------------------------------------------


def test_grading_keeps_the_best_points() -> None:
    assert grading.grade(RIGHT).points == 3
    assert grading.grade(HALF).points == 2
    shown = grading.progress("00_start_here")
    assert (shown.points, shown.total, shown.solved) == (3, 3, 1)
    assert "solved" in repr(shown) and "hello_rank" in shown._repr_html_()


def test_a_damaged_store_is_told_in_the_report(own_store: Path) -> None:
    own_store.write_text("{")
    report = grading.grade(RIGHT)
    assert report.passed
    assert "progress.damaged-1.json" in str(report) and "progress.damaged-1.json" in report._repr_html_()


def test_the_same_answer_gets_the_same_text_twice() -> None:
    assert str(grading.grade(HALF)) == str(grading.grade(HALF))


def test_nbgrader_gets_points_and_a_quiet_stderr(
    own_store: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    noisy = made(
        "def hello_rank():\n    import warnings, sys\n    warnings.warn('careful')\n    print('oh', file=sys.stderr)\n"
        "    return dist.get_rank(), 4",
        "hello_rank",
    )
    points = grading.grade(noisy)
    assert type(points) is float and repr(points) == "2.0"
    out, err = capfd.readouterr()
    assert "hello_rank (core): 2 of 3 points" in out and err == ""
    assert not own_store.exists()


def test_nbgrader_reads_the_points_as_partial_credit(monkeypatch: pytest.MonkeyPatch) -> None:
    utils = pytest.importorskip("nbgrader.utils")
    from nbformat.v4 import new_code_cell, new_output

    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    for answer, points in ((HALF, 2.0), (RIGHT, 3.0), (made(STUBS[0], "hello_rank"), 0.0)):
        cell = new_code_cell("grade(hello_rank)")
        cell.metadata["nbgrader"] = {"grade": True, "solution": False, "points": 3, "grade_id": "hello_rank"}
        cell.outputs = [new_output("execute_result", {"text/plain": repr(grading.grade(answer))}, execution_count=1)]
        assert utils.determine_grade(cell) == (points, 3.0)


# --- hint, solution --------------------------------------------------------------------------------------------------


def test_hints_grow_one_at_a_time_and_point_to_the_solution_last() -> None:
    shown = [grading.hint("hello_rank"), grading.hint(RIGHT), grading.hint("hello_rank"), grading.hint("hello_rank")]
    assert [len(hints.texts) for hints in shown] == [1, 2, 3, 3]
    assert 'Ask hint("hello_rank") again' in repr(shown[0])
    assert 'solution("hello_rank")' in repr(shown[2]) and "hint 3 of 3" in shown[2]._repr_html_()


@pytest.mark.parametrize("name", list(grading.EXERCISES))
def test_the_solution_is_an_answer_that_passes(name: str) -> None:
    """What `solution` shows can be pasted into its cell of the page, and it is right."""
    from course.grading.judge import judge

    source = grading.solution(name).source
    assert name in source
    report = judge(grading.EXERCISES[name], made(above(grading.EXERCISES[name]) + source, name))
    assert report.passed, str(report)


def above(exercise: grading.Exercise) -> str:
    """What a solution page has defined when it comes to an exercise: its imports, and the answers before this one."""
    page = nbformat.read(SOLUTIONS / f"{exercise.lesson}.ipynb", as_version=4)
    imports: list[str] = []
    answers_before: list[str] = []
    for cell in page.cells:
        if cell.id == f"{exercise.id}-answer":
            break
        if cell.cell_type == "code" and "answer" in cell.metadata.get("tags", []):
            answers_before.append(cell.source)
        elif cell.cell_type == "code" and "import " in cell.source:
            body = ast.parse(cell.source).body
            imports += [ast.unparse(node) for node in body if isinstance(node, ast.Import | ast.ImportFrom)]
    imports.sort(key=lambda line: "__future__" not in line)
    return "\n".join([*imports, *answers_before, ""])


def test_what_a_notebook_sets_for_torch_changes_no_verdict_and_is_kept(own_store: Path) -> None:
    import torch

    torch.set_default_dtype(torch.float64)
    torch.manual_seed(11)
    state = torch.get_rng_state()
    try:
        with torch.no_grad():
            answer = next(a for a in answers("accumulate_without_sync") if a.kind == "right")
            assert judge(EXERCISES["accumulate_without_sync"], answer.build()).passed
            assert torch.get_default_dtype() == torch.float64 and torch.equal(torch.get_rng_state(), state)
    finally:
        torch.set_default_dtype(torch.float32)


def test_an_object_that_has_every_attribute_is_no_stub() -> None:
    class Yes:
        def __getattr__(self, name: str) -> Any:
            return Yes()

        def __call__(self) -> int:
            return 0

    assert not is_stub(Yes())
