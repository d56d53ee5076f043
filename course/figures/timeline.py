"""What each rank did when: one row a rank, arrows for messages, thin lanes for operations in flight.

The same picture for a trace that was measured, replayed or simulated. Numbers come from trace.statistics.
"""

from __future__ import annotations

from collections.abc import Iterable

from matplotlib.axes import Axes
from matplotlib.patches import Patch

from course.figures.page import (
    BLUE,
    GREEN,
    ORANGE,
    PINK,
    SKY,
    PageAxes,
    Table,
    bytes_text,
    page_axes,
    seconds_text,
    time_scale,
)
from course.trace.record import Message, Span, Trace
from course.trace.statistics import (
    busy_seconds,
    bytes_sent,
    calls,
    in_flight,
    lanes,
    overlap,
    total_bytes,
    waiting_seconds,
)

# kind: (fill, hatch, words for the legend). Lightness and hatch differ too, so grey print keeps them apart.
LOOKS = {
    "compute": (BLUE, "", "computing"),
    "send": (ORANGE, "//", "send"),
    "recv": (GREEN, "\\\\", "receive"),
    "collective": (PINK, "xx", "collective"),
    "wait": ("#FFFFFF", "..", "waiting"),
    "idle": ("#FFFFFF", "", "idle"),
}
FLYING = (SKY, "--", "in flight (asynchronous)")
MAIN_HEIGHT = 0.42
LANE_HEIGHT = 0.13
MOST_LANES = 3
MOST_ARROWS = 200


def draw_timeline(trace: Trace, *, ax: Axes | None = None) -> Axes:
    """Axes with the timeline of a trace: time to the right, rank 0 on top.

    Without `ax` the axes are new, off pyplot, and show themselves in a notebook with a table of the same figures.
    """
    if ax is None:
        ax = page_axes(9.0, 1.3 + 0.75 * trace.world_size)
    factor, unit = time_scale([trace.seconds])
    used: dict[str, Patch] = {}
    for rank in range(trace.world_size):
        spans = trace.of(rank=rank)
        for kind in LOOKS:
            row = [s for s in spans if s.kind == kind and not in_flight(s)]
            _bars(ax, row, rank - MAIN_HEIGHT / 2, MAIN_HEIGHT, factor, LOOKS[kind], used)
        for i, lane in enumerate(lanes(s for s in spans if in_flight(s))):
            top = rank + MAIN_HEIGHT / 2 + 0.02 + min(i, MOST_LANES - 1) * LANE_HEIGHT
            _bars(ax, lane, top, LANE_HEIGHT - 0.02, factor, FLYING, used)
    _arrows(ax, trace.messages[:MOST_ARROWS], factor)
    _axes(ax, trace, unit)
    if used:
        where = {"loc": "lower left", "bbox_to_anchor": (0, 1.0), "ncols": len(used), "frameon": False}
        ax.legend(handles=list(used.values()), handlelength=2.4, handleheight=1.2, fontsize=8, **where)
    if isinstance(ax, PageAxes):
        ax.heading = f"timeline of {trace.world_size} ranks"
        ax.description, ax.table = describe_timeline(trace), timeline_table(trace)
    return ax


def _bars(
    ax: Axes,
    spans: Iterable[Span],
    bottom: float,
    height: float,
    factor: float,
    look: tuple[str, str, str],
    used: dict[str, Patch],
) -> None:
    places = [(s.start * factor, max(s.seconds, 0.0) * factor) for s in spans]
    if not places:
        return
    colour, hatch, words = look
    style = {"facecolor": colour, "hatch": hatch, "edgecolor": "black", "linewidth": 0.4}
    ax.broken_barh(places, (bottom, height), **style)
    used.setdefault(words, Patch(label=words, **style))


def _arrows(ax: Axes, messages: Iterable[Message], factor: float) -> None:
    for m in messages:
        down = 1 if m.dst > m.src else -1
        ax.annotate(
            "",
            xy=(m.end * factor, m.dst - down * MAIN_HEIGHT / 2),
            xytext=(m.start * factor, m.src + down * MAIN_HEIGHT / 2),
            arrowprops={"arrowstyle": "-|>", "color": "black", "linewidth": 0.9, "shrinkA": 0, "shrinkB": 0},
            annotation_clip=True,
        )


def _axes(ax: Axes, trace: Trace, unit: str) -> None:
    n = trace.world_size
    ax.set_ylim(n - 0.3, -0.4)  # rank 0 on top, room for the lanes below the last
    ax.set_yticks(range(n), [f"rank {rank}" for rank in range(n)])
    ax.set_xlabel(f"time since the run began ({unit}), {trace.origin}")
    ax.set_xlim(left=0)
    ax.grid(axis="x", linewidth=0.4, alpha=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def describe_timeline(trace: Trace) -> str:
    """One sentence or two that say what the picture shows."""
    busy = busy_seconds(trace)
    share = [100 * seconds / trace.seconds if trace.seconds else 0.0 for seconds in busy]
    parts = ", ".join(f"rank {rank} {percent:.0f} %" for rank, percent in enumerate(share))
    text = (
        f"Timeline of {trace.world_size} ranks over {seconds_text(trace.seconds)} ({trace.origin}). Computing: {parts}."
    )
    if len(trace.messages) > MOST_ARROWS:
        text += f" Arrows for the first {MOST_ARROWS} of {len(trace.messages)} messages."
    if trace.dropped:
        text += f" {trace.dropped} later spans were not recorded."
    return text


def timeline_table(trace: Trace) -> Table:
    """The timeline's figures a rank: computing, waiting, calls, bytes sent with their source, overlap."""
    traffic, flights = bytes_sent(trace), overlap(trace)
    busy, waiting, named = busy_seconds(trace), waiting_seconds(trace), calls(trace)
    sent = total_bytes(traffic, trace.world_size)
    rows = []
    for rank in range(trace.world_size):
        sources = sorted({t.source for t in traffic if t.rank == rank and t.nbytes})
        flying = flights[rank]
        rows.append(
            (
                str(rank),
                seconds_text(busy[rank]),
                seconds_text(waiting[rank]),
                ", ".join(f"{count} {name}" for name, count in named[rank].items()) or "none",
                f"{bytes_text(sent[rank])} ({' and '.join(sources)})" if sources else "0 B",
                f"{flying.overlapped} of {flying.asynchronous}",
            )
        )
    header = ("rank", "computing", "waiting", "calls", "bytes sent", "overlapped calls")
    return Table(header, tuple(rows), f"{trace.world_size} ranks, {seconds_text(trace.seconds)}, {trace.origin}")
