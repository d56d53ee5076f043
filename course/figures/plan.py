"""Plans as bars: where the seconds of a training step go, and what fills a chip's memory.

Seconds and bytes come from `planner`; several plans share one scale. `widgets.planner` draws the same parts by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes

from course.errors import UsageError
from course.figures.page import BLUE, GREEN, ORANGE, PINK, SKY, VERMILION, PageAxes, Table, page_axes
from course.planner.memory import is_room, needed_bytes
from course.planner.search import Priced
from course.spec.chips import Chip

GIB = 2**30
EMPTY = "#ffffff"
TERMS = (
    ("compute", "computing", BLUE),
    ("tensor", "tensor messages", ORANGE),
    ("context", "context messages", PINK),
    ("bubble", "bubble", EMPTY),
    ("data", "data messages", GREEN),
    ("optimizer", "optimizer", "#777777"),
    ("straggling", "slowest chip", SKY),
)
"""Terms of `planner.step.Step`, with words and colours."""

MOST = 6  # plans in a picture
NARROW = 0.06  # of the picture's width: no words in bars below it

Plans = Mapping[str, Priced]  # name -> plan with its step and memory


class Part(NamedTuple):
    """A piece of a bar: what it is, how much, and how it looks."""

    words: str
    size: float
    colour: str


def step_parts(priced: Priced) -> list[Part]:
    """The seconds of a step, term by term; their sum is the step."""
    return [Part(words, getattr(priced.step, name), colour) for name, words, colour in TERMS]


def memory_parts(priced: Priced) -> list[Part]:
    """Bytes on the fullest chip; the last part is what the allocator, the driver and NCCL keep for themselves."""
    memory = priced.memory
    beside = needed_bytes(memory, priced.plan) - memory.total
    sizes = (memory.states, memory.activations, memory.logits, memory.buffers, beside)
    words = ("states", "activations", "logits", "buffers", "driver, NCCL, gaps")
    colours = (BLUE, ORANGE, GREEN, PINK, EMPTY)
    return [Part(*part) for part in zip(words, sizes, colours, strict=True)]


def draw_plan_seconds(plans: Plans, *, ax: Axes | None = None) -> Axes:
    """Axes with a bar a plan: its step in seconds, term by term. At most six plans. Raises UsageError."""
    table = plan_seconds_table(plans)
    ax = _bars(plans, step_parts, 1.0, "seconds a step", ax)
    _name(ax)
    if isinstance(ax, PageAxes):
        ax.heading, ax.table = "where the seconds of a step go", table
        ax.description = " ".join(f"{name}: {describe_step(priced)}" for name, priced in plans.items())
    return ax


def draw_plan_memory(plans: Plans, chip: Chip, *, ax: Axes | None = None) -> Axes:
    """Axes with a bar a plan: what the fullest chip holds in GiB, beside a line at what there is. Raises UsageError."""
    table = plan_memory_table(plans, chip)
    ax = _bars(plans, memory_parts, GIB, "GiB on the fullest chip", ax)
    ax.axvline(chip.memory / GIB, color=VERMILION, linestyle="--", label=f"{chip.name}: {chip.memory // GIB}")
    _name(ax)
    if isinstance(ax, PageAxes):
        ax.heading, ax.table = "what fills a chip's memory", table
        ax.description = " ".join(f"{name}: {describe_memory(priced, chip)}" for name, priced in plans.items())
    return ax


def _name(ax: Axes) -> None:
    """A legend of every part, below the picture."""
    figure = ax.get_figure(root=True)
    if figure is not None:
        handles, words = ax.get_legend_handles_labels()
        figure.legend(handles, words, loc="outside lower center", ncols=4, frameon=False, fontsize=8)


def _bars(plans: Plans, parts_of: Callable[[Priced], Sequence[Part]], unit: float, label: str, ax: Axes | None) -> Axes:
    """Stacked horizontal bars, the first plan on top; sizes stand in the parts that are wide enough."""
    if ax is None:
        ax = page_axes(8, 1.6 + 0.45 * len(plans))
    rows = {name: parts_of(priced) for name, priced in plans.items()}
    longest = max(sum(part.size for part in parts) for parts in rows.values())
    shown = [i for i in range(len(next(iter(rows.values())))) if any(parts[i].size for parts in rows.values())]
    for place, parts in enumerate(rows.values()):
        left = 0.0
        for i in shown:
            part = parts[i]
            hatch = "////" if part.colour == EMPTY else None
            ax.barh(
                place, part.size / unit, left=left / unit, height=0.62, color=part.colour, edgecolor="#333333",
                linewidth=0.6, hatch=hatch, label=part.words if not place else None,
            )  # fmt: skip
            if part.size > NARROW * longest:
                box = {"facecolor": "white", "edgecolor": "none", "pad": 1.0, "alpha": 0.85}
                middle = (left + part.size / 2) / unit
                ax.text(middle, place, f"{part.size / unit:.3g}", ha="center", va="center", fontsize=8, bbox=box)
            left += part.size
    ax.set_yticks(range(len(rows)), list(rows))
    ax.invert_yaxis()
    ax.set_xlabel(label)
    return ax


def plan_seconds_table(plans: Plans) -> Table:
    """Seconds of each term of each plan, their sum, and the utilisation."""
    _check(plans)
    rows = [
        (words, *(f"{getattr(priced.step, name):.3f}" for priced in plans.values()))
        for name, words, _ in TERMS
        if any(getattr(priced.step, name) for priced in plans.values())
    ]
    rows.append(("step", *(f"{priced.step.seconds:.3f}" for priced in plans.values())))
    rows.append(("MFU", *(f"{priced.step.mfu:.1%}" for priced in plans.values())))
    return Table(("seconds", *plans), tuple(rows))


def plan_memory_table(plans: Plans, chip: Chip) -> Table:
    """GiB of each part of each plan, their sum, and whether it fits the chip."""
    _check(plans)
    parts = [memory_parts(priced) for priced in plans.values()]
    rows = [(row[0].words, *(f"{part.size / GIB:.1f}" for part in row)) for row in zip(*parts, strict=True)]
    rows.append(("sum", *(f"{sum(part.size for part in each) / GIB:.1f}" for each in parts)))
    verdicts = (is_room(priced.memory, priced.plan, chip) for priced in plans.values())
    rows.append((f"fits {chip.memory / GIB:.0f}", *("yes" if room else "no" for room in verdicts)))
    return Table(("GiB", *plans), tuple(rows))


def describe_step(priced: Priced) -> str:
    """One sentence: seconds, utilisation, and the largest term after computing."""
    parts = [part for part in step_parts(priced) if part.words != "computing"]
    largest = max(parts, key=lambda part: part.size)
    return (
        f"{priced.step.seconds:.2f} s a step, MFU {priced.step.mfu:.1%}; computing takes {priced.step.compute:.2f} s, "
        f"then {largest.words}, {largest.size:.2f} s."
    )


def describe_memory(priced: Priced, chip: Chip) -> str:
    """One sentence: GiB of the fullest chip, and whether they fit."""
    held = sum(part.size for part in memory_parts(priced))
    room = is_room(priced.memory, priced.plan, chip)
    return (
        f"{held / GIB:.1f} GiB of {chip.memory / GIB:.0f} on the fullest chip, {'which fits' if room else 'too much'}."
    )


def _check(plans: Plans) -> None:
    if not 1 <= len(plans) <= MOST:
        raise UsageError(f"a picture of {len(plans)} plans was asked for: give from 1 to {MOST}, as {{name: plan}}")
