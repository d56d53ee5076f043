"""The processes of one gang: brought up, joined into a group, freed, replaced, ended.

Knows nothing of what they are asked to do (that is `session`) and nothing of notebooks.
"""

from __future__ import annotations

import os
import pickle
import secrets
import shutil
import signal
import socket
import tempfile
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import psutil

from course.errors import RanksError
from course.ranks.board import Board
from course.ranks.output import read_available
from course.ranks.starter import START_LIMIT, Starters

LEAVE_LIMIT = 3.0  # seconds to leave a group; it takes milliseconds
COLLECTIVE_LIMIT = 24 * 3600  # seconds: torch's own time-out, out of the way of ours


@dataclass(eq=False)
class Member:
    """One rank's process, seen from the notebook."""

    pid: int
    calls: Connection
    control: Connection
    output: int
    unanswered: int = 0
    dead: bool = False
    joined: bool = False

    def ask(self, request: bytes, patience: float = 0.5) -> dict[str, Any] | None:
        """Put a request to the rank's second thread; its answer, or None if it cannot answer now."""
        try:
            self.control.send_bytes(request)
            self.unanswered += 1
            deadline = time.monotonic() + patience
            answer = None
            while self.unanswered and self.control.poll(max(0.0, deadline - time.monotonic())):
                answer = pickle.loads(self.control.recv_bytes())
                self.unanswered -= 1
            return answer if not self.unanswered else None
        except (OSError, EOFError):
            return None

    def send(self, kind: str, header: dict[str, Any], payload: bytes = b"") -> None:
        self.calls.send_bytes(pickle.dumps((kind, header, payload)))

    def close(self) -> None:
        self.calls.close()
        self.control.close()
        if self.output >= 0:
            os.close(self.output)
            self.output = -1


class Gang:
    """A number of ranks that share a group. `members` are in it, in order of rank; `parked` wait outside."""

    def __init__(self, start: str, *, device: str, threads: int | None, cores: int) -> None:
        self._start_how = start
        self.starter = Starters.get(start)
        self._device, self._threads, self._cores = device, threads, cores
        self.folder = Path(tempfile.mkdtemp(prefix="ranks-"))  # mode 0700: the store is nobody else's
        self._scratch = self.folder / "tmp"
        self._scratch.mkdir(mode=0o700)
        self._owner = os.getpid()
        self.members: list[Member] = []
        self.parked: list[Member] = []
        self.board: Board | None = None
        self._board_path: Path | None = None
        self.had_groups = False
        self.replaced: list[int] = []  # ranks that had to be replaced while joining, since this was last looked at

    @property
    def threads(self) -> int:
        return self._threads or max(1, self._cores // max(1, len(self.members)))

    @property
    def uses_gpus(self) -> bool:
        return self._device == "cuda"

    def dead(self) -> list[int]:
        """Ranks whose process has ended since the last run."""
        if not self.starter.alive:  # whoever killed the fork server has ended its ranks too
            self.starter = Starters.get(self._start_how)
            for member in self.members + self.parked:
                member.dead = True
        for member in self.members:
            ended = self.starter.exit_of(member.pid) is not None or not psutil.pid_exists(member.pid)
            member.dead = member.dead or ended
        return [rank for rank, member in enumerate(self.members) if member.dead]

    def form(self, world_size: int) -> None:
        """Be a group of `world_size` ranks: fork those that lack, park those too many, join over a new store."""
        self.dead()
        everyone = [m for m in self.members + self.parked if not m.dead]
        everyone += self._start(world_size - len(everyone))
        self.members, self.parked = everyone[:world_size], everyone[world_size:]
        for member in self.parked:
            member.send("leave", {})
            member.joined = False
        self._await(self.parked, "left")
        self.join()

    def join(self) -> None:
        """(Re)join all members into one group, over a store and a board of their own.

        A member that cannot leave its old group (gloo may hang on operations that nobody waited for) is replaced.
        """
        self._leave_old_group()
        if self.board is not None:
            self.board.close()
        for old in (self._board_path, getattr(self, "_store", None)):
            if old is not None:
                old.unlink(missing_ok=True)
        self._scratch.mkdir(mode=0o700, parents=True, exist_ok=True)  # a rank may have removed it
        name = secrets.token_hex(8)
        self._board_path, self._store = self.folder / f"board-{name}", self.folder / f"store-{name}"
        self.board = Board(self._board_path, len(self.members), create=True)
        for rank, member in enumerate(self.members):
            header = {
                "rank": rank, "page": rank, "world_size": len(self.members), "pages": len(self.members),
                "store": str(self._store), "board": str(self._board_path), "device": self._device,
                "threads": self.threads, "limit": COLLECTIVE_LIMIT,
            }  # fmt: skip
            member.send("join", header)
        self._await(self.members, "joined")
        for member in self.members:
            member.joined = True

    def _leave_old_group(self) -> None:
        old = [member for member in self.members if member.joined]
        for member in old:
            member.send("leave", {})
        answers = self._collect(old, "left", LEAVE_LIMIT)
        self.had_groups = any(answer["had_groups"] for answer in answers.values())
        late = [member for member in old if member not in answers]
        self.kill(late)
        for member, new in zip(late, self._start(len(late)), strict=True):
            rank = self.members.index(member)
            self.replaced.append(rank)
            member.close()
            self.members[rank] = new

    def _collect(self, members: list[Member], kind: str, limit: float) -> dict[Member, dict[str, Any]]:
        """The answers of those members that answer within `limit` seconds."""
        answers: dict[Member, dict[str, Any]] = {}
        deadline = time.monotonic() + limit
        while (open_ := [m for m in members if m not in answers]) and (left := deadline - time.monotonic()) > 0:
            for connection in wait([m.calls for m in open_], left):
                member = next(m for m in open_ if m.calls is connection)
                try:
                    got, header, _ = pickle.loads(member.calls.recv_bytes())
                except (EOFError, OSError):
                    return answers
                if got == kind:
                    answers[member] = header
        return answers

    def _start(self, number: int) -> list[Member]:
        if number <= 0:
            return []
        environment = dict(os.environ)
        environment.update(
            MPLBACKEND="module://course.ranks.plots", TMPDIR=str(self._scratch), OMP_NUM_THREADS=str(self.threads)
        )
        config = {"environment": environment, "folder": str(self.folder)}
        ours, theirs = [], []
        for _ in range(number):
            calls, calls_there = _pipe()
            control, control_there = _pipe()
            read, write = os.pipe()
            os.set_blocking(read, False)
            ours.append((calls, control, read))
            theirs.append([calls_there, control_there, write])
        try:
            pids = self.starter.start([config] * number, theirs)
        finally:
            for fd in (fd for fds in theirs for fd in fds):
                os.close(fd)
        return [Member(pid, *ends) for pid, ends in zip(pids, ours, strict=True)]

    def _await(self, members: list[Member], kind: str) -> list[dict[str, Any]]:
        """One answer of each member; RanksError that names who did not answer."""
        answers: dict[Member, dict[str, Any]] = {}
        deadline = time.monotonic() + START_LIMIT
        while len(answers) < len(members):
            open_ = [m for m in members if m not in answers]
            for connection in wait([m.calls for m in open_], timeout=0.2):
                member = next(m for m in open_ if m.calls is connection)
                try:
                    got, header, _ = pickle.loads(member.calls.recv_bytes())
                except (EOFError, OSError):
                    got, header = "gone", {}
                if got == kind:
                    answers[member] = header
            late = time.monotonic() > deadline
            for rank, member in enumerate(members):
                code = self.starter.exit_of(member.pid)
                if code is not None or (late and member not in answers):
                    how = f"its process ended with {code_words(code)}" if code is not None else "it did not answer"
                    raise RanksError(f"rank {rank} did not come up within {START_LIMIT:.0f} s: {how}; {_said(member)}")
        return [answers[m] for m in members]

    def free(self, members: list[Member]) -> None:
        """Free what is blocked in communication: the calls end with an error, the variables stay."""
        for member in members:
            member.ask(b"release", patience=0.2)

    def interrupt(self, members: list[Member]) -> None:
        """Raise KeyboardInterrupt in the main threads."""
        for member in members:
            try:
                os.kill(member.pid, signal.SIGINT)
            except ProcessLookupError:
                continue

    def kill(self, members: list[Member]) -> None:
        for member in members:
            self.starter.kill(member.pid)

    def repair(self) -> list[int]:
        """Replace dead ranks and join everyone again; the ranks that are new."""
        lost = self.dead()
        for rank, new in zip(lost, self._start(len(lost)), strict=True):
            self.members[rank].close()
            self.members[rank] = new
        self.join()
        return lost

    def end_members(self) -> None:
        """End every process, and wait until it has ended."""
        everyone, self.members, self.parked = self.members + self.parked, [], []
        for member in everyone:
            member.close()  # a rank leaves when its connection closes
        deadline = time.monotonic() + 1.0
        for member in everyone:
            while self.starter.exit_of(member.pid) is None and time.monotonic() < deadline:
                time.sleep(0.002)
            self.starter.kill(member.pid)

    def close(self) -> None:
        """End every rank; may be called twice. A process forked from the notebook's leaves them alone."""
        if os.getpid() != self._owner:
            return
        self.end_members()
        if self.board is not None:
            self.board.close()
            self.board = None
        shutil.rmtree(self.folder, ignore_errors=True)


def _pipe() -> tuple[Connection, int]:
    """A two-way connection: our end, and the file descriptor of the other."""
    ours, theirs = socket.socketpair()
    return Connection(ours.detach()), theirs.detach()


def _said(member: Member) -> str:
    text = read_available(member.output).decode(errors="replace").strip() if member.output >= 0 else ""
    return f"it said: {text[-1500:]}" if text else "it said nothing"


def code_words(code: int) -> str:
    """An exit code in words: "exit code 3", "signal SIGKILL"."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"
