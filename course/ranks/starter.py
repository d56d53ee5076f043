"""How the processes of ranks come up: forked from the server where there is one (Linux), else as new interpreters.

The notebook's own process is never forked: what earlier cells did to it (threads, CUDA, OpenMP) must not matter.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections import deque
from typing import Any

from course.errors import RanksError

START_LIMIT = 60.0  # seconds that a process may take to come up


class ForkServer:
    """The notebook's end of the fork server."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed in close()
        code = f"import sys; sys.path[:] = {sys.path!r}; from course.ranks.server import main; main({theirs.fileno()})"
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", code],
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Jupyter signals its kernel's process group: ranks are not in it
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                env={**os.environ, "MPLBACKEND": "module://course.ranks.plots"},
            )
        self._socket = ours
        self._buffer = b""
        self._exits: dict[int, int] = {}
        self._peaks: dict[int, int] = {}
        self._replies: deque[dict[str, Any]] = deque()
        self._lock = threading.Lock()
        ours.settimeout(START_LIMIT)
        self._reply("ready", "the fork server did not start")

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the server still holds its end of the socket."""
        try:
            said_something = bool(select.select([self._socket], [], [], 0)[0])
            return not said_something or bool(self._socket.recv(1, socket.MSG_PEEK))
        except (OSError, ValueError):  # ValueError: closed
            return False

    def fileno(self) -> int:
        return self._socket.fileno()

    def start(self, configs: list[dict[str, Any]], fds: list[list[int]]) -> list[int]:
        """Fork one rank for each config, which gets its file descriptors; the process ids."""
        with self._lock:
            for config, handed in zip(configs, fds, strict=True):
                request = json.dumps({"do": "fork", "config": config, "fds": len(handed)}).encode() + b"\n"
                socket.send_fds(self._socket, [request[:1]], handed)
                self._socket.sendall(request[1:])
            return [self._reply("pid", "the fork server did not fork a rank")["pid"] for _ in configs]

    def kill(self, pid: int) -> None:
        """End a rank and all that it has started."""
        with self._lock:
            try:
                self._socket.sendall(json.dumps({"do": "kill", "pid": pid}).encode() + b"\n")
            except OSError:
                _kill(pid)

    def exit_of(self, pid: int) -> int | None:
        """The exit code of a rank that has ended (negative: a signal), else None."""
        if pid not in self._exits and self._lock.acquire(blocking=False):
            try:
                self._socket.setblocking(False)
                self._read()
            except BlockingIOError:
                pass
            except OSError:
                self._exits.setdefault(pid, -signal.SIGKILL)
            finally:
                self._socket.settimeout(START_LIMIT)
                self._lock.release()
        return self._exits.get(pid)

    def peak_of(self, pid: int) -> int | None:
        """The most memory, in bytes, that a rank which has ended had used."""
        return self._peaks.get(pid)

    def _read(self) -> None:
        data = self._socket.recv(1 << 16)
        if not data:
            raise ConnectionResetError("the fork server has ended")
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if "exit" in message:
                self._exits[message["exit"]] = message["status"]
                self._peaks[message["exit"]] = message["peak"]
            else:
                self._exits.pop(message.get("pid"), None)  # numbers of processes come round: this one is new
                self._replies.append(message)

    def _reply(self, key: str, otherwise: str) -> dict[str, Any]:
        try:
            while not self._replies:
                self._read()
        except OSError as error:
            self._log.seek(0)
            said = self._log.read().decode(errors="replace").strip()
            raise RanksError(f"{otherwise} ({error}){': ' + said[-2000:] if said else ''}") from None
        message = self._replies.popleft()
        if key not in message:
            raise RanksError(f"{otherwise}: it answered {message}")
        return message

    def close(self) -> None:
        """End the server, and with it every rank that it has forked."""
        self._socket.close()
        try:
            self._process.wait(3)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()


class Spawner:
    """Starts each rank as an interpreter of its own: slower, and works where forking does not."""

    def __init__(self) -> None:
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def alive(self) -> bool:
        return True

    @property
    def pid(self) -> int:
        return os.getpid()

    def start(self, configs: list[dict[str, Any]], fds: list[list[int]]) -> list[int]:
        pids = []
        for config, handed in zip(configs, fds, strict=True):
            code = (
                f"import sys; sys.path[:] = {sys.path!r}; from course.ranks.worker import Worker; "
                f"Worker(Worker.prepare(), {config!r}, *{handed!r}).serve()"
            )
            process = subprocess.Popen(
                [sys.executable, "-c", code],
                pass_fds=handed,
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "MPLBACKEND": "module://course.ranks.plots"},
            )
            self._processes[process.pid] = process
            pids.append(process.pid)
        return pids

    def kill(self, pid: int) -> None:
        _kill(pid)

    def exit_of(self, pid: int) -> int | None:
        process = self._processes.get(pid)
        code = process.poll() if process else -signal.SIGKILL
        if code is not None:
            _kill(pid)  # what it has started goes with it
        return code

    def peak_of(self, pid: int) -> int | None:
        return None

    def close(self) -> None:
        for pid, process in self._processes.items():
            _kill(pid)
            process.wait()


Starter = ForkServer | Spawner


class Starters:
    """One fork server for all gangs of this process, brought up when it is first needed."""

    _server: ForkServer | None = None
    _lock = threading.Lock()

    @classmethod
    def get(cls, start: str) -> Starter:
        """The starter for "fork", "spawn" or "auto"."""
        if start == "auto":
            start = "fork" if sys.platform == "linux" else "spawn"
        if start == "spawn":
            return Spawner()
        with cls._lock:
            if cls._server is None or not cls._server.alive:
                cls._server = ForkServer()
            return cls._server


def _kill(pid: int) -> None:
    for end in (os.killpg, os.kill):
        try:
            end(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue
