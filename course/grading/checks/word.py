"""A word handed to the learner's code in place of an int, which counts the operators applied to it. No check itself."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

FULL = (1 << 64) - 1
FORBIDDEN = "not allowed on a word: "


class Word:
    """An int that counts the operators applied to it and to all that comes from it, and has no others.

    Comparing it with the ends of its range is free, so that arguments may be checked. It says that it is an int.
    """

    __slots__ = ("_number", "_count")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, number: int, count: list[int]) -> None:
        self._number, self._count = number, count

    @property
    def __class__(self) -> type:
        return int

    def __repr__(self) -> str:
        return "<a word>"


def bare(value: Any) -> Any:
    """The number in a word; anything else as it is."""
    return value._number if type(value) is Word else value


def _binary(operation: Callable[[int, int], int], *, turned: bool) -> Any:
    def method(self: Word, other: Any) -> Any:
        number = bare(other)
        if type(number) not in (int, bool):
            return NotImplemented
        self._count[0] += 1
        pair = (number, self._number) if turned else (self._number, number)
        return Word(operation(*pair), self._count)

    return method


def _unary(operation: Callable[[int], int]) -> Any:
    def method(self: Word) -> Word:
        self._count[0] += 1
        return Word(operation(self._number), self._count)

    return method


def _comparison(name: str) -> Any:
    compare = getattr(operator, name)

    def method(self: Word, other: Any) -> Any:
        if type(other) is int and not 0 < other < FULL:
            return compare(self._number, other)
        raise TypeError(FORBIDDEN + "comparing it")

    return method


def _refusal(said: str) -> Any:
    def method(self: Word, *_: Any) -> Any:
        raise TypeError(FORBIDDEN + said)

    return method


_REFUSED = {
    "/": ("__truediv__", "__rtruediv__"),
    "//": ("__floordiv__", "__rfloordiv__"),
    "%": ("__mod__", "__rmod__"),
    "**": ("__pow__", "__rpow__"),
    "divmod": ("__divmod__", "__rdivmod__"),
    "abs": ("__abs__",),
    "int() and what takes an int": ("__int__", "__index__", "__trunc__"),
    "float()": ("__float__",),
    "a condition on it": ("__bool__",),
    "an index": ("__getitem__",),
    "going through it": ("__iter__", "__len__"),
    "printing it as a number": ("__format__",),
}


def _furnish() -> None:
    for name in ("add", "sub", "mul", "and", "or", "xor", "lshift", "rshift"):
        operation = getattr(operator, f"__{name}__")
        setattr(Word, f"__{name}__", _binary(operation, turned=False))
        setattr(Word, f"__r{name}__", _binary(operation, turned=True))
    for name in ("neg", "pos", "invert"):
        setattr(Word, f"__{name}__", _unary(getattr(operator, f"__{name}__")))
    for name in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(Word, f"__{name}__", _comparison(f"__{name}__"))
    for said, names in _REFUSED.items():
        for name in names:
            setattr(Word, name, _refusal(said))


_furnish()
