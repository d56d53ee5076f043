"""A course on distributed machine learning, on real torch.distributed ranks. This is its front door.

Names load when they are first used: importing `course` loads neither torch nor matplotlib.
"""

from __future__ import annotations

import importlib
from typing import Any

_ROOMS = {
    "Ranks": "course.ranks",
    "checksum": "course.lesson",
    "compare": "course.lesson",
    "draw_timeline": "course.figures",
    "grade": "course.grading",
    "hint": "course.grading",
    "predict": "course.lesson",
    "progress": "course.grading",
    "shards": "course.lesson",
    "solution": "course.grading",
    "time_step": "course.lesson",
}

__all__ = sorted(_ROOMS)
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module 'course' has no name {name!r}; it has {', '.join(__all__)}")
    if name == "Ranks":
        _register_magic()
    return getattr(importlib.import_module(_ROOMS[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext course`: adds the %%ranks magic."""
    from course.ranks.magic import register

    register(shell)


def _register_magic() -> None:
    """Add %%ranks to the notebook that is running, if one is."""
    import sys

    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is not None:
        load_ipython_extension(shell)
