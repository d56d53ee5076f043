"""Writes down what a rank does: each c10d call, its completion, and the computing in between.

Sits behind torch.distributed, as kernels of the c10d operators (`hooks`), so that the learner's code, DDP, FSDP2,
DTensor and pipelining are all seen without calling anything of ours. Before a call is made it is announced on the board
and compared with the calls of the ranks that came before (`agreement`). One recorder lives in each rank.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any

from course.errors import MismatchError, UsageError
from course.ranks.agreement import compare, gloo_safe
from course.ranks.board import IDLE, RUNNING, WAITING, Board, Call, group_hash
from course.ranks.frames import Places
from course.ranks.hooks import include_key, install
from course.ranks.operators import (
    COLLECTIVE,
    RECV,
    SEND,
    Operator,
    dtype_name,
    in_words,
    nbytes,
    signature,
)

LIMIT = 200_000  # spans a run; later ones are counted, not kept
MOMENT = 50e-6  # seconds
_C10D = "distributed_c10d.py"


@dataclass(slots=True)
class Group:
    """What the recorder knows of one process group."""

    ranks: tuple[int, ...]
    name: str
    key: int


@dataclass(slots=True, eq=False)
class Entry:
    """One call under way."""

    call: Call
    kind: str
    name: str
    start: float
    order: int
    nbytes: int
    dtype: str
    group: Group
    is_async: bool
    direct: bool  # called by the learner's own code, not by DDP or FSDP
    work: Any = None
    waited: bool = False
    on_gpu: bool = False
    end: float | None = None
    done_order: int | None = None
    tensor: Any = None
    version: int = 0


@dataclass(slots=True)
class Report:
    """What a rank says of its run: rows for the trace, handles nobody waited for, calls per group."""

    rows: list[tuple[Any, ...]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    counts: dict[tuple[Any, ...], int] = field(default_factory=dict)
    unfinished: bool = False
    dropped: int = 0


class Recorder:
    """Records the calls of this rank between `start` and `stop`, and checks them against the board."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._main = threading.main_thread().ident
        self._kept: Any = None
        self._groups: dict[Any, Group] = {}
        self._counts: Counter[int] = Counter()
        self._board: Board | None = None
        self._rank = 0
        self._left: list[Any] = []
        self.active = False
        self._tracing = self._checking = True
        self._begin_run(0.0)

    def _begin_run(self, origin: float) -> None:
        self._origin = origin
        self._rows: list[tuple[Any, ...]] = []
        self.pending: dict[int, Entry] = {}
        self._run_counts: Counter[tuple[Any, ...]] = Counter()
        self._notes: list[str] = []
        self._dropped = 0
        self.calls = 0
        self._labels: list[str] = []
        self._mark = (origin, time.thread_time())

    def join(self, board: Board, rank: int) -> None:
        """A new group has been formed."""
        self._board, self._rank = board, rank
        self._counts.clear()
        board.clear()

    def leave(self) -> None:
        """Let go of the old groups and of what they left undone: freeing them may block, and must not once the others
        wait for this rank in a new group."""
        self._left.clear()
        self._groups.clear()

    def start(self, origin: float, *, tracing: bool, checking: bool) -> None:
        include_key()
        self._tracing, self._checking = tracing, checking
        self._begin_run(origin)
        self.active = True
        if self._board:
            self._board.set_state(RUNNING, 0)

    def stop(self) -> Report:
        """End the run: close what is open and say what was never waited for."""
        self._compute_until(time.monotonic())
        self.active = False
        report = Report(self._rows, self._notes, dict(self._run_counts), dropped=self._dropped)
        for entry in list(self.pending.values()):
            finished = entry.work is None or entry.work.is_completed()
            if not finished:  # freed, a send would never arrive: it is held until the group is formed anew
                report.unfinished = True
                self._left.append(entry.work)
            if entry.is_async and not entry.waited and entry.direct:
                kind = {SEND: "isend", RECV: "irecv"}.get(entry.kind, f"{entry.name}(async_op=True)")
                where = self._places.words(entry.call.file, entry.call.line)
                report.notes.append(f"the handle from {kind} at {where} was never waited for: call its wait()")
            self._finish(entry, entry.end or time.monotonic())
        self.pending = {}
        report.dropped = self._dropped
        if self._board is not None:
            self._board.set_state(IDLE, self.calls)
        return report

    def waiting(self) -> tuple[int, int] | None:
        """(group, number) of the oldest call that has not completed, or None."""
        for entry in list(self.pending.values()):
            if entry.end is None and not (entry.work and entry.work.is_completed()):
                return entry.call.key()
        return None

    def install(self) -> None:
        """Start to see this process's calls. Once a process; survives forks."""
        self._kept = install(self)

    # --- what the hooks call ------------------------------------------------------------------------------------------

    def begin(
        self, operator: Operator, args: tuple[Any, ...], group: Any, frame: FrameType
    ) -> tuple[Entry, tuple[Any, ...]]:
        """A call is about to be made: announce it. Returns its entry and the arguments to make it with."""
        known = self._group(group)
        entry = self._announce(operator, args, known, frame)
        if operator.kind == COLLECTIVE and _device(args[0]) == "cpu":
            args = gloo_safe(operator, args, entry.call, entry.dtype, known.ranks.index(self._rank))
        return entry, args

    def enter_region(self, name: str) -> None:
        """Computing has this name from here on, on the main thread."""
        if self.active and threading.get_ident() == self._main:
            self._compute_until(time.monotonic())
            self._labels.append(name)

    def leave_region(self) -> None:
        """Computing has the name again that it had before."""
        if self.active and self._labels and threading.get_ident() == self._main:
            self._compute_until(time.monotonic())
            self._labels.pop()

    @contextlib.contextmanager
    def meeting(self, name: str, group: Any, frame: FrameType) -> Iterator[None]:
        """Around a function that waits for all ranks of a group outside of any operator."""
        if self._board is None:
            yield
            return
        known = self._group(group)
        key = group_hash(name, known.key)
        file, line = self._places.find(frame)
        call = Call(key, self._counts[key], name, "", file, line, known.ranks, -1)
        self._counts[key] += 1
        self._board.announce(call)
        self._board.set_state(WAITING, self.calls, call)
        try:
            yield
        finally:
            self._board.set_state(RUNNING, self.calls)

    def _group(self, group: Any) -> Group:
        known = self._groups.get(group)
        if known is None:
            import torch.distributed as dist

            ranks = tuple(dist.get_process_group_ranks(group))
            known = self._groups[group] = Group(ranks, group.group_name, group_hash(group.group_name, ranks))
        return known

    # --- one call, from announcement to completion --------------------------------------------------------------------

    def _announce(self, operator: Operator, args: tuple[Any, ...], group: Group, frame: FrameType | None) -> Entry:
        now = time.monotonic()
        self._compute_until(now)
        caller = frame.f_code.co_name if frame and frame.f_code.co_filename.endswith(_C10D) else ""
        reduce_op = str(frame.f_locals.get("op", "")) if operator.reduces and caller and frame else ""
        file, line = self._places.find(frame)
        peer, ranks, key, count_key = self._who(operator, args, group)
        tensors = operator.payload(args)
        call = Call(
            key, self._counts[key], operator.name, signature(operator, args, reduce_op), file, line, ranks, peer,
            in_words(operator.agreed(args) or tensors),
        )  # fmt: skip
        self._counts[key] += 1
        self._run_counts[count_key] += 1
        if self._board is not None and self._checking:
            self._board.announce(call)
            try:
                compare(call, operator.kind, self._rank, self._board, self._places)
            except MismatchError as error:  # the call is not made: whoever waits for it must not think so
                self._counts[key] -= 1
                self._run_counts[count_key] -= 1
                self._board.withdraw(call)
                self._notes.append(f"a call was refused: {error}")
                raise
        is_async, direct = self._how(operator, args, frame, caller)
        entry = Entry(
            call, operator.kind, operator.name, now, self.calls, nbytes(tensors), dtype_name(tensors), group,
            is_async, direct,
        )  # fmt: skip
        entry.on_gpu = _device(args[0]) == "cuda"
        if operator.kind == SEND and is_async and _has_own_version(args[0][0]):
            entry.tensor, entry.version = args[0][0], args[0][0]._version
        self.calls += 1
        return entry

    def _who(self, operator: Operator, args: tuple[Any, ...], group: Group) -> tuple[int, tuple[int, ...], int, Any]:
        """(peer, ranks that must come, key of the call's counter, key of the run's count)."""
        if operator.kind == COLLECTIVE:
            peer = group.ranks[args[operator.root_at]] if operator.root_at is not None else -1
            return peer, group.ranks, group.key, (group.name, group.ranks)
        if operator.root_at is None:  # a receive from whoever sends first
            return -1, group.ranks, group_hash(group.name, "any", self._rank), (group.name, "any", self._rank)
        peer, tag = self._peer(operator, args[2], group), args[3] if len(args) > 3 else 0
        ends = (self._rank, peer) if operator.kind == SEND else (peer, self._rank)
        return peer, ends, group_hash(group.name, *ends, tag), (group.name, *ends, tag)

    def _peer(self, operator: Operator, index: int, group: Group) -> int:
        if not 0 <= index < len(group.ranks):
            way = "to" if operator.kind == SEND else "from"
            raise UsageError(f"{operator.name} {way} rank {index}: this group has ranks 0 to {len(group.ranks) - 1}")
        return group.ranks[index]

    def _how(
        self, operator: Operator, args: tuple[Any, ...], frame: FrameType | None, caller: str
    ) -> tuple[bool, bool]:
        """(the caller gets a handle, the caller is the learner's own code)."""
        outer = frame.f_back if frame else None
        if operator.async_at is None:
            if outer and outer.f_code.co_name in ("send", "recv") and outer.f_code.co_filename.endswith(_C10D):
                return False, True
            is_async = caller != "recv"
        else:
            is_async = args[operator.async_at] if len(args) > operator.async_at else True
        while outer and outer.f_code.co_filename.endswith((_C10D, "c10d_logger.py", "contextlib.py")):
            outer = outer.f_back
        return is_async, bool(caller and outer and not self._places.is_foreign(outer.f_code))

    def made(self, entry: Entry, work: Any) -> None:
        now = time.monotonic()
        if work is None:
            self._mark = (now, self._cpu_at(now))
            self._finish(entry, now)
            return
        entry.work = work
        if len(self.pending) > 4:
            for old in [e for e in self.pending.values() if e.end is not None or e.work.is_completed()]:
                if not (old.direct and old.is_async and not old.waited):
                    del self.pending[id(old.work)]
                    self._finish(old, old.end or now)
        self.pending[id(work)] = entry
        if entry.is_async and entry.kind == COLLECTIVE and self._tracing:
            try:
                future = work.get_future()
            except RuntimeError:  # gloo's reduce-scatter has none: its end is when it is waited for
                return
            future.add_done_callback(lambda _: self._completed(entry))

    def _completed(self, entry: Entry) -> None:
        if entry.end is None:
            entry.end, entry.done_order = time.monotonic(), self.calls

    def wait_begins(self, entry: Entry) -> None:
        if entry.tensor is not None and entry.tensor._version != entry.version:
            where = self._places.words(entry.call.file, entry.call.line)
            self._notes.append(
                f"the tensor given to isend at {where} was changed before its wait(): the peer may get the new values"
            )
        if threading.get_ident() == self._main:
            if entry.is_async:
                self._compute_until(time.monotonic())
            if self._board is not None:
                self._board.set_state(WAITING, self.calls, entry.call)

    def wait_ends(self, entry: Entry) -> None:
        now = time.monotonic()
        entry.waited = True
        self.pending.pop(id(entry.work), None)
        if threading.get_ident() == self._main:
            used = self._cpu_at(now)
            if entry.is_async:
                self._row(entry, "wait", self._mark[0], now, cpu=used - self._mark[1])
            self._mark = (now, used)
            if self._board is not None:
                self._board.set_state(RUNNING, self.calls)
        if entry.kind == RECV and entry.call.peer < 0:
            self._name_source(entry)
        if entry.on_gpu and not entry.work.is_completed():
            self.pending[id(entry.work)] = entry  # the wait was for the stream: the GPU is still at it
            return
        self._finish(entry, entry.end or now)

    def _name_source(self, entry: Entry) -> None:
        """A receive from any source has found its sender: count it as a receive from there."""
        source = entry.group.ranks[entry.work._source_rank()]
        key = group_hash(entry.group.name, source, self._rank, 0)
        self._counts[key] += 1
        self._run_counts[(entry.group.name, source, self._rank, 0)] += 1
        entry.call = replace(entry.call, peer=source, group=key)

    # --- rows of the trace --------------------------------------------------------------------------------------------

    def _finish(self, entry: Entry, end: float) -> None:
        if entry.done_order is None:
            entry.done_order = self.calls
        self._row(entry, entry.kind, entry.start, end)
        entry.work = entry.tensor = None

    def _compute_until(self, now: float) -> None:
        if threading.get_ident() == self._main:
            start, cpu = self._mark
            used = self._cpu_at(now)
            name = self._labels[-1] if self._labels else "compute"
            self._append(("compute", name, start - self._origin, now - self._origin, used - cpu))
            self._mark = (now, used)

    def _cpu_at(self, now: float) -> float:
        """CPU seconds of the main thread. The clock costs up to 20 microseconds, so a moment is taken for all CPU."""
        since, cpu = self._mark
        if not self._tracing:
            return cpu
        return cpu + now - since if now - since < MOMENT else time.thread_time()

    def _row(self, entry: Entry, kind: str, start: float, end: float, cpu: float | None = None) -> None:
        self._append(
            (
                kind, entry.name, start - self._origin, end - self._origin, cpu, entry.nbytes, entry.dtype,
                entry.group.ranks, entry.call.peer, entry.call.number if entry.kind == COLLECTIVE else None,
                entry.is_async, entry.call.file, entry.call.line, entry.order, entry.done_order, entry.call.group,
            )
        )  # fmt: skip

    def _append(self, row: tuple[Any, ...]) -> None:
        if not self._tracing:
            return
        if len(self._rows) < LIMIT:
            self._rows.append(row)
        else:
            self._dropped += 1


def _has_own_version(tensor: Any) -> bool:
    """Whether a change of its version means that it was changed: views share one, inference tensors have none."""
    return not (tensor.is_inference() or tensor._is_view())


def _device(argument: Any) -> str:
    """The kind of device of the first tensor in an argument; "" for none."""
    while isinstance(argument, (list, tuple)):
        argument = argument[0] if len(argument) else None
    return argument.device.type if argument is not None else ""
