"""A matrix split over ranks: by columns (out features), by rows (in features), and the two together as an MLP.

Each takes the whole module, and keeps this rank's part of its weights: shards side by side equal the whole.
Shapes: B batch, T time, C channels, F feed-forward; `/tp` is split over the ranks.
"""

from __future__ import annotations

import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributed import ProcessGroup

from course.gpt.model import MLP
from course.parallel.tensor.exchange import (
    AllReduce,
    copy_to_ranks,
    gather_sequence,
    reduce_from_ranks,
    scatter_sequence,
    share,
)


class ColumnParallelLinear(nn.Module):
    """y/tp = x (W/tp)ᵀ + b/tp: each rank computes its share of the out features, from all of x.

    Full in (..., C), local out (..., F/tp). Bytes: none forward; backward an all-reduce of x's size (Shoeybi et al.
    2019, section 3). sequence: x comes cut along dim 1, (B, T/tp, C), and is gathered first.
    Raises UsageError where the ranks do not divide the out features.
    """

    def __init__(
        self,
        linear: nn.Linear,
        *,
        group: ProcessGroup | None = None,
        sequence: bool = False,
        all_reduce: AllReduce = dist.all_reduce,
    ) -> None:
        super().__init__()
        self.group, self.sequence, self.all_reduce = group, sequence, all_reduce
        own = share(linear.out_features, group, "out features")
        self.weight = shard(linear.weight, own)
        self.bias = None if linear.bias is None else shard(linear.bias, own)

    def forward(self, x: Tensor) -> Tensor:
        x = enter(x, self.group, self.sequence, self.all_reduce)
        return F.linear(x, self.weight, self.bias)  # (..., C) @ (C, F/tp) -> (..., F/tp)


class RowParallelLinear(nn.Module):
    """y = sum over ranks of (x/tp) (W/tp)ᵀ, + b once: each rank brings its share of the in features.

    Local in (..., F/tp), full out (..., C), the same on all ranks. Bytes: forward an all-reduce of y's size; none
    backward. sequence: y leaves cut along dim 1, (B, T/tp, C), by a reduce-scatter.
    The bias is whole on every rank and added after the sum; added before, it would count once a rank.
    Raises UsageError where the ranks do not divide the in features.
    """

    def __init__(
        self,
        linear: nn.Linear,
        *,
        group: ProcessGroup | None = None,
        sequence: bool = False,
        all_reduce: AllReduce = dist.all_reduce,
    ) -> None:
        super().__init__()
        self.group, self.sequence, self.all_reduce = group, sequence, all_reduce
        own = share(linear.in_features, group, "in features")
        self.weight = shard(linear.weight, (slice(None), own))
        self.bias = None if linear.bias is None else shard(linear.bias, slice(None))

    def forward(self, x: Tensor) -> Tensor:
        y = F.linear(x, self.weight)  # (..., F/tp) @ (F/tp, C) -> (..., C), one share of the sum
        y = leave(y, self.group, self.sequence, self.all_reduce)
        return y if self.bias is None else y + replicated(self.bias, self.group, self.sequence)


class ParallelMLP(nn.Module):
    """An MLP with its hidden layer split: columns up, rows down, so that nothing is sent in between.

    (B, T, C) -> (B, T, F/tp) -> (B, T, C), the same on all ranks. GELU works on each element alone, so it commutes
    with the column cut. Bytes: an all-reduce of B T C elements forward, and one backward.
    """

    def __init__(
        self,
        mlp: MLP,
        *,
        group: ProcessGroup | None = None,
        sequence: bool = False,
        all_reduce: AllReduce = dist.all_reduce,
    ) -> None:
        super().__init__()
        self.up = ColumnParallelLinear(mlp.up, group=group, sequence=sequence, all_reduce=all_reduce)
        self.down = RowParallelLinear(mlp.down, group=group, sequence=sequence, all_reduce=all_reduce)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.gelu(self.up(x)))


class SequenceParallelNorm(nn.Module):
    """A norm on this rank's part of the sequence: (B, T/tp, C) -> (B, T/tp, C).

    Its weights are whole on every rank; each rank sees only its own tokens, so their gradients are summed over ranks.
    Nothing is sent forward (Korthikanti et al. 2022).
    """

    def __init__(self, norm: nn.LayerNorm, *, group: ProcessGroup | None = None) -> None:
        super().__init__()
        self.group, self.shape, self.eps = group, norm.normalized_shape, norm.eps
        self.weight = None if norm.weight is None else shard(norm.weight, slice(None))
        self.bias = None if norm.bias is None else shard(norm.bias, slice(None))

    def forward(self, x: Tensor) -> Tensor:
        weight, bias = (p if p is None else replicated(p, self.group, True) for p in (self.weight, self.bias))
        return F.layer_norm(x, self.shape, weight, bias, self.eps)


def enter(x: Tensor, group: ProcessGroup | None, sequence: bool, all_reduce: AllReduce) -> Tensor:
    """x, whole, at the door of a split layer."""
    return gather_sequence(x, 1, group) if sequence else copy_to_ranks(x, group, all_reduce=all_reduce)


def leave(y: Tensor, group: ProcessGroup | None, sequence: bool, all_reduce: AllReduce) -> Tensor:
    """The sum of the ranks' y, whole or this rank's part of the sequence, behind a split layer."""
    return scatter_sequence(y, 1, group) if sequence else reduce_from_ranks(y, group, all_reduce=all_reduce)


def replicated(p: Tensor, group: ProcessGroup | None, sequence: bool) -> Tensor:
    """A parameter that every rank holds whole; where each sees its own tokens only, gradients are summed."""
    return copy_to_ranks(p, group) if sequence else p


def shard(p: nn.Parameter, part: slice | tuple[slice, slice] | Tensor) -> nn.Parameter:
    """This rank's part of a parameter, as a parameter of its own.

    It remembers where it comes from: `is_shard` says whether it is less than all, `whole_shape` and `part` (a slice of
    dim 0, one slice a dim, or row numbers) which of the whole it is.
    """
    own = nn.Parameter(p.detach()[part].clone(), requires_grad=p.requires_grad)
    own.is_shard, own.whole_shape, own.part = own.shape != p.shape, p.shape, part  # type: ignore[attr-defined]
    return own
