"""A file mapped by all ranks and the notebook: what each rank has called, and in which call it waits now.

Each rank writes only its own page: a header (its state) and a table of recent calls, found by (group, number). The
later arriver at a call compares itself with those already there; the notebook reads headers to find stalls. A record
carries a checksum, so a torn read is seen and read again. Nothing here knows torch.
"""

from __future__ import annotations

import marshal
import mmap
import struct
import time
import zlib
from dataclasses import dataclass
from pathlib import Path

_HEAD = struct.Struct("<II")  # length, crc32
_SLOT = 512
_SLOTS = 64
_PAGE = _SLOT * (_SLOTS + 1)

IDLE, RUNNING, WAITING = "idle", "running", "waiting"


@dataclass(frozen=True, slots=True)
class Call:
    """One communication call as its rank announced it."""

    group: int  # hash of the group's name and ranks; sends and receives hash source, destination and tag too
    number: int  # which call of that group, from 0
    op: str  # "all_reduce"
    signature: str  # what must be equal on all ranks: shape, dtype, root, reduce op
    file: str
    line: int
    ranks: tuple[int, ...]  # who must come: the group, or the peer and itself
    peer: int  # who it is sent to, received from, or the root; -1 for none
    detail: str = ""  # shape and dtype in words

    def key(self) -> tuple[int, int]:
        return self.group, self.number


@dataclass(frozen=True, slots=True)
class State:
    """A rank's header: what its main thread does, how many calls it made, the call it waits in, and since when."""

    state: str = IDLE
    calls: int = 0
    since: float = 0.0  # time.monotonic()
    call: Call | None = None


class Board:
    """One page a rank in a mapped file. `mine` is the page this process may write; the notebook writes none."""

    def __init__(self, path: Path, pages: int, mine: int | None = None, *, create: bool = False) -> None:
        if create:
            path.write_bytes(b"\0" * (_PAGE * pages))
        with open(path, "r+b") as file:
            self._map = mmap.mmap(file.fileno(), _PAGE * pages)
        self._mine = mine
        self.pages = pages

    def _write(self, index: int, record: tuple[object, ...]) -> None:
        data = marshal.dumps(record)
        if len(data) > _SLOT - _HEAD.size:
            return  # too long to announce: unchecked rather than wrong
        at = (self._mine or 0) * _PAGE + index * _SLOT
        _HEAD.pack_into(self._map, at, 0, 0)
        self._map[at + _HEAD.size : at + _HEAD.size + len(data)] = data
        _HEAD.pack_into(self._map, at, len(data), zlib.crc32(data))

    def _read(self, rank: int, index: int) -> tuple | None:  # type: ignore[type-arg]
        at = rank * _PAGE + index * _SLOT
        for _ in range(3):
            length, crc = _HEAD.unpack_from(self._map, at)
            if not 0 < length <= _SLOT - _HEAD.size:
                return None
            data = self._map[at + _HEAD.size : at + _HEAD.size + length]
            if zlib.crc32(data) == crc:
                return marshal.loads(data)  # type: ignore[no-any-return]
        return None

    def clear(self) -> None:
        """Empty this rank's page."""
        at = (self._mine or 0) * _PAGE
        self._map[at : at + _PAGE] = b"\0" * _PAGE

    def announce(self, call: Call) -> None:
        """Enter a call in this rank's table, before it is made."""
        fields = (call.group, call.number, call.op, call.signature, call.file, call.line, call.ranks, call.peer)
        self._write(1 + (call.group + call.number) % _SLOTS, (*fields, call.detail[:80]))

    def withdraw(self, call: Call) -> None:
        """Take back a call that was announced and then not made."""
        self._write(1 + (call.group + call.number) % _SLOTS, (0, -1))

    def find(self, rank: int, group: int, number: int) -> Call | None:
        """The call that `rank` announced under (group, number), or None: not there yet, or overwritten since."""
        record = self._read(rank, 1 + (group + number) % _SLOTS)
        if record is None or record[0] != group or record[1] != number:
            return None
        return Call(*record)

    def set_state(self, state: str, calls: int, call: Call | None = None) -> None:
        key = call.key() if call else None
        self._write(0, (state, calls, time.monotonic(), key))

    def state(self, rank: int) -> State:
        record = self._read(rank, 0)
        if record is None:
            return State()
        state, calls, since, key = record
        return State(state, calls, since, self.find(rank, *key) if key else None)

    def close(self) -> None:
        self._map.close()


def group_hash(*parts: object) -> int:
    """A number for a group that is the same in every process."""
    return zlib.crc32(repr(parts).encode())
