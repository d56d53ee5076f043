"""A whole GPT made tensor parallel: its layers in order, each with this rank's part of the weights.

The GPT itself is left alone; what comes back are new modules, ready for a pipeline too.
"""

from __future__ import annotations

import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributed import ProcessGroup

from course.errors import UsageError
from course.gpt.model import GPT, Block
from course.parallel.tensor.attention import ParallelAttention
from course.parallel.tensor.exchange import AllReduce, scatter_to_ranks, share
from course.parallel.tensor.linear import ParallelMLP, SequenceParallelNorm, shard
from course.parallel.tensor.vocabulary import VocabParallelEmbedding, VocabParallelHead, vocab_parallel_cross_entropy


class _Embed(nn.Module):
    """Tokens (B, T) -> (B, T, C), or with `sequence` this rank's (B, T/tp, C)."""

    def __init__(self, gpt: GPT, group: ProcessGroup | None, sequence: bool, all_reduce: AllReduce) -> None:
        super().__init__()
        self.group, self.sequence = group, sequence
        self.tokens = VocabParallelEmbedding(gpt.tokens, group=group, all_reduce=all_reduce)
        self.positions = shard(gpt.positions.weight, slice(None))
        self.dropout = gpt.spec.dropout

    def forward(self, x: Tensor) -> Tensor:
        h = self.tokens(x) + self.positions[: x.shape[1]]  # (B, T, C) + (T, C)
        if self.sequence:
            h = scatter_to_ranks(h, 1, self.group)
        return F.dropout(h, self.dropout, self.training)


class _Block(nn.Module):
    """One layer: attention, then MLP, each normed before and added to what came in."""

    def __init__(self, block: Block, group: ProcessGroup | None, sequence: bool, all_reduce: AllReduce) -> None:
        super().__init__()
        self.dropout = block.dropout.p
        self.norm_1, self.norm_2 = (_norm(norm, group, sequence) for norm in (block.norm_1, block.norm_2))
        self.attention = ParallelAttention(block.attention, group=group, sequence=sequence, all_reduce=all_reduce)
        self.mlp = ParallelMLP(block.mlp, group=group, sequence=sequence, all_reduce=all_reduce)

    def forward(self, x: Tensor) -> Tensor:
        x = x + F.dropout(self.attention(self.norm_1(x)), self.dropout, self.training)
        return x + F.dropout(self.mlp(self.norm_2(x)), self.dropout, self.training)


class _Head(nn.Module):
    """(B, T, C), or with `sequence` (B, T/tp, C) -> this rank's logits (B, T, V/tp)."""

    def __init__(
        self, gpt: GPT, weight: nn.Parameter, group: ProcessGroup | None, sequence: bool, all_reduce: AllReduce
    ) -> None:
        super().__init__()
        self.norm = _norm(gpt.norm, group, sequence)
        self.head = VocabParallelHead(weight, group=group, sequence=sequence, all_reduce=all_reduce)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.norm(x))


def _norm(norm: nn.LayerNorm, group: ProcessGroup | None, sequence: bool) -> nn.Module:
    if sequence:
        return SequenceParallelNorm(norm, group=group)
    whole = nn.LayerNorm(norm.normalized_shape, eps=norm.eps)
    whole.weight, whole.bias = (shard(p, slice(None)) for p in (norm.weight, norm.bias))
    return whole.to(norm.weight.device)


def tensor_parallel_layers(
    gpt: GPT,
    *,
    group: ProcessGroup | None = None,
    sequence: bool = False,
    all_reduce: AllReduce = dist.all_reduce,
) -> list[nn.Module]:
    """The layers of `gpt`, in order (embedding, blocks, head), each with this rank's part of the weights.

    One after another they turn tokens (B, T) into this rank's logits (B, T, V/tp), for `vocab_parallel_cross_entropy`
    from token `vocabulary_share(V).start` on. Tied embeddings stay tied. sequence: norms and dropout, too, work on
    T/tp tokens a rank; T must divide by the ranks.
    Bytes a layer and microbatch: 8 B T C (tp-1)/tp elements sent by each rank, two all-reduces forward and two backward
    (Korthikanti et al. 2022); as much with `sequence`.
    Raises UsageError where the ranks do not divide heads or hidden channels.
    """
    share(gpt.spec.heads, group, "heads")
    share(gpt.spec.hidden, group, "hidden channels")
    embed = _Embed(gpt, group, sequence, all_reduce)
    weight = embed.tokens.weight if gpt.spec.tied else shard(gpt.head.weight, embed.tokens.part)
    blocks = [_Block(block, group, sequence, all_reduce) for block in gpt.blocks]  # type: ignore[arg-type]
    return [embed, *blocks, _Head(gpt, weight, group, sequence, all_reduce)]


class TensorParallelGPT(nn.Module):
    """A GPT split over the ranks of `group`, with the whole one's losses: `TensorParallelGPT(gpt).loss(x, y)`.

    See `tensor_parallel_layers`. Raises UsageError for more tokens than the GPT's context.
    """

    def __init__(
        self,
        gpt: GPT,
        *,
        group: ProcessGroup | None = None,
        sequence: bool = False,
        all_reduce: AllReduce = dist.all_reduce,
    ) -> None:
        super().__init__()
        self.spec, self.group = gpt.spec, group
        self.layers = nn.Sequential(*tensor_parallel_layers(gpt, group=group, sequence=sequence, all_reduce=all_reduce))

    def forward(self, x: Tensor) -> Tensor:
        """This rank's logits (B, T, V/tp) for tokens x (B, T) int64."""
        if x.dim() != 2 or x.shape[1] > self.spec.context:
            found = f"tokens of shape {tuple(x.shape)}"
            raise UsageError(f"this GPT reads (batch, time) with time at most {self.spec.context}, but got {found}")
        return self.layers(x)

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        """Mean cross-entropy over all B * T tokens, in nats, the same on all ranks; x and y are (B, T) int64."""
        start = self.layers[0].tokens.part.start  # type: ignore[union-attr]
        return vocab_parallel_cross_entropy(self(x), y, start, group=self.group)
