"""A trace as a file that ui.perfetto.dev and chrome://tracing open: one track a rank, arrows for messages.

The format is Chrome's trace event JSON. Only writing: nothing here reads such a file back.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from course.trace.record import Span, Trace
from course.trace.statistics import in_flight, lanes

MAIN = 0  # thread id of a rank's main thread; operations in flight take 1, 2, ...


def perfetto_events(trace: Trace) -> list[dict[str, Any]]:
    """The trace's events: names of the tracks, one complete event a span, a start and a finish a message.

    Times are microseconds. A rank is a process; its main thread is thread 0, and operations in flight lie on as many
    threads below as needed, because slices of one thread must not overlap.
    """
    events: list[dict[str, Any]] = []
    for rank in range(trace.world_size):
        spans = trace.of(rank=rank)
        rows = [tuple(s for s in spans if not in_flight(s)), *lanes(s for s in spans if in_flight(s))]
        events.append(_named("process_name", rank, MAIN, f"rank {rank}"))
        for thread, row in enumerate(rows):
            events.append(_named("thread_name", rank, thread, "main thread" if thread == MAIN else "in flight"))
            events.extend(_slice(span, thread) for span in row)
    for number, message in enumerate(trace.messages):
        common = {"name": "message", "cat": "message", "id": number, "tid": MAIN, "args": {"bytes": message.nbytes}}
        events.append({**common, "ph": "s", "pid": message.src, "ts": message.start * 1e6})
        events.append({**common, "ph": "f", "bp": "e", "pid": message.dst, "ts": message.end * 1e6})
    return events


def write_perfetto(trace: Trace, path: str | Path) -> Path:
    """Write the trace to `path` and return it. Open the file at ui.perfetto.dev (it stays on your machine)."""
    path = Path(path)
    document = {
        "traceEvents": perfetto_events(trace),
        "displayTimeUnit": "ms",
        "otherData": {"origin": trace.origin, "ranks": trace.world_size, "dropped": trace.dropped},
    }
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def _named(what: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": pid, "tid": tid, "args": {"name": name}}


def _slice(span: Span, thread: int) -> dict[str, Any]:
    args: dict[str, Any] = {"kind": span.kind, "order": span.order}
    if span.nbytes:
        args["bytes"] = span.nbytes
    for key in ("dtype", "line", "peer", "call", "cpu"):
        value = getattr(span, key)
        if value not in ("", None):
            args[key] = value
    if span.group:
        args["group"] = list(span.group)
    return {
        "name": span.name,
        "cat": span.kind,
        "ph": "X",
        "pid": span.rank,
        "tid": thread,
        "ts": span.start * 1e6,
        "dur": max(0.0, span.seconds) * 1e6,
        "args": args,
    }
