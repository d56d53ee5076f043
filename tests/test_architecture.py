"""The shape of `course`, checked: who may import whom, what each room leaves alone, and the README's map.

Reads the sources as text; only the tests at the end import a room, each in a fresh interpreter.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "course"
SOURCES = sorted(PACKAGE.rglob("*.py"))

MAY_IMPORT = {  # room -> rooms it may import; everything may import `errors`
    "errors": set(),
    "spec": set(),
    "trace": {"spec"},
    "pixels": set(),
    "collectives": set(),
    "gpt": {"spec"},
    "ranks": {"trace", "spec"},
    "parallel": {"collectives", "gpt", "spec"},
    "planner": {"spec", "trace"},
    "figures": {"spec", "trace", "planner"},
    "widgets": {"figures", "planner", "spec", "trace"},
    "grading": {"ranks", "pixels", "collectives", "parallel", "gpt", "planner", "trace", "spec"},
    "lesson": {"gpt", "trace", "figures", "ranks"},
}
MAY_IMPORT["cli"] = set(MAY_IMPORT) - {"widgets"}
FRONT_DOOR = {"__init__", "__main__"}  # may name any room, lazily
STANDARD_LIBRARY_ONLY = ("errors", "spec", "trace", "planner")
OUTSIDE = {
    "collectives": {"torch"},
    "pixels": {"numpy", "numba", "matplotlib", "PIL"},
}  # the only packages these rooms may use
TORCH_FREE = (*STANDARD_LIBRARY_ONLY, "figures", "widgets")
READS_ENVIRONMENT = ("ranks", "cli", "grading")
PRINTS = ("cli", "grading")


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_modules(tree: ast.AST, path: Path) -> Iterator[tuple[str, int]]:
    """Dotted names of all imports in the file, those inside functions too, with their lines."""
    package = ("course", *path.relative_to(PACKAGE).parts[:-1])
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            stem = ".".join(base + ([node.module] if node.module else []))
            for alias in node.names:
                yield f"{stem}.{alias.name}", node.lineno


def import_faults(tree: ast.AST, path: Path) -> Iterator[str]:
    room = room_of(path)
    for name, line in imported_modules(tree, path):
        top, *rest = name.split(".")
        if top == "course":
            allowed = MAY_IMPORT.get(room)
            if allowed is not None and rest and rest[0] in MAY_IMPORT and rest[0] not in allowed | {room, "errors"}:
                yield f"{line}: {room} may not import {rest[0]}"
        elif top not in sys.stdlib_module_names:
            if room in STANDARD_LIBRARY_ONLY:
                yield f"{line}: {room} is standard library only, and imports {top}"
            elif room in OUTSIDE and top not in OUTSIDE[room]:
                yield f"{line}: {room} may use {sorted(OUTSIDE[room])} alone, and imports {top}"


def statement_faults(tree: ast.AST, room: str) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Assert():
                yield f"{node.lineno}: assert in library code; raise a CourseError"
            case ast.Global():
                yield f"{node.lineno}: global statement"
            case ast.ImportFrom(names=names) if any(alias.name == "*" for alias in names):
                yield f"{node.lineno}: star import"
            case ast.Call(func=ast.Name(id="print")) if room not in PRINTS:
                yield f"{node.lineno}: print outside cli and grading"
            case ast.Attribute(value=ast.Name(id="os"), attr="environ" | "getenv") if room not in READS_ENVIRONMENT:
                yield f"{node.lineno}: environment read outside {', '.join(READS_ENVIRONMENT)}"
            case ast.ImportFrom(module="os", names=names) if room not in READS_ENVIRONMENT:
                if any(alias.name in ("environ", "getenv") for alias in names):
                    yield f"{node.lineno}: environment read outside {', '.join(READS_ENVIRONMENT)}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_file_keeps_the_house_rules(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf8"))
    faults = [] if ast.get_docstring(tree) else ["1: no module docstring"]
    faults += import_faults(tree, path)
    faults += statement_faults(tree, room_of(path))
    assert not faults, "\n".join([str(path.relative_to(ROOT)), *faults])


@pytest.mark.parametrize(
    ("room", "code", "fault"),
    [
        ("gpt", "def f():\n    from ..ranks import Ranks", "gpt may not import ranks"),
        ("widgets", "import course.ranks.pool", "widgets may not import ranks"),
        ("planner", "import numpy as np", "standard library only"),
        ("collectives", "import numpy", "may use ['torch'] alone"),
        ("gpt", "import os\nx = os.environ['A']", "environment read"),
        ("figures", "print(1)", "print outside"),
        ("figures", "assert True", "assert in library code"),
        ("figures", "from math import *", "star import"),
    ],
)
def test_the_rules_catch_what_breaks_them(room: str, code: str, fault: str) -> None:
    tree = ast.parse(code)
    found = [*import_faults(tree, PACKAGE / room / "x.py"), *statement_faults(tree, room)]
    assert len(found) == 1 and fault in found[0]


def test_every_room_is_in_the_table() -> None:
    rooms = {room_of(p) for p in SOURCES} - FRONT_DOOR
    assert rooms <= MAY_IMPORT.keys(), f"a new room needs an arrow here: {rooms - MAY_IMPORT.keys()}"


def test_arrows_make_no_circle() -> None:
    left = {room: set(targets) for room, targets in MAY_IMPORT.items()}
    while free := [room for room, targets in left.items() if not targets & left.keys()]:
        for room in free:
            del left[room]
    assert not left, f"rooms in a circle: {sorted(left)}"


def test_nine_in_ten_functions_are_short() -> None:
    lengths = {
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}": (node.end_lineno or node.lineno) - node.lineno + 1
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    long = {name: length for name, length in lengths.items() if length > 40}
    assert len(long) <= 0.1 * len(lengths), f"over 40 lines: {long}"


def test_readme_names_every_room() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf8")
    rooms = {room_of(p) for p in SOURCES} - FRONT_DOOR - {"errors", "cli"}
    assert not (missing := {room for room in rooms if f"{room}/" not in readme}), f"not on the README's map: {missing}"


def modules_after(code: str) -> set[str]:
    """Modules loaded in a fresh interpreter that ran `code`."""
    probe = f"import sys, json\n{code}\nprint('\\n' + json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", probe], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("room", [room for room in TORCH_FREE if room in {room_of(path) for path in SOURCES}])
def test_room_loads_without_torch(room: str) -> None:
    assert "torch" not in modules_after(f"import course.{room}")


def test_the_front_door_is_small_sorted_and_lazy() -> None:
    loaded = modules_after("import course")
    assert not {"torch", "matplotlib", "ipywidgets"} & loaded
    import course

    assert list(course.__all__) == sorted(course.__all__) and 0 < len(course.__all__) <= 12
    assert set(course.__all__) <= set(dir(course))
    with pytest.raises(AttributeError, match="no_such_name"):
        course.no_such_name  # noqa: B018
