"""The mesh explorer: ranks on a mesh of pp, dp and tp over nodes; turn its sizes, their order and the axis shown.

Places, groups, bytes and words come from `figures.mesh`, whose `draw_mesh` is the static twin.
"""

from __future__ import annotations

from typing import Any

import ipywidgets
import traitlets
from matplotlib.axes import Axes

from course.errors import UsageError
from course.figures.mesh import LEGEND, MOST, ORDERS, PALE, Mesh, draw_mesh
from course.figures.page import BLUE, VERMILION, InWords, Table
from course.figures.shards import rank_colour
from course.spec import LESSON_GPT, ModelSpec
from course.spec.layout import AXES

WIDE, HIGH = 96, 58  # pixels from a rank to its neighbour
SHOWN = ("pp", "dp", "tp", "per_node", "order", "axis")


class MeshExplorer(InWords, ipywidgets.VBox):
    """`MeshExplorer()`: who is in a group with whom, on which link, and how many bytes leave a node in a step.

    Traits to set: pp, dp, tp (1 to 4), per_node (1 to 64), order (axes, fastest first), axis (whose groups are shown).
    Traits to read: groups (of the axis shown), inside, across (bytes of a step, of all axes), sentence. Bytes are those
    of `spec` trained in float32 with `batch` samples a step, computed. Raises UsageError.
    """

    pp = traitlets.Int(2, min=1, max=MOST)
    dp = traitlets.Int(2, min=1, max=MOST)
    tp = traitlets.Int(2, min=1, max=MOST)
    per_node = traitlets.Int(4, min=1, max=MOST**3)
    order = traitlets.Enum(ORDERS, ORDERS[0])
    axis = traitlets.Enum(AXES, "tp")
    groups = traitlets.List()
    inside = traitlets.Float(0.0)
    across = traitlets.Float(0.0)
    sentence = traitlets.Unicode("")

    def __init__(self, *, spec: ModelSpec = LESSON_GPT, batch: int = 32, **shown: Any) -> None:
        self._trained = {"spec": spec, "batch": batch}
        self._picture = ipywidgets.HTML()
        if unknown := shown.keys() - set(SHOWN):
            raise UsageError(f"MeshExplorer({min(unknown)}=...): it takes {', '.join(SHOWN)}, spec and batch")
        super().__init__()
        try:
            for name, value in shown.items():
                setattr(self, name, tuple(value) if name == "order" else value)
        except (traitlets.TraitError, TypeError):
            raise UsageError(
                f"MeshExplorer({name}={value!r}): pp, dp and tp go from 1 to {MOST}, per_node from 1 to {MOST**3}, "
                "order names the three axes, fastest first, and axis one of them"
            ) from None
        self.children = [ipywidgets.HBox(self._controls(), layout={"flex_flow": "row wrap"}), self._picture]
        self.observe(lambda change: self._show(), list(SHOWN))
        self._show()

    def _controls(self) -> list[ipywidgets.Widget]:
        """Fields that take typed numbers and arrow keys, and two lists: all reached by Tab."""
        style = {"description_width": "initial"}
        numbers = [("pp", "pp", MOST), ("dp", "dp", MOST), ("tp", "tp", MOST), ("per_node", "ranks a node", MOST**3)]
        controls: list[ipywidgets.Widget] = [
            ipywidgets.BoundedIntText(
                value=getattr(self, name), min=1, max=most, description=words, style=style,
                layout={"width": f"{6 + len(words) // 2}em"},
            )
            for name, words, most in numbers
        ]  # fmt: skip
        lists = (
            ("order", "fastest first", [(", ".join(order), order) for order in ORDERS]),
            ("axis", "show", AXES),
        )
        controls += [
            ipywidgets.Dropdown(
                options=options, value=getattr(self, name), description=words, style=style,
                layout={"width": "max-content"},
            )
            for name, words, options in lists
        ]  # fmt: skip
        for name, control in zip(SHOWN, controls, strict=True):
            traitlets.link((self, name), (control, "value"))
        return controls

    def _mesh(self) -> Mesh:
        return Mesh(**{name: getattr(self, name) for name in SHOWN}, **self._trained)

    def _show(self) -> None:
        """Follow the traits: groups, bytes, words and the picture."""
        mesh = self._mesh()
        self.groups, self.sentence = mesh.groups(self.axis), mesh.sentence
        self.inside, self.across = (sum(side) for side in zip(*map(mesh.traffic, AXES), strict=True))
        self._picture.value = (
            f'{_svg(mesh)}<div>{LEGEND}</div><div role="status" aria-live="polite">{mesh.table._repr_html_()}</div>'
        )

    def table(self) -> Table:
        """The text twin: groups and bytes of each axis, and the verdict."""
        return self._mesh().table

    def figure(self) -> Axes:
        """The static twin: the same ranks and lines, drawn."""
        return draw_mesh(self._mesh())

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={getattr(self, name)!r}" for name in SHOWN)
        return f"MeshExplorer({given})\n{self.table()}"


def _svg(mesh: Mesh) -> str:
    """The picture of `draw_mesh`; the table below it says the same to those who do not see it."""
    lines = "".join(
        f'<line x1="{_x(a)}" y1="{_y(a)}" x2="{_x(b)}" y2="{_y(b)}" stroke="{PALE}"/>'
        for axis in AXES
        for a, b, _ in mesh.hops(axis)
    )
    lines += "".join(
        f'<line x1="{_x(a)}" y1="{_y(a)}" x2="{_x(b)}" y2="{_y(b)}" stroke-width="4" '
        + (f'stroke="{VERMILION}" stroke-dasharray="8 4"/>' if leaves else f'stroke="{BLUE}"/>')
        for a, b, leaves in mesh.hops(mesh.axis)
    )
    boxes = "".join(_box(mesh, place, rank) for place, rank in mesh.ranks.items())
    corner = mesh.spot((mesh.pp - 1, 0, mesh.tp - 1))[0], mesh.spot((0, mesh.dp - 1, 0))[1]
    width, height = _x(corner) + WIDE // 2, _y(corner) + HIGH // 2
    return (
        f'<svg aria-hidden="true" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'style="max-width:100%;height:auto;background:#fff">{lines}{boxes}</svg>'
    )


def _box(mesh: Mesh, place: tuple[int, int, int], rank: int) -> str:
    x, y = _x(mesh.spot(place)), _y(mesh.spot(place))
    words = (("bold", f"rank {rank}", y - 3), ("normal", f"node {mesh.node(rank)}", y + 12))
    return (
        f'<rect x="{x - 30}" y="{y - 20}" width="60" height="40" rx="5" fill="{rank_colour(mesh.node(rank))}" '
        'stroke="#000"/>'
        + "".join(
            f'<text x="{x}" y="{at}" font-size="12" font-weight="{weight}" text-anchor="middle">{text}</text>'
            for weight, text, at in words
        )
    )


def _x(spot: tuple[float, float]) -> int:
    return round(WIDE * spot[0] + WIDE / 2)


def _y(spot: tuple[float, float]) -> int:
    return round(HIGH * spot[1] + HIGH / 2)
