"""One gang for one grade call: runs the learner's code in ranks and puts every mishap into a sentence.

The learner's code never runs in this process. What it must give is judged in `checks`; here it is only run, turned
into plain data in the rank, and its accidents are named: endless loop, exit, crash, stall, exception.
"""

from __future__ import annotations

import inspect
import random
import re
import sys
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from types import TracebackType
from typing import Any, Literal

from course.errors import CourseError, RankDied, RankError, RanksError, RunTimeout, StallError
from course.grading.plain import plain
from course.trace import Span, Trace
from course.trace.statistics import bytes_sent, total_bytes

Kind = Literal["raised", "unfinished", "died", "stalled", "endless", "no result", "refused", "skipped"]


@dataclass(frozen=True, slots=True)
class Limits:
    """How long the learner's code may take in one run, and how many costly mishaps end the grading."""

    timeout: float = 10.0
    stall: float = 1.5
    mishaps: int = 3


class Trouble(Exception):
    """The learner's code gave no result. `got`: what happened, in a sentence; `advice`: one next step."""

    def __init__(self, kind: Kind, got: str, advice: str = "") -> None:
        super().__init__(got)
        self.kind = kind
        self.got = got
        self.advice = advice


@dataclass(frozen=True, slots=True)
class Seat:
    """Where a probe runs: this rank, the number of ranks, and the device of the gang."""

    rank: int
    world_size: int
    device: str


@dataclass(frozen=True, slots=True)
class Returned:
    """What a probe sent home from one rank, in plain data."""

    value: Any


@dataclass(frozen=True)
class Result:
    """One run on n ranks: one plain value a rank, what they printed, the trace, and the ranks' notes."""

    values: tuple[Any, ...]
    output: tuple[str, ...]
    trace: Trace
    notes: tuple[str, ...] = ()

    @property
    def world_size(self) -> int:
        return len(self.values)

    @cached_property
    def nbytes(self) -> int:
        """Bytes sent by all ranks together (the formula of each collective, and the learner's own sends).

        A reduce-scatter counts as one. That gloo sends an all-reduce for it is no fault of an answer.
        """
        return sum(total_bytes(bytes_sent(self.trace, backend="any"), self.trace.world_size))

    def since(self, first_calls: Iterable[int]) -> Result:
        """The same result with a trace that starts at call number `first_calls[rank]` of each rank."""
        starts = tuple(first_calls)
        spans = tuple(span for span in self.trace.spans if span.order >= starts[span.rank])
        return replace(self, trace=replace(self.trace, spans=spans))

    def calls(self, rank: int = 0) -> tuple[Span, ...]:
        """The communication calls of one rank, in the order it made them."""
        kinds = ("send", "recv", "collective")
        return tuple(sorted((s for s in self.trace.of(rank=rank) if s.kind in kinds), key=lambda s: s.order))


Probe = Callable[[Any, Any, Seat], Any]


class Bench:
    """A fresh gang on which probes run the learner's object. Context manager; results and troubles are kept.

    `ranks`: a gang to use instead, which stays open (for many answers that are known to be harmless).
    """

    def __init__(self, learner: Any, limits: Limits | None = None, ranks: Any = None) -> None:
        self.learner = learner
        self.limits = limits or Limits()
        self._ranks = ranks
        self._borrowed = ranks is not None
        self._kept: dict[Hashable, Result | Trouble] = {}
        self._mishaps = 0

    def __enter__(self) -> Bench:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the gang, if there is one of our own."""
        if self._ranks is not None and not self._borrowed:
            self._ranks.close()
            self._ranks = None

    def run(self, probe: Probe, case: Hashable = None, *, n: int) -> Result:
        """`probe(learner, case, seat)` on n ranks, once for the same probe, case and n. Raises Trouble."""
        key = (probe.__module__, probe.__qualname__, case, n)
        if key not in self._kept:
            self._kept[key] = self._attempt(probe, case, n)
        kept = self._kept[key]
        if isinstance(kept, Trouble):
            raise kept
        return kept

    def _attempt(self, probe: Probe, case: Hashable, n: int) -> Result | Trouble:
        if self._mishaps >= self.limits.mishaps:
            return Trouble("skipped", "not run: the code stopped the ranks too often before")
        try:
            run = self._on_ranks(probe, case, n)
        except CourseError as error:
            if type(error) is RanksError:
                raise  # the ranks themselves failed: that says nothing about the answer
            trouble = _in_words(error, n)
            self._mishaps += self.limits.mishaps if trouble.kind == "endless" else trouble.kind in ("stalled", "died")
            return trouble
        if len(run.values) != n or not all(type(value) is Returned for value in run.values):
            return Trouble("no result", "not every rank returned a result")
        values = tuple(value.value for value in run.values)
        return Result(values, tuple(run.output), run.trace, tuple(run.notes))

    def _on_ranks(self, probe: Probe, case: Hashable, n: int) -> Any:
        """One run; on a new gang where the old one could not be formed again."""
        limits = {"timeout": self.limits.timeout, "stall": self.limits.stall}
        try:
            self._form(n)
            return self._ranks.run(enter, self.learner, probe, case, **limits)
        except RanksError as error:
            if type(error) is not RanksError or self._borrowed:
                raise
            self.close()
            self._form(n)
            return self._ranks.run(enter, self.learner, probe, case, **limits)

    def _form(self, n: int) -> None:
        from course.ranks import Ranks

        if self._ranks is None:
            self._ranks = Ranks(n, device="cpu", live=False)
        elif self._ranks.world_size != n:
            self._ranks.resize(n)


def enter(learner: Any, probe: Probe, case: Any, rank: int, world_size: int) -> Returned:
    """Runs in the rank: the probe on the learner's object; what comes back as plain data.

    The global random numbers differ from rank to rank, so that code that leans on them shows it. What the run before
    has set for the whole process (default dtype and device, gradients off) is set back.
    """
    import torch

    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    torch.set_grad_enabled(True)
    torch.manual_seed(1000 + rank)
    random.seed(1000 + rank)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(1000 + rank)
    return Returned(plain(probe(learner, case, Seat(rank, world_size, "cpu"))))


def call(learner: Callable[..., Any], seat: Seat, *args: Any, **kwargs: Any) -> Any:
    """Runs in the rank: `learner(*args)`; parameters named rank or world_size that were not given are filled in."""
    try:
        parameters = inspect.signature(learner).parameters
    except (TypeError, ValueError):
        return learner(*args, **kwargs)
    taken = list(parameters)[: len(args)]
    for name in ("rank", "world_size", "device"):
        parameter = parameters.get(name)
        if parameter and name not in taken and name not in kwargs and parameter.default is parameter.empty:
            kwargs[name] = getattr(seat, name)
    return learner(*args, **kwargs)


# NotImplementedError is torch's, not a stub's: a class without forward, an operator that a dtype or device lacks.
_OF_TORCH = re.compile("required|not implemented for|[Cc]ould not run|[Cc]annot copy")


def _in_words(error: CourseError, n: int) -> Trouble:
    if isinstance(error, StallError):
        return _stalled(error, n)
    if isinstance(error, RunTimeout):
        return Trouble(
            "endless",
            f"with {_ranks(n)} the code was still computing when its time was up",
            "Look for a loop whose condition never becomes false.",
        )
    if isinstance(error, RankDied):
        return _died(error, n)
    if isinstance(error, RankError) and error.failures:
        return _raised(error, n)
    return Trouble("refused", _first_line(str(error)))


def _stalled(error: StallError, n: int) -> Trouble:
    reason = error.reason or _first_line(str(error))
    return Trouble(
        "stalled",
        f"with {_ranks(n)} the ranks wait for each other: {_steady(reason)}",
        "Every rank has to make the same collective calls in the same order, whatever its own data are.",
    )


def _died(error: RankDied, n: int) -> Trouble:
    if error.signal:
        got = f"with {_ranks(n)} the process of rank {error.rank} was ended by {error.signal}"
        return Trouble("died", got, "A crash like this comes from memory or from compiled code.")
    got = f"with {_ranks(n)} the process of rank {error.rank} left with exit code {error.exit_code}, without a result"
    return Trouble("died", got, "Return the result; do not call exit or os._exit.")


def _raised(error: RankError, n: int) -> Trouble:
    first = error.failures[0]
    alike = [f for f in error.failures if f.type_name == first.type_name]
    failure = min(alike, key=lambda f: f.rank)
    name, message = failure.type_name, _steady(_first_line(failure.message))
    # A rank that is late may not have failed yet when the run is ended, so ranks are named where the others wait only.
    ranks = sorted(f.rank for f in alike)
    named = f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}"
    who = named if "waited in" in str(error) else "the code"
    if name == "NotImplementedError" and not _OF_TORCH.search(message):
        return Trouble("unfinished", "raises NotImplementedError: this part is still to write")
    if name == "SystemExit":
        got = f"with {_ranks(n)} {who} called exit and left without a result"
        return Trouble("died", got, "Return the result; do not call sys.exit.")
    got = f"with {_ranks(n)} {who} raised {name}" + (f": {message}" if message else "")
    line = _own_line(failure)
    return Trouble("raised", got + (f" (at {line})" if line else ""), _advice(name))


def _advice(name: str) -> str:
    if name == "MismatchError":
        return "Every rank has to bring the same shape and dtype to the same call. Which rank came with another tensor?"
    return "Run the function by hand in a %%ranks cell to see the whole traceback."


def _own_line(failure: Any) -> str:
    """The learner's own line, if the failure knows it ("In [5], line 3"); numbers of cells vary, so only the line."""
    frames = getattr(failure, "frames", ()) or ()
    found = re.search(r"line (\d+)", str(frames[-1])) if frames else None
    return f"line {found.group(1)} of the cell" if found else ""


def _ranks(n: int) -> str:
    return "1 rank" if n == 1 else f"{n} ranks"


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0] if text.strip() else ""


def _steady(text: str) -> str:
    """Without what changes from run to run: addresses, numbers of cells, process ids."""
    text = re.sub(r"0x[0-9a-f]{6,}", "0x...", text)
    return re.sub(r"In \[\d+\], ", "", text)
