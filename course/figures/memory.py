"""Memory drawn: bars of what a step holds, with the sizes of GPUs as lines; and a step's bytes from moment to moment.

Plain numbers of bytes come in, by what they are for; they are reckoned in `planner.memory` or tracked on a page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from course.errors import UsageError
from course.figures.page import BLUE, GREEN, ORANGE, PINK, SKY, VERMILION, PageAxes, Table, bytes_text, page_axes
from course.spec.chips import CHIPS, Chip

Parts = Mapping[str, float]  # bytes by what they are for

COLOURS = {  # by kind, with a hatch for eyes and printers without colour
    "weights": (BLUE, ""),
    "gradients": (SKY, "///"),
    "optimizer": (ORANGE, ""),
    "activations": (GREEN, "..."),
    "logits": (PINK, ""),
    "buffers": (VERMILION, "xxx"),
    "rest": ("#999999", "..."),
    "driver and gaps": ("#dddddd", ""),
}
LINES = tuple(CHIPS[name] for name in ("rtx-4090", "a100-40gb", "h100", "h200", "b200", "gb300"))
"""The GPUs drawn as lines: one of each size that is common."""

APART = 0.03  # of the axis, between two names of lines


def draw_memory_bars(bars: Mapping[str, Parts], *, chips: Sequence[Chip] = LINES, ax: Axes | None = None) -> Axes:
    """Axes with one stacked bar a name, its parts in the order given, and a line where each chip ends.

    bars: name -> bytes by kind; kinds that have no colour of their own are grey. Names of lines that would overlap are
    left to the table. Raises UsageError without bars, or for bytes below 0.
    """
    table = memory_table(bars, chips=chips)
    if ax is None:
        ax = page_axes(8.0, 2.0 + 0.4 * len(bars))
    factor, unit = _scale([sum(parts.values()) for parts in bars.values()])
    named: set[str] = set()
    for row, parts in enumerate(bars.values()):
        left = 0.0
        for kind, nbytes in parts.items():
            colour, hatch = COLOURS.get(kind, COLOURS["rest"])
            label = kind if kind not in named else None
            ax.barh(row, nbytes * factor, left=left, color=colour, hatch=hatch, edgecolor="black", lw=0.5, label=label)
            named.add(kind)
            left += nbytes * factor
    most = max(sum(parts.values()) for parts in bars.values())
    least = min((chip.memory for chip in chips), default=0.0)
    _draw_chips(ax, [chip for chip in chips if chip.memory <= max(2 * most, least)], factor)
    ax.set_yticks(range(len(bars)), list(bars))
    ax.invert_yaxis()
    ax.set_xlabel(f"bytes held ({unit})")
    ax.set_xlim(0, None)
    if isinstance(ax, PageAxes):
        ax.get_figure(root=True).legend(frameon=False, fontsize=9, ncols=4, loc="outside lower center")
        ax.heading, ax.description, ax.table = "bars of memory", describe_memory(bars, chips=chips), table
    else:
        ax.legend(fontsize=9)
    return ax


def _draw_chips(ax: Axes, chips: Sequence[Chip], factor: float) -> None:
    end = max([ax.get_xlim()[1], *(chip.memory * factor for chip in chips)])
    last = -end
    for chip in sorted(chips, key=lambda chip: chip.memory):
        place = chip.memory * factor
        ax.axvline(place, color="black", lw=1.2, ls="--")
        if place - last >= APART * end:
            ax.text(place, 1.02, chip.name, rotation=45, fontsize=8, transform=ax.get_xaxis_transform())
            last = place


def describe_memory(bars: Mapping[str, Parts], *, chips: Sequence[Chip] = LINES) -> str:
    """One sentence a bar: how much, the largest part, and, where there are chips, the smallest that holds it."""
    said = []
    for name, parts in bars.items():
        total, largest = sum(parts.values()), max(parts, key=lambda kind: parts[kind])
        chip = smallest_chip(total, chips)
        holds = f"; fits {chip.name}" if chip else "; fits none of these GPUs" if chips else ""
        share = parts[largest] / (total or 1)
        said.append(f"{name}: {bytes_text(total)}, most of it {largest} ({share:.0%}){holds}.")
    return " ".join(said)


def smallest_chip(nbytes: float, chips: Sequence[Chip] = LINES) -> Chip | None:
    """The smallest of the chips with so many bytes, or None."""
    return min((chip for chip in chips if nbytes <= chip.memory), key=lambda chip: chip.memory, default=None)


def memory_table(bars: Mapping[str, Parts], *, chips: Sequence[Chip] = LINES) -> Table:
    """The same bytes in words: a row a kind, the total, and a row for each chip that says what fits it."""
    if not bars or any(nbytes < 0 for parts in bars.values() for nbytes in parts.values()):
        raise UsageError("draw_memory_bars needs at least one bar, name -> {kind: bytes}, and no bytes below 0")
    kinds = list(dict.fromkeys(kind for parts in bars.values() for kind in parts))
    totals = [sum(parts.values()) for parts in bars.values()]
    rows = [(kind, *(bytes_text(parts[kind]) if kind in parts else "–" for parts in bars.values())) for kind in kinds]
    rows.append(("in all", *(bytes_text(total) for total in totals)))
    for chip in chips:
        fits = ("fits" if total <= chip.memory else f"{total / chip.memory:.3g} times what it has" for total in totals)
        rows.append((f"{chip.name}, {bytes_text(chip.memory)}", *fits))
    return Table(("", *bars), tuple(rows))


def draw_memory_curve(curve: Sequence[Parts], *, ax: Axes | None = None) -> Axes:
    """Axes with the bytes held at each moment of a step, stacked by kind; moments are operators, not seconds.

    curve: one dict of bytes by kind a moment, all with the same kinds. Raises UsageError for fewer than two.
    """
    if len(curve) < 2:
        raise UsageError(f"draw_memory_curve got {len(curve)} moments: it draws at least two")
    if ax is None:
        ax = page_axes(8.0, 3.2)
    totals = [sum(moment.values()) for moment in curve]
    factor, unit = _scale(totals)
    kinds = list(curve[0])
    layers = ax.stackplot(
        range(len(curve)), *([moment[kind] * factor for moment in curve] for kind in kinds), labels=kinds,
        colors=[COLOURS.get(kind, COLOURS["rest"])[0] for kind in kinds],
    )  # fmt: skip
    for layer, kind in zip(layers, kinds, strict=True):
        layer.set(hatch=COLOURS.get(kind, COLOURS["rest"])[1], edgecolor="black", linewidth=0.3)
    fullest = totals.index(max(totals))
    ax.axvline(fullest, color="black", lw=1, ls=":")
    ax.set_xlim(0, len(curve) - 1)
    ax.set_xlabel("operators that made or freed memory, in order")
    ax.set_ylabel(f"bytes held ({unit})")
    ax.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    if isinstance(ax, PageAxes):
        parts = ", ".join(f"{kind} {bytes_text(curve[fullest][kind])}" for kind in kinds)
        ax.heading = "memory over a step"
        ax.description = f"At most {bytes_text(totals[fullest])}, at {fullest / len(curve):.0%} of the step: {parts}."
        places = sorted({0, len(curve) // 4, fullest, 3 * len(curve) // 4, len(curve) - 1})
        rows = tuple((str(i), *(bytes_text(curve[i][kind]) for kind in kinds), bytes_text(totals[i])) for i in places)
        ax.table = Table(("moment", *kinds, "in all"), rows)
    return ax


def _scale(nbytes: Sequence[float]) -> tuple[float, str]:
    """(factor, unit) to write so many bytes on an axis."""
    most = max(nbytes, default=0.0)
    return next(
        ((1 / size, unit) for size, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")) if most >= size),
        (1.0, "B"),
    )
