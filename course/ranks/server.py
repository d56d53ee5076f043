"""The fork server: a small process that has imported torch once, and forks a rank from itself when asked.

It has never run an operation (so there are no OpenMP threads and no CUDA to inherit), holds no learner's code, and
outlives no notebook: when its socket closes or its parent changes, it ends every rank and itself. Linux only.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import selectors
import shutil
import signal
import socket
import sys
import time
import traceback
from typing import Any

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def main(fd: int) -> None:
    """Serve on the socket `fd` until the notebook goes away."""
    with socket.socket(fileno=fd) as connection:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        parent = os.getppid()
        from course.ranks.worker import Worker

        preload()
        worker_parts = Worker.prepare()
        gc.collect()
        gc.freeze()  # keeps the collector from touching, and so copying, the pages that ranks share
        _send(connection, {"ready": os.getpid()})
        _Server(connection, parent, libc, worker_parts).serve()


def preload() -> None:
    """Import what every rank needs: creating any optimizer imports torch._dynamo, which takes seconds."""
    import torch
    import torch._dynamo
    import torch.distributed
    import torch.distributed.device_mesh
    import torch.distributed.fsdp
    import torch.distributed.tensor.parallel
    import torch.nn.parallel
    import torch.profiler
    import torch.utils.data  # noqa: F401


class _Server:
    def __init__(self, connection: socket.socket, parent: int, libc: Any, worker_parts: Any) -> None:
        self._connection, self._parent, self._libc, self._parts = connection, parent, libc, worker_parts
        self._ranks: set[int] = set()
        self._folders: set[str] = set()
        self._buffer = b""
        self._fds: list[int] = []

    def serve(self) -> None:
        wakeup, wake = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(wakeup, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with selectors.DefaultSelector() as selector:
            selector.register(self._connection, selectors.EVENT_READ)
            selector.register(wakeup, selectors.EVENT_READ)
            while os.getppid() == self._parent:
                ready = {key.fileobj for key, _ in selector.select(timeout=0.5)}
                if wakeup in ready:
                    _drain(wakeup)
                self._reap()
                if self._connection in ready and not self._answer():
                    break
        self._end_all()

    def _answer(self) -> bool:
        """Read requests; False when the notebook has gone."""
        try:
            data, fds, _, _ = socket.recv_fds(self._connection, 1 << 16, 64)
        except OSError:
            return False
        self._fds += fds
        self._buffer += data
        if not data:
            return False
        while b"\n" in self._buffer:
            line, self._buffer = self._buffer.split(b"\n", 1)
            request = json.loads(line)
            if request["do"] == "fork":
                fds, self._fds = self._fds[: request["fds"]], self._fds[request["fds"] :]
                self._folders.add(request["config"]["folder"])
                self._fork(request["config"], fds)
            elif request["do"] == "kill" and request["pid"] in self._ranks:  # the number may be another's by now
                _kill_group(request["pid"])
        return True

    def _fork(self, config: dict[str, Any], fds: list[int]) -> None:
        pid = os.fork()
        if pid == 0:
            self._become_rank(config, fds)
        self._ranks.add(pid)
        for fd in fds:
            os.close(fd)
        _send(self._connection, {"pid": pid})

    def _become_rank(self, config: dict[str, Any], fds: list[int]) -> None:
        """In the child: cut the ties with the server, then be a rank until told to leave."""
        code = 1
        try:
            os.setpgid(0, 0)
            self._libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self._connection.close()
            from course.ranks.worker import Worker

            Worker(self._parts, config, *fds).serve()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            try:
                sys.stdout.flush()
                sys.stderr.flush()
            finally:
                os._exit(code)

    def _reap(self) -> None:
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid in self._ranks:
                self._ranks.discard(pid)
                _kill_group(pid)  # what the rank has started goes with it
                self._kill_strays()
                code = os.waitstatus_to_exitcode(status)
                _send(self._connection, {"exit": pid, "status": code, "peak": usage.ru_maxrss * 1024})

    def _kill_strays(self) -> None:
        """End orphans of dead ranks that left the rank's process group: they are this process's children now."""
        for pid in _children():
            if pid not in self._ranks:
                _signal(pid, signal.SIGKILL)

    def _end_all(self) -> None:
        for pid in list(self._ranks):
            _kill_group(pid)
        deadline = time.monotonic() + 1.0
        while time.monotonic() < deadline:
            for pid in _children():
                _signal(pid, signal.SIGKILL)
            try:
                if os.waitpid(-1, os.WNOHANG)[0] == 0:
                    time.sleep(0.005)
            except ChildProcessError:
                break
        for folder in self._folders:
            shutil.rmtree(folder, ignore_errors=True)


def _children() -> list[int]:
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            return [int(pid) for pid in file.read().split()]
    except OSError:
        return []


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        _signal(pid, signal.SIGKILL)


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def _drain(fd: int) -> None:
    try:
        while os.read(fd, 4096):
            pass
    except BlockingIOError:
        pass


def _send(connection: socket.socket, message: dict[str, Any]) -> None:
    try:
        connection.sendall(json.dumps(message).encode() + b"\n")
    except OSError:  # the notebook has gone: the next read says so
        pass
