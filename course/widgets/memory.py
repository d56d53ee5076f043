"""The memory bar: choose a model and how it is trained, and see what one GPU must hold beside what GPUs have.

The reckoning is `planner.memory`; its static twin is `figures.memory.draw_memory_bars`.
"""

from __future__ import annotations

from typing import Any

import ipywidgets
import traitlets
from matplotlib.axes import Axes

from course.errors import UsageError
from course.figures.memory import describe_memory, draw_memory_bars, memory_table, smallest_chip
from course.figures.page import InWords, Table, bytes_text
from course.planner.memory import memory_parts, needed_bytes, peak_memory
from course.spec.chips import CHIPS
from course.spec.plan import RECOMPUTE, Plan
from course.spec.shape import SHAPES, shape_of

PRECISIONS = ("bf16", "float32")
MOST = {"microbatch": 1024, "sequence": 131_072, "gpus": 16_384}
WORDS = {"gpus": "GPUs", "zero": "ZeRO stage"}  # of a control, where it is not the trait's name


class MemoryBar(InWords, ipywidgets.VBox):
    """`MemoryBar("llama-3.1-8b")`: what one GPU holds at its fullest, by what it is for, and which GPU has room.

    Traits to set: model (a name in `spec.shape.SHAPES`), precision, microbatch, sequence, recompute, gpus (ranks of
    data parallelism), zero (what they shard). Traits to read: parts (bytes by kind), needed (bytes in all), chip (the
    smallest of the GPUs drawn that has room, or ""), sentence. Raises UsageError for what cannot be.
    """

    model = traitlets.Enum(list(SHAPES), "llama-3.1-8b")
    precision = traitlets.Enum(PRECISIONS, "bf16")
    microbatch = traitlets.Int(1, min=1, max=MOST["microbatch"])
    sequence = traitlets.Int(2048, min=1, max=MOST["sequence"])
    recompute = traitlets.Enum(RECOMPUTE, "none")
    gpus = traitlets.Int(1, min=1, max=MOST["gpus"])
    zero = traitlets.Enum([0, 1, 2, 3], 0)
    parts = traitlets.Dict()
    needed = traitlets.Float()
    chip = traitlets.Unicode("")
    sentence = traitlets.Unicode("")

    SET = ("model", "precision", "microbatch", "sequence", "recompute", "gpus", "zero")

    def __init__(self, model: str = "llama-3.1-8b", **settings: Any) -> None:
        shape_of(model)  # the nearest names, where there is none
        if unknown := settings.keys() - set(self.SET):
            raise UsageError(f"MemoryBar has no {sorted(unknown)[0]!r}: it takes {', '.join(self.SET)}")
        self._picture = ipywidgets.HTML()
        super().__init__()
        for name, value in {"model": model, **settings}.items():
            try:
                setattr(self, name, value)
            except traitlets.TraitError:
                raise UsageError(f"MemoryBar({name}={value!r}): try {self._legal(name)}") from None
        self._show()
        controls = ipywidgets.HBox([self._control(name) for name in self.SET], layout={"flex_flow": "row wrap"})
        self.children = [controls, self._picture]
        self.observe(lambda change: self._show(), list(self.SET))

    def _legal(self, name: str) -> str:
        trait = self.traits()[name]
        return f"1 to {MOST[name]:,}" if name in MOST else "one of " + ", ".join(map(str, trait.values))

    def _control(self, name: str) -> ipywidgets.Widget:
        """A list to choose from, or a field that takes typed numbers and arrow keys."""
        look = {"style": {"description_width": "initial"}, "layout": {"width": "max-content", "max_width": "16em"}}
        words = WORDS.get(name, name)
        if name in MOST:
            field = ipywidgets.BoundedIntText(
                value=getattr(self, name), min=1, max=MOST[name], description=words, **look
            )
            field.layout.width = "12em"
        else:
            options = self.traits()[name].values
            field = ipywidgets.Dropdown(options=options, value=getattr(self, name), description=words, **look)
        traitlets.link((self, name), (field, "value"))
        return field

    @property
    def plan(self) -> Plan:
        """What the traits describe, as a record."""
        return Plan(
            dp=self.gpus, microbatch=self.microbatch, global_batch=2 * self.gpus * self.microbatch,
            sequence=self.sequence, precision=self.precision, recompute=self.recompute, zero=self.zero,
        )  # fmt: skip

    def _show(self) -> None:
        """Follow the traits: the bytes, the sentence and the picture."""
        shape, plan = shape_of(self.model), self.plan
        needed = needed_bytes(peak_memory(shape, plan), plan)
        parts = memory_parts(shape, plan)
        self.parts = parts | {"driver and gaps": needed - sum(parts.values())}
        self.needed = needed
        chip = smallest_chip(needed)
        self.chip = chip.name if chip else ""
        self.sentence = describe_memory(self._bars())
        self._picture.value = f'<div role="status" aria-live="polite">{self.figure()._repr_html_()}</div>'

    def _bars(self) -> dict[str, dict[str, float]]:
        return {self.model: self.parts}

    def table(self) -> Table:
        """The text twin: bytes by kind, and whether each chip of the catalogue has room."""
        return memory_table(self._bars(), chips=tuple(sorted(CHIPS.values(), key=lambda chip: chip.memory)))

    def figure(self) -> Axes:
        """The static twin: the bar, drawn."""
        return draw_memory_bars(self._bars())

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.SET)
        return f"MemoryBar({given})\n{bytes_text(self.needed)} needed. {self.sentence}"
