"""The c10d operators as torch dispatches them: which argument is what, and what ranks must agree on.

A table of facts about torch's own schemas, and nothing about recording. Tried with torch 2.13.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

SEND, RECV, COLLECTIVE = "send", "recv", "collective"


@dataclass(frozen=True, slots=True)
class Operator:
    """How to read the arguments of one c10d operator."""

    schema: str  # its name in torch.ops.c10d
    name: str  # the name learners know
    group_at: int
    async_at: int | None  # index of the async flag; None: always asynchronous (sends and receives)
    payload: Callable[[tuple[Any, ...]], list[Any]]  # tensors this rank hands in
    agreed: Callable[[tuple[Any, ...]], list[Any]]  # tensors whose shapes every rank must share
    root_at: int | None = None  # index of the root, destination or source (rank within the group)
    kind: str = COLLECTIVE
    reduces: bool = False


def _flat(lists: Iterable[Iterable[Any]]) -> list[Any]:
    return list(itertools.chain.from_iterable(lists))


def _first(args: tuple[Any, ...]) -> list[Any]:
    return [args[0]] if not isinstance(args[0], (list, tuple)) else list(args[0])


def _second(args: tuple[Any, ...]) -> list[Any]:
    return [args[1]] if not isinstance(args[1], (list, tuple)) else list(args[1])


def _lists(args: tuple[Any, ...]) -> list[Any]:
    return _flat(args[1])


def _none(args: tuple[Any, ...]) -> list[Any]:
    return []


OPERATORS = (
    Operator("allreduce_", "all_reduce", 1, 4, _first, _first, reduces=True),
    Operator("allreduce_coalesced_", "all_reduce", 1, 3, _first, _first, reduces=True),
    Operator("broadcast_", "broadcast", 1, 4, _first, _first, root_at=2),
    Operator("reduce_", "reduce", 1, 5, _first, _first, root_at=3, reduces=True),
    Operator("allgather_", "all_gather", 2, 3, _second, _second),
    Operator("_allgather_base_", "all_gather_into_tensor", 2, 3, _second, _second),
    Operator("allgather_coalesced_", "all_gather", 2, 3, _second, _second),
    Operator("allgather_into_tensor_coalesced_", "all_gather_into_tensor", 2, 3, _second, _second),
    Operator("reduce_scatter_", "reduce_scatter", 2, 4, _lists, _lists, reduces=True),
    Operator("_reduce_scatter_base_", "reduce_scatter_tensor", 2, 4, _second, _second, reduces=True),
    Operator("reduce_scatter_tensor_coalesced_", "reduce_scatter_tensor", 2, 4, _second, _second, reduces=True),
    Operator("gather_", "gather", 2, 4, _second, _second, root_at=3),
    Operator("scatter_", "scatter", 2, 4, _lists, _first, root_at=3),
    Operator("alltoall_", "all_to_all", 2, 3, _second, _none),
    Operator("alltoall_base_", "all_to_all_single", 2, 5, _second, _none),
    Operator("barrier", "barrier", 1, 3, _none, _none),
    Operator("send", "send", 1, None, _first, _none, root_at=2, kind=SEND),
    Operator("recv_", "recv", 1, None, _first, _none, root_at=2, kind=RECV),
    Operator("recv_any_source_", "recv", 1, None, _first, _none, kind=RECV),
)


def nbytes(tensors: Iterable[Any]) -> int:
    """Bytes of the elements of `tensors`."""
    return sum(t.numel() * t.element_size() for t in tensors)


def dtype_name(tensors: list[Any]) -> str:
    return str(tensors[0].dtype).removeprefix("torch.") if tensors else ""


def in_words(tensors: list[Any]) -> str:
    """Shapes and dtype of the tensors of a call: "(4, 3) float32"."""
    if not tensors:
        return ""
    shapes = ", ".join(str(tuple(t.shape)) for t in tensors[:4])
    more = f" and {len(tensors) - 4} more" if len(tensors) > 4 else ""
    return f"{shapes}{more} {dtype_name(tensors)}"


def signature(operator: Operator, args: tuple[Any, ...], reduce_op: str) -> str:
    """What every rank of the group must bring alike, as a short text."""
    if operator.kind != COLLECTIVE:  # two ends of one message: as many elements, of one dtype
        return f"{sum(t.numel() for t in args[0])} {dtype_name(args[0])}"
    root = args[operator.root_at] if operator.root_at is not None else ""
    tensors = operator.agreed(args)
    text = f"{root} {reduce_op} {[tuple(t.shape) for t in tensors]} {dtype_name(tensors)}"
    return text if len(text) < 120 else f"{text[:80]}… {zlib.crc32(text.encode())}"
