"""A rank's own side: waits for calls from the notebook, runs them, sends back values, errors and what was recorded.

The main thread runs the learner's code. A second thread answers while the first is busy or blocked: it tells where the
main thread is, and frees it by shutting the sockets it waits on.
"""

from __future__ import annotations

import ast
import ctypes
import datetime
import importlib
import io
import linecache
import os
import pickle
import random
import signal
import sys
import tempfile
import threading
import time
import types
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from course.errors import MismatchError
from course.ranks import wire
from course.ranks.arguments import OURS, arrange
from course.ranks.board import Board
from course.ranks.boilerplate import Boilerplate
from course.ranks.frames import Places, of_error, said
from course.ranks.recorder import Recorder
from course.ranks.release import shut_loopback_sockets

LONG = 0.1  # seconds; after a longer run a rank tidies up its memory


class Parts:
    """What is made once in the fork server and inherited by every rank."""

    def __init__(self) -> None:
        self.places = Places()
        self.recorder = Recorder(self.places)
        self.recorder.install()
        self.boilerplate = Boilerplate()
        self.boilerplate.install()


class Current:
    """The rank that this process is, for `calls_made` and for figures."""

    recorder: Recorder | None = None
    send_figure: Callable[[bytes], None] = staticmethod(lambda png: None)


def _changed(file: str) -> int:
    try:
        return os.stat(file).st_mtime_ns
    except OSError:
        return 0


class Worker:
    """One rank, from its first breath to its last."""

    def __init__(self, parts: Parts, config: dict[str, Any], calls: int, control: int, output: int) -> None:
        self._places, self._recorder, self._boilerplate = parts.places, parts.recorder, parts.boilerplate
        self._calls, self._control = Connection(calls), Connection(control)
        self._config = config
        self._released = False
        self._pid = os.getpid()
        self._streams: dict[str, io.TextIOWrapper] = {}
        self._num_modules = 0
        self._local: dict[str, tuple[str, int]] = {}  # modules beside the notebook: their file and when it changed
        self._settle(output)
        self._main = types.ModuleType("__main__")
        sys.modules["__main__"] = self._main
        self._namespace = self._main.__dict__
        Current.recorder = self._recorder
        Current.send_figure = staticmethod(lambda png: self._send("figure", {}, png))

    @staticmethod
    def prepare() -> Parts:
        return Parts()

    def _settle(self, output: int) -> None:
        """Be a process of its own: output, input, environment, memory, random numbers."""
        self._output = output
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - it stays open
        self._connect_streams()
        os.environ.clear()
        os.environ.update(self._config["environment"])
        tempfile.tempdir = None
        try:
            Path("/proc/self/oom_score_adj").write_text(
                "1000"
            )  # short of memory, the system ends a rank, not the notebook
        except OSError:
            pass
        random.seed()
        if numpy := sys.modules.get("numpy"):
            numpy.random.seed()

    def serve(self) -> None:
        """Answer calls until the notebook closes the connection."""
        threading.Thread(target=self._answer_control, daemon=True, name="control").start()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        while True:
            try:
                kind, header, payload = pickle.loads(self._calls.recv_bytes())
            except (EOFError, OSError):
                os._exit(0)
            if kind == "join":
                self._send("joined", self._join(header))
            elif kind == "leave":
                self._send("left", {"had_groups": self._leave()})
            else:
                self._send(*self._run(header, payload))

    def _send(self, kind: str, header: dict[str, Any], payload: bytes = b"") -> None:
        if os.getpid() != self._pid:  # a child that the learner's code forked, and that came back here: it is no rank
            os._exit(0)
        self._calls.send_bytes(pickle.dumps((kind, header, payload)))

    def _answer_control(self) -> None:
        while True:
            try:
                request = self._control.recv_bytes()
            except (EOFError, OSError):
                os._exit(0)
            if request == b"release":
                self._released = True
                shut_loopback_sockets()
            self._control.send_bytes(pickle.dumps(self._where()))

    def _where(self) -> dict[str, Any]:
        """The line that the main thread is at, and the oldest call that has not completed."""
        frame = sys._current_frames().get(threading.main_thread().ident or 0)
        inner = frame.f_code.co_name if frame else ""
        file, line = self._places.find(frame)
        return {"file": file, "line": line, "inner": inner, "pending": self._recorder.waiting()}

    # --- the group ----------------------------------------------------------------------------------------------------

    def _join(self, header: dict[str, Any]) -> dict[str, Any]:
        """Form a group with the other ranks, over a store of its own; leave the old one first."""
        import torch
        import torch.distributed as dist

        self._leave()
        rank, world_size = header["rank"], header["world_size"]
        os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world_size))
        os.environ["GLOO_SOCKET_IFNAME"] = "lo0" if sys.platform == "darwin" else "lo"
        torch.set_num_threads(header["threads"])
        self._released = False
        self._recorder.join(Board(Path(header["board"]), header["pages"], header["page"]), rank)
        device = torch.device("cpu")
        if header["device"] == "cuda":
            device = torch.device("cuda", rank)
            torch.cuda.set_device(device)
        backend = "cpu:gloo,cuda:nccl" if header["device"] == "cuda" else "gloo"
        store = dist.FileStore(header["store"], world_size)
        limit = datetime.timedelta(seconds=header["limit"])
        self._boilerplate.join(backend, store=store, rank=rank, world_size=world_size, timeout=limit)
        ours = {"rank": rank, "world_size": world_size, "device": device, "dist": dist, "torch": torch}
        self._namespace.update(ours)
        return {}

    def _leave(self) -> bool:
        """Leave the group, if there is one; whether there were others beside it, which end with it."""
        import torch.distributed as dist

        if not dist.is_initialized():
            return False
        had_groups = len(dist.distributed_c10d._world.pg_map) > 1
        shut_loopback_sockets()
        self._recorder.leave()
        self._boilerplate.leave()
        return had_groups

    # --- one run ------------------------------------------------------------------------------------------------------

    def _run(self, header: dict[str, Any], payload: bytes) -> tuple[str, dict[str, Any], bytes]:
        notes: list[str] = []
        self._boilerplate.notes_to(notes.append)
        self._places.cells.update(header["cells"])
        self._connect_streams()
        self._follow(header)
        signal.setitimer(signal.ITIMER_REAL, 0)  # an alarm that the last run has set is not this run's
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            try:
                outcome, value = self._execute(header, payload)
            finally:
                signal.signal(signal.SIGINT, signal.SIG_IGN)
        except KeyboardInterrupt as error:
            outcome, value = {"failed": {**self._failure(error), "stopped": True}}, b""
        self._close_run()
        self._remember_local()
        if time.monotonic() - header["origin"] > LONG:
            self._trim()
        report = self._recorder.stop()
        outcome.update(
            rows=report.rows, notes=notes + report.notes, counts=report.counts, dropped=report.dropped,
            unfinished=report.unfinished, calls=self._recorder.calls, ended=time.monotonic(),
        )  # fmt: skip
        return "done", outcome, value

    def _follow(self, header: dict[str, Any]) -> None:
        """Be where the notebook is: its folder and its import path."""
        if header.get("folder") and header["folder"] != os.getcwd():
            os.chdir(header["folder"])
        if header.get("path") and header["path"] != sys.path:
            sys.path[:] = header["path"]
            importlib.invalidate_caches()
        for name, (file, when) in list(self._local.items()):
            if _changed(file) != when:  # edited since: the next import reads it again
                del self._local[name]
                sys.modules.pop(name, None)
                importlib.invalidate_caches()

    def _remember_local(self) -> None:
        """Note the modules beside the notebook that this run has imported, and when their files were changed."""
        if len(sys.modules) == self._num_modules:
            return
        self._num_modules = len(sys.modules)
        folder = os.getcwd() + os.sep
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None) or ""
            if name not in self._local and file.startswith(folder) and "site-packages" not in file:
                self._local[name] = (file, _changed(file))

    def _execute(self, header: dict[str, Any], payload: bytes) -> tuple[dict[str, Any], bytes]:
        self._recorder.start(header["origin"], tracing=header["tracing"], checking=header["checking"])
        try:
            value = self._call(header, payload)
            self._show_figures()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return {"failed": self._failure(error)}, b""
        try:
            return {}, wire.dumps(value)
        except Exception as error:
            kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.").removeprefix(
                "__main__."
            )
            hint = "return list(...) of it" if kind == "generator" else "return plain values or tensors"
            text = f"the value returned, a {kind}, cannot be copied to the notebook ({error}): {hint}"
            return {"failed": {"type_name": "TypeError", "message": text, "frames": (), "at": time.monotonic()}}, b""

    def _call(self, header: dict[str, Any], payload: bytes) -> Any:
        kind = header["kind"]
        if kind == "cell":
            return self._cell(header["source"], header["file"])
        if kind == "get":
            return self._get(header["name"])
        content = wire.loads(payload)
        if kind == "put":
            self._namespace.update(content)
            return None
        fn, args, kwargs = content
        if (names := wire.globals_of(fn)) is not None:
            for name, value in self._namespace.items():
                names.setdefault(name, value)
        args, kwargs = arrange(fn, args, kwargs, {name: self._namespace[name] for name in OURS})
        return fn(*args, **kwargs)

    def _get(self, name: str) -> Any:
        if name not in self._namespace:
            known = sorted(n for n in self._namespace if not n.startswith("_"))
            raise NameError(f"`{name}` is not on this rank; there are {', '.join(known)}")
        return self._namespace[name]

    def _cell(self, source: str, file: str) -> str | None:
        """Run a cell in the namespace that stays; the last expression as text."""
        linecache.cache[file] = (len(source), None, source.splitlines(True), file)
        tree = ast.parse(source, file)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, file, "exec"), self._namespace)
        if last is None:
            return None
        value = eval(compile(ast.Expression(last.value), file, "eval"), self._namespace)  # type: ignore[attr-defined]
        return None if value is None or source.rstrip().endswith(";") else repr(value)

    def _failure(self, error: BaseException) -> dict[str, Any]:
        name, message = type(error).__name__, said(error)
        if isinstance(error, SystemExit):
            name, message = "SystemExit", f"the code called exit({'' if error.code is None else repr(error.code)})"
        return {
            "type_name": name,
            "message": message,
            "frames": of_error(error, self._places),
            "at": time.monotonic(),
            "released": self._released,
            "mismatch": isinstance(error, MismatchError),
        }

    def _show_figures(self) -> None:
        if "matplotlib.pyplot" in sys.modules:
            from course.ranks import plots

            plots.show()

    def _close_run(self) -> None:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError, AttributeError):  # closed or replaced by the learner's code
                continue

    def _trim(self) -> None:
        """Give freed memory back to the system: what activations took is not needed until the next run."""
        if sys.platform == "linux":
            ctypes.CDLL(None).malloc_trim(0)

    def _connect_streams(self) -> None:
        """Lead descriptors 1 and 2 home, and sys.stdout and sys.stderr to them, whatever the last run did to them."""
        for name, fd in (("stdout", 1), ("stderr", 2)):
            os.dup2(self._output, fd)
            stream = self._streams.get(name)
            if stream is None or stream.closed:
                file = io.FileIO(fd, "w", closefd=False)
                stream = io.TextIOWrapper(file, "utf-8", "backslashreplace", line_buffering=True)
                self._streams[name] = stream
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
