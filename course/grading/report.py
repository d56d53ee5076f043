"""What a learner sees of a grade: HTML in a notebook, deterministic plain text in a terminal and under nbval.

No times, no addresses and nothing that changes from run to run. Nothing is judged here.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any, Literal

from course.grading.mistakes import Mistake

Status = Literal["pass", "fail", "not judged"]
WIDTH = 100

_MARKS: dict[Status, str] = {"pass": "pass", "fail": "FAIL", "not judged": " -- "}
_GREEN, _RED = "#1a7f37", "#b3261e"


@dataclass(frozen=True, slots=True)
class Line:
    """One check: what it is called, whether it passed, its points, and for a failed one what came back instead."""

    name: str
    status: Status
    points: int
    expected: str = ""
    got: str = ""
    advice: str = ""
    mistake: Mistake | None = None

    @property
    def earned(self) -> int:
        return self.points if self.status == "pass" else 0


@dataclass(frozen=True)
class Report:
    """The grade of one exercise. `attempted` is False for an unwritten stub; then there are no lines."""

    exercise: str
    level: str
    total: int
    lines: tuple[Line, ...] = ()
    attempted: bool = True
    unfinished: str = ""
    notes: tuple[str, ...] = field(default=())

    @property
    def points(self) -> int:
        return sum(line.earned for line in self.lines)

    @property
    def passed(self) -> bool:
        return self.attempted and self.points == self.total

    @property
    def mistakes(self) -> tuple[str, ...]:
        """The names of the mistakes that were recognised."""
        return tuple(line.mistake.name for line in self.lines if line.mistake)

    @property
    def headline(self) -> str:
        if not self.attempted:
            return f"{self.exercise} ({self.level}): not attempted yet, {self.total} points to earn"
        return f"{self.exercise} ({self.level}): {self.points} of {self.total} points"

    @property
    def closing(self) -> str:
        """The last sentence: what to do next."""
        if not self.attempted:
            return self.unfinished or "Write it in its cell, run that cell, then this one."
        if self.passed:
            return "All checks passed."
        waiting = any(line.status == "not judged" and not line.got for line in self.lines)
        later = "Lines marked -- are judged once the check before them passes. " if waiting else ""
        return f'{later}For a nudge: hint("{self.exercise}").'

    def __str__(self) -> str:
        return "\n".join(self._text())

    __repr__ = __str__

    def _text(self) -> Iterator[str]:
        yield self.headline
        for line, details in self._detailed():
            yield f"  {_MARKS[line.status]}  {line.name}  [{line.earned}/{line.points}]"
            for label, words in details:
                yield from wrapped(words, f"        {label + ':':<10}" if label else "        ")
        if self.closing:
            yield f"  {self.closing}"
        yield from (f"  note: {note}" for note in self.notes)

    def _detailed(self) -> Iterator[tuple[Line, list[tuple[str, str]]]]:
        """Each line with what is to be said of it; a mistake is explained once."""
        told: set[str] = set()
        for line in self.lines:
            yield line, list(_details(line, told))
            told |= {line.mistake.name} if line.mistake else set()

    def _repr_html_(self) -> str:
        rows = "".join(_row(line, details) for line, details in self._detailed())
        table = f'<table style="text-align:left;border-collapse:collapse">{rows}</table>' if rows else ""
        notes = "".join(f"<p>Note: {in_html(note)}</p>" for note in self.notes)
        closing = f"<p>{in_html(self.closing)}</p>" if self.closing else ""
        return f"<div><p><b>{in_html(self.headline)}</b></p>{table}{closing}{notes}</div>"

    def to_dict(self) -> dict[str, Any]:
        """As builtin types, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Report:
        """The report that `to_dict` took apart."""
        lines = tuple(
            Line(**{**line, "mistake": Mistake(**line["mistake"]) if line["mistake"] else None})
            for line in data["lines"]
        )
        return cls(**{**data, "lines": lines, "notes": tuple(data["notes"])})


def _details(line: Line, told: set[str]) -> Iterator[tuple[str, str]]:
    if line.status == "not judged":
        if line.got:
            yield "", line.got
        return
    if line.status == "pass":
        return
    yield "got", line.got
    yield "expected", line.expected
    if line.mistake and line.mistake.name in told:
        yield "mistake", f"{line.mistake.name}, as above"
        return
    if line.mistake:
        yield "mistake", f"{line.mistake.name}. Why it looks right: {line.mistake.looks_right}"
    advice = line.mistake.hint if line.mistake else line.advice
    if advice:
        yield "next", advice


def wrapped(words: str, start: str) -> list[str]:
    """Lines of at most WIDTH characters; `start` opens the first, the others are indented as far."""
    return textwrap.wrap(words, WIDTH, initial_indent=start, subsequent_indent=" " * len(start), break_long_words=False)


def _row(line: Line, said: list[tuple[str, str]]) -> str:
    colour = {"pass": _GREEN, "fail": _RED, "not judged": "inherit"}[line.status]
    details = "".join(
        f"<div>{'<i>' + label + ':</i> ' if label else ''}{in_html(words)}</div>" for label, words in said
    )
    cells = (
        f'<td style="vertical-align:top;color:{colour}"><b>{_MARKS[line.status].strip()}</b></td>',
        f'<td style="vertical-align:top;text-align:left"><div>{in_html(line.name)}</div>{details}</td>',
        f'<td style="vertical-align:top;white-space:nowrap">{line.earned} of {line.points}</td>',
    )
    return f"<tr>{''.join(cells)}</tr>"


def in_html(text: str) -> str:
    """Escaped, with `code` in backticks set as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))
