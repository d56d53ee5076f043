"""`progress`: what has been earned so far, exercise by exercise, as text and HTML. What is kept stands in `store`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from course.grading.exercises import EXERCISES, Exercise, exercises_of
from course.grading.store import Entry, Store


@dataclass(frozen=True)
class Progress:
    """Best points per exercise. `rows`: one (exercise, entry) each, in the table's order; `notes` about the store."""

    rows: tuple[tuple[Exercise, Entry], ...]
    notes: tuple[str, ...] = ()

    @property
    def points(self) -> int:
        return sum(min(entry.points, exercise.points) for exercise, entry in self.rows)

    @property
    def total(self) -> int:
        return sum(exercise.points for exercise, _ in self.rows)

    @property
    def solved(self) -> int:
        return sum(entry.points >= exercise.points for exercise, entry in self.rows)

    @property
    def headline(self) -> str:
        return f"{self.points} of {self.total} points, {self.solved} of {len(self.rows)} exercises solved"

    def lessons(self) -> Iterator[tuple[str, tuple[tuple[Exercise, Entry], ...]]]:
        """(lesson, its rows), in the table's order."""
        for lesson in dict.fromkeys(exercise.lesson for exercise, _ in self.rows):
            yield lesson, tuple(row for row in self.rows if row[0].lesson == lesson)

    def __repr__(self) -> str:
        lines = [self.headline]
        for lesson, rows in self.lessons():
            lines.append(lesson)
            for exercise, entry in rows:
                points = f"{entry.points:>3} of {exercise.points:>2}"
                lines.append(f"  {exercise.id:<28} {exercise.level:<10} {points}  {state(exercise, entry)}")
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    def _repr_html_(self) -> str:
        head = "<tr><th>exercise</th><th>level</th><th>points</th><th></th></tr>"
        body = ""
        for lesson, rows in self.lessons():
            body += f'<tr><td colspan="4" style="text-align:left"><b>{escape(lesson)}</b></td></tr>'
            for exercise, entry in rows:
                cells = (exercise.id, exercise.level, f"{entry.points} of {exercise.points}", state(exercise, entry))
                body += "<tr>" + "".join(f'<td style="text-align:left">{escape(cell)}</td>' for cell in cells) + "</tr>"
        notes = "".join(f"<p>Note: {escape(note)}</p>" for note in self.notes)
        return f"<div><p><b>{self.headline}</b></p><table>{head}{body}</table>{notes}</div>"


def state(exercise: Exercise, entry: Entry) -> str:
    """Where somebody stands with an exercise, in a word."""
    if entry.points >= exercise.points:
        return "solved"
    return "begun" if entry.attempts else "open"


def progress(lesson: str | None = None) -> Progress:
    """What has been earned so far, in all lessons or in one ("05_data_parallel")."""
    kept = Store.of_user().read()
    chosen = tuple(EXERCISES.values()) if lesson is None else exercises_of(lesson)
    rows = tuple((exercise, kept.entries.get(exercise.id, Entry())) for exercise in chosen)
    return Progress(rows, kept.notes)
