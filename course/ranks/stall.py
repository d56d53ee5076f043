"""Who waits for whom: finds runs that will never end, and says why in words.

A stall is proven, not guessed. At least one rank waits in communication, and every other rank has finished, waits too,
or has used no processor time for a while. What each rank waits for stands on the board; processor time comes from the
operating system. A rank that computes is never called a stall, however long it takes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import psutil

from course.ranks.board import WAITING, Board, Call
from course.ranks.frames import Places

PROVEN = 2.0  # seconds without any movement before a circle of waits is called a stall
_BUSY = 0.025  # processor seconds a second above which a rank is at work; a blocked one uses about 0.01
_IDLE_THREAD = 0.0006  # more of them for each thread: gloo has three a group, and they poll
_SETTLE = 10.0  # seconds: all have come to the call and still nothing moves


@dataclass(frozen=True, slots=True)
class Wait:
    """One rank's line in the table."""

    rank: int
    state: str  # "waiting", "finished", "asleep", "busy" or "failed"
    call: str = ""  # "all_reduce", "recv from 0"
    line: str = ""  # "In [5], line 12"
    for_whom: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Stall:
    """A proven stall: the table and the reason in words."""

    waits: tuple[Wait, ...]
    reason: str

    def table(self) -> str:
        rows = [("rank", "state", "at", "waits for")]
        for w in self.waits:
            state = f"waiting in {w.call}" if w.state == "waiting" else w.state
            whom = ", ".join(f"rank {r}" for r in w.for_whom) or "-"
            rows.append((str(w.rank), state, w.line or "-", whom))
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        return "\n".join(
            "  " + "  ".join(c.ljust(n) for c, n in zip(row, widths, strict=True)).rstrip() for row in rows
        )


@dataclass(slots=True)
class _Pulse:
    """When a rank last moved: made a call or used the processor."""

    since: float
    cpu: float
    mark: Any
    family: tuple[float, float] | None = None  # when first asked, and the seconds used with all child processes
    switches: int | None = None  # how often the main thread had gone to sleep by then


class Watch:
    """Looks at the ranks of one run again and again; `look` returns a Stall once there is one.

    ask(rank): where its main thread is, as the worker answers; None when it does not answer. spins: a rank that waits
    uses the processor, as it does for a GPU; then what counts are unfinished calls, and not tried on GPUs yet.
    """

    def __init__(
        self,
        board: Board,
        pids: Mapping[int, int],
        places: Places,
        ask: Callable[[int], dict[str, Any] | None],
        *,
        limit: float,
        spins: bool = False,
    ) -> None:
        self._board, self._places, self._ask, self._limit, self._spins = board, places, ask, limit, spins
        self._processes = {rank: psutil.Process(pid) for rank, pid in pids.items() if psutil.pid_exists(pid)}
        now = time.monotonic()
        self._pulses = {rank: _Pulse(now, self._cpu(rank), None) for rank in pids}

    def _cpu(self, rank: int, *, with_children: bool = False) -> float:
        """Processor seconds that a rank has used so far."""
        total = 0.0
        try:
            process = self._processes[rank]
            for part in [process, *(process.children(recursive=True) if with_children else [])]:
                times = part.cpu_times()
                total += times.user + times.system
        except (KeyError, psutil.Error):
            pass
        return total

    def _idle(self, rank: int, seconds: float) -> float:
        """Processor seconds that a rank may use in so many seconds without being at work."""
        try:
            threads = self._processes[rank].num_threads()
        except (KeyError, psutil.Error):
            threads = 0
        return 0.02 + (_BUSY + _IDLE_THREAD * threads) * seconds

    def _quiet(self, rank: int, now: float) -> float:
        """Seconds since the rank last moved."""
        pulse, state = self._pulses[rank], self._board.state(rank)
        mark = (state.calls, state.since)
        cpu = self._cpu(rank)
        allowed = self._idle(rank, now - pulse.since)
        if self._spins and mark == pulse.mark and (self._ask(rank) or {}).get("pending"):
            return now - pulse.since  # waiting for a GPU burns a core: an unfinished call and no new one is the proof
        busy = cpu - pulse.cpu > allowed
        if mark != pulse.mark or busy or (state.state != WAITING and self._may_go_on(rank, pulse, now)):
            self._pulses[rank] = _Pulse(now, cpu, mark)
            return 0.0
        return now - pulse.since

    def _may_go_on(self, rank: int, pulse: _Pulse, now: float) -> bool:
        """Whether a quiet rank is alive all the same: it waits for a core or a disk, wakes again and again (a slow
        download, a loop that polls), or has started a process that is busy."""
        try:
            process = self._processes[rank]
            if process.status() in (psutil.STATUS_RUNNING, psutil.STATUS_DISK_SLEEP):
                return True
            switches = process.num_ctx_switches().voluntary  # of the main thread
        except (KeyError, psutil.Error):
            return False
        if pulse.switches is None:
            pulse.switches = switches
        elif switches - pulse.switches > 1 + (now - pulse.since):  # more than once a second
            return True
        cpu = self._cpu(rank, with_children=True)
        if pulse.family is None:
            pulse.family = (now, cpu)
        start, before = pulse.family
        return cpu - before > self._idle(rank, now - start)

    def look(self, running: Iterable[int], finished: Mapping[int, str]) -> Stall | None:
        """A Stall if nothing will move any more. finished: rank -> "finished" or "failed"."""
        now, running = time.monotonic(), sorted(running)
        quiet = {rank: self._quiet(rank, now) for rank in running}
        least = min(quiet.values(), default=0.0)
        if least < min(PROVEN, self._limit):
            return None
        waiting, asleep = self._sort(running)
        if not waiting:
            waiting, asleep = self._by_pending(asleep)
        if not waiting:
            return None
        missing = {rank: self._missing(rank, call) for rank, call in waiting.items()}
        proven = any(missing.values()) and not asleep
        if not proven and least < (self._limit if asleep else max(self._limit, _SETTLE)):
            return None
        waits = [self._wait(rank, waiting, missing, asleep, finished) for rank in sorted({*running, *finished})]
        return Stall(tuple(waits), explain(waits))

    def snapshot(self, running: Iterable[int]) -> dict[int, Wait]:
        """What each rank is in right now: a call that it waits in, or a line of the learner's."""
        found = {}
        for rank in running:
            state = self._board.state(rank)
            if state.state == WAITING and state.call:
                line = self._places.words(state.call.file, state.call.line)
                found[rank] = Wait(rank, "waiting", call_words(state.call), line)
            else:
                where = self._ask(rank)
                line = self._places.words(where["file"], where["line"]) if where else "a call outside Python"
                found[rank] = Wait(rank, "busy", "", line)
        return found

    def _sort(self, running: list[int]) -> tuple[dict[int, Call], dict[int, dict[str, Any]]]:
        """Ranks that wait, with their call; and the others, with where they are."""
        waiting: dict[int, Call] = {}
        asleep: dict[int, dict[str, Any]] = {}
        for rank in running:
            state = self._board.state(rank)
            if state.state == WAITING and state.call:
                waiting[rank] = state.call
                continue
            where = self._ask(rank) or {}
            pending = self._board.find(rank, *where["pending"]) if where.get("pending") else None
            if pending and (self._spins or _in_torch(where)):
                waiting[rank] = pending  # a wait inside C++: DDP's backward, a functional collective
            else:
                asleep[rank] = where
        return waiting, asleep

    def _by_pending(self, asleep: dict[int, dict[str, Any]]) -> tuple[dict[int, Call], dict[int, dict[str, Any]]]:
        """Where no main thread waits in communication: ranks in which another thread has a call under way."""
        found = {
            rank: call
            for rank, where in asleep.items()
            if where.get("pending")
            and (call := self._board.find(rank, *where["pending"]))
            and self._missing(rank, call)
        }
        return found, {rank: where for rank, where in asleep.items() if rank not in found}

    def _missing(self, rank: int, call: Call) -> tuple[int, ...]:
        """The ranks that a call needs and that have not come to it."""
        others = [other for other in call.ranks if other != rank]
        return tuple(other for other in others if self._board.find(other, call.group, call.number) is None)

    def _wait(
        self,
        rank: int,
        waiting: Mapping[int, Call],
        missing: Mapping[int, tuple[int, ...]],
        asleep: Mapping[int, dict[str, Any]],
        finished: Mapping[int, str],
    ) -> Wait:
        if rank in finished:
            return Wait(rank, finished[rank])
        if rank in waiting:
            call = waiting[rank]
            return Wait(rank, "waiting", call_words(call), self._places.words(call.file, call.line), missing[rank])
        where = asleep[rank]
        if not where:
            return Wait(rank, "asleep", "a call outside Python")
        inner = where["inner"] if where["inner"] not in ("<module>", "") else ""
        return Wait(rank, "asleep", inner, self._places.words(where["file"], where["line"]))


def _in_torch(where: Mapping[str, Any]) -> bool:
    """Whether the main thread is inside a call of torch's that may wait for others."""
    return where["inner"] in ("backward", "_engine_run_backward", "wait_tensor", "wait", "__call__", "synchronize")


def call_words(call: Call) -> str:
    """A call as one would say it: "send to 1", "recv from 0", "broadcast from 2", "all_reduce"."""
    if call.op in ("send", "recv"):
        way = "to" if call.op == "send" else "from"
        return f"{call.op} {way} {call.peer if call.peer >= 0 else 'anyone'}"
    root = {"broadcast": "from", "scatter": "from", "reduce": "to", "gather": "to"}.get(call.op)
    return f"{call.op} {root} {call.peer}" if root else call.op


def name_ranks(ranks: Iterable[int]) -> str:
    """ "rank 2", "ranks 0, 1 and 3"."""
    listed = sorted(ranks)
    if len(listed) == 1:
        return f"rank {listed[0]}"
    return f"ranks {', '.join(map(str, listed[:-1]))} and {listed[-1]}"


def explain(waits: Iterable[Wait]) -> str:
    """Why nothing moves, in a sentence or two."""
    waits = list(waits)
    waiting = [w for w in waits if w.state == "waiting"]
    parts = [_circle(waiting) or _different_calls(waiting) or _plain(waiting)]
    needed = {rank for w in waiting for rank in w.for_whom}
    gone = [w.rank for w in waits if w.state == "finished" and w.rank in needed]
    if gone:
        have = "has" if len(gone) == 1 else "have"
        parts.append(f"{name_ranks(gone)} {have} finished and never called it")
    for w in waits:
        if w.state == "asleep":
            inside = f" in {w.call}" if w.call else ""
            parts.append(f"rank {w.rank} is asleep{inside}{f' at {w.line}' if w.line else ''}")
    return "; ".join(part for part in parts if part)


def _circle(waiting: list[Wait]) -> str:
    """The circle of waits, if there is one among sends and receives."""
    by_rank = {w.rank: w for w in waiting}
    for first in by_rank:
        path = [first]
        while (after := next((r for r in by_rank[path[-1]].for_whom if r in by_rank), None)) is not None:
            if after in path:
                circle = [by_rank[r] for r in path[path.index(after) :]]
                return _say_circle(circle) if all(w.call.startswith(("send", "recv")) for w in circle) else ""
            path.append(after)
    return ""


def _say_circle(circle: list[Wait]) -> str:
    steps = ", ".join(f"rank {w.rank} waits in {w.call} ({w.line})" for w in circle)
    if all(w.call.startswith("send") for w in circle):
        return f"{steps}: all send first and nobody receives; let some receive first, or use isend"
    if all(w.call.startswith("recv") for w in circle):
        return f"{steps}: all receive first and nobody sends"
    return f"{steps}: each waits for the next, in a circle"


def _different_calls(waiting: list[Wait]) -> str:
    """Ranks that wait in calls which do not meet."""
    groups: dict[str, list[int]] = {}
    for w in waiting:
        groups.setdefault(w.call, []).append(w.rank)
    collective = any(not call.startswith(("send", "recv")) for call in groups)
    if len(groups) < 2 or not collective:
        return ""
    said = ", ".join(f"{name_ranks(ranks)} called {call}" for call, ranks in groups.items())
    return f"{said}: collectives must be called by every rank of the group, in the same order"


def _plain(waiting: list[Wait]) -> str:
    said = []
    groups: dict[tuple[str, str], list[Wait]] = {}
    for w in waiting:
        groups.setdefault((w.call, w.line), []).append(w)
    for (call, line), members in groups.items():
        verb = "waits" if len(members) == 1 else "wait"
        whom = sorted({r for w in members for r in w.for_whom})
        target = f" for {name_ranks(whom)}" if whom else ", though all have come"
        said.append(f"{name_ranks(w.rank for w in members)} {verb} in {call} ({line}){target}")
    return "; ".join(said)
