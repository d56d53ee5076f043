"""Makes pasted code harmless inside a rank: what a tutorial's script does that a living rank must not.

`init_process_group` and `destroy_process_group` of the default group do nothing and say so; `input()` and
`tqdm.notebook` cannot work without the notebook's front end; figures are drawn without a screen.
"""

from __future__ import annotations

import builtins
import functools
import sys
import types
import warnings
from collections.abc import Callable
from typing import Any


class Boilerplate:
    """The replacements of one rank; `join` and `leave` use torch's own functions."""

    def __init__(self) -> None:
        import torch.distributed as dist

        self._note: Callable[[str], None] = lambda text: None
        self._said: set[str] = set()
        self.join = dist.init_process_group
        self.leave = dist.destroy_process_group

    def notes_to(self, note: Callable[[str], None]) -> None:
        """Where notes of the coming run go; each is made once a run."""
        self._note = note
        self._said.clear()

    def _say(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self._note(text)

    def install(self) -> None:
        """Replace the functions in torch.distributed, builtins and tqdm."""
        import torch.distributed as dist

        self._replace_init(dist)
        self._replace_destroy(dist)
        builtins.input = _no_input
        sys.modules["tqdm.notebook"] = _text_bars()
        warnings.filterwarnings("ignore", category=FutureWarning, module=r"torch\..*")

    def _replace_init(self, dist: Any) -> None:
        @functools.wraps(self.join)
        def init_process_group(*args: Any, **kwargs: Any) -> None:
            if not dist.is_initialized():
                self.join(*args, **kwargs)
                return
            self._say(
                "init_process_group did nothing: these ranks have their group already (under torchrun it is needed)"
            )

        for module in (dist, dist.distributed_c10d):
            module.init_process_group = init_process_group

    def _replace_destroy(self, dist: Any) -> None:
        @functools.wraps(self.leave)
        def destroy_process_group(group: Any = None) -> None:
            if group is not None and group is not dist.group.WORLD:
                self.leave(group)
                return
            self._say(
                "destroy_process_group did nothing: the group stays for the next cell (under torchrun it is needed)"
            )

        for module in (dist, dist.distributed_c10d):
            module.destroy_process_group = destroy_process_group


def _no_input(prompt: object = "") -> str:
    raise EOFError(
        f"input({str(prompt)!r}) was called inside a rank, where nobody can type: "
        f"ask in a normal cell and pass the answer"
    )


def _text_bars() -> types.ModuleType:
    """A stand-in for tqdm.notebook, whose bars need a front end: the text bars of tqdm.std."""
    from tqdm import std

    module = types.ModuleType("tqdm.notebook")
    module.__dict__.update(tqdm=std.tqdm, trange=std.trange, tqdm_notebook=std.tqdm, tnrange=std.trange)
    return module
