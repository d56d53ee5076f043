"""From the rows that ranks recorded to one Trace for all of them."""

from __future__ import annotations

from typing import Any

from course.ranks.frames import Places
from course.trace import Message, Span, Trace


def as_trace(world_size: int, rows: dict[int, list[tuple[Any, ...]]], places: Places, dropped: int) -> Trace:
    """Spans of all ranks by start, and a Message for each send that met its receive, in order of (src, dst, tag)."""
    spans: list[Span] = []
    ends: dict[tuple[int, str], list[Span]] = {}
    for rank, written in sorted(rows.items()):
        for row in written:
            span = _span(rank, row, places)
            if span.kind != "compute" or span.seconds > 0:
                spans.append(span)
            if span.kind in ("send", "recv"):
                ends.setdefault((row[15], span.kind), []).append(span)
    spans.sort(key=lambda s: (s.start, s.rank, s.order))
    messages = []
    for (channel, kind), sends in ends.items():
        if kind != "send":
            continue
        receives = sorted(ends.get((channel, "recv"), []), key=lambda s: s.order)
        for sent, received in zip(sorted(sends, key=lambda s: s.order), receives, strict=False):
            messages.append(Message(sent.rank, received.rank, sent.nbytes, sent.start, received.end))
    messages.sort(key=lambda m: (m.start, m.src, m.dst))
    return Trace(world_size, tuple(spans), tuple(messages), "measured", dropped)


def _span(rank: int, row: tuple[Any, ...], places: Places) -> Span:
    if row[0] == "compute":
        return Span(rank, "compute", row[1], row[2], row[3], cpu=row[4])
    kind, name, start, end, cpu, nbytes, dtype, group, peer, number, is_async, file, line, order, done_order, _ = row
    return Span(
        rank, kind, name, start, end, cpu=cpu, nbytes=nbytes, dtype=dtype, group=group,
        peer=peer if peer >= 0 else None, call=number, is_async=is_async, line=places.words(file, line), order=order,
        done_order=done_order,
    )  # fmt: skip
