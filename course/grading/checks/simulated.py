"""Kernels in numba's simulator, on arrays that note which thread touches what. No check itself.

The simulator starts a Python thread for each thread of the grid, so grids have some hundred at most. Arrays are handed
in as `DeviceArray`, which holds NumPy pixels and forgives what a GPU forgives: the notes say what it was.
"""

from __future__ import annotations

import importlib
import operator
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

NUMBER = 7  # what `out` is filled with beforehand


@dataclass(frozen=True, slots=True)
class Grid:
    """One launch: the pixels of the image, blocks, threads in each, the amount."""

    pixels: tuple[int, ...]
    blocks: int
    threads: int
    amount: int

    def __str__(self) -> str:
        blocks = f"{self.blocks} block{'s' if self.blocks > 1 else ''}"
        return f"{self.n} pixel{'s' if self.n > 1 else ''}, {blocks} of {self.threads} threads"

    @property
    def n(self) -> int:
        return len(self.pixels)

    @property
    def places(self) -> list[tuple[int, int]]:
        """(block, thread in it) of each thread of the grid, in order."""
        return [(b, t) for b in range(self.blocks) for t in range(self.threads)]


@dataclass(frozen=True, slots=True)
class Launch:
    """What one launch left: both arrays, the pixels that each thread wrote, what was touched outside of 0 to n−1.

    `unfit`: the values stored that a uint8 cannot hold; `spoiled`: whether `image` was written.
    """

    out: list[int]
    image: list[int]
    written: list[list[int]]
    outside: list[int]
    unfit: list[int]
    spoiled: bool


def launched(learner: Any, grids: Iterable[Grid]) -> list[tuple[Any, ...]]:
    """Runs in the rank: for each grid the fields of its Launch."""
    body = getattr(learner, "py_func", learner)  # decorated after all
    if not isinstance(body, FunctionType):
        raise TypeError(f"a kernel is a function made with `def`, not a {type(body).__name__}")
    with _simulator() as cuda:
        for name, value in list(body.__globals__.items()):
            if getattr(value, "__name__", "") == "numba.cuda":
                body.__globals__[name] = cuda
            elif type(value).__module__.startswith("numba.cuda"):  # a decorated helper
                body.__globals__[name] = getattr(value, "py_func", value)
        kernel = cuda.jit(body)
        return [_launch(kernel, grid) for grid in grids]


def _launch(kernel: Any, grid: Grid) -> tuple[Any, ...]:
    out, image = DeviceArray([NUMBER] * grid.n), DeviceArray(list(grid.pixels))
    kernel[grid.blocks, grid.threads](out, image, grid.amount)
    written = [sorted(out.written.get(place, ())) for place in grid.places]
    outside = sorted({*out.outside, *image.outside})
    unfit = sorted(set(out.unfit))
    return out._pixels.tolist(), image._pixels.tolist(), written, outside, unfit, bool(image.written)


@contextmanager
def _simulator() -> Iterator[Any]:
    """`numba.cuda` as its simulator, whatever the learner's own imports have brought in; put back afterwards."""
    import numba

    before = _forget_cuda()
    simulated, numba.config.ENABLE_CUDASIM = numba.config.ENABLE_CUDASIM, 1
    try:
        yield importlib.import_module("numba.cuda")
    finally:
        numba.config.ENABLE_CUDASIM = simulated
        _forget_cuda()
        sys.modules.update(before)
        if "numba.cuda" in before:
            numba.cuda = before["numba.cuda"]


def _forget_cuda() -> dict[str, ModuleType]:
    names = [name for name in sys.modules if name == "numba.cuda" or name.startswith("numba.cuda.")]
    return {name: sys.modules.pop(name) for name in names}


class DeviceArray:
    """A flat uint8 array of n pixels, one index at a time; notes who reads and writes where.

    Outside of it, reads give 0 and writes are dropped: a GPU would go on as well. A value that does not fit keeps its
    lowest 8 bits.
    """

    __iter__ = None
    ndim = 1
    dtype = np.dtype(np.uint8)

    def __init__(self, pixels: list[int]) -> None:
        self._pixels = np.array(pixels, np.uint8)
        self.size = len(pixels)
        self.shape = (self.size,)
        self.written: dict[tuple[int, int], set[int]] = {}  # (block, thread) -> pixels
        self.outside: list[int] = []
        self.unfit: list[int] = []

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: Any) -> np.uint8:
        place = self._place(index)
        return self._pixels[place] if self._has(place) else np.uint8(0)

    def __setitem__(self, index: Any, value: Any) -> None:
        place, number = self._place(index), int(value)
        thread: Any = threading.current_thread()
        if not 0 <= number <= 255:
            self.unfit.append(number)
        if self._has(place):
            self.written.setdefault((thread.blockIdx.x, thread.threadIdx.x), set()).add(place % self.size)
            self._pixels[place] = number & 255

    def _place(self, index: Any) -> int:
        if type(index) is tuple and len(index) == 1:
            index = index[0]
        if isinstance(index, slice | tuple):
            raise TypeError("a thread works on one pixel: index with one number")
        return operator.index(index)

    def _has(self, place: int) -> bool:
        if not -self.size <= place < self.size:
            self.outside.append(place)
            return False
        return True
