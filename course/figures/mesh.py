"""Ranks on a mesh of pp, dp and tp over nodes: who is in a group with whom, and which bytes leave a node.

The places of ranks and the bytes along the axes come from `spec.layout` and `planner.axes`; here they are put into
a picture and into words.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from course.errors import UsageError
from course.figures.page import BLUE, VERMILION, PageAxes, Table, bytes_text, page_axes
from course.figures.shards import rank_colour
from course.planner.axes import axis_bytes
from course.spec import LESSON_GPT, ModelSpec
from course.spec.layout import AXES, bytes_across, place_axes

MOST = 4  # ranks along an axis
ORDERS = tuple(itertools.permutations(("tp", "dp", "pp")))  # fastest first
LEGEND = "A box is a rank; boxes of one colour share a node. Lines: the axis, blue inside a node, dashed across nodes."

PALE = "#bbbbbb"  # lines of the axes that are not shown

Place = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Mesh:
    """A mesh as it is shown. order: axes, fastest first. axis: whose groups are shown. per_node: ranks that share one.

    spec, batch: what is trained, for the bytes of a step (float32). Raises UsageError for what cannot be shown.
    """

    pp: int = 2
    dp: int = 2
    tp: int = 2
    per_node: int = 4
    order: tuple[str, ...] = ORDERS[0]
    axis: str = "tp"
    spec: ModelSpec = LESSON_GPT
    batch: int = 32

    def __post_init__(self) -> None:
        sizes = (self.pp, self.dp, self.tp)
        if not all(isinstance(size, int) and 1 <= size <= MOST for size in sizes):
            raise UsageError(f"a mesh of pp={self.pp}, dp={self.dp}, tp={self.tp} was asked for: each from 1 to {MOST}")
        if not isinstance(self.per_node, int) or self.per_node < 1:
            raise UsageError(f"per_node={self.per_node!r} was asked for: at least one rank on a node")
        if tuple(self.order) not in ORDERS or self.axis not in AXES:
            raise UsageError(
                f"order={self.order!r}, axis={self.axis!r}: the axes are pp, dp and tp, each once in order"
            )

    @functools.cached_property
    def sizes(self) -> dict[str, int]:
        return {axis: getattr(self, axis) for axis in AXES}

    @functools.cached_property
    def ranks(self) -> dict[tuple[int, int, int], int]:
        """(pp index, dp index, tp index) -> rank."""
        return {place: self._rank(dict(zip(AXES, place, strict=True))) for place in self._places()}

    def _places(self) -> Iterator[tuple[int, int, int]]:
        return itertools.product(range(self.pp), range(self.dp), range(self.tp))

    def _rank(self, index: dict[str, int]) -> int:
        rank, stride = 0, 1
        for axis in self.order:
            rank += index[axis] * stride
            stride *= self.sizes[axis]
        return rank

    def node(self, rank: int) -> int:
        return rank // self.per_node

    def groups(self, axis: str) -> list[list[int]]:
        """The ranks of each group of an axis, in the order of their index along it; groups by their first rank."""
        found: dict[tuple[int, ...], list[int]] = {}
        at = AXES.index(axis)
        for place, rank in self.ranks.items():
            found.setdefault(place[:at] + place[at + 1 :], []).append(rank)
        return sorted(found.values())

    def traffic(self, axis: str) -> tuple[float, float]:
        """Bytes of a step along an axis, all ranks together: inside nodes, and from node to node."""
        sent = axis_bytes(self.spec, **self.sizes, batch=self.batch)
        only = {name: sent[name] if name == axis else 0.0 for name in AXES}
        across = bytes_across(self.order, only, self.sizes, self.per_node)
        return sent[axis] * len(self.ranks) - across, across

    @property
    def across(self) -> float:
        """Bytes of a step that leave a node, along all axes."""
        return sum(self.traffic(axis)[1] for axis in AXES)

    @property
    def sentence(self) -> str:
        sent = axis_bytes(self.spec, **self.sizes, batch=self.batch)
        best = place_axes(sent, self.sizes, self.per_node)
        least = bytes_across(best, sent, self.sizes, self.per_node)
        said = f"{bytes_text(self.across)} a step go from node to node"
        if self.across <= least * (1 + 1e-9):
            return f"{said}: no order of the axes sends less."
        return f"{said}; with {', '.join(best)} (fastest first) it would be {bytes_text(least)}."

    @property
    def table(self) -> Table:
        """One row an axis: its groups, and its bytes inside and across nodes."""
        rows = []
        for axis in AXES:
            inside, across = self.traffic(axis)
            groups = " ".join("-".join(map(str, group)) for group in self.groups(axis))
            mark = " (shown)" if axis == self.axis else ""
            rows.append((axis + mark, groups, bytes_text(inside), bytes_text(across)))
        header = ("axis", "groups of ranks", "a step, inside nodes", "across nodes")
        return Table(header, tuple(rows), self.sentence)

    # --- where things are drawn ---------------------------------------------------------------------------------------

    def spot(self, place: tuple[int, int, int]) -> Place:
        """Where a rank is drawn: tp to the right, dp down, pp to the back (up and right)."""
        pp_index, dp_index, tp_index = place
        step = self.pp + 0.4
        return tp_index * step + pp_index, dp_index * step + self.pp - 1 - pp_index

    def hops(self, axis: str) -> Iterator[tuple[Place, Place, bool]]:
        """The lines of an axis, from a rank to the next: (from, to, leaves the node)."""
        at = AXES.index(axis)
        for place, rank in self.ranks.items():
            after = (*place[:at], place[at] + 1, *place[at + 1 :])
            if after in self.ranks:
                leaves = self.node(rank) != self.node(self.ranks[after])
                yield self.spot(place), self.spot(after), leaves


def draw_mesh(mesh: Mesh, *, ax: Axes | None = None) -> Axes:
    """Axes with a box a rank, coloured and labelled by node, and lines along the mesh's `axis`."""
    right, down = mesh.spot((mesh.pp - 1, 0, mesh.tp - 1))[0], mesh.spot((0, mesh.dp - 1, 0))[1]
    if ax is None:
        ax = page_axes(1.6 + 0.95 * right, 1.3 + 0.62 * down)
    for axis in AXES:
        for (x0, y0), (x1, y1), _ in mesh.hops(axis):
            ax.plot([x0, x1], [y0, y1], lw=1, color=PALE, zorder=0)
    for (x0, y0), (x1, y1), leaves in mesh.hops(mesh.axis):
        style = {"color": VERMILION, "ls": (0, (3, 1.5))} if leaves else {"color": BLUE, "ls": "-"}
        ax.plot([x0, x1], [y0, y1], lw=3, zorder=1, **style)
    for place, rank in mesh.ranks.items():
        x, y = mesh.spot(place)
        colour = rank_colour(mesh.node(rank))
        box = FancyBboxPatch(
            (x - 0.31, y - 0.26), 0.62, 0.52, boxstyle="round,pad=0.02", facecolor=colour, edgecolor="black", lw=0.8
        )
        ax.add_patch(box)
        ax.text(x, y, f"rank {rank}\nnode {mesh.node(rank)}", ha="center", va="center", fontsize=8, zorder=3)
    ax.set_xlim(-0.6, right + 0.6)
    ax.set_ylim(down + 0.6, -0.6)
    ax.set_axis_off()
    ax.set_title("tp to the right, dp down, pp to the back", fontsize=9)
    if isinstance(ax, PageAxes):
        ax.heading = f"mesh of pp {mesh.pp}, dp {mesh.dp}, tp {mesh.tp}"
        ax.description, ax.table = f"{LEGEND} Shown: {mesh.axis}. {mesh.sentence}", mesh.table
    return ax
