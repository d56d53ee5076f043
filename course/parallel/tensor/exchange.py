"""What tensor parallel ranks exchange, in pairs: what one does forward, its partner does backward.

    copy_to_ranks      forward: nothing        backward: all-reduce      (Megatron's f)
    reduce_from_ranks  forward: all-reduce     backward: nothing         (Megatron's g)
    scatter_to_ranks   forward: own part       backward: all-gather
    gather_from_ranks  forward: all-gather     backward: own part
    gather_sequence    forward: all-gather     backward: reduce-scatter
    scatter_sequence   forward: reduce-scatter backward: all-gather

Shoeybi et al. 2019 (section 3), Korthikanti et al. 2022 (section 4.2.2). `all_reduce` can be another than torch's own,
such as a ring of sends. Layers made of these stand in `linear`, `attention` and `vocabulary`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd import Function
from torch.distributed import ProcessGroup

from course.errors import UsageError

AllReduce = Callable[..., Any]  # all_reduce(tensor, group=group), in place


class _Copy(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: ProcessGroup | None, all_reduce: AllReduce) -> Tensor:
        ctx.group, ctx.all_reduce = group, all_reduce
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _summed(grad, ctx.group, ctx.all_reduce), None, None


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: ProcessGroup | None, all_reduce: AllReduce) -> Tensor:
        return _summed(x, group, all_reduce)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return grad, None, None


class _Scatter(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int, group: ProcessGroup | None) -> Tensor:
        ctx.dim, ctx.group = dim, group
        return _own_part(x, dim, group)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _all_gathered(grad, ctx.dim, ctx.group), None, None


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int, group: ProcessGroup | None, sums: bool) -> Tensor:
        ctx.dim, ctx.group, ctx.sums = dim, group, sums
        return _all_gathered(x, dim, group)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        back = _reduce_scattered if ctx.sums else _own_part
        return back(grad, ctx.dim, ctx.group), None, None, None


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int, group: ProcessGroup | None) -> Tensor:
        ctx.dim, ctx.group = dim, group
        return _reduce_scattered(x, dim, group)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _all_gathered(grad, ctx.dim, ctx.group), None, None


def copy_to_ranks(x: Tensor, group: ProcessGroup | None = None, *, all_reduce: AllReduce = dist.all_reduce) -> Tensor:
    """x as it is; backward, the sum over ranks of the gradients: each rank's part of the layer has used all of x.

    x: the same on all ranks, any shape. Bytes: none forward, an all-reduce of x's size backward.
    """
    return _Copy.apply(x, group, all_reduce)  # type: ignore[no-any-return, no-untyped-call]


def reduce_from_ranks(
    x: Tensor, group: ProcessGroup | None = None, *, all_reduce: AllReduce = dist.all_reduce
) -> Tensor:
    """The sum over ranks of x, a new tensor on each; backward, the gradient as it is: it is the same on all ranks.

    x: each rank's partial sum, of one shape. Bytes: an all-reduce of x's size forward, none backward.
    """
    return _Reduce.apply(x, group, all_reduce)  # type: ignore[no-any-return, no-untyped-call]


def scatter_to_ranks(x: Tensor, dim: int, group: ProcessGroup | None = None) -> Tensor:
    """This rank's part of x along `dim`; backward, the parts' gradients side by side.

    x: the same on all ranks; its size along dim divides by the ranks. Bytes: none forward, an all-gather backward.
    """
    return _Scatter.apply(x, dim, group)  # type: ignore[no-any-return, no-untyped-call]


def gather_from_ranks(x: Tensor, dim: int, group: ProcessGroup | None = None) -> Tensor:
    """The ranks' x side by side along `dim`; backward, this rank's part of the gradient.

    For what all ranks then use alike: their gradients are the same. Bytes: an all-gather forward, none backward.
    """
    return _Gather.apply(x, dim, group, False)  # type: ignore[no-any-return, no-untyped-call]


def gather_sequence(x: Tensor, dim: int = 1, group: ProcessGroup | None = None) -> Tensor:
    """The ranks' parts of the sequence side by side; backward, the sum over ranks of this rank's part.

    For what each rank then uses in its own part of a layer. Bytes: an all-gather forward, a reduce-scatter backward:
    together those of one all-reduce.
    """
    return _Gather.apply(x, dim, group, True)  # type: ignore[no-any-return, no-untyped-call]


def scatter_sequence(x: Tensor, dim: int = 1, group: ProcessGroup | None = None) -> Tensor:
    """This rank's part of the sequence, summed over ranks; backward, the parts' gradients side by side.

    x: each rank's partial sum. Bytes: a reduce-scatter forward, an all-gather backward.
    """
    return _ReduceScatter.apply(x, dim, group)  # type: ignore[no-any-return, no-untyped-call]


# --- without gradients ------------------------------------------------------------------------------------------------


def _summed(x: Tensor, group: ProcessGroup | None, all_reduce: AllReduce) -> Tensor:
    if dist.get_world_size(group) == 1:
        return x
    total = x.contiguous().clone()
    all_reduce(total, group=group)
    return total


def share(size: int, group: ProcessGroup | None = None, what: str = "a dimension") -> slice:
    """This rank's part of `size` things that must divide by the ranks. Raises UsageError where they do not."""
    n, rank = dist.get_world_size(group), dist.get_rank(group)
    if size % n:
        near = [k for k in range(1, size + 1) if size % k == 0]
        raise UsageError(
            f"{what}: {size} cannot be cut into {n} equal parts; ranks that can share them: {', '.join(map(str, near))}"
        )
    return slice(rank * (size // n), (rank + 1) * (size // n))


def _own_part(x: Tensor, dim: int, group: ProcessGroup | None) -> Tensor:
    part = share(x.shape[dim], group)
    return x.narrow(dim, part.start, part.stop - part.start).contiguous()


def _all_gathered(x: Tensor, dim: int, group: ProcessGroup | None) -> Tensor:
    n = dist.get_world_size(group)
    if n == 1:
        return x
    parts = [torch.empty_like(x, memory_format=torch.contiguous_format) for _ in range(n)]
    dist.all_gather(parts, x.contiguous(), group=group)
    return torch.cat(parts, dim)


def _reduce_scattered(x: Tensor, dim: int, group: ProcessGroup | None) -> Tensor:
    n = dist.get_world_size(group)
    if n == 1:
        return x
    share(x.shape[dim], group)
    whole = torch.cat(x.chunk(n, dim)) if dim else x.contiguous()  # parts one after another, as the operator wants
    part = whole.new_empty(whole.shape[0] // n, *whole.shape[1:])
    dist.reduce_scatter_tensor(part, whole, group=group)
    return part
