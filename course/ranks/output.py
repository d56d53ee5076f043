"""What ranks print: read from their pipes, cut into whole lines, tagged with the rank, capped.

Everything a rank writes to file descriptors 1 and 2 arrives here, from Python, C++ and grandchildren alike. A carriage
return goes back to the start of its line, as on a terminal, so a progress bar leaves its last state.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable, Iterable

LIMIT = 200_000  # characters kept and shown of one rank in one run
_CHUNK = 1 << 16


class Screen:
    """Lines as they come, to a `write` function; a progress bar stays on the last line until something follows it."""

    def __init__(self, write: Callable[[str], object] | None) -> None:
        self._write = write
        self._bar = ""

    def line(self, text: str) -> None:
        if self._write is None:
            return
        if self._bar:
            self._write("\r" + " " * len(self._bar) + "\r")
        self._write(text + "\n")
        if self._bar:
            self._write(self._bar)

    def bar(self, text: str) -> None:
        """Show a line that is not finished; an empty text clears it."""
        if self._write is None or text == self._bar:
            return
        self._write("\r" + text.ljust(len(self._bar)) + ("" if text else "\r"))
        self._bar = text


class RankOutput:
    """The output of one rank in one run: `feed` bytes, read `text`."""

    def __init__(self, rank: int, screen: Screen, *, shows_bar: bool = False) -> None:
        self._tag = f"[rank {rank}] "
        self._screen = screen
        self._shows_bar = shows_bar
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._open = ""
        self._lines: list[str] = []
        self._kept = self._dropped = 0

    def feed(self, data: bytes) -> None:
        *lines, self._open = (self._open + self._decode(data)).split("\n")
        for line in lines:
            self._finish(line, "\n")
        if len(self._open) > 4096 and "\r" in self._open:  # a bar that was never ended: only its last state counts
            self._open = "\r" + _last_state(self._open)
        if self._shows_bar and "\r" in self._open:
            state = _last_state(self._open)
            self._screen.bar(self._tag + state if state.strip() else "")

    def end(self) -> None:
        """The run is over: what has no newline yet is a line too."""
        self._open += self._decode(b"", True)
        if self._open:
            self._finish(self._open, "")
            self._open = ""
        if self._dropped:
            notice = f"… {self._dropped:,} more characters are not shown: the first {LIMIT:,} of a rank are kept"
            self._lines.append(notice + "\n")
            self._screen.line(self._tag + notice)

    def _finish(self, line: str, ending: str) -> None:
        text = _last_state(line)
        if "\r" in line:
            self._screen.bar("")
            if not text.strip():
                return
        if self._kept + len(text) > LIMIT:
            self._dropped += len(text) + len(ending)
            return
        self._kept += len(text) + len(ending)
        self._lines.append(text + ending)
        self._screen.line(self._tag + text)

    @property
    def text(self) -> str:
        return "".join(self._lines)


def _last_state(line: str) -> str:
    """What a terminal would show of a line with carriage returns."""
    states = [state for state in line.split("\r") if state]
    return states[-1] if states else ""


def read_available(fd: int) -> bytes:
    """All bytes waiting in a non-blocking pipe."""
    parts = []
    while True:
        try:
            data = os.read(fd, _CHUNK)
        except (BlockingIOError, InterruptedError):
            break
        except OSError:
            break
        if not data:
            break
        parts.append(data)
        if len(parts) >= 64:  # 4 MB: let others have a turn
            break
    return b"".join(parts)


def tagged(rank: int, text: str) -> Iterable[str]:
    """The lines of `text`, each with its rank in front."""
    return (f"[rank {rank}] {line}" for line in text.splitlines())
