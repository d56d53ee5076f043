"""What a mistake is: a name, why it looks right, a hint. No mistake itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mistake:
    """A mistake with a name."""

    name: str
    looks_right: str
    hint: str
