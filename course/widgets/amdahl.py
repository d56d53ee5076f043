"""The Amdahl explorer: turn the serial share and the workers, and see both laws beside points of one's own.

Measured points are passed in. Its static twin is `figures.amdahl.draw_amdahl`.
"""

from __future__ import annotations

from collections.abc import Sequence

import ipywidgets
import traitlets
from matplotlib.axes import Axes

from course.errors import UsageError
from course.figures.amdahl import Points, amdahl_table, describe_amdahl, draw_amdahl
from course.figures.page import InWords, Table
from course.spec.speedup import amdahl_speedup, gustafson_speedup

MOST = 4096  # workers


class AmdahlExplorer(InWords, ipywidgets.VBox):
    """`AmdahlExplorer({"my game": [(1, 1.0), (2, 1.6)]})`: pairs (workers, speed-up) of one's own, by name; or nothing.

    Traits to set: serial (0 to 1), workers (1 to 4096). Traits to read: amdahl, gustafson (speed-ups), sentence.
    A list of pairs without a name is called "yours". Raises UsageError for points that cannot be.
    """

    serial = traitlets.Float(0.1, min=0.0, max=1.0)
    workers = traitlets.Int(16, min=1, max=MOST)
    amdahl = traitlets.Float(1.0)
    gustafson = traitlets.Float(1.0)
    sentence = traitlets.Unicode("")

    def __init__(
        self, points: Points | Sequence[tuple[int, float]] = (), *, serial: float = 0.1, workers: int = 16
    ) -> None:
        rows = dict(points) if isinstance(points, dict) else {"yours": list(points)} if points else {}
        self.points: Points = rows
        self._picture = ipywidgets.HTML()
        super().__init__()
        try:
            self.serial, self.workers = serial, workers
        except traitlets.TraitError:
            raise UsageError(
                f"AmdahlExplorer(serial={serial!r}, workers={workers!r}): serial goes from 0 to 1, "
                f"workers from 1 to {MOST}"
            ) from None
        self._show()
        controls = ipywidgets.HBox(self._controls(), layout={"flex_flow": "row wrap"})
        self.children = [controls, self._picture]
        self.observe(lambda change: self._show(), ["serial", "workers"])

    def _controls(self) -> list[ipywidgets.Widget]:
        """Fields that take typed numbers and arrow keys, with steps to click."""
        look = {"style": {"description_width": "initial"}, "layout": {"width": "12em"}}
        share = ipywidgets.BoundedFloatText(
            value=self.serial, min=0.0, max=1.0, step=0.01, description="serial share", **look
        )
        count = ipywidgets.BoundedIntText(value=self.workers, min=1, max=MOST, description="workers", **look)
        traitlets.link((self, "serial"), (share, "value"))
        traitlets.link((self, "workers"), (count, "value"))
        return [share, count]

    def _show(self) -> None:
        """Follow the traits: the numbers, the sentence and the picture."""
        self.amdahl = amdahl_speedup(serial=self.serial, workers=self.workers)
        self.gustafson = gustafson_speedup(serial=self.serial, workers=self.workers)
        self.sentence = describe_amdahl(self.serial, self.workers)
        self._picture.value = f'<div role="status" aria-live="polite">{self.figure()._repr_html_()}</div>'

    def table(self) -> Table:
        """The text twin: both laws at powers of two, and the measured points."""
        return amdahl_table(self.points, serial=self.serial, workers=self.workers)

    def figure(self) -> Axes:
        """The static twin: both laws and the points, drawn."""
        return draw_amdahl(self.points, serial=self.serial, workers=self.workers)

    def __repr__(self) -> str:
        """Without measured points, which differ from run to run."""
        return f"AmdahlExplorer(serial={self.serial:g}, workers={self.workers})\n{self.sentence}"
