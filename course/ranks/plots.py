"""The matplotlib backend of ranks: figures are drawn without a screen and sent to the notebook by `show`.

Matplotlib loads it by name (MPLBACKEND=module://course.ranks.plots) when a rank first imports pyplot.
"""

from __future__ import annotations

import io
from typing import Any

from matplotlib.backend_bases import FigureManagerBase
from matplotlib.backends.backend_agg import FigureCanvasAgg


def show(*args: Any, **kwargs: Any) -> None:
    """Send every open figure to the notebook, and close it."""
    from matplotlib import pyplot

    from course.ranks.worker import Current

    for number in pyplot.get_fignums():
        figure = pyplot.figure(number)
        file = io.BytesIO()
        figure.savefig(file, format="png", bbox_inches="tight")
        Current.send_figure(file.getvalue())
        pyplot.close(figure)


class FigureManager(FigureManagerBase):
    """A manager without a window."""

    @classmethod
    def pyplot_show(cls, *args: Any, **kwargs: Any) -> None:
        show()


class FigureCanvas(FigureCanvasAgg):
    """The Agg canvas, with the manager above."""

    manager_class = FigureManager  # type: ignore[assignment]
