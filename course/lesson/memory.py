"""Bytes of tensors while a step runs: how many there are at each moment, and what they are for at the fullest one.

Every storage that an operator makes is counted once, from its birth until nothing holds it. What a kernel takes and
gives back inside of one operator is not seen; on a GPU `torch.cuda.max_memory_allocated` sees that too.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.hooks import RemovableHandle

KINDS = ("weights", "gradients", "optimizer", "rest")


class TrackMemory(TorchDispatchMode):
    """`with TrackMemory(model, optimizer) as memory: step()`, then read what the step held.

    peak: bytes at the fullest moment. parts: the bytes of that moment by kind, "weights", "gradients", "optimizer"
    (what it keeps from step to step) and "rest" (activations, logits, what is there for a moment). curve: one dict
    of bytes by kind for each operator that made or freed something, in order.
    Counts what the model and the optimizer hold at the start, and everything made inside; other tensors that were there
    before (the batch) do not count.
    """

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer | None = None) -> None:
        super().__init__()
        self.curve: list[dict[str, int]] = []
        self._model, self._optimizer = model, optimizer
        self._now = dict.fromkeys(KINDS, 0)
        self._kind: dict[int, str] = {}  # by the storage's id; gone when the storage is
        self._hooks: list[RemovableHandle] = []

    def __enter__(self) -> TrackMemory:
        for parameter in self._model.parameters():
            self._count(parameter, "weights")
            if parameter.grad is not None:
                self._count(parameter.grad, "gradients")
            if parameter.requires_grad:
                self._hooks.append(parameter.register_post_accumulate_grad_hook(self._gradient))
        if self._optimizer is not None:
            self._states()
            self._hooks.append(self._optimizer.register_step_post_hook(lambda *_: self._states()))
        self._note()
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        for hook in self._hooks:
            hook.remove()

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        given = [t.untyped_storage() for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
        there = {id(storage) for storage in given}
        made = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(made):
            if isinstance(tensor, Tensor) and id(tensor.untyped_storage()) not in there:
                self._count(tensor, "rest")
        del given
        self._note()
        return made

    @property
    def peak(self) -> int:
        return sum(self.parts.values())

    @property
    def parts(self) -> dict[str, int]:
        return max(self.curve, key=lambda moment: sum(moment.values()))

    def _count(self, tensor: Tensor, kind: str) -> None:
        """Count the tensor's storage, if it is new, as of this kind."""
        storage = tensor.untyped_storage()
        key, nbytes = id(storage), storage.nbytes()
        if key not in self._kind:
            weakref.finalize(storage, self._free, key, nbytes).atexit = False
            self._kind[key] = kind
            self._now[kind] += nbytes

    def _become(self, tensor: Tensor, kind: str) -> None:
        """A tensor turns out to be of this kind."""
        self._count(tensor, kind)
        storage = tensor.untyped_storage()
        self._now[self._kind[id(storage)]] -= storage.nbytes()
        self._kind[id(storage)] = kind
        self._now[kind] += storage.nbytes()

    def _free(self, key: int, nbytes: int) -> None:
        self._now[self._kind.pop(key)] -= nbytes
        self._note()

    def _gradient(self, parameter: Tensor) -> None:
        if parameter.grad is not None:
            self._become(parameter.grad, "gradients")

    def _states(self) -> None:
        if self._optimizer is not None:
            for state in self._optimizer.state.values():
                for tensor in state.values():
                    if isinstance(tensor, Tensor):
                        self._become(tensor, "optimizer")

    def _note(self) -> None:
        if not self.curve or self._now != self.curve[-1]:
            self.curve.append(dict(self._now))
