"""Functions that send nothing, asked on one rank: what came back, was raised, or was refused. No check itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from course.grading.bench import Bench, Probe, Seat, Trouble
from course.grading.check import Finding
from course.grading.mistakes.any_exercise import NOT_REFUSED, OTHER_ERROR
from course.grading.plain import plain, type_in_words

Arguments = tuple[Any, ...]


def asked(bench: Bench, probe: Probe, case: Any) -> Any:
    """What the probe sent home; the Trouble itself where the learner's code raised. Any other Trouble goes on."""
    try:
        return bench.run(probe, case, n=1).values[0]
    except Trouble as trouble:
        if trouble.kind != "raised":
            raise
        return trouble


def raised(trouble: Trouble) -> str:
    """ "the code raised ValueError: ..." """
    return trouble.got.removeprefix("with 1 rank ")


def refusals(bench: Bench, name: str, cases: Sequence[Arguments]) -> Finding | None:
    """Whether each of these calls raises ValueError, as the conventions ask of the impossible."""
    found = bench.run(_probe_refusals, tuple(cases), n=1).values[0]
    for arguments, (error, value) in zip(cases, found, strict=True):
        call = f"{name}({', '.join(map(repr, arguments))})"
        if not error:
            return Finding(f"{call} returned {type_in_words(value)}", "", "", NOT_REFUSED)
        if error != "ValueError":
            return Finding(f"{call} raised {error}", "", "", OTHER_ERROR)
    return None


def _probe_refusals(learner: Any, cases: tuple[Arguments, ...], seat: Seat) -> list[tuple[str, Any]]:
    """For each call the error that it raised, or "" and what came back."""
    return [_outcome(learner, arguments) for arguments in cases]


def _outcome(learner: Any, arguments: Arguments) -> tuple[str, Any]:
    try:
        return "", plain(learner(*arguments))
    except NotImplementedError:
        raise
    except ValueError:
        return "ValueError", None
    except Exception as error:
        return type(error).__name__, None
