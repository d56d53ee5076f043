"""Answer cells taken from library source, stubs cut from answers, definitions gathered from notebooks."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from course.errors import NotebookError
from course.grading import sources

MODULE = '''
"""A room."""
import torch

LIMIT = 3
_table = {"a": 1}
OTHER = 4


def ask(n: int) -> int:
    """Gives n more."""
    return _more(n) + LIMIT


def _more(n: int) -> int:
    return n + _table["a"]


def _unused(n: int) -> int:
    return n


class Box:
    """Holds a thing."""

    size = 3

    def __init__(
        self,
        thing: int = 1,  # the thing
    ) -> None:
        """Keeps it."""
        self.thing = thing

    @property
    def twice(self) -> int:
        return 2 * self.thing

    def _hidden(self) -> int:
        return ask(1)
'''


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sources, "PACKAGE", tmp_path)
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "made.py").write_text(MODULE)
    return tmp_path


def test_an_answer_brings_the_private_names_it_uses_and_no_others(room: Path) -> None:
    source = sources.library_answer("course.room.made.ask")
    assert sources.defined_names(source) == {"ask", "_more"}
    assert "LIMIT = 3" in source and "_table =" in source and "OTHER" not in source and "import" not in source
    namespace: dict = {}
    exec(source, namespace)
    assert namespace["ask"](1) == 5


def test_an_answer_does_not_bring_other_public_names(room: Path) -> None:
    assert sources.defined_names(sources.library_answer("course.room.made.Box")) == {"Box"}


@pytest.mark.parametrize("dotted", ["course.room.made.nothing", "course.nowhere.ask", "course.room.made.LIMIT"])
def test_a_source_that_is_not_there_is_named(room: Path, dotted: str) -> None:
    with pytest.raises(NotebookError, match=dotted.replace(".", r"\.")):
        sources.library_answer(dotted)


def test_a_stub_keeps_signature_and_docstring_alone(room: Path) -> None:
    stub = sources.stub(sources.library_answer("course.room.made.ask"), "ask")
    assert stub == (
        'def ask(n: int) -> int:\n    """Gives n more."""\n    raise NotImplementedError("ask is yours to write")'
    )


def test_a_stub_of_a_class_keeps_its_public_methods(room: Path) -> None:
    stub = sources.stub(sources.library_answer("course.room.made.Box"), "Box")
    namespace: dict = {}
    exec(stub, namespace)
    box = namespace["Box"]
    assert box.__doc__ == "Holds a thing." and isinstance(box.twice, property)
    assert {"__init__", "twice"} <= vars(box).keys() and not {"_hidden", "size"} & vars(box).keys()
    with pytest.raises(NotImplementedError):
        box()
    assert "# the thing" in stub and "self.thing" not in stub


@pytest.mark.parametrize(
    "source",
    [
        "def f(a): return a",
        "def f(\n    a,\n    b=2,\n):\n    # only a note\n    return a",
        "@cache\ndef f(a):\n    @wraps(a)\n    def g(): ...\n    return g",
        "class f:\n    x = 1",
        'class f:\n    """Doc."""\n    def m(self): return 1\n    async def n(self):\n        """N."""',
        "def f(a: dict[str, int]) -> None: a['ä'] = 1; return None",
    ],
)
def test_a_stub_of_any_shape_parses_and_keeps_the_interface(source: str) -> None:
    before, after = ast.parse(source).body[0], ast.parse(sources.stub(source, "f")).body[0]
    assert isinstance(before, ast.FunctionDef | ast.ClassDef) and type(before) is type(after)
    if isinstance(before, ast.FunctionDef) and isinstance(after, ast.FunctionDef):
        assert ast.unparse(before.args) == ast.unparse(after.args)
    assert "NotImplementedError" in ast.unparse(after)
    assert "return a" not in ast.unparse(after) and "@cache" not in ast.unparse(after)


def test_an_answer_without_its_name_is_refused() -> None:
    with pytest.raises(NotebookError, match="defines no ask"):
        sources.stub("x = 1", "ask")


@pytest.mark.parametrize(
    ("cell", "kept"),
    [
        ("%load_ext course\nimport torch\nfrom course import Ranks, grade", [2, 3]),
        ("ranks = Ranks(4)\nSIZE = 3", [2]),
        ("%%ranks -n 2\nimport numpy", []),
        ("@torch.no_grad()\ndef f():\n    return SIZE\n\ngrade(f)", [2]),
        ("for i in range(3):\n    print(i)", []),
        ("", []),
    ],
)
def test_definitions_leave_out_what_would_run_the_page(cell: str, kept: list[int]) -> None:
    assert [node.lineno for node in sources.definitions(cell).body] == kept


def test_definitions_of_a_broken_cell_say_where() -> None:
    with pytest.raises(SyntaxError) as caught:
        sources.definitions("a = 1\ndef broken(:")
    assert caught.value.lineno == 2


def test_names_handed_to_grade_are_found() -> None:
    assert sources.called_with("grade(f)\nprint(grade('g', 3))\nshow(h)", "grade") == {"f", "g"}
