"""The bank of answers that the graders are tried with: how the files in answers/ are read.

One file an exercise, named after it. An answer is a function or class with a decorator:

    @right("divides before the sum")                  must pass with all points
    @wrong("SUM_NOT_AVERAGE", points=0)               must be recognised as this mistake (a name in mistakes.py)
    @wrong(says="raised ZeroDivisionError")           must fail, and the report says this

Everything else in the file (imports, helpers) belongs to each answer, as cells above it would.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "answers"


def right(note: str) -> Callable[[Any], Any]:
    """Marks an answer that must pass. Read from the source, never called."""
    raise NotImplementedError


def wrong(mistake: str = "", *, points: int | None = None, says: str = "") -> Callable[[Any], Any]:
    """Marks an answer that must fail. Read from the source, never called."""
    raise NotImplementedError


@dataclass(frozen=True)
class Answer:
    """One answer: its source, and what the grader must say to it."""

    exercise: str
    kind: str
    label: str
    line: int
    source: str = field(repr=False)
    points: int | None = None
    says: str = ""

    def __str__(self) -> str:
        return f"{self.exercise}-{self.line}-{self.label or 'unnamed'}".replace(" ", "_")

    def build(self) -> Any:
        """The function or class, as a cell of a notebook would define it: in `__main__`, pickled by value."""
        namespace: dict[str, Any] = {"__name__": "__main__"}
        exec(compile(self.source, f"<{self.exercise}>", "exec"), namespace)
        return namespace[self.exercise]


def answers(exercise: str | None = None) -> Iterator[Answer]:
    """All answers, or those of one exercise, in the order of the files."""
    for path in sorted(FOLDER.glob("*.py")):
        if exercise in (None, path.stem):
            yield from _of_file(path)


def _of_file(path: Path) -> Iterator[Answer]:
    text = path.read_text(encoding="utf8")
    body = ast.parse(text).body
    prelude = "\n".join(ast.unparse(node) for node in body if not _mark(node) and not _of_this_file(node))
    for node in body:
        if (mark := _mark(node)) is None:
            continue
        node.decorator_list = [d for d in node.decorator_list if d is not mark]  # type: ignore[attr-defined]
        first = ast.literal_eval(mark.args[0]) if mark.args else ""
        settings = {keyword.arg: ast.literal_eval(keyword.value) for keyword in mark.keywords}
        source = f"{prelude}\n{ast.unparse(node)}\n"
        yield Answer(path.stem, mark.func.id, first, node.lineno, source, **settings)  # type: ignore[attr-defined]


def _of_this_file(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests")


def _mark(node: ast.stmt) -> ast.Call | None:
    for decorator in getattr(node, "decorator_list", []):
        match decorator:
            case ast.Call(func=ast.Name(id="right" | "wrong")):
                return decorator
    return None
