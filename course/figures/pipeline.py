"""A pipeline's step: what each stage does when, and how full its time and memory are.

The same picture for a simulated, a replayed and a measured trace; only spans named after actions (F0, B0, W0) are
drawn. Loads and memory come from outside. The widget's strips, which must be quick, are in `figures.strips`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.patches import Patch

from course.figures.page import (
    BLUE,
    GREEN,
    ORANGE,
    SKY,
    VERMILION,
    PageAxes,
    Table,
    page_axes,
    seconds_text,
    time_scale,
)
from course.spec.schedule import parse_actions, peak_activations
from course.trace.record import Span, Trace
from course.trace.replay import bubble
from course.trace.statistics import busy_seconds


class Look(NamedTuple):
    """One kind of bar. The hatch, or the lightness, tells it from the others without colour."""

    colour: str
    hatch: str
    words: str


ACTION_LOOKS = {"F": Look(SKY, "", "forward"), "B": Look(ORANGE, "//", "backward"), "W": Look(GREEN, "..", "weights")}
LOAD, MEMORY, OVER = Look(BLUE, "", "load"), Look("#BBBBBB", "..", "stored"), Look(VERMILION, "xx", "over the limit")
_ACTION = re.compile(r"[FBW]\d+(\.\d+)?")
_LABELLED = 0.018  # share of the width that a bar needs for its number


def time_text(time: float, unit: str = "s") -> str:
    """'12.3 ms' for seconds; a bare number where the unit is the forward of one layer (unit "")."""
    return seconds_text(time) if unit == "s" else f"{time:.4g}"


def pipeline_actions(trace: Trace) -> Trace:
    """The trace with nothing but its actions, the first at time 0: other work before and after is no bubble.

    A recorder ends a span at every call; parts of one action without a gap between them become one span again.
    """
    spans: list[Span] = []
    for span in sorted(trace.spans, key=lambda span: (span.rank, span.start, span.end)):
        if span.kind != "compute" or not _ACTION.fullmatch(span.name):
            continue
        last = spans[-1] if spans else None
        if last and (last.rank, last.name) == (span.rank, span.name) and span.start - last.end <= 1e-6 * trace.seconds:
            spans[-1] = replace(last, end=span.end, cpu=(last.cpu or 0.0) + (span.cpu or 0.0))
        else:
            spans.append(span)
    begin = min((span.start for span in spans), default=0.0)
    moved = (replace(span, start=span.start - begin, end=span.end - begin) for span in spans)
    return replace(trace, spans=tuple(moved), messages=())


def draw_pipeline(trace: Trace, *, unit: str = "s", ax: Axes | None = None) -> Axes:
    """Axes with one row a stage, stage 0 on top; a bar is an action, its number the micro-batch, white is bubble.

    unit: of the trace's times, "s" or "" (the forward of one layer counts 1). Without `ax` the axes are new and show
    themselves with a table.
    """
    steps = pipeline_actions(trace)
    if ax is None:
        ax = page_axes(9.0, 1.3 + 0.45 * steps.world_size)
    factor, name = time_scale([steps.seconds]) if unit == "s" else (1.0, "the forward of one layer = 1")
    for stage in range(steps.world_size):
        _row(ax, steps.of(rank=stage), stage, factor, _LABELLED * steps.seconds)
    ax.set_ylim(steps.world_size - 0.5, -0.5)
    ax.set_yticks(range(steps.world_size), [f"stage {stage}" for stage in range(steps.world_size)])
    ax.set_xlim(0, steps.seconds * factor or 1)
    ax.set_xlabel(f"time since the step began ({name}), {steps.origin}")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    used = [look for kind, look in ACTION_LOOKS.items() if any(span.name[0] == kind for span in steps.spans)]
    patches = [Patch(facecolor=look.colour, hatch=look.hatch, edgecolor="black", label=look.words) for look in used]
    if patches:
        ax.legend(handles=patches, loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False, fontsize=8)
    if isinstance(ax, PageAxes):
        ax.heading = f"pipeline of {steps.world_size} stages"
        ax.description, ax.table = describe_pipeline(trace, unit=unit), pipeline_table(trace, unit=unit)
    return ax


def _row(ax: Axes, spans: Iterable[Span], stage: int, factor: float, labelled: float) -> None:
    for span in spans:
        look = ACTION_LOOKS[span.name[0]]
        place = (span.start * factor, span.seconds * factor)
        style = {"facecolor": look.colour, "hatch": look.hatch, "edgecolor": "black", "linewidth": 0.5}
        ax.broken_barh([place], (stage - 0.38, 0.76), **style)
        if span.seconds >= labelled:
            middle = (span.start + span.end) / 2 * factor
            box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.8}
            ax.text(middle, stage, span.name[1:], ha="center", va="center", fontsize=7, bbox=box, clip_on=True)


def describe_pipeline(trace: Trace, *, unit: str = "s") -> str:
    """One sentence: stages, length, bubble, and where the trace comes from."""
    steps = pipeline_actions(trace)
    return (
        f"One step on {steps.world_size} stages, {trace.origin}: it takes {time_text(steps.seconds, unit)}, "
        f"of which {100 * bubble(steps):.1f} % is bubble."
    )


def pipeline_table(trace: Trace, *, unit: str = "s") -> Table:
    """The timeline's text twin: for each stage its actions in order, and how long it works, idles and holds."""
    steps = pipeline_actions(trace)
    busy = busy_seconds(steps)
    rows = []
    for stage in range(steps.world_size):
        names = list(dict.fromkeys(span.name for span in steps.of(rank=stage)))
        rows.append(
            (
                str(stage),
                time_text(busy[stage], unit),
                time_text(steps.seconds - busy[stage], unit),
                str(peak_activations(parse_actions(" ".join(names)))),
                " ".join(names) or "none",
            )
        )
    header = ("stage", "busy", "idle", "micro-batches held", "actions in order")
    return Table(header, tuple(rows), describe_pipeline(trace, unit=unit))


def draw_split(
    sizes: Sequence[int],
    loads: Sequence[float],
    memory: Sequence[int],
    *,
    limit: int = 0,
    unit: str = "s",
    ax: Axes | None = None,
) -> Axes:
    """Axes with two bars a stage: load on the axis below, stored layers on the one above, with the limit as a line.

    sizes: layers of each stage. loads: time of a micro-batch there, forward and backward. memory: layers whose
    activations it stores at most. limit: of stored layers, 0 for none.
    """
    if ax is None:
        ax = page_axes(9.0, 1.6 + 0.55 * len(sizes))
    above = ax.twiny()
    handles: dict[str, Patch] = {}
    for stage, (load, layers) in enumerate(zip(loads, memory, strict=True)):
        looks = (ax, load, LOAD, -0.2), (above, layers, OVER if limit and layers > limit else MEMORY, 0.2)
        for axes, length, look, shift in looks:
            style = {"facecolor": look.colour, "hatch": look.hatch, "edgecolor": "black", "linewidth": 0.5}
            axes.barh(stage + shift, length, 0.36, **style)
            handles[look.words] = Patch(label=look.words, **style)
            text = str(layers) if axes is above else time_text(load, unit)
            axes.annotate(text, (length, stage + shift), (3, 0), textcoords="offset points", va="center", fontsize=8)
    if limit:
        above.axvline(limit, color="black", linestyle="--", linewidth=1)
    ax.set_ylim(len(sizes) - 0.5, -0.5)
    ax.set_yticks(range(len(sizes)), [f"stage {stage}\n{_layers(size)}" for stage, size in enumerate(sizes)])
    ax.set_xlim(0, 1.12 * max(loads) or 1)
    above.set_xlim(0, 1.12 * max(limit, *memory))
    ax.set_xlabel(f"load: forward and backward of a micro-batch ({'s' if unit == 's' else 'forward of one layer = 1'})")
    above.set_xlabel("stored layers" + (f" (dashed: limit of {limit})" if limit else ""))
    ax.legend(handles=list(handles.values()), loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize=8)
    if isinstance(ax, PageAxes):
        ax.heading = f"{len(sizes)} stages"
        ax.table = split_table(sizes, loads, memory, limit=limit, unit=unit)
        ax.description = ax.table.caption
    return ax


def _layers(size: int) -> str:
    return f"{size} layer{'s' * (size != 1)}"


def split_table(
    sizes: Sequence[int], loads: Sequence[float], memory: Sequence[int], *, limit: int = 0, unit: str = "s"
) -> Table:
    """Layers, load and stored layers of each stage; the caption names the slowest, and who is over the limit."""
    slowest = max(range(len(loads)), key=lambda stage: loads[stage])
    caption = f"Stage {slowest} is the slowest: {time_text(loads[slowest], unit)} a micro-batch."
    over = [stage for stage, layers in enumerate(memory) if limit and layers > limit]
    if over:
        who = f"stage{'s' * (len(over) > 1)} {', '.join(map(str, over))}"
        caption += f" Over the limit of {limit} stored layers: {who}."
    rows = tuple(
        (str(stage), str(size), time_text(load, unit), f"{layers} of {limit}" if limit else str(layers))
        for stage, (size, load, layers) in enumerate(zip(sizes, loads, memory, strict=True))
    )
    return Table(("stage", "layers", "load a micro-batch", "stored layers"), rows, caption)
