"""One record of what happened on the ranks: Span, Message, Trace. Plain data, standard library only.

A trace has one of three origins: measured on ranks, replayed in virtual time, or simulated. Readers never need to know
which. Times are seconds since the run began, on one clock for all ranks.
"""

from __future__ import annotations

from dataclasses import dataclass, field

KINDS = ("compute", "send", "recv", "collective", "wait", "idle")


@dataclass(frozen=True, slots=True)
class Span:
    """What one rank did from `start` to `end`.

    kind: "compute" (the main thread between communication calls), "send", "recv", "collective" (from the call until the
    operation completed), "wait" (the main thread blocked until an operation completed) or "idle".
    name: the operation ("all_reduce", "send", "compute"...). Spans of the main thread (compute, wait, and calls that
    are not `is_async`) do not overlap on a rank; asynchronous operations overlap them.
    """

    rank: int
    kind: str
    name: str
    start: float
    end: float
    cpu: float | None = None  # seconds of CPU the rank's main thread used (compute and wait spans)
    nbytes: int = 0  # bytes of the tensors handed to the call, on this rank
    dtype: str = ""
    group: tuple[int, ...] = ()  # global ranks of the group, in group order
    peer: int | None = None  # global rank: who it is sent to or received from; the root of a rooted collective
    call: int | None = None  # number of this collective in its group, from 0: equal on all ranks for one meeting
    is_async: bool = False  # the caller got a handle back and went on
    line: str = ""  # the learner's line, "In [5], line 6"
    order: int = 0  # position of the call among this rank's calls, from 0: order of events without clocks
    done_order: int | None = None  # the value of this rank's call counter when the operation was seen complete

    @property
    def seconds(self) -> float:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Message:
    """Bytes that went from `src` to `dst` (global ranks): one send of the learner's own, as measured.

    Collectives built into a backend show up as one call, not as messages: their bytes are computed in `statistics`.
    """

    src: int
    dst: int
    nbytes: int
    start: float  # when the sender called
    end: float  # when the receiver had it
    tag: int = 0


@dataclass(frozen=True, slots=True)
class Trace:
    """All spans and messages of one run on `world_size` ranks."""

    world_size: int
    spans: tuple[Span, ...] = ()
    messages: tuple[Message, ...] = ()
    origin: str = "measured"  # "measured" | "replayed" | "simulated"
    dropped: int = 0  # spans beyond the recorder's limit
    notes: tuple[str, ...] = field(default=())

    @property
    def seconds(self) -> float:
        """Length of the run: the end of the last span."""
        return max((s.end for s in self.spans), default=0.0)

    def of(self, *, rank: int | None = None, kind: str | None = None, name: str | None = None) -> tuple[Span, ...]:
        """The spans that match, ordered by start."""
        chosen = (
            s
            for s in self.spans
            if (rank is None or s.rank == rank)
            and (kind is None or s.kind == kind)
            and (name is None or s.name == name)
        )
        return tuple(sorted(chosen, key=lambda s: (s.start, s.rank, s.order)))
