"""A recorded run in virtual time: the same operations in the same order, as if every rank had a device of its own.

Four ranks on two cores cannot overlap, so wall-clock timelines lie. Each compute span carries the CPU time of its
thread; here that time is all it takes, and messages cost what the given connections say. Standard library only.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import replace

from course.trace.program import Collective, Compute, Op, Program, Recv, Send, Wait
from course.trace.record import Span, Trace
from course.trace.simulate import Connect, free, simulate

Costs = Mapping[tuple[int, str], float]  # (rank, name of the compute span) -> seconds

UNNAMED = "compute"
_STEP = "Optimizer.step"  # torch names the optimizer's work so; gradients have arrived by then


def replay(trace: Trace, connect: Connect = free, *, costs: Costs | None = None, backend: str = "nccl") -> Trace:
    """The recorded `trace` in virtual time, origin "replayed".

    Compute takes the CPU seconds that were recorded, or those of `costs` for its rank and name (see `median_costs`),
    shared out over the spans of that name in proportion. Messages and collectives take what `simulate` says of
    `connect`. A receive takes the message it got when it was recorded. A handle that nobody was seen to wait for (DDP
    waits in C++) counts as waited for before the optimizer's step, or before the rank next blocks.
    The same trace gives the same result, always.
    """
    replayed = simulate(as_program(trace, costs=costs), connect, backend=backend)
    return replace(replayed, origin="replayed", notes=trace.notes)


def as_program(trace: Trace, *, costs: Costs | None = None) -> Program:
    """What each rank did, in order, without times: the program that `replay` runs."""
    tags = _tags(trace)
    waited = {(s.rank, s.order) for s in trace.spans if s.kind == "wait"}
    by_rank: list[list[Span]] = [[] for _ in range(trace.world_size)]
    for span in trace.spans:
        by_rank[span.rank].append(span)
    costs = costs or {}
    scales = {key: costs[key] / seconds for key, seconds in _sums(trace).items() if key in costs and seconds}
    return [_of_rank(spans, tags, waited, scales) for spans in by_rank]


def _sums(trace: Trace) -> dict[tuple[int, str], float]:
    """CPU seconds of each rank's compute spans, by name."""
    sums: dict[tuple[int, str], float] = {}
    for span in trace.spans:
        if span.kind == "compute":
            sums[span.rank, span.name] = sums.get((span.rank, span.name), 0.0) + (span.cpu or 0.0)
    return sums


def _of_rank(
    spans: Iterable[Span],
    tags: Mapping[tuple[int, str, int], int],
    waited: set[tuple[int, int]],
    scales: Costs,
) -> list[Op]:
    ops: list[Op] = []
    unseen: list[int] = []  # handles that the rank was not seen to wait for
    for span in sorted(spans, key=lambda s: (s.start, s.kind == "compute", s.end, s.order)):
        if span.kind == "compute":
            if span.name.startswith(_STEP):
                ops += [Wait(handle) for handle in unseen]
                unseen.clear()
            ops.append(Compute((span.cpu or 0.0) * scales.get((span.rank, span.name), 1.0), span.name))
        elif span.kind == "wait":
            ops.append(Wait(span.order))
        elif span.kind in ("send", "recv", "collective"):
            if not span.is_async:
                ops += [Wait(handle) for handle in unseen]
                unseen.clear()
            elif (span.rank, span.order) not in waited:
                unseen.append(span.order)
            ops.append(_communication(span, tags))
    return ops + [Wait(handle) for handle in unseen]


def _communication(span: Span, tags: Mapping[tuple[int, str, int], int]) -> Op:
    handle = span.order if span.is_async else -1
    if span.kind == "collective":
        return Collective(span.name, span.nbytes, span.group, span.peer, handle)
    tag = tags.get((span.rank, span.kind, span.order), -1)
    peer = span.peer if span.peer is not None else span.rank
    if span.kind == "send":
        return Send(peer, span.nbytes, tag, blocking=not span.is_async, handle=handle)
    return Recv(peer, tag, handle)


def _tags(trace: Trace) -> dict[tuple[int, str, int], int]:
    """A number for each message, for its send and for its receive: (rank, kind, order) -> number."""
    sends = {(s.rank, s.start): s for s in trace.spans if s.kind == "send"}
    receives: dict[tuple[int, float], list[Span]] = {}
    for span in trace.spans:
        if span.kind == "recv":
            receives.setdefault((span.rank, span.end), []).append(span)
    tags: dict[tuple[int, str, int], int] = {}
    for number, message in enumerate(trace.messages):
        sent = sends.get((message.src, message.start))
        got = [s for s in receives.get((message.dst, message.end), []) if s.peer == message.src]
        got = [s for s in got if (s.rank, "recv", s.order) not in tags]
        if sent is not None and got:
            tags[sent.rank, "send", sent.order] = number
            tags[got[0].rank, "recv", got[0].order] = number
    return tags


def median_costs(traces: Iterable[Trace]) -> dict[tuple[int, str], float]:
    """CPU seconds of each (rank, named compute span): the median over traces of one step each.

    One step's bubble misses the theory by up to 0.1, that of medians of five by at most 0.04. Spans without a name of
    their own (see `torch.profiler.record_function`) are left out.
    """
    found: dict[tuple[int, str], list[float]] = {}
    for trace in traces:
        for key, seconds in _sums(trace).items():
            if key[1] != UNNAMED:
                found.setdefault(key, []).append(seconds)
    return {key: statistics.median(seconds) for key, seconds in sorted(found.items())}


def inflated(alone: Costs, together: Costs, *, limit: float = 1.5) -> dict[tuple[int, str], float]:
    """The spans whose CPU time is not to be trusted: how many times longer they took with all ranks at work.

    Arithmetic costs the same CPU seconds beside others (1.0 to 1.1 times); work that waits for memory counts the wait
    as CPU time, and takes up to 3 times as long. `alone`: the costs when one rank ran at a time.
    """
    ratios = {key: together[key] / seconds for key, seconds in alone.items() if key in together and seconds > 0}
    return {key: ratio for key, ratio in ratios.items() if ratio > limit}


def bubble(trace: Trace) -> float:
    """The idle share of a step: 1 - (compute of all ranks) / (ranks * length), from the first start to the last end."""
    spans = [span for span in trace.spans if span.kind == "compute" and span.seconds > 0]
    if not spans:
        return 0.0
    length = max(s.end for s in spans) - min(s.start for s in spans)
    return 1 - sum(s.seconds for s in spans) / (trace.world_size * length) if length else 0.0
