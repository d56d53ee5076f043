"""What an exercise is, and the conventions of all of them; no exercise itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["core", "practice", "challenge"]

CONVENTIONS = (
    "Reductions are sums unless the name says average. Inputs stay untouched and a new result is returned, unless it "
    "says *in place*. Uneven cuts go as `torch.tensor_split` does: the first parts are bigger by one (`chunk` and "
    "DTensor differ, said where they appear). Rank r owns chunk r. With one rank nothing is sent. Tensors are "
    "contiguous. Units: bytes, seconds, bytes per second, FLOP per second. The impossible raises `ValueError`. "
    "Mesh order: pp slowest, then dp, tp fastest. Equivalent orders of addition pass."
)


@dataclass(frozen=True, slots=True)
class Exercise:
    """One exercise. `id` is the name of the function or class the learner writes.

    `source`: dotted path of the library function an answer cell is made from; None where the solution page holds a
    plain version of its own. `hints`: each goes one step further than the one before; none gives the answer.
    """

    id: str
    lesson: str
    level: Level
    minutes: int
    points: int
    source: str | None
    statement: str
    hints: tuple[str, ...]
