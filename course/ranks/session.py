"""One run on a gang: sends the call, passes output on, watches, and ends it when it must end.

The result is an `Ending`: what came back from each rank and why the run ended. Turning that into values or an error is
the job of `verdict`.
"""

from __future__ import annotations

import pickle
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from typing import Any

from course.ranks.frames import Places
from course.ranks.gang import Gang, Member
from course.ranks.output import RankOutput, Screen, read_available
from course.ranks.stall import Stall, Wait, Watch

TICK = 0.1  # seconds between two looks at the ranks
GRACE = 0.3  # seconds that others have to finish or fail by themselves after the first failure
PATIENCE = 1.0  # seconds a rank has to come back once it was told to stop


@dataclass(slots=True)
class Ending:
    """How a run ended."""

    outcomes: dict[int, dict[str, Any]] = field(default_factory=dict)  # rank -> what it reported
    payloads: dict[int, bytes] = field(default_factory=dict)  # rank -> its value, pickled
    output: list[str] = field(default_factory=list)
    died: dict[int, int] = field(default_factory=dict)  # rank -> exit code, ended by itself or by the system
    memory: dict[int, int | None] = field(default_factory=dict)  # rank -> bytes that a dead rank had used at most
    killed: list[int] = field(default_factory=list)  # ranks that did not come back and were replaced
    lost_groups: bool = False  # there were groups beside the default one, which ended with it
    waited: dict[int, Wait] = field(default_factory=dict)  # where ranks were when they were told to stop
    stall: Stall | None = None
    timed_out: float | None = None
    interrupted: bool = False

    @property
    def clean(self) -> bool:
        return not (self.died or self.killed or self.stall or self.interrupted or self.timed_out) and all(
            "failed" not in outcome for outcome in self.outcomes.values()
        )


class Session:
    """Runs one call on some members of a gang."""

    def __init__(
        self,
        gang: Gang,
        chosen: list[int],
        *,
        screen: Screen,
        show_figure: Callable[[int, bytes], None],
        places: Places,
        timeout: float | None,
        stall: float | None,
    ) -> None:
        self._gang, self._chosen, self._places = gang, chosen, places
        self._show_figure, self._timeout, self._stall = show_figure, timeout, stall
        self._open = {rank: gang.members[rank] for rank in chosen}
        self._outputs = {rank: RankOutput(rank, screen, shows_bar=rank == chosen[0]) for rank in chosen}
        self._ending = Ending()
        self._stopping = False
        self._screen = screen

    def go(self, header: dict[str, Any], payload: bytes) -> Ending:
        """Run the call to its end, whatever that is."""
        try:
            for member in list(self._open.values()):
                self._send(member, header, payload)
            self._follow()
        except KeyboardInterrupt:
            with interrupts_held():
                self._ending.interrupted = True
                self._stop()
        with interrupts_held():
            self._finish_output()
        return self._ending

    def _send(self, member: Member, header: dict[str, Any], payload: bytes) -> None:
        try:
            member.send("run", header, payload)
        except OSError:  # it has died; its exit code is read below
            return
        except BaseException:  # half a message is worse than none: this rank cannot be talked to any more
            self._gang.kill([member])
            raise

    # --- while it runs ------------------------------------------------------------------------------------------------

    def _follow(self) -> None:
        start = time.monotonic()
        watch: Watch | None = None
        next_look, failing_since = start + 1.0, None
        while self._open:
            self._collect(TICK)
            now = time.monotonic()
            if failing_since is None and self._has_failed():
                failing_since = now
            if failing_since is not None and now - failing_since > GRACE and self._open:
                self._stop()
            elif self._timeout is not None and now - start > self._timeout and self._open:
                self._ending.timed_out = self._timeout
                self._stop()
            elif self._stall is not None and now > next_look and failing_since is None and self._open:
                watch = watch or self._watch(self._stall)
                next_look = now + 0.25
                finished = dict.fromkeys(set(self._chosen) - set(self._open), "finished")
                self._ending.stall = watch.look(self._open, finished)
                if self._ending.stall and self._open:
                    self._stop()

    def _watch(self, limit: float) -> Watch:
        pids = {rank: member.pid for rank, member in self._open.items()}
        board = self._gang.board
        if board is None:
            raise RuntimeError("the gang has no group")
        spins = self._gang.uses_gpus
        return Watch(board, pids, self._places, self._ask, limit=limit, spins=spins)

    def _ask(self, rank: int, patience: float = 0.5) -> dict[str, Any] | None:
        member = self._open.get(rank)
        return member.ask(b"where", patience) if member else None

    def _has_failed(self) -> bool:
        return bool(self._ending.died) or any("failed" in outcome for outcome in self._ending.outcomes.values())

    def _collect(self, patience: float) -> None:
        """Take what has come: output, figures, results, deaths."""
        sources: list[Any] = [m.calls for m in self._open.values()]
        sources += [self._gang.members[rank].output for rank in self._chosen]
        if hasattr(self._gang.starter, "fileno"):
            sources.append(self._gang.starter)
        ready = set(wait(sources, patience))
        for rank in self._chosen:
            if self._gang.members[rank].output in ready:
                self._outputs[rank].feed(read_available(self._gang.members[rank].output))
        for rank, member in list(self._open.items()):
            if member.calls in ready:
                self._receive(rank, member)
        if self._gang.starter in ready or not ready:
            self._take_deaths()

    def _receive(self, rank: int, member: Member) -> None:
        try:
            kind, header, payload = pickle.loads(member.calls.recv_bytes())
        except (EOFError, OSError):
            self._take_deaths(expected=rank)
            return
        if kind == "figure":
            self._outputs[rank].feed(read_available(member.output))
            self._show_figure(rank, payload)
            return
        self._outputs[rank].feed(read_available(member.output))
        self._ending.outcomes[rank], self._ending.payloads[rank] = header, payload
        del self._open[rank]

    def _take_deaths(self, expected: int | None = None) -> None:
        deadline = time.monotonic() + (2.0 if expected is not None else 0.0)
        while True:
            for rank, member in list(self._open.items()):
                code = self._gang.starter.exit_of(member.pid)
                if code is not None and self._stopping:  # it was told to stop, and that ended it
                    self._ending.killed.append(rank)
                    member.dead = True
                    del self._open[rank]
                elif code is not None:
                    self._ending.died[rank] = code
                    self._ending.memory[rank] = self._gang.starter.peak_of(member.pid)
                    member.dead = True
                    del self._open[rank]
            if expected is None or expected not in self._open or time.monotonic() > deadline:
                break
            wait([self._gang.starter] if hasattr(self._gang.starter, "fileno") else [], 0.02)
        if expected is not None and expected in self._open:
            self._gang.kill([self._open[expected]])

    # --- when it must end ---------------------------------------------------------------------------------------------

    def _stop(self) -> None:
        """Free, then interrupt, then replace whatever still runs; all within about a second."""
        with interrupts_held():
            self._stopping = True
            if self._gang.board is not None and not self._ending.waited:
                pids = {rank: member.pid for rank, member in self._open.items()}
                watch = Watch(self._gang.board, pids, self._places, lambda rank: self._ask(rank, 0.15), limit=1.0)
                self._ending.waited = watch.snapshot(self._open)
            self._gang.free(list(self._open.values()))
            start = time.monotonic()
            self._collect_until(start + 0.25 * PATIENCE)
            self._gang.interrupt(list(self._open.values()))
            self._collect_until(start + 0.6 * PATIENCE)
            self._gang.interrupt(list(self._open.values()))
            self._collect_until(start + PATIENCE)
            if self._open:
                self._ending.killed += sorted(self._open)
                self._gang.kill(list(self._open.values()))
                for member in self._open.values():
                    member.dead = True
                self._open.clear()

    def _collect_until(self, deadline: float) -> None:
        while self._open and (left := deadline - time.monotonic()) > 0:
            self._collect(min(left, TICK))

    def _finish_output(self) -> None:
        for rank in self._chosen:
            output = self._outputs[rank]
            output.feed(read_available(self._gang.members[rank].output))
            output.end()
        self._screen.bar("")
        self._ending.output = [self._outputs[rank].text for rank in self._chosen]


@contextmanager
def interrupts_held(*, then_raise: bool = False) -> Iterator[None]:
    """Hold back the stop button for the moment that the block takes.

    then_raise: a press meanwhile is a KeyboardInterrupt after the block; without it, it is what the block is about.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    presses: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: presses.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if presses and then_raise:
        raise KeyboardInterrupt
