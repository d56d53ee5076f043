"""Are two results the same: compare (to a tolerance, saying by what factor they differ) and checksum (to the bit).

Plain reading of numbers and tensors; nothing is run and nothing is sent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from course.errors import UsageError

RATIO_TOLERANCE = 1e-4  # how evenly two results must differ to be called a constant factor


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two results side by side; true when they agree.

    worst: the largest relative difference, over all parts: |a - b| over the largest value of that part.
    ratio: a / b where it is the same everywhere and not 1, else None. where: the part that is worst.
    """

    agree: bool
    worst: float
    tolerance: float
    ratio: float | None
    where: str

    def __bool__(self) -> bool:
        return self.agree

    def __repr__(self) -> str:
        if self.agree and self.worst == 0:
            return "agree: equal to the bit"
        if self.agree:
            return f"agree: worst relative difference {self.worst:.1e}, tolerance {self.tolerance:g}"
        factor = f"{self.ratio:.2f} times everywhere; " if self.ratio is not None else ""
        place = f" at {self.where}" if self.where else ""
        return f"DIFFER: {factor}worst relative difference {self.worst:.1e}{place}, tolerance {self.tolerance:g}"


def compare(a: object, b: object, tolerance: float = 1e-6) -> Comparison:
    """How far `a` is from `b`: numbers, tensors, arrays, and lists, tuples or dicts of them.

    Each part is measured against its own largest value, so a zero among large numbers does not count as far off.
    A NaN on either side never agrees. Raises UsageError when the two do not have the same form.
    """
    if not tolerance >= 0:
        raise UsageError(f"compare(..., tolerance={tolerance!r}): the tolerance must be a number of at least 0")
    pairs = list(_pairs(a, b, ""))
    if not pairs:
        raise UsageError("compare was given two empty results: there is nothing to compare")
    worst, where = max(((_distance(x, y), name) for name, x, y in pairs), key=lambda found: found[0])
    agree = worst <= tolerance
    return Comparison(agree, worst, tolerance, None if agree else _constant_ratio(pairs), where)


def checksum(module: nn.Module | Tensor) -> str:
    """Eight hex digits of all bits in a module's parameters and buffers: equal bits, equal checksum.

    Names do not count, so a module wrapped for data parallelism has the checksum of the module inside.
    """
    if isinstance(module, Tensor):
        tensors = [module]
    elif isinstance(module, nn.Module):
        tensors = [*module.parameters(), *module.buffers()]
    else:
        raise UsageError(f"checksum takes a module or a tensor, but got {type(module).__name__}: pass the model itself")
    digest = hashlib.blake2b(digest_size=4)
    for tensor in tensors:
        plain = tensor.detach().cpu().contiguous()
        digest.update(f"{plain.dtype}{tuple(plain.shape)}".encode())
        digest.update(plain.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _pairs(a: object, b: object, name: str) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """(name, a's part, b's part) as float64 arrays, walking both at once."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        if a.keys() != b.keys():
            odd = sorted(map(str, a.keys() ^ b.keys()))[0]
            raise UsageError(f"compare needs the same names on both sides, but {odd!r} is on one side only")
        for key in a:
            yield from _pairs(a[key], b[key], f"{name}[{key!r}]")
        return
    if _is_list(a) and _is_list(b):
        if len(a) != len(b):  # type: ignore[arg-type]
            raise UsageError(f"compare needs equal lengths, but one side has {len(a)} parts and the other {len(b)}")  # type: ignore[arg-type]
        for i, (x, y) in enumerate(zip(a, b, strict=True)):  # type: ignore[call-overload]
            yield from _pairs(x, y, f"{name}[{i}]")
        return
    x, y = _array(a), _array(b)
    if x.shape != y.shape:
        raise UsageError(f"compare needs equal shapes, but one side is {_shape(a, x)} and the other {_shape(b, y)}")
    if x.size:
        yield name, x, y


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _array(value: Any) -> np.ndarray:
    if isinstance(value, Tensor):
        value = value.detach().cpu()
        return value.to(torch.complex128 if value.is_complex() else torch.float64).numpy()
    if isinstance(value, (bool, int, float, complex, np.ndarray, np.generic)):
        return np.asarray(value, dtype=np.complex128 if np.iscomplexobj(value) else np.float64)
    raise UsageError(
        f"compare takes numbers, tensors and lists of them, but got {type(value).__name__}: "
        "pass what can be compared number by number"
    )


def _shape(value: object, array: np.ndarray) -> str:
    return f"{type(value).__name__} of shape {array.shape}"


def _distance(x: np.ndarray, y: np.ndarray) -> float:
    """Largest |x - y| over the largest value of either; infinite where a NaN or an infinity meets another number."""
    with np.errstate(invalid="ignore"):
        difference = np.abs(x - y)
    difference = np.where(x == y, 0.0, difference)  # infinities that are equal
    if not np.isfinite(difference).all():
        return float("inf")
    scale = max(np.abs(x[np.isfinite(x)]).max(initial=0.0), np.abs(y[np.isfinite(y)]).max(initial=0.0))
    return float(difference.max() / scale) if difference.max() > 0 else 0.0


def _constant_ratio(pairs: list[tuple[str, np.ndarray, np.ndarray]]) -> float | None:
    """The r for which a is r times b in every part, or None."""
    x = np.concatenate([p.ravel() for _, p, _ in pairs])
    y = np.concatenate([p.ravel() for _, _, p in pairs])
    if np.iscomplexobj(x) or np.iscomplexobj(y) or not (np.isfinite(x).all() and np.isfinite(y).all()):
        return None
    if not (y @ y) or not (x @ x):
        return None
    ratio = float(x @ y / (y @ y))
    even = all(_distance(p, ratio * q) <= RATIO_TOLERANCE for _, p, q in pairs)
    return ratio if even and abs(ratio - 1) > RATIO_TOLERANCE else None
