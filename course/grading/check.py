"""What a check is and what it can find; no check itself.

A check reads results of probes (see `bench`) and returns None when all is well, or a Finding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from course.grading.bench import Bench
from course.grading.mistakes import Mistake


@dataclass(frozen=True, slots=True)
class Finding:
    """Why a check failed: what came back, what was expected in kind, and one next step.

    `mistake`: the known mistake it was recognised as, if any; its hint is then the next step.
    """

    got: str
    expected: str
    advice: str = ""
    mistake: Mistake | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """One line of a report. `needs`: the name of a check of the same exercise without which this one says nothing."""

    name: str
    points: int
    test: Callable[[Bench], Finding | None]
    expected: str
    needs: str = ""
