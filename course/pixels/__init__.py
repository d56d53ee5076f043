"""Lesson 01's photograph and the ways to brighten it, from a Python loop to SIMD, threads and a GPU kernel.

Every way is `f(image, amount, *, out=None)`: the same uint8 image, brighter by `amount`, kept within 0 and 255.
Names load when they are first used, so that a page that never compiles anything does not wait for numba.
Nothing is drawn here (`figures.roofline` does) and nothing runs on ranks.
"""

from __future__ import annotations

import importlib
from typing import Any

_MODULES = {
    "METHODS": "methods",
    "attainable": "roofline",
    "brighten_gpu": "gpu",
    "brighten_numba": "compiled",
    "brighten_numpy": "plain",
    "brighten_python": "plain",
    "brighten_swar": "lanes",
    "brighten_swar_word": "lanes",
    "brighten_threads": "compiled",
    "large_photograph": "picture",
    "memcpy_seconds": "roofline",
    "median_seconds": "roofline",
    "num_threads": "compiled",
    "photograph": "picture",
    "repeated_kernel": "roofline",
    "seconds_beside": "roofline",
    "split_rows": "rows",
    "vector_instructions": "assembly",
}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"course.pixels has no name {name!r}; it has {', '.join(__all__)}")
    return getattr(importlib.import_module(f"course.pixels.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__]
