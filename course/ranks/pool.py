"""`Ranks`: a gang of torch.distributed processes that stays alive behind a notebook.

The learner's view: run a function on every rank, put values there, get values back. The processes are in `gang`, one
run in `session`, errors in `verdict`.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import threading
import time
import types
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from course.errors import RankError, RanksError, UsageError
from course.ranks import arguments, wire
from course.ranks.frames import Places, notebook_cells
from course.ranks.gang import Gang
from course.ranks.history import as_trace
from course.ranks.output import Screen, read_available, tagged
from course.ranks.session import Ending, Session, interrupts_held
from course.ranks.stall import name_ranks
from course.ranks.verdict import judge
from course.trace import Trace

MOST = 64  # ranks of one gang


@dataclass(frozen=True)
class Run:
    """What one run gave: one value and one text a rank, and one trace for all.

    values: plain copies; tensors are on the CPU and detached. output: what each rank printed. notes: what the course
    noticed, such as a handle that nobody waited for.
    """

    values: list[Any]
    output: list[str]
    notes: tuple[str, ...] = ()
    _rows: tuple[Any, ...] = field(default=(), repr=False)

    @functools.cached_property
    def trace(self) -> Trace:
        """Everything that the ranks computed, sent and waited for."""
        return as_trace(*self._rows)

    def __repr__(self) -> str:
        return f"<Run: {len(self.values)} values>"


class Ranks:
    """`n` ranks with an initialised torch.distributed group, kept alive until `close`.

    n: how many; without it one a GPU where there are several, else 2. device: "cpu" or "cuda"; without it "cuda" when
    there is a GPU for every rank. threads: compute threads a rank; without it cores // ranks, at least 1. stall:
    seconds without processor use after which a sleeping rank counts as stuck. live: show output while it comes.
    trace, check: record calls, and compare them between ranks before they are made. start: "fork", "spawn", "auto".

    Everything stays on this machine: a private folder and the loopback interface. Raises UsageError.
    """

    def __init__(
        self,
        n: int | None = None,
        *,
        device: str | None = None,
        threads: int | None = None,
        stall: float | None = 5.0,
        live: bool = True,
        trace: bool = True,
        check: bool = True,
        start: str = "auto",
    ) -> None:
        gpus = _gpus() if device != "cpu" else 0
        self._n = number_of_ranks(n, gpus)
        self._device = _device(device, self._n, gpus)
        if threads is not None and (not isinstance(threads, int) or threads < 1):
            raise UsageError(
                f"threads={threads!r} was asked for: give a whole number from 1, or None for cores // ranks"
            )
        if start not in ("auto", "fork", "spawn"):
            raise UsageError(f"start={start!r} was asked for: 'auto', 'fork' or 'spawn'")
        if sys.platform == "win32":
            raise RanksError("ranks need a Unix system: on Windows, open the course in WSL or in a container")
        self._stall = _seconds("stall", stall)
        self._live, self._tracing, self._checking = live, trace, check
        self._places = Places()
        self._held = wire.Held()
        self._busy = threading.Lock()
        self._last: dict[int, tuple[list[str], int]] = {}  # where the output of each rank's last run is kept
        self._warned: set[tuple[str, int]] = set()
        self._gang: Gang | None = Gang(start, device=self._device, threads=threads, cores=usable_cores())
        self._finalizer = weakref.finalize(self, self._gang.close)
        try:
            with interrupts_held(then_raise=True):
                self._gang.form(self._n)
        except BaseException:
            self.close()
            raise

    # --- what a learner calls -----------------------------------------------------------------------------------------

    def run(
        self,
        fn: Callable[..., Any],
        *args: Any,
        timeout: float | None = None,
        stall: float | None = None,
        **kwargs: Any,
    ) -> Run:
        """Call fn(*args, **kwargs) on every rank, and wait for all.

        Parameters of fn named rank, world_size or device that are not given get the rank's own. timeout: seconds for
        the whole run. Only `timeout` and `stall` are this method's; all else goes to fn. Edits that fn makes to the
        notebook's variables stay on the ranks.

        Raises RankError (fn raised), StallError (ranks wait for each other), RankDied, RunTimeout, UsageError; after
        any of them the next run works.
        """
        _check_call(fn, args, kwargs)
        payload, big = wire.pack_call(fn, args, kwargs, self._held)
        self._warn_of(big)
        header = {"kind": "call"}
        ending = self._go(header, payload, timeout=timeout, stall=stall)
        return self._values(ending)

    def put(self, **values: Any) -> None:
        """Copy variables to every rank once, into the namespace that %%ranks cells share.

        A function that mentions one of them afterwards uses the copy, and is small to send.
        """
        for name, value in values.items():
            try:
                wire.dumps(value)
            except Exception as error:
                kind = type(value).__name__
                raise UsageError(f"`{name}` is a {kind} and cannot be copied to the ranks ({error})") from None
        self._go({"kind": "put"}, wire.dumps(values))
        for name, value in values.items():
            self._held.add(name, value)

    def get(self, name: str) -> list[Any]:
        """The variable `name` of the ranks' namespace: one plain copy a rank."""
        if not isinstance(name, str):
            raise UsageError(f"get takes the name of a variable as text, not {name!r}")
        return self._values(self._go({"kind": "get", "name": name}, b"")).values

    def cell(
        self,
        source: str,
        file: str,
        *,
        only: list[int] | None = None,
        timeout: float | None = None,
        quiet: bool = False,
    ) -> Run:
        """Run source text in the ranks' namespace, on the ranks `only`; values are the last expression as text."""
        header = {"kind": "cell", "source": source, "file": file}
        return self._values(self._go(header, b"", timeout=timeout, only=only, quiet=quiet), only=only)

    def name_cell(self, file: str, words: str) -> None:
        """Say which cell a file name stands for, in errors and traces: "In [5]"."""
        self._places.cells[file] = words

    def resize(self, n: int) -> None:
        """Form the group anew with `n` ranks; ranks too many wait outside, variables of ranks stay."""
        n = number_of_ranks(n)
        with interrupts_held(then_raise=True), self._alone() as gang:
            gang.form(n)
            self._n = n

    def restart(self, n: int | None = None) -> None:
        """End every rank and start new ones, `n` or as many as there were, with no variables."""
        n = self._n if n is None else number_of_ranks(n)
        with interrupts_held(then_raise=True), self._alone() as gang:
            gang.end_members()
            gang.form(n)
            self._n = n
            self._held.clear()

    def close(self) -> None:
        """End the ranks. May be called twice."""
        self._gang = None
        self._finalizer()

    def __enter__(self) -> Ranks:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @property
    def world_size(self) -> int:
        return self._n

    @property
    def device(self) -> str:
        return self._device

    @property
    def backend(self) -> str:
        return "nccl" if self._device == "cuda" else "gloo"

    @property
    def threads(self) -> int:
        return self._gang.threads if self._gang else 0

    @property
    def pids(self) -> list[int]:
        return [member.pid for member in self._gang.members] if self._gang else []

    @property
    def closed(self) -> bool:
        return self._gang is None

    def __repr__(self) -> str:
        if self.closed:
            return "<Ranks: closed>"
        threads = f"{self.threads} thread{'s' if self.threads > 1 else ''} each"
        return f"<Ranks: {self._n} rank{'s' if self._n > 1 else ''}, {self.backend} on {self._device}, {threads}>"

    def status(self) -> str:
        """One line: ranks, backend, device, threads, memory of all processes (shared pages counted once)."""
        if self._gang is None:
            return "no ranks: this gang is closed"
        total = sum(_memory(pid) for pid in [*self.pids, self._gang.starter.pid])
        return f"{repr(self)[8:-1]}, {total / 1e6:.0f} MB in all"

    # --- the machinery ------------------------------------------------------------------------------------------------

    def _alone(self) -> _Alone:
        return _Alone(self)

    def _go(
        self,
        header: dict[str, Any],
        payload: bytes,
        *,
        timeout: float | None = None,
        stall: float | None = None,
        only: list[int] | None = None,
        quiet: bool = False,
    ) -> Ending:
        timeout = _seconds("timeout", timeout)
        stall = _seconds("stall", stall) or self._stall
        with self._alone() as gang:
            self._places.cells.update(notebook_cells())
            header.update(
                origin=time.monotonic(), tracing=self._tracing, checking=self._checking, cells=self._places.cells,
                folder=_folder(), path=sys.path,
            )  # fmt: skip
            grouped = os.environ.get("COURSE_OUTPUT") == "grouped"
            show = self._live and not quiet
            screen = Screen(_write if show and not grouped else None)
            chosen = only if only is not None else list(range(self._n))
            self._take_late(gang)
            session = Session(
                gang, chosen, screen=screen, show_figure=_show_figure if show else _no_figure, places=self._places,
                timeout=timeout, stall=stall,
            )  # fmt: skip
            ending = session.go(header, payload)
            if show and grouped:
                for rank, text in zip(chosen, ending.output, strict=True):
                    for line in tagged(rank, text):
                        _write(line + "\n")
            self._mend(gang, ending, header["kind"])
        error = judge(ending, self._places, _names_in_notebook())
        if error is not None:
            raise error from None
        return ending

    def _take_late(self, gang: Gang) -> None:
        """Add what was printed after the last run to that run's output: it is not the coming one's."""
        for rank, member in enumerate(gang.members):
            if (late := read_available(member.output)) and rank in self._last:
                output, index = self._last[rank]
                output[index] += late.decode(errors="replace")

    def _mend(self, gang: Gang, ending: Ending, kind: str) -> None:
        """Leave a gang that works, whatever has happened."""
        with interrupts_held():
            lost = bool(ending.died or ending.killed)
            if lost:
                self._held.clear()
            if not ending.clean:
                gang.repair()
                ending.lost_groups = gang.had_groups
            elif kind in ("call", "cell") and _left_over(ending):
                gang.join()
            if gang.replaced:
                self._held.clear()
                if self._live:
                    _write(
                        f"note: {name_ranks(gang.replaced)} could not leave the old group, and is new: no variables\n"
                    )
                gang.replaced.clear()

    def _values(self, ending: Ending, only: list[int] | None = None) -> Run:
        ranks = sorted(ending.outcomes)
        notes = [(rank, note) for rank in ranks for note in ending.outcomes[rank]["notes"]]
        values = [_rebuilt(rank, ending.payloads[rank]) for rank in ranks]
        if self._live:
            for text, who in _grouped(notes).items():
                _write(f"note ({', '.join(f'rank {r}' for r in who)}): {text}\n")
            for name in sorted({name for value in values for name in _outdated(value)}):
                _write(f"note: a result is of an older `{name}`: its cell was run again since the ranks made it\n")
        self._last = {rank: (ending.output, i) for i, rank in enumerate(ranks)}
        rows = {rank: ending.outcomes[rank]["rows"] for rank in ranks}
        dropped = sum(ending.outcomes[rank]["dropped"] for rank in ranks)
        texts = tuple(dict.fromkeys(note for _, note in notes))
        return Run(values, ending.output, texts, (self._n, rows, self._places, dropped))

    def _warn_of(self, big: list[tuple[str, int]]) -> None:
        for name, size in big:
            if (name, size) not in self._warned and self._live:
                self._warned.add((name, size))
                advice = (
                    f"ranks.put({name}={name}) copies it once" if name.isidentifier() else "ranks.put copies it once"
                )
                _write(f"note: `{name}` ({size / 1e6:,.0f} MB) is copied to {self._n} ranks on every run; {advice}\n")


class _Alone:
    """Holds the gang for one use at a time."""

    def __init__(self, ranks: Ranks) -> None:
        self._ranks = ranks

    def __enter__(self) -> Gang:
        gang = self._ranks._gang
        if gang is None:
            raise UsageError("these ranks are closed: make new ones with Ranks(n)")
        if not self._ranks._busy.acquire(blocking=False):
            raise UsageError("these ranks are busy with another run: wait for it, or use a second Ranks(n)")
        try:
            if gang.dead():
                gang.repair()
        except BaseException:
            self._ranks._busy.release()
            raise
        return gang

    def __exit__(self, *exc: object) -> None:
        self._ranks._busy.release()


def usable_cores() -> int:
    """Cores that this process may use: its affinity, and the container's limit where there is one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        with open("/sys/fs/cgroup/cpu.max") as file:
            quota, period = file.read().split()
        if quota != "max":
            cores = min(cores, max(1, round(int(quota) / int(period))))
    except (OSError, ValueError):
        pass
    return cores


def _gpus() -> int:
    """GPUs that torch could use, counted without starting CUDA in the notebook; 0 where torch has no CUDA."""
    if not any(os.path.exists(path) for path in ("/dev/nvidia0", "/dev/nvidiactl", "/dev/dxg")):
        return 0
    import torch

    return torch.cuda.device_count()  # asks the driver's library, and makes no context


def number_of_ranks(n: object, gpus: int = 0) -> int:
    """`n` if a gang can have that many ranks; without one, a GPU each where there are several, else 2."""
    if n is None:
        return gpus if gpus > 1 else 2
    if isinstance(n, bool) or not isinstance(n, int):
        raise UsageError(f"Ranks({n!r}) was asked for, a {type(n).__name__}: give a whole number, as in Ranks(4)")
    if not 1 <= n <= MOST:
        raise UsageError(f"Ranks({n}) was asked for: give a number of ranks from 1 to {MOST}, as in Ranks(4)")
    return n


def _device(device: str | None, n: int, gpus: int) -> str:
    if device not in (None, "cpu", "cuda"):
        raise UsageError(f"device={device!r} was asked for: 'cpu', 'cuda', or None to choose by the GPUs there are")
    if device == "cuda" and gpus < n:
        raise UsageError(
            f"{n} ranks on GPUs were asked for and this machine has {gpus}: one GPU a rank, or device='cpu'"
        )
    return device or ("cuda" if gpus >= n else "cpu")


def _seconds(name: str, value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        raise UsageError(f"{name}={value!r} was asked for: give seconds above 0, or None for no limit")
    return float(value)


def _check_call(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse a call that cannot be made, before any rank hears of it."""
    if not callable(fn):
        raise UsageError(f"run takes a function, then its arguments; it got {fn!r}, a {type(fn).__name__}")
    try:
        arguments.arrange(fn, args, kwargs, dict.fromkeys(arguments.OURS))
    except TypeError as error:
        name, signature = wire.describe(fn), inspect.signature(fn)
        if lacking := arguments.missing(fn, args, kwargs):
            needed = ", ".join(f"`{each}`" for each in lacking)
            raise UsageError(
                f"{name}{signature} needs {needed}: pass it after the function, as in ranks.run({name}, ...)"
            ) from None
        raise UsageError(f"{name}{signature} was called with other arguments: {error}") from None


def _rebuilt(rank: int, payload: bytes) -> Any:
    try:
        return wire.loads(payload)
    except (Exception, SystemExit) as error:
        raise RankError(
            f"rank {rank} returned something that cannot be rebuilt in the notebook ({type(error).__name__}: {error}): "
            f"return plain values, tensors or the module inside"
        ) from None


def _left_over(ending: Ending) -> bool:
    """Whether the run left messages behind that the next run would receive."""
    if any(outcome["unfinished"] for outcome in ending.outcomes.values()):
        return True
    counts = {rank: outcome["counts"] for rank, outcome in ending.outcomes.items()}
    for mine in counts.values():
        for key, number in mine.items():
            ranks = key[1] if isinstance(key[1], tuple) else key[1:3] if len(key) == 4 else ()
            if any(rank in counts and counts[rank].get(key, 0) != number for rank in ranks):
                return True
    return False


def _grouped(notes: list[tuple[int, str]]) -> dict[str, list[int]]:
    grouped: dict[str, list[int]] = {}
    for rank, note in notes:
        grouped.setdefault(note, []).append(rank)
    return grouped


def _outdated(value: Any) -> list[str]:
    """Names of notebook classes of which `value`, or what it directly holds, is an older version."""
    parts = [value, *(value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ())]
    main = vars(sys.modules["__main__"])
    kinds = {type(part) for part in parts[:100]}
    return [
        kind.__name__
        for kind in kinds
        if kind.__module__ == "__main__"
        and isinstance(main.get(kind.__name__), type)
        and main[kind.__name__] is not kind
    ]


def _names_in_notebook() -> set[str]:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    names = shell.user_ns if shell else vars(sys.modules["__main__"])
    return {name for name, value in list(names.items()) if not isinstance(value, types.ModuleType)}


def _folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # the folder was deleted
        return None


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _show_figure(rank: int, png: bytes) -> None:
    """A figure drawn on a rank, in the cell's output."""
    if "IPython" in sys.modules and sys.modules["IPython"].get_ipython():
        from IPython.display import Image, display

        _write(f"[rank {rank}] a figure:\n")
        display(Image(data=png))  # type: ignore[no-untyped-call]


def _no_figure(rank: int, png: bytes) -> None:
    """Figures of a quiet run are not shown."""


def _memory(pid: int) -> int:
    """Bytes of a process, shared pages counted in proportion."""
    import psutil

    try:
        info = psutil.Process(pid).memory_full_info()
        return int(getattr(info, "pss", info.rss))
    except psutil.Error:
        return 0
