"""What a trace adds up to: bytes and messages, busy and waiting time, overlap. Standard library only.

Bytes are *measured* for the learner's own sends (each is a Message) and *computed* from the ring algorithm for the
collectives built into a backend, which are seen as one call. Every figure here carries its label. Overlap is decided
by the order of events, never by a clock: two ranks on one core overlap in no wall-clock picture.
Nothing is drawn here (figures/) and nothing is re-timed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from course.errors import UsageError
from course.trace.record import Span, Trace

MEASURED = "measured"
COMPUTED = "computed"

# Other names that torch gives the same collective; the recorder writes the first form.
_ALIASES = {
    "all_gather_into_tensor": "all_gather",
    "reduce_scatter_tensor": "reduce_scatter",
    "all_to_all_single": "all_to_all",
    "all_reduce_coalesced": "all_reduce",
    "all_gather_coalesced": "all_gather",
}


@dataclass(frozen=True, slots=True)
class Traffic:
    """What one rank sent by one kind of call: bytes and messages that left it, and where the figures come from.

    source: "measured" (the rank's own sends) or "computed" (`formula` says from what; S is the call's bytes).
    known: False when the call has no formula here; its bytes and messages are then 0 and must not be added up.
    """

    rank: int
    name: str
    calls: int
    messages: int
    nbytes: int
    source: str
    formula: str = ""
    known: bool = True


@dataclass(frozen=True, slots=True)
class Overlap:
    """How many asynchronous operations of one rank had a later call of that rank begin before it waited for them.

    asynchronous: operations that gave a handle back. overlapped: those after which the rank went on and made another
    call before it waited for them; where no wait for them was seen (DDP waits in C++), before it next waited for
    anything. deepest: the largest number of such later calls for one operation.
    """

    rank: int
    asynchronous: int
    overlapped: int
    deepest: int
    nbytes: int
    overlapped_nbytes: int


@dataclass(frozen=True, slots=True)
class _Call:
    """One rank's part in one collective: S bytes handed in, n ranks, and where the rank sits in the ring."""

    nbytes: int
    n: int
    is_root: bool
    is_last: bool  # the neighbour before the root: a ring's broadcast ends there


_Cost = tuple[float, int, str]  # bytes, messages, formula

_FORMULAS: dict[str, Callable[[_Call], _Cost]] = {
    "all_reduce": lambda c: (2 * (c.n - 1) / c.n * c.nbytes, 2 * (c.n - 1), "2(n-1)/n S, ring"),
    "reduce_scatter": lambda c: ((c.n - 1) / c.n * c.nbytes, c.n - 1, "(n-1)/n S, ring"),
    "all_gather": lambda c: (float((c.n - 1) * c.nbytes), c.n - 1, "(n-1) S with S its own part, ring"),
    "all_to_all": lambda c: ((c.n - 1) / c.n * c.nbytes, c.n - 1, "(n-1)/n S"),
    "broadcast": lambda c: (
        (0.0, 0, "S, ring from the root") if c.is_last else (float(c.nbytes), 1, "S, ring from the root")
    ),
    "reduce": lambda c: (0.0, 0, "S to the root") if c.is_root else (float(c.nbytes), 1, "S to the root"),
    "gather": lambda c: (0.0, 0, "S to the root") if c.is_root else (float(c.nbytes), 1, "S to the root"),
    "scatter": lambda c: (
        ((c.n - 1) / c.n * c.nbytes, c.n - 1, "(n-1)/n S from the root")
        if c.is_root
        else (0.0, 0, "(n-1)/n S from the root")
    ),
    "barrier": lambda c: (0.0, 0, "no data"),
    "monitored_barrier": lambda c: (0.0, 0, "no data"),
}


def collective_traffic(
    name: str, nbytes: int, group: tuple[int, ...], rank: int, *, root: int | None = None, backend: str = "gloo"
) -> _Cost | None:
    """(bytes, messages, formula) that `rank` sends in one collective, by the ring algorithm; None for an unknown one.

    nbytes: S, the bytes of the tensors the rank hands in: the tensor of all_reduce, broadcast and reduce, its own part
    in all_gather and gather, all parts together in reduce_scatter, all_to_all and scatter. gloo runs a reduce-scatter
    as an all-reduce (on the wire 1.50 S were counted for 4 ranks), so with gloo it has that formula.
    """
    name = _ALIASES.get(name, name)
    n = len(group)
    if name not in _FORMULAS or (n > 1 and rank not in group):
        return None
    if n <= 1:
        return 0.0, 0, "one rank sends nothing"
    start = group.index(root) if root in group else 0
    call = _Call(nbytes, n, is_root=rank == group[start], is_last=rank == group[start - 1])
    if name == "reduce_scatter" and backend == "gloo":
        sent, messages, _ = _FORMULAS["all_reduce"](call)
        return sent, messages, "2(n-1)/n S: gloo sends an all-reduce"
    return _FORMULAS[name](call)


def bytes_sent(trace: Trace, *, backend: str = "gloo") -> tuple[Traffic, ...]:
    """One Traffic a rank and kind of call, ordered by rank, then name. Own sends are measured, collectives computed."""
    totals: dict[tuple[int, str], list[float]] = {}
    formulas: dict[tuple[int, str], tuple[str, bool]] = {}
    for span in trace.spans:
        if span.kind != "collective":
            continue
        key = (span.rank, _ALIASES.get(span.name, span.name))
        group = span.group or tuple(range(trace.world_size))
        found = collective_traffic(span.name, span.nbytes, group, span.rank, root=span.peer, backend=backend)
        total = totals.setdefault(key, [0, 0, 0.0])
        total[0] += 1
        formulas[key] = ("", False) if found is None else (found[2], True)
        if found is not None:
            total[1] += found[1]
            total[2] += found[0]
    computed = [
        Traffic(rank, name, int(t[0]), int(t[1]), round(t[2]), COMPUTED, *formulas[rank, name])
        for (rank, name), t in totals.items()
    ]
    return tuple(sorted([*_own_sends(trace), *computed], key=lambda t: (t.rank, t.name)))


def _own_sends(trace: Trace) -> list[Traffic]:
    sent: dict[int, list[int]] = {}
    for message in trace.messages:
        total = sent.setdefault(message.src, [0, 0])
        total[0] += 1
        total[1] += message.nbytes
    return [Traffic(rank, "send", t[0], t[0], t[1], MEASURED) for rank, t in sent.items()]


def total_bytes(traffic: Iterable[Traffic], world_size: int) -> tuple[int, ...]:
    """Bytes each rank sent, all kinds together; a kind without a formula counts nothing."""
    sums = [0] * world_size
    for entry in traffic:
        sums[entry.rank] += entry.nbytes
    return tuple(sums)


def total_messages(traffic: Iterable[Traffic], world_size: int) -> tuple[int, ...]:
    """Messages each rank sent, all kinds together; a kind without a formula counts nothing."""
    sums = [0] * world_size
    for entry in traffic:
        sums[entry.rank] += entry.messages
    return tuple(sums)


def calls(trace: Trace) -> tuple[dict[str, int], ...]:
    """How often each rank called each operation: one {name: count} a rank, names sorted."""
    counts: list[dict[str, int]] = [{} for _ in range(trace.world_size)]
    for span in trace.spans:
        if span.kind in ("send", "recv", "collective"):
            counts[span.rank][span.name] = counts[span.rank].get(span.name, 0) + 1
    return tuple(dict(sorted(count.items())) for count in counts)


def busy_seconds(trace: Trace) -> tuple[float, ...]:
    """Seconds each rank's main thread spent computing, by the wall clock: sharing a core makes it longer."""
    return _seconds(trace, lambda span: span.kind == "compute")


def cpu_seconds(trace: Trace) -> tuple[float, ...]:
    """CPU seconds of each rank's compute spans: what computing would have taken on a core of its own."""
    sums = [0.0] * trace.world_size
    for span in trace.spans:
        if span.kind == "compute" and span.cpu is not None:
            sums[span.rank] += span.cpu
    return tuple(sums)


def waiting_seconds(trace: Trace) -> tuple[float, ...]:
    """Seconds each rank's main thread was blocked: in blocking calls, and in `wait` for asynchronous ones."""
    return _seconds(trace, is_waiting)


def is_waiting(span: Span) -> bool:
    """True when the rank's main thread is blocked in this span."""
    return span.kind in ("wait", "idle") or (span.kind in ("send", "recv", "collective") and not span.is_async)


def in_flight(span: Span) -> bool:
    """True for an operation that runs beside the main thread."""
    return span.is_async and span.kind in ("send", "recv", "collective")


def _seconds(trace: Trace, chosen: Callable[[Span], bool]) -> tuple[float, ...]:
    sums = [0.0] * trace.world_size
    for span in trace.spans:
        if chosen(span):
            sums[span.rank] += span.seconds
    return tuple(sums)


def overlap(trace: Trace) -> tuple[Overlap, ...]:
    """One Overlap a rank, from the order in which each rank's main thread made its calls and waited for them.

    No two ranks' clocks are compared, and no lengths: a slow machine gives the same figures as a fast one.
    """
    result = []
    for rank in range(trace.world_size):
        spans = (s for s in trace.spans if s.rank == rank and s.kind in ("send", "recv", "collective"))
        made = sorted(spans, key=lambda s: s.order)
        starts = [s.start for s in made]  # a main thread's calls start in their order
        waits = {s.order: s.start for s in reversed(trace.of(rank=rank, kind="wait"))}  # the first wait for each call
        blocks = sorted([*waits.values(), *(s.start for s in made if not s.is_async)])
        flying = [(place, span) for place, span in enumerate(made) if span.is_async]
        later = [_calls_by_then(span, waits, blocks, starts) - place - 1 for place, span in flying]
        overlapped = [span for (_, span), count in zip(flying, later, strict=True) if count > 0]
        result.append(
            Overlap(
                rank,
                asynchronous=len(flying),
                overlapped=len(overlapped),
                deepest=max([0, *later]),
                nbytes=sum(span.nbytes for _, span in flying),
                overlapped_nbytes=sum(span.nbytes for span in overlapped),
            )
        )
    return tuple(result)


def _calls_by_then(span: Span, waits: dict[int, float], blocks: list[float], starts: list[float]) -> int:
    """How many calls its rank had begun when it waited for `span`, or when it next blocked."""
    if span.order in waits:
        return bisect_left(starts, waits[span.order])
    later = bisect_right(blocks, span.start)
    return bisect_right(starts, blocks[later]) if later < len(blocks) else len(starts)


def lanes(spans: Iterable[Span]) -> tuple[tuple[Span, ...], ...]:
    """The spans sorted into as few lanes as needed so that none overlap within a lane."""
    rows: list[list[Span]] = []
    for span in sorted(spans, key=lambda s: (s.start, s.end, s.order)):
        for row in rows:
            if row[-1].end <= span.start:
                row.append(span)
                break
        else:
            rows.append([span])
    return tuple(tuple(row) for row in rows)


def meetings(trace: Trace) -> tuple[tuple[Span, ...], ...]:
    """The collectives, one tuple of spans a meeting (same group, same call number), in the order of their calls.

    Raises UsageError when a trace claims the same rank twice in one meeting.
    """
    found: dict[tuple[tuple[int, ...], int], list[Span]] = {}
    for span in trace.of(kind="collective"):
        if span.call is None:
            continue
        here = found.setdefault((span.group, span.call), [])
        if any(other.rank == span.rank for other in here):
            raise UsageError(
                f"a meeting holds each rank once, but rank {span.rank} made call {span.call} of group {span.group} "
                "twice: number the calls of a group from 0"
            )
        here.append(span)
    return tuple(tuple(sorted(spans, key=lambda s: s.rank)) for _, spans in sorted(found.items()))
