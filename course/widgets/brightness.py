"""The brightness slider: move it, and see the photograph and how long each way to brighten it took just now.

The ways are passed in, so a learner can put their own beside ours. Its static twin is `figures.draw_brightness`.
"""

from __future__ import annotations

import base64
import html
import io
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import ipywidgets
import numpy as np
import traitlets
from matplotlib.axes import Axes
from PIL import Image

from course.errors import UsageError
from course.figures.brightness import describe_brightness, draw_brightness, timings_table
from course.figures.page import InWords, Table

LARGEST = 255
PATIENCE = 0.02  # seconds for repeating a measurement: the picture should follow the slider
WIDTH = 320  # of the picture on the page, in its pixels
Ways = Mapping[str, Callable[[np.ndarray, int], np.ndarray]]


class BrightnessSlider(InWords, ipywidgets.VBox):
    """`BrightnessSlider(image, methods)`: image uint8, grey or RGB; methods: name -> f(image, amount) -> image.

    Trait to set: amount, -255 to 255. To read: brightened (what the first way gave), timings (name -> (pixels,
    seconds)), verdict (one sentence). A way that raises, or gives another picture than the first, is named in the
    verdict, and nothing else breaks.
    """

    amount = traitlets.Int(60)
    verdict = traitlets.Unicode("")

    def __init__(self, image: np.ndarray, methods: Ways, *, amount: int = 60) -> None:
        if not isinstance(image, np.ndarray) or image.dtype != np.uint8 or not image.size:
            raise UsageError("BrightnessSlider needs a photograph, a uint8 array that is not empty: try photograph()")
        if not methods or not all(callable(method) for method in methods.values()):
            raise UsageError("BrightnessSlider needs ways to brighten by name: try {'NumPy': brighten_numpy}")
        self.image, self.methods = image.view(), dict(methods)
        self.image.flags.writeable = False  # a way that changes its input raises
        self.brightened = self.image
        self.timings: dict[str, tuple[int, float]] = {}
        self._picture, self._below = ipywidgets.HTML(), ipywidgets.HTML()
        super().__init__()
        self.amount = amount
        self.children = [
            ipywidgets.HBox(self._controls(), layout={"flex_flow": "row wrap"}),
            self._picture,
            self._below,
        ]
        self.observe(lambda change: self._brighten(), "amount")
        self._brighten()  # compiles what is to be compiled, so that the next one measures brightening
        self._brighten()

    def _controls(self) -> list[ipywidgets.Widget]:
        """A slider for the mouse, and a field that takes typed numbers and arrow keys."""
        limits = {"value": self.amount, "min": -LARGEST, "max": LARGEST}
        slider = ipywidgets.IntSlider(**limits, description="brighter by", readout=False, layout={"width": "28em"})
        field = ipywidgets.BoundedIntText(**limits, description="amount", layout={"width": "12em"})
        for control in (slider, field):
            traitlets.link((self, "amount"), (control, "value"))
        return [slider, field]

    @traitlets.validate("amount")
    def _within_range(self, proposal: dict[str, Any]) -> int:
        return max(-LARGEST, min(LARGEST, proposal["value"]))

    def _brighten(self) -> None:
        results, faults = {}, []
        self.timings = {}
        for name, method in self.methods.items():
            try:
                result, seconds = _measured(lambda method=method: method(self.image, self.amount))
            except Exception as error:
                faults.append(f"{name} raised {type(error).__name__}: {error}")
                continue
            self.timings[name] = (self.image.size, seconds)
            if isinstance(result, np.ndarray) and result.dtype == np.uint8 and result.shape == self.image.shape:
                results[name] = result
            else:
                faults.append(f"{name} gives no uint8 picture of the same shape")
        first = next(iter(results), "")
        self.brightened = results.get(first, self.image)
        odd = [name for name, result in results.items() if not np.array_equal(result, self.brightened)]
        faults += [f"{name} gives another picture than {first}" for name in odd]
        self.verdict = f"{'; '.join(faults) or 'All ways give the same picture'}."
        self._show()

    def _show(self) -> None:
        said = html.escape(describe_brightness(self.image, self.brightened), quote=True)
        picture = f'<img alt="{said}" width="{WIDTH}" src="data:image/png;base64,{_png(self.brightened)}">'
        self._picture.value = f"{picture}<div>{said}</div>"
        self._below.value = f'<div role="status" aria-live="polite">{self.table()._repr_html_()}</div>'

    def table(self) -> Table:
        """The text twin: time and GB/s of each way, measured at the last change, and the verdict."""
        table = timings_table(self.timings)
        return Table(table.header, table.rows, self.verdict)

    def figure(self) -> Axes:
        """The static twin: the photograph before and after, with the same table."""
        return draw_brightness(self.image, self.brightened, self.timings)

    def __repr__(self) -> str:
        """Without times, which differ from run to run."""
        said = describe_brightness(self.image, self.brightened)
        return f"BrightnessSlider(amount={self.amount}): {', '.join(self.methods)}\n{said} {self.verdict}"


def _measured(work: Callable[[], np.ndarray]) -> tuple[np.ndarray, float]:
    """What `work()` gave, and the median of the seconds it took, repeated for as long as patience lasts."""
    seconds: list[float] = []
    while not seconds or (sum(seconds) < PATIENCE and len(seconds) < 5):
        start = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - start)
    return result, statistics.median(seconds)


def _png(image: np.ndarray) -> str:
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "PNG", compress_level=1)
    return base64.b64encode(buffer.getvalue()).decode()
