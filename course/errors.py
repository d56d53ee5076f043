"""CourseError and its children; nothing else.

Each says what was asked, what was found and what to try, in its first line. A notebook shows that text without the
frames of this package (IPython asks an exception for `_render_traceback_`).
"""

from __future__ import annotations


class CourseError(Exception):
    """Something the course was asked for could not be done; the first line is enough to go on."""

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]


class UsageError(CourseError, ValueError):
    """A call with arguments that cannot work: nothing was run and nothing changed."""


class RanksError(CourseError, RuntimeError):
    """A run on the ranks ended without a result. Children say how."""


class RankError(RanksError):
    """The learner's code raised on one or more ranks.

    `failures`: one record a failed rank, first in time first, each with `rank`, `type_name`, `message`, `frames`.
    """

    def __init__(self, message: str, failures: tuple = ()) -> None:
        super().__init__(message)
        self.failures = failures


class StallError(RanksError):
    """Ranks wait for each other and nothing will move.

    `waits`: one record a rank with `rank`, `state`, `call`, `line`, `for_whom`; `reason`: the cause in words.
    """

    def __init__(self, message: str, waits: tuple = (), reason: str = "") -> None:
        super().__init__(message)
        self.waits = waits
        self.reason = reason


class RankDied(RanksError):
    """A rank's process ended: `rank`, `signal` (a name, or None), `exit_code` (or None)."""

    def __init__(self, message: str, rank: int = -1, signal: str | None = None, exit_code: int | None = None) -> None:
        super().__init__(message)
        self.rank = rank
        self.signal = signal
        self.exit_code = exit_code


class RunTimeout(RanksError):
    """A run took longer than its `timeout`."""


class RunInterrupted(KeyboardInterrupt):
    """The stop button was pressed during a run: the ranks were stopped and are ready again."""

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]


class MismatchError(CourseError, RuntimeError):
    """Two ranks disagree about a communication call (operation, shape, dtype or order); raised before it is made."""


class DeadlockError(CourseError):
    """A program of ranks cannot go on. `cycle`: (rank, what it waits in, for whom) a link, round to the first again;
    where the wait ends at a rank that is done, the chain that leads there."""

    def __init__(self, message: str, cycle: tuple = ()) -> None:
        super().__init__(message)
        self.cycle = cycle


class GradingError(CourseError):
    """A grade, hint or solution was asked for something that is not an exercise, or cannot be graded."""


class NotebookError(CourseError):
    """A notebook cannot be read, built or graded."""
