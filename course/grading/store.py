"""Where progress is kept: one small JSON file a user, safe against crashes and against two notebooks at once.

Writes replace the file in one step, under a file lock. A file that cannot be read is set aside under another name,
which is told, and never overwritten. The best result of each exercise stays. Nothing is sent anywhere.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import platformdirs
from filelock import FileLock, Timeout

VERSION = 1
VARIABLE = "COURSE_PROGRESS"  # a path to keep progress elsewhere, or "off" to keep none
_LOCK_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Entry:
    """What is known of one exercise: best points so far, how often it was graded, how many hints were shown."""

    points: int = 0
    attempts: int = 0
    hints: int = 0


@dataclass(frozen=True, slots=True)
class Kept:
    """What a store holds, and notes about trouble with it ("... was set aside as ...")."""

    entries: dict[str, Entry] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class Store:
    """The progress file at `path`; the user's own data folder by default; None keeps nothing."""

    def __init__(self, path: Path | None) -> None:
        self.path = path

    @classmethod
    def of_user(cls) -> Store:
        """The store of this user, or the one the environment variable COURSE_PROGRESS names ("off": none)."""
        chosen = os.environ.get(VARIABLE, "")
        if chosen.lower() == "off":
            return cls(None)
        return cls(Path(chosen) if chosen else platformdirs.user_data_path("distributed-ml-course") / "progress.json")

    def read(self) -> Kept:
        """All entries. A damaged file is set aside first."""
        return self._locked(lambda path: _load(path))

    def record(self, exercise: str, points: int) -> Kept:
        """Count an attempt; the best points stay."""
        return self._change(exercise, lambda e: Entry(max(e.points, points), e.attempts + 1, e.hints))

    def next_hint(self, exercise: str, available: int) -> tuple[int, Kept]:
        """How many hints to show now: one more than last time, at most `available` (all, where nothing is kept)."""
        kept = self._change(exercise, lambda e: Entry(e.points, e.attempts, min(e.hints + 1, available)))
        return kept.entries[exercise].hints if exercise in kept.entries else available, kept

    def _change(self, exercise: str, change: Callable[[Entry], Entry]) -> Kept:
        def work(path: Path) -> Kept:
            kept = _load(path)
            entries = {**kept.entries, exercise: change(kept.entries.get(exercise, Entry()))}
            _replace(path, entries)
            return Kept(entries, kept.notes)

        return self._locked(work)

    def _locked(self, work: Callable[[Path], Kept]) -> Kept:
        if self.path is None:
            return Kept()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with FileLock(f"{self.path}.lock", timeout=_LOCK_SECONDS):
                return work(self.path)
        except Timeout:
            return Kept(notes=(f"progress was not kept: another process holds {self.path}.lock",))
        except OSError as error:
            return Kept(notes=(f"progress was not kept: {self.path} cannot be used ({error.strerror or error})",))


def _load(path: Path) -> Kept:
    """What the file holds. Called under the lock."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return Kept()
    try:
        return Kept(_parse(json.loads(text)))
    except (ValueError, KeyError, TypeError, AttributeError):
        aside = _set_aside(path)
        return Kept(notes=(f"the progress file could not be read: it was set aside as {aside}, and a new one begun",))


def _parse(data: Any) -> dict[str, Entry]:
    if data["version"] != VERSION:
        raise ValueError(f"version {data['version']}")
    return {
        str(name): Entry(*(_count(entry[key]) for key in ("points", "attempts", "hints")))
        for name, entry in data["exercises"].items()
    }


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is no count")
    return value


def _set_aside(path: Path) -> Path:
    """Move the file to the first free name beside it."""
    number = 1
    while (aside := path.with_name(f"{path.stem}.damaged-{number}{path.suffix}")).exists():
        number += 1
    os.replace(path, aside)
    return aside


def _replace(path: Path, entries: dict[str, Entry]) -> None:
    """Write beside the file, then put it in its place: a crash leaves the old file or the new one, never a half."""
    exercises = {
        name: {"points": e.points, "attempts": e.attempts, "hints": e.hints} for name, e in sorted(entries.items())
    }
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"version": VERSION, "exercises": exercises}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
