"""Source text of answers: taken from the library, cut down to stubs, gathered from a learner's notebook.

Text and syntax trees only: nothing here imports or runs what it reads. Files are `notebooks`'s business.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from course.errors import NotebookError

PACKAGE = Path(__file__).resolve().parents[1]
KEPT_DECORATORS = ("property", "staticmethod", "classmethod")

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def library_answer(dotted: str) -> str:
    """The answer cell for "course.parallel.data.shard_indices": its source, after the private names that it uses."""
    module, _, name = dotted.rpartition(".")
    path = PACKAGE.joinpath(*module.split(".")[1:]).with_suffix(".py")
    if not path.is_file():
        raise NotebookError(f"the exercise table takes an answer from {dotted}, but there is no {path}: mend `source`")
    text = path.read_text(encoding="utf8")
    named = {bound: node for node in ast.parse(text).body for bound in _bound_names(node)}
    if not isinstance(named.get(name), Definition):
        raise NotebookError(f"the exercise table takes an answer from {dotted}, but {path} defines no {name}")
    wanted, queue = {name}, [named[name]]
    while queue:
        for used in _used_names(queue.pop()) - wanted:
            if used in named and not isinstance(named[used], ast.Import | ast.ImportFrom) and _is_private(used):
                wanted.add(used)
                queue.append(named[used])
    nodes = sorted({id(named[n]): named[n] for n in wanted}.values(), key=lambda node: node.lineno)
    return "\n\n\n".join(_text_of(node, text) for node in nodes)


def stub(answer: str, name: str) -> str:
    """What the learner starts from: the signature and docstring of `name` in the answer, and nothing of its body."""
    for node in ast.parse(answer).body:
        if isinstance(node, Definition) and node.name == name:
            return "\n".join(_stub_lines(node, answer, name))
    raise NotebookError(
        f"the answer cell for {name} defines no {name}: an answer cell holds the function or class itself"
    )


def defined_names(source: str) -> set[str]:
    """Names that the functions and classes at the top of `source` bind; none where it does not parse."""
    return {node.name for node in _statements(source) if isinstance(node, Definition)}


def called_with(source: str, function: str) -> set[str]:
    """Names handed as first argument, bare or quoted, to calls of `function` in `source`."""
    found = set()
    for statement in _statements(source):
        for node in ast.walk(statement):
            match node:
                case ast.Call(func=ast.Name(id=called), args=[ast.Name(id=name), *_]) if called == function:
                    found.add(name)
                case ast.Call(func=ast.Name(id=called), args=[ast.Constant(value=str(name)), *_]) if called == function:
                    found.add(name)
    return found


def definitions(source: str) -> ast.Module:
    """The imports, functions, classes and plain constants of a code cell, with their line numbers.

    Everything else is left out (a call that starts ranks, a magic): what remains defines the answers without doing the
    page again. Raises SyntaxError.
    """
    kept = [
        node
        for node in _parse(source)
        if isinstance(node, Definition | ast.Import | ast.ImportFrom) or _is_constant(node)
    ]
    return ast.Module(kept, type_ignores=[])


def _is_constant(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign | ast.AnnAssign) and not any(isinstance(n, ast.Call) for n in ast.walk(node))


def _parse(source: str) -> list[ast.stmt]:
    lines = source.splitlines()
    if lines and lines[0].startswith("%%"):
        return []
    plain = "\n".join("pass" if line.startswith(("%", "!", "?")) else line for line in lines)
    return ast.parse(plain).body


def _statements(source: str) -> list[ast.stmt]:
    """The statements of a cell; none where it does not parse."""
    try:
        return _parse(source)
    except (SyntaxError, ValueError):
        return []


def _bound_names(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            yield name


def _used_names(node: ast.AST) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def _is_private(name: str) -> bool:
    """Helpers and constants of a module; its other functions and classes are names of their own (often exercises)."""
    return name.startswith("_") or name.isupper()


def _text_of(node: ast.stmt, text: str) -> str:
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    return "\n".join(text.splitlines()[first - 1 : node.end_lineno])


def _stub_lines(node: Definition, text: str, name: str) -> Iterator[str]:
    lines, indent = text.splitlines(), " " * (node.col_offset + 4)
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Name) and decorator.id in KEPT_DECORATORS:
            yield lines[decorator.lineno - 1]
    has_docstring = ast.get_docstring(node) is not None
    if has_docstring:
        yield from lines[node.lineno - 1 : node.body[0].end_lineno]
    else:
        yield from _header(node, lines)
    if isinstance(node, ast.ClassDef):
        methods = [inner for inner in node.body if isinstance(inner, Definition) and _is_shown(inner)]
        for number, method in enumerate(methods):
            if number or has_docstring:
                yield ""
            yield from _stub_lines(method, text, name)
        if methods:
            return
    yield f'{indent}raise NotImplementedError("{name} is yours to write")'


def _header(node: Definition, lines: list[str]) -> list[str]:
    """The lines from `def` to the colon of a definition without docstring, whose body may begin on the same line."""
    first = node.body[0]
    start = min([first.lineno, *(d.lineno for d in getattr(first, "decorator_list", []))])
    if start > node.lineno:
        header = lines[node.lineno - 1 : start - 1]
        while header[-1].strip().startswith("#") or not header[-1].strip():
            header.pop()
        return header
    return [lines[node.lineno - 1].encode()[: first.col_offset].decode().rstrip()]


def _is_shown(method: Definition) -> bool:
    return not method.name.startswith("_") or method.name in ("__init__", "__call__", "__len__", "__iter__")
