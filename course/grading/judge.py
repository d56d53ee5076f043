"""`grade`: find the exercise, see whether it was attempted, run its checks on a fresh gang, and report.

The learner's code runs in ranks only. Which checks there are stands in `checks`; how a report looks in `report`.
"""

from __future__ import annotations

import contextlib
import difflib
import dis
import inspect
import os
import sys
from collections.abc import Iterator, Mapping
from types import CodeType, FunctionType
from typing import Any

from course.errors import GradingError
from course.grading.bench import Bench, Limits, Trouble
from course.grading.check import Check
from course.grading.exercises import EXERCISES, Exercise
from course.grading.report import Line, Report
from course.grading.store import Store

_IDLE = {
    "RESUME",
    "NOP",
    "CACHE",
    "LOAD_CONST",
    "POP_TOP",
    "RETURN_VALUE",
    "RETURN_CONST",
    "MAKE_CELL",
    "COPY_FREE_VARS",
}
_RAISING = _IDLE | {
    "LOAD_GLOBAL",
    "LOAD_NAME",
    "LOAD_COMMON_CONSTANT",
    "PUSH_NULL",
    "PRECALL",
    "CALL",
    "CALL_FUNCTION",
    "RAISE_VARARGS",
}
_BY_HAND = "Go through this case by hand, in a %%ranks cell that prints what each rank has."


def grade(answer: Any, *, limits: Limits | None = None) -> Report | float:
    """The graded report of a function or class, by its name: one line a check, and what to do next.

    `grade(average_gradients)` or `grade("average_gradients")`. The best points of each exercise are kept (see
    `progress`). Under nbgrader the report is printed and the points come back, so that nbgrader gives partial credit.
    Raises GradingError when there is no such exercise.
    """
    namespace = caller_namespace()
    exercise, learner = find(answer, namespace)
    report = judge(exercise, learner, limits=limits)
    if under_nbgrader():
        print(report)
        return float(report.points)
    if not report.attempted:
        return report
    kept = Store.of_user().record(exercise.id, report.points)
    return Report(**{**vars(report), "notes": (*report.notes, *kept.notes)})


def judge(exercise: Exercise, learner: Any, *, limits: Limits | None = None, ranks: Any = None) -> Report:
    """The report of one answer; nothing is kept or printed. On a fresh gang, or on `ranks`."""
    from course.grading.checks import checks_of

    if is_stub(learner):
        return Report(exercise.id, exercise.level, exercise.points, attempted=False)
    lines: list[Line] = []
    with _plain_torch(), Bench(learner, limits, ranks) as bench:
        for check in checks_of(exercise.id):
            try:
                lines.append(_line(check, bench, lines))
            except Trouble as trouble:
                if trouble.kind == "unfinished" and not any(line.earned for line in lines):
                    sentence = f"Its code {trouble.got}."
                    return Report(exercise.id, exercise.level, exercise.points, attempted=False, unfinished=sentence)
                lines.append(_troubled(check, trouble, lines))
    return Report(exercise.id, exercise.level, exercise.points, tuple(lines))


@contextlib.contextmanager
def _plain_torch() -> Iterator[None]:
    """What a notebook sets for all of torch does not change the oracles, nor do they change its random numbers."""
    import torch

    dtype = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        with torch.random.fork_rng(devices=[]), torch.inference_mode(False), torch.enable_grad(), torch.device("cpu"):
            yield
    finally:
        torch.set_default_dtype(dtype)


def _line(check: Check, bench: Bench, before: list[Line]) -> Line:
    failed = {line.name for line in before if line.status != "pass"}
    if check.needs in failed:
        return Line(check.name, "not judged", check.points)
    finding = check.test(bench)
    if finding is None:
        return Line(check.name, "pass", check.points)
    expected = finding.expected or check.expected
    advice = finding.advice or _BY_HAND
    return Line(check.name, "fail", check.points, expected, finding.got, advice, finding.mistake)


def _troubled(check: Check, trouble: Trouble, before: list[Line]) -> Line:
    if trouble.kind == "skipped" or any(line.got == trouble.got for line in before):
        got = trouble.got if trouble.kind == "skipped" else "The same happened here."
        return Line(check.name, "not judged", check.points, got=got)
    return Line(check.name, "fail", check.points, check.expected, trouble.got, trouble.advice or _BY_HAND)


# --- which exercise --------------------------------------------------------------------------------------------------


def find(answer: Any, namespace: Mapping[str, Any] | None = None) -> tuple[Exercise, Any]:
    """(exercise, the learner's object) for what was handed to `grade`. Raises GradingError."""
    names = namespace or {}
    if isinstance(answer, str):
        exercise = lookup(answer, "grade")
        if exercise.id not in names:
            raise GradingError(
                f'grade("{answer}"): nothing called {answer} is defined here; '
                f"run the cell that defines it, then grade({answer})"
            )
        return exercise, names[exercise.id]
    if not callable(answer):
        raise GradingError(
            f"grade({_short(answer)}): expected a function or class that is an exercise, found "
            f"{_article(type(answer).__name__)}; try grade({_nearest('', names)})"
        )
    name = getattr(answer, "__name__", type(answer).__name__)
    if name not in EXERCISES:  # a lambda, or a wrapped function: go by the name it is bound to
        name = next((key for key, value in names.items() if value is answer and key in EXERCISES), name)
    return lookup(name, "grade"), answer


def lookup(exercise: Any, asked: str) -> Exercise:
    """The exercise of an id, or of a function or class named so. Raises GradingError naming the nearest id."""
    name = exercise if isinstance(exercise, str) else getattr(exercise, "__name__", None)
    if not isinstance(name, str):
        raise GradingError(
            f"{asked}({_short(exercise)}): expected the name of an exercise, found "
            f'{_article(type(exercise).__name__)}; try {asked}("{next(iter(EXERCISES))}")'
        )
    if name not in EXERCISES:
        raise GradingError(f'{asked}: "{name}" is not an exercise; the nearest is "{_nearest(name)}"')
    return EXERCISES[name]


def _nearest(name: str, namespace: Mapping[str, Any] | None = None) -> str:
    if not name:
        return next((key for key in EXERCISES if key in (namespace or {})), next(iter(EXERCISES)))
    lower = {key.lower(): key for key in EXERCISES}
    found = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.0)
    return lower[found[0]] if found else next(iter(EXERCISES))


def _short(value: Any) -> str:
    text = repr(value) if type(value) in (int, float, str, bool, type(None), list, tuple, dict) else "..."
    return text if len(text) <= 40 else text[:37] + "..."


def _article(name: str) -> str:
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def caller_namespace() -> dict[str, Any]:
    """The names of the notebook, or of the script that runs."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return dict(shell.user_ns) if shell is not None else dict(vars(sys.modules["__main__"]))


def under_nbgrader() -> bool:
    """Whether nbgrader runs this notebook, to grade or to validate it."""
    return bool(os.environ.get("NBGRADER_EXECUTION"))


# --- attempted? ------------------------------------------------------------------------------------------------------


def is_stub(learner: Any) -> bool:
    """Whether the body is still the stub's: a docstring, `pass`, `...` or `raise NotImplementedError`. Runs nothing."""
    if inspect.isclass(learner):
        methods = [value for value in vars(learner).values() if isinstance(value, FunctionType)]
        plain_base = all(base.__module__.partition(".")[0] in ("builtins", "torch") for base in learner.__bases__)
        return plain_base and all(is_stub(method) for method in methods)
    try:
        code = getattr(inspect.unwrap(learner) if callable(learner) else learner, "__code__", None)
    except ValueError:  # an object that has every attribute, `__wrapped__` too
        return False
    if not isinstance(code, CodeType):
        return False
    instructions = list(dis.get_instructions(code))
    operations = {instruction.opname for instruction in instructions}
    if "RAISE_VARARGS" in operations:
        named = {i.argval for i in instructions if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
        raises = any("NotImplementedError" in i.argrepr for i in instructions)
        return operations <= _RAISING and named <= {"NotImplementedError"} and raises
    returned = [i for i in instructions if i.opname in ("RETURN_VALUE", "RETURN_CONST")]
    return operations <= _IDLE and len(returned) == 1 and _returns_none(instructions)


def _returns_none(instructions: list[dis.Instruction]) -> bool:
    last = instructions[-1]
    if last.opname == "RETURN_CONST":
        return last.argval is None
    loads = [i for i in instructions if i.opname == "LOAD_CONST"]
    return bool(loads) and loads[-1].argval is None
