"""A pipeline's step as HTML bars, for a widget that redraws at every move: the browser lays them out.

Same numbers, colours and words as `figures.pipeline`, where the static twins with axes are. Widths are percentages, so
a strip is as wide as the page lets it be. By the data-attributes `widgets/splitter.js` finds the bars, and moves them
before the kernel has answered.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from course.figures.page import GREEN, ORANGE, SKY, VERMILION
from course.figures.pipeline import LOAD, describe_pipeline, pipeline_actions, split_table, time_text
from course.trace.record import Trace

STYLE = f"""<style>
.strips {{ background: #fff; color: #000; font: 12px/18px sans-serif; padding: 4px 8px; }}
.strips .row {{ display: flex; align-items: center; margin: 2px 0; }}
.strips .name {{ flex: 0 0 5.5em; }}
.strips .track {{ position: relative; flex: 1; height: 20px; border: 1px solid #777; background: #fff; }}
.strips i {{ position: absolute; top: 0; bottom: 0; box-shadow: inset -1px 0 #000; overflow: hidden;
  font-style: normal; text-align: center; white-space: nowrap; }}
.strips b {{ background: inherit; font-weight: normal; padding: 0 1px; }}
.strips i.F {{ background: {SKY}; }}
.strips i.B {{ background: repeating-linear-gradient(45deg, #000 0 1px, #0000 1px 6px), {ORANGE}; }}
.strips i.W {{ background: radial-gradient(#000 1px, #0000 1.5px) 0 0 / 5px 5px, {GREEN}; }}
.strips i.B b {{ background: {ORANGE}; }}
.strips i.W b {{ background: {GREEN}; }}
.strips i.load {{ background: {LOAD.colour}; color: #fff; }}
.strips i.stored {{ background: radial-gradient(#555 1px, #0000 1.5px) 0 0 / 6px 6px, #ddd; }}
.strips i.over {{ background: repeating-linear-gradient(45deg, #000 0 1px, #0000 1px 5px), {VERMILION}; }}
.strips i.limit {{ border-left: 3px dashed #000; width: 0; box-shadow: none; background: #fff;
  outline: 1px solid #fff; }}
.strips i.key {{ position: static; display: inline-block; width: 22px; height: 12px; border: 1px solid #000;
  box-shadow: none; margin: 0 4px 0 12px; vertical-align: -2px; }}
.strips .words {{ flex: 0 0 17em; padding-left: 8px; }}
</style>"""
KEY = (
    '<div aria-hidden="true"><i class="key F"></i>forward<i class="key B"></i>backward'
    '<i class="key W"></i>backward of the weights alone<i class="key"></i>bubble. Numbers are micro-batches.</div>'
)
_LABELLED = 1.6  # percent of the width that a bar needs for its number


def step_strips(trace: Trace, heading: str, *, unit: str = "s", length: float = 0.0, role: str = "measured") -> str:
    """HTML with a row of actions a stage. length: the time that fills the width, at least the step's own.

    role: "predicted" for rows that follow the cuts at once.
    """
    steps = pipeline_actions(trace)
    scale = 100 / (max(length, steps.seconds) or 1)
    rows = []
    for stage in range(steps.world_size):
        bars = "".join(
            _bar(span.name[0], span.start * scale, span.seconds * scale, span.name[1:]) for span in steps.of(rank=stage)
        )
        rows.append(_row(f"stage {stage}", bars, role=role))
    return _picture(rows, heading, describe_pipeline(trace, unit=unit), f'data-length="{length!r}"')


def split_strips(
    sizes: Sequence[int], loads: Sequence[float], memory: Sequence[int], *, limit: int = 0, unit: str = "s"
) -> str:
    """HTML with a row of load and a row of stored layers a stage; the limit is a dashed line."""
    longest, most = max(loads) or 1, max(limit, *memory)
    line = f'<i class="limit" style="left:{100 * limit / most:.3f}%"></i>' if limit else ""
    rows = []
    for stage, (size, load, layers) in enumerate(zip(sizes, loads, memory, strict=True)):
        held, over = layers // size, limit and layers > limit
        words = f"{size} × {held} = {layers} stored" + (f", {layers - limit} too many" if over else "")
        bar = _bar("over" if over else "stored", 0, 100 * layers / most)
        time = f"load {time_text(load, unit)}"
        rows.append(_row(f"stage {stage}", _bar("load", 0, 100 * load / longest), time, role="load"))
        rows.append(_row("", bar + line, words, role="stored", held=held))
    one = "" if unit == "s" else "; a layer's forward is 1"
    heading = f"Load: a micro-batch, forward and backward{one}. Stored: layers × micro-batches held."
    caption = split_table(sizes, loads, memory, limit=limit, unit=unit).caption
    return _picture(rows, heading, caption, f'data-limit="{limit}" data-unit="{unit}"')


def _bar(look: str, left: float, width: float, label: str = "") -> str:
    shown = f"<b{' hidden' if width < _LABELLED else ''}>{label}</b>" if label else ""
    return f'<i class="{look}" style="left:{left:.3f}%;width:{width:.3f}%">{shown}</i>'


def _row(name: str, bars: str, words: str = "", *, role: str, held: int = 0) -> str:
    after = f'<span class="words">{html.escape(words)}</span>' if words else ""
    data = f'data-row="{role}"' + (f' data-held="{held}"' if held else "")
    return f'<div class="row" {data}><span class="name">{name}</span><div class="track">{bars}</div>{after}</div>'


def _picture(rows: Iterable[str], heading: str, description: str, data: str) -> str:
    alt, said = html.escape(description, quote=True), html.escape(heading)
    return f'<div {data}><strong>{said}</strong><div role="img" aria-label="{alt}">{"".join(rows)}</div></div>'
