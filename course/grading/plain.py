"""Results as plain data: what a rank sends home to be judged, and how two of them are compared.

`plain` runs in the rank, right after the learner's code; everything else runs in the grader's process. Only exact
builtin types, plain tensors and plain NumPy arrays count: an object with an `__eq__` or `__float__` of its own becomes
a `Foreign`, which equals nothing. No torch at import: the grader's process loads it only when a grade is asked for.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

SCALARS = (bool, int, float, str, bytes, type(None))


@dataclass(frozen=True, slots=True)
class TensorData:
    """A tensor taken apart: its dtype ("float32"), its shape, its device and its numbers, flat."""

    dtype: str
    shape: tuple[int, ...]
    device: str
    numbers: tuple[float | int | bool, ...]


@dataclass(frozen=True, slots=True)
class ArrayData:
    """A NumPy array of numbers taken apart: its dtype ("uint8"), its shape and its numbers, flat, in C order."""

    dtype: str
    shape: tuple[int, ...]
    numbers: tuple[float | int | bool, ...]


@dataclass(frozen=True, slots=True)
class Foreign:
    """Something that is no plain data; only its type is known ("generator")."""

    type_name: str


def plain(value: Any, depth: int = 6) -> Any:
    """`value` in exact builtin types, tensors as TensorData, arrays as ArrayData, anything else as Foreign."""
    kind = type(value)
    if kind in SCALARS:
        return value
    if kind in (TensorData, ArrayData, Foreign, Scalar):  # a probe made it, or a learner, with who knows what in it
        return value if all(_is_bare(getattr(value, name)) for name in kind.__slots__) else Foreign(kind.__name__)
    if depth and kind in (list, tuple, set, frozenset):
        return kind(plain(item, depth - 1) for item in value)
    if depth and kind is dict:
        return {plain(key, depth - 1): plain(item, depth - 1) for key, item in value.items()}
    if depth and kind.__bases__ == (tuple,) and hasattr(kind, "_fields"):  # a namedtuple is a tuple
        return tuple(plain(item, depth - 1) for item in tuple.__iter__(value))
    if kind is range:
        return Foreign("range")
    return _number(value, kind) or _tensor(value, kind) or _array(value, kind) or Foreign(kind.__name__)


def _is_bare(field: Any) -> bool:
    return type(field) in SCALARS or (type(field) is tuple and all(type(item) in (*SCALARS, complex) for item in field))


def _number(value: Any, kind: type) -> Any:
    """A zero-dimensional NumPy number, a Fraction or a Decimal as (type name, number); None for anything else."""
    if kind in (Fraction, Decimal):
        return Scalar(kind.__name__, float(value))
    numpy = sys.modules.get("numpy")
    if numpy is None or kind.__module__ != "numpy" or not issubclass(kind, numpy.generic):
        return None
    return Scalar(kind.__name__, value.item()) if issubclass(kind, numpy.number | numpy.bool_) else None


@dataclass(frozen=True, slots=True)
class Scalar:
    """A NumPy number, a Fraction or a Decimal: which type, and its value."""

    type_name: str
    value: float | int | bool


def _tensor(value: Any, kind: type) -> TensorData | None:
    torch = sys.modules.get("torch")
    if torch is None or kind not in (torch.Tensor, torch.nn.Parameter):
        return None
    with torch.no_grad():
        numbers = tuple(value.detach().cpu().reshape(-1).tolist())
        return TensorData(str(value.dtype).removeprefix("torch."), tuple(value.shape), value.device.type, numbers)


def _array(value: Any, kind: type) -> ArrayData | None:
    numpy = sys.modules.get("numpy")
    if numpy is None or kind is not numpy.ndarray or value.dtype.kind not in "biuf" or value.dtype.itemsize > 8:
        return None
    return ArrayData(value.dtype.name, value.shape, tuple(value.reshape(-1).tolist()))


def whole_numbers(value: Any) -> list[int] | None:
    """The ints in a list, tuple or one-dimensional tensor of whole numbers; None for anything else."""
    if type(value) is TensorData:
        value = list(value.numbers) if len(value.shape) == 1 else None
    if type(value) not in (list, tuple):
        return None
    numbers = [_whole(item) for item in value]
    return (
        None if any(number is None for number in numbers) else [int(number) for number in numbers if number is not None]
    )


def _whole(item: Any) -> int | None:
    if type(item) is Scalar:
        item = item.value
    if type(item) is TensorData:
        item = item.numbers[0] if item.shape == () else None
    return item if type(item) is int else None


def real_number(value: Any) -> float | None:
    """A float from an int, a float, a Scalar, a tensor or array of one number; None for anything else (bools too)."""
    if type(value) is Scalar:
        value = value.value
    if type(value) in (TensorData, ArrayData):
        value = value.numbers[0] if len(value.numbers) == 1 else None
    try:
        return float(value) if type(value) in (int, float) else None
    except OverflowError:  # an int beyond every float
        return math.inf


def type_in_words(value: Any) -> str:
    """What a plain value is, for a sentence: "a list of 3", "None", "a generator"."""
    if value is None:
        return "None"
    if type(value) is Foreign:
        return f"a {value.type_name}"
    if type(value) is TensorData:
        return f"a {value.dtype} tensor of shape {value.shape}"
    if type(value) is ArrayData:
        return f"a {value.dtype} array of shape {value.shape}"
    if type(value) is Scalar:
        return f"a {value.type_name}" if value.type_name[0].isupper() else f"a numpy {value.type_name}"
    if type(value) in (list, tuple, set, frozenset, dict):
        return f"a {type(value).__name__} of {len(value)}"
    article = "an" if type(value) is int else "a"
    return f"{article} {type(value).__name__}"


@dataclass(frozen=True, slots=True)
class Difference:
    """How one set of named numbers differs from a reference.

    `worst`: the name with the largest distance; `ratio`: the one factor that turns the reference into what came back
    on every name (None where there is none); `got`, `want`: one pair of numbers at the worst place.
    """

    worst: str
    ratio: float | None
    got: float
    want: float


Numbers = Mapping[str, Sequence[float]]


def same(got: Numbers, want: Numbers, tolerance: float = 1e-5) -> bool:
    """Whether all numbers agree, to `tolerance` of the largest number of their name (NaN agrees with nothing)."""
    return difference(got, want, tolerance) is None


def difference(got: Numbers, want: Numbers, tolerance: float = 1e-5) -> Difference | None:
    """The worst disagreement between two sets of named numbers, or None where they agree."""
    worst = None
    distance = 0.0
    for name, wanted in want.items():
        scale = max((abs(number) for number in wanted), default=0.0) or 1.0
        for mine, other in zip(got[name], wanted, strict=True):
            gap = abs(mine - other) / scale if math.isfinite(mine) else math.inf
            if gap > max(distance, tolerance):
                worst, distance = (name, mine, other), gap
    if worst is None:
        return None
    return Difference(worst[0], ratio(got, want), worst[1], worst[2])


def ratio(got: Numbers, want: Numbers) -> float | None:
    """The factor that turns `want` into `got` on every name, if one factor does."""
    factors = [_factor(got[name], wanted) for name, wanted in want.items() if any(wanted)]
    if not factors or any(factor is None for factor in factors):
        return None
    known = [factor for factor in factors if factor is not None]
    return known[0] if all(math.isclose(factor, known[0], rel_tol=1e-3, abs_tol=1e-6) for factor in known) else None


def _factor(got: Sequence[float], want: Sequence[float]) -> float | None:
    if not all(math.isfinite(number) for number in got):
        return None
    factor = sum(g * w for g, w in zip(got, want, strict=True)) / sum(w * w for w in want)
    scale = max(abs(number) for number in want) * max(abs(factor), 1e-3)
    close = all(abs(g - factor * w) <= 1e-3 * scale for g, w in zip(got, want, strict=True))
    return factor if close else None
