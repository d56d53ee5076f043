"""`hint`, one step further each time it is asked, and `solution`, the only place that gives the answer.

How many hints somebody has seen is kept with their progress. The texts stand in `exercises`.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from course.errors import GradingError
from course.grading import sources
from course.grading.exercises import Exercise
from course.grading.judge import lookup
from course.grading.report import in_html, wrapped
from course.grading.store import Store


@dataclass(frozen=True)
class Hints:
    """The hints shown so far for one exercise, the newest last."""

    exercise: str
    texts: tuple[str, ...]
    available: int
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        lines = [
            line for k, text in enumerate(self.texts, 1) for line in wrapped(text, f"hint {k} of {self.available}: ")
        ]
        return "\n".join([*lines, self._closing, *(f"note: {note}" for note in self.notes)])

    def _repr_html_(self) -> str:
        items = "".join(
            f"<p><i>hint {k} of {self.available}:</i> {in_html(t)}</p>" for k, t in enumerate(self.texts, 1)
        )
        notes = "".join(f"<p>Note: {in_html(note)}</p>" for note in self.notes)
        return f"<div>{items}<p>{escape(self._closing, quote=False)}</p>{notes}</div>"

    @property
    def _closing(self) -> str:
        if len(self.texts) < self.available:
            return f'Ask hint("{self.exercise}") again for the next step.'
        return f'That was the last hint; solution("{self.exercise}") shows the answer.'


def hint(exercise: Any) -> Hints:
    """The hints for an exercise: one more each time it is asked. Takes its name, or the function itself."""
    found = lookup(exercise, "hint")
    count, kept = Store.of_user().next_hint(found.id, len(found.hints))
    return Hints(found.id, found.hints[:count], len(found.hints), kept.notes)


@dataclass(frozen=True)
class Solution:
    """The source text of an answer."""

    exercise: str
    source: str

    def __repr__(self) -> str:
        return self.source

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.source, quote=False)}</pre>"


def solution(exercise: Any) -> Solution:
    """The answer of an exercise, as source text. Other answers may be as right."""
    found = lookup(exercise, "solution")
    return Solution(found.id, sources.library_answer(found.source) if found.source else _from_page(found))


def _from_page(exercise: Exercise) -> str:
    """The answer that the solution page holds, where the table names no library source."""
    from course.grading import notebooks

    here = Path.cwd()
    for folder in (Path(__file__).resolve().parents[2], here, *here.parents):
        path = folder / "solutions" / f"{exercise.lesson}.ipynb"
        if not path.is_file():
            continue
        for cell in notebooks.read(path).cells:
            if "answer" in notebooks.tags(cell) and notebooks.exercise_in(cell) == exercise.id:
                return str(cell.source)
    raise GradingError(
        f'solution("{exercise.id}"): the page solutions/{exercise.lesson}.ipynb was not found beside the course or '
        f"above {here}: open the notebook from the course's own folder"
    )
