"""What `reshard_state` is asked: tensors in shards of k ranks, and what those of n are, or would be. No check."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from course.grading.mistakes import Mistake
from course.grading.mistakes import lesson_09_challenge as known

# name -> shape of the whole, the dim it is cut along, dtype
Tensors = tuple[tuple[str, tuple[int, ...], int | None, str], ...]

CUT: Tensors = (
    ("up.weight", (12, 5), 0, "float32"),
    ("down.weight", (5, 12), 1, "float32"),
    ("up.bias", (12,), 0, "float32"),
    ("cache", (2, 3, 24, 2), 2, "float32"),
)
WHOLE: Tensors = (("norm.weight", (7,), None, "float32"), ("step", (), None, "float32"), CUT[1])
ODD: Tensors = (("tokens", (11, 4), 0, "float32"), ("down.weight", (4, 7), 1, "float32"))
FEW: Tensors = (("small", (2, 3), 0, "float32"), ("wide", (3, 2), 1, "float32"), ("none", (0, 3), 0, "float32"))
TYPES: Tensors = (
    ("half", (9, 2), 0, "bfloat16"),
    ("double", (2, 9), 1, "float64"),
    ("counts", (10,), 0, "int64"),
    ("seen", (6, 2), 0, "bool"),
    ("steps", (), None, "int64"),
)


@dataclass(frozen=True, slots=True)
class Move:
    """One question: which tensors, from how many ranks to how many. `lengths`: of the old parts, where they are odd."""

    tensors: Tensors
    old: int
    new: int
    lengths: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"from {self.old} to {self.new}"


EVEN = (Move(CUT, 2, 3), Move(CUT, 4, 2), Move(CUT, 1, 4), Move(CUT, 3, 1), Move(CUT, 2, 4))
COPIES = (Move(WHOLE, 3, 2), Move(WHOLE, 2, 3), Move(WHOLE, 1, 2))
UNEVEN = (
    Move(ODD, 3, 2),
    Move(ODD, 2, 5),
    Move(ODD, 4, 3),
    Move(ODD[:1], 3, 3, lengths=(2, 8, 1)),
    Move(FEW, 2, 4),
    Move(FEW, 4, 3),
    Move(ODD[:1], 3, 2, lengths=(0, 11, 0)),
)
KINDS = (Move(TYPES, 2, 3), Move(TYPES, 3, 2), Move(TYPES, 2, 2))


# --- what is given, and what is right ---------------------------------------------------------------------------------


@cache
def whole(move: Move) -> dict[str, Any]:
    """The whole tensors, each with numbers of its own."""
    import torch

    made = {}
    for k, (name, shape, _, dtype) in enumerate(move.tensors):
        generator = torch.Generator().manual_seed(17 * k + 1)
        numbers = torch.randint(-90, 90, shape, generator=generator)
        made[name] = numbers > 0 if dtype == "bool" else numbers.to(getattr(torch, dtype))
    return made


def parts(move: Move, tensor: Any, dim: int, n: int) -> tuple[Any, ...]:
    """A whole tensor in n parts; in the move's odd lengths where it has some and n is the old number."""
    cuts = list(move.lengths) if move.lengths and n == move.old else None
    found: tuple[Any, ...] = tensor.split(cuts, dim) if cuts else tensor.tensor_split(n, dim)
    return found


def shards_of(move: Move) -> list[dict[str, Any]]:
    """What the old ranks hold; every tensor has memory of its own."""
    shards: list[dict[str, Any]] = [{} for _ in range(move.old)]
    for name, _, dim, _ in move.tensors:
        tensor = whole(move)[name]
        held = [tensor] * move.old if dim is None else parts(move, tensor, dim, move.old)
        for shard, part in zip(shards, held, strict=True):
            shard[name] = part.clone(memory_format=_contiguous())
    return shards


def _contiguous() -> Any:
    import torch

    return torch.contiguous_format


def want(move: Move, name: str, rank: int) -> Any:
    """What a new rank holds."""
    dim = dims_of(move)[name]
    tensor = whole(move)[name]
    return tensor if dim is None else tensor.tensor_split(move.new, dim)[rank]


def dims_of(move: Move) -> dict[str, int | None]:
    return {name: dim for name, _, dim, _ in move.tensors}


# --- what known mistakes make of it ---------------------------------------------------------------------------------


def guesses(move: Move, name: str) -> list[tuple[Mistake, list[Any]]]:
    """What known mistakes make of one tensor; those that would fail are left out."""
    import torch

    tensor, dim, old, new = whole(move)[name], dims_of(move)[name], move.old, move.new
    if dim is None:
        cut: list[tuple[Mistake, Callable[[], Sequence[Any]]]] = [
            (known.RESHARD_WHOLE_SUMMED, lambda: [tensor * old] * new),
            (known.RESHARD_WHOLE_JOINED, lambda: [torch.cat([tensor] * old)] * new),
            (known.RESHARD_WHOLE_JOINED, lambda: [torch.stack([tensor] * old)] * new),
            (known.RESHARD_WHOLE_JOINED, lambda: torch.cat([tensor] * old).tensor_split(new)),
            (known.RESHARD_WHOLE_CUT, lambda: tensor.tensor_split(new)),
        ]
    else:
        held, size = parts(move, tensor, dim, old), tensor.shape[dim]
        cut = [
            (known.RESHARD_DIM_IGNORED, lambda: torch.cat(held).tensor_split(new)),
            (known.RESHARD_DIM_IGNORED, lambda: tensor.tensor_split(new)),
            (known.RESHARD_DIM_IGNORED, lambda: torch.cat(held).tensor_split(new, dim)),
            (known.RESHARD_CHUNK, lambda: _filled(tensor.chunk(new, dim), new)),
            (known.RESHARD_BIGGER_LAST, lambda: tensor.split([(size + k) // new for k in range(new)], dim)),
            (known.RESHARD_BIGGER_LAST, lambda: _rest_last(tensor, dim, new)),
            (known.RESHARD_STRIDED, lambda: [_strided(tensor, dim, k, new) for k in range(new)]),
            (known.RESHARD_NO_REST, lambda: [tensor.narrow(dim, k * (size // new), size // new) for k in range(new)]),
            (known.RESHARD_EACH_APART, lambda: [_of_each(held, dim, k, new) for k in range(new)]),
        ]
    made = []
    for mistake, guess in cut:
        try:
            made.append((mistake, list(guess())))
        except (RuntimeError, IndexError):
            continue  # this mistake would not have come so far
    return made


def _filled(found: Sequence[Any], n: int) -> list[Any]:
    """`chunk` may give fewer parts: then the last ones are empty."""
    return [*found, *[found[0].narrow(0, 0, 0)] * (n - len(found))]


def _rest_last(tensor: Any, dim: int, n: int) -> Sequence[Any]:
    each = tensor.shape[dim] // n
    found: Sequence[Any] = tensor.split([each] * (n - 1) + [tensor.shape[dim] - each * (n - 1)], dim)
    return found


def _strided(tensor: Any, dim: int, k: int, n: int) -> Any:
    import torch

    return tensor.index_select(dim, torch.arange(k, tensor.shape[dim], n))


def _of_each(held: Sequence[Any], dim: int, k: int, n: int) -> Any:
    import torch

    return torch.cat([part.tensor_split(n, dim)[k] for part in held], dim)
