"""The vocabulary split over ranks: the embedding's rows, and a cross-entropy that never gathers logits.

Shapes: B batch, T time, C channels, V vocabulary; `/tp` is split over the ranks, uneven as `tensor_split` does.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd import Function
from torch.distributed import ProcessGroup

from course.errors import UsageError
from course.parallel.tensor.exchange import AllReduce, copy_to_ranks, gather_sequence, reduce_from_ranks
from course.parallel.tensor.linear import shard


def vocabulary_share(size: int, group: ProcessGroup | None = None) -> slice:
    """The tokens whose rows this rank holds: the first ranks hold one more where they do not divide."""
    n, rank = dist.get_world_size(group), dist.get_rank(group)
    if size < n:
        raise UsageError(f"a vocabulary of {size} tokens cannot be split over {n} ranks: take at most {size} ranks")
    return slice(rank * (size // n) + min(rank, size % n), (rank + 1) * (size // n) + min(rank + 1, size % n))


class VocabParallelEmbedding(nn.Module):
    """Rows of V/tp tokens a rank: tokens int64 of any shape -> (..., C), the same on all ranks.

    A rank gives zeros for tokens of other ranks; the sum has each row once. Bytes: an all-reduce of the output's size
    forward; none backward (Shoeybi et al. 2019).
    """

    def __init__(
        self, embedding: nn.Embedding, *, group: ProcessGroup | None = None, all_reduce: AllReduce = dist.all_reduce
    ) -> None:
        super().__init__()
        self.group, self.all_reduce = group, all_reduce
        self.part = vocabulary_share(embedding.num_embeddings, group)
        self.weight = shard(embedding.weight, self.part)

    def forward(self, tokens: Tensor) -> Tensor:
        elsewhere = (tokens < self.part.start) | (tokens >= self.part.stop)
        rows = F.embedding((tokens - self.part.start).masked_fill(elsewhere, 0), self.weight)
        rows = rows.masked_fill(elsewhere[..., None], 0.0)
        return reduce_from_ranks(rows, self.group, all_reduce=self.all_reduce)


class VocabParallelHead(nn.Module):
    """Logits of this rank's tokens: (B, T, C) -> (B, T, V/tp). Ties to an embedding: `weight` may be its parameter.

    sequence: the input comes cut along dim 1 and is gathered first. Bytes: an all-reduce of its size backward.
    """

    def __init__(
        self,
        weight: nn.Parameter,
        *,
        group: ProcessGroup | None = None,
        sequence: bool = False,
        all_reduce: AllReduce = dist.all_reduce,
    ) -> None:
        super().__init__()
        self.weight, self.group, self.sequence, self.all_reduce = weight, group, sequence, all_reduce

    def forward(self, x: Tensor) -> Tensor:
        if self.sequence:
            return F.linear(gather_sequence(x, 1, self.group), self.weight)
        return F.linear(copy_to_ranks(x, self.group, all_reduce=self.all_reduce), self.weight)


class _CrossEntropy(Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor, start: int, group: ProcessGroup | None) -> Tensor:
        alone = dist.get_world_size(group) == 1
        largest = logits.amax(-1)
        if not alone:
            dist.all_reduce(largest, dist.ReduceOp.MAX, group=group)
        shifted = logits - largest[..., None]
        elsewhere = (targets < start) | (targets >= start + logits.shape[-1])
        index = (targets - start).masked_fill(elsewhere, 0)
        at_target = shifted.gather(-1, index[..., None])[..., 0].masked_fill(elsewhere, 0.0)
        weights = shifted.exp_()
        sums = torch.stack([weights.sum(-1), at_target])
        if not alone:
            dist.all_reduce(sums, group=group)
        ctx.save_for_backward(weights.div_(sums[0][..., None]), index, elsewhere)
        return (sums[0].log() - sums[1]).mean()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        softmax, index, elsewhere = ctx.saved_tensors
        ones = (~elsewhere).to(softmax.dtype)[..., None]
        return softmax.scatter_add(-1, index[..., None], -ones) * (grad / index.numel()), None, None, None


def vocab_parallel_cross_entropy(
    logits: Tensor, targets: Tensor, start: int, *, group: ProcessGroup | None = None
) -> Tensor:
    """The mean cross-entropy in nats over all tokens, a scalar, the same on all ranks.

    logits: this rank's, (..., V/tp), of the tokens from number `start` on; targets: (...) int64, whole vocabulary, the
    same on all ranks. Sent: 3 numbers a token (the largest logit, the sum of exponentials, the target's logit), never
    V: an all-reduce of (...) and one of twice that. None backward (Shoeybi et al. 2019).
    """
    if targets.shape != logits.shape[:-1]:
        raise UsageError(
            f"vocab_parallel_cross_entropy: targets must have the shape of logits without the last dim, "
            f"{tuple(logits.shape[:-1])}, but have {tuple(targets.shape)}"
        )
    return _CrossEntropy.apply(logits, targets, start, group)  # type: ignore[no-any-return, no-untyped-call]
