"""The doors of this room: what a caller brings is refused or made ready before a function of the room sees it.

Nothing is sent here. Whether the ranks of a group brought the same is not known to one of them alone: the ranks'
recorder compares the two ends of each message before it goes (MismatchError).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import ProcessGroup

from course.errors import UsageError

Returned = TypeVar("Returned")

# Integers that torch can add (not uint16 to uint64), and floats of which a sum makes sense.
ADDED = frozenset(
    [torch.float64, torch.float32, torch.bfloat16, torch.float16]
    + [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]
)


def door(
    function: Callable[..., Returned],
    *,
    adds: bool = False,
    in_place: bool = False,
    check: Callable[..., str] = lambda *args, **kwargs: "",
) -> Callable[..., Returned]:
    """`function(t, ..., group=None)` for callers from outside: refuses what cannot work, takes strided tensors too.

    adds: the function makes sums, so t must be float or integer. in_place: it changes t, so a strided t gets the result
    copied back into it. check(t, ..., group): what is wrong with the other arguments, or "".
    Raises UsageError, before anything is sent, when t is no dense tensor, is on another device than the group's, cannot
    be added or shares memory with itself; when this rank is not in the group; and when `check` says so.
    """
    name = function.__name__

    @functools.wraps(function)
    def entered(t: Tensor, *args: Any, group: ProcessGroup | None = None, **kwargs: Any) -> Returned:
        fault = _group_fault(group) or _tensor_fault(t, group, adds, in_place) or check(t, *args, group=group, **kwargs)
        if fault:
            raise UsageError(f"{name}: {fault}")
        ready = t.detach().resolve_conj().resolve_neg().contiguous()
        result = function(ready, *args, group=group, **kwargs)
        if in_place and ready.data_ptr() != t.data_ptr():
            t.detach().copy_(ready)
        return result

    entered.__module__ = __package__  # pickled by the name under which callers find it
    return entered


def _group_fault(group: ProcessGroup | None) -> str:
    if not dist.is_initialized():
        return "this process is in no group of ranks: call it inside ranks.run(...) or a %%ranks cell"
    if dist.get_rank(group) < 0:
        return f"rank {dist.get_rank()} is not in the group: let only its members call"
    return ""


def _tensor_fault(t: Any, group: ProcessGroup | None, adds: bool, in_place: bool) -> str:
    if not isinstance(t, Tensor):
        return f"a tensor is needed, this is a {type(t).__name__}: torch.as_tensor makes one of numbers"
    if t.layout is not torch.strided or t.is_quantized or t.is_nested:
        return f"a dense tensor is needed, this one is {t.layout}, {t.dtype}: use t.to_dense()"
    devices = _devices(group)
    if t.device.type not in devices:
        found = f"the tensor is on {t.device.type}, and this group sends from {' or '.join(devices)}"
        return f"{found}: use t.to({devices[0]!r})"
    if adds and t.dtype not in ADDED:
        return f"{t.dtype} is not added up here: use a float or integer dtype, such as t.to(torch.float32)"
    if in_place and any(stride == 0 and size > 1 for stride, size in zip(t.stride(), t.shape, strict=True)):
        return f"elements of this tensor share memory (strides {t.stride()}, from expand?): use t.clone()"
    return ""


def _devices(group: ProcessGroup | None) -> list[str]:
    """Kinds of device that the group can send from; gloo's messages are the CPU's, whatever else it registers for."""
    pairs = [pair.split(":") for pair in dist.get_backend_config(group).split(",")]
    return [device for device, backend in pairs if backend != "gloo" or device == "cpu"]


def segments_fault(t: Tensor, *, segments: int = 1, group: ProcessGroup | None = None) -> str:
    """What is wrong with `segments`, or ""."""
    if type(segments) is not int or segments < 1:
        return f"segments={segments!r}: a chunk is sent in a whole number of pieces, at least 1"
    return ""


def chunk_fault(chunk: Tensor, numel: int, *, group: ProcessGroup | None = None) -> str:
    """What is wrong with this rank's chunk of `numel` elements, or ""."""
    if type(numel) is not int or numel < 0:
        return f"numel={numel!r}: the number of elements of all chunks together, a whole number, at least 0"
    n, rank = dist.get_world_size(group), dist.get_rank(group)
    size = numel // n + (rank < numel % n)
    if chunk.numel() != size:
        found = f"the chunk of index {rank} has {chunk.numel()} elements"
        return f"{found}, but of {numel} on {n} ranks it must have {size}, as torch.tensor_split cuts"
    return ""


def source_fault(t: Tensor, src: int = 0, *, group: ProcessGroup | None = None) -> str:
    """What is wrong with `src`, or ""."""
    ranks = dist.get_process_group_ranks(group)
    return "" if src in ranks else f"src={src!r} is not one of the group's ranks {ranks}: it is counted among all ranks"
