"""Attention split over ranks by heads. Split by the sequence, it is in `context`.

Shapes: B batch, T time, C channels, H heads, D = C/H channels a head; `/tp` is split over the ranks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributed import ProcessGroup

from course.gpt.model import explicit_attention
from course.parallel.tensor.exchange import AllReduce, share
from course.parallel.tensor.linear import RowParallelLinear, enter, shard


class ParallelAttention(nn.Module):
    """Causal self-attention with H/tp heads a rank; heads need nothing of each other.

    Takes a whole attention module with `qkv` and `out` (linear layers), `heads` and, for grouped queries, `kv_heads`.
    `qkv` holds queries, keys and values in this order, the heads of each one after another: this rank's part is a
    piece of each of the three, never one piece of the whole.
    (B, T, C) -> (B, T, C), the same on all ranks. Bytes: an all-reduce of B T C elements forward, and one backward.
    Raises UsageError where the ranks do not divide the heads (with grouped queries: the key and value heads).
    """

    def __init__(
        self,
        attention: nn.Module,
        *,
        group: ProcessGroup | None = None,
        sequence: bool = False,
        all_reduce: AllReduce = dist.all_reduce,
    ) -> None:
        super().__init__()
        self.group, self.sequence, self.all_reduce = group, sequence, all_reduce
        qkv: nn.Linear = attention.qkv  # type: ignore[assignment]
        heads: int = attention.heads  # type: ignore[assignment]
        kv_heads: int = getattr(attention, "kv_heads", heads)
        self.kind, self.dropout = getattr(attention, "kind", "sdpa"), getattr(attention, "dropout", 0.0)
        self.width = qkv.out_features // (heads + 2 * kv_heads)  # D
        own, own_kv = share(heads, group, "heads"), share(kv_heads, group, "key and value heads")
        self.heads, self.kv_heads = own.stop - own.start, own_kv.stop - own_kv.start
        rows = torch.arange(qkv.out_features).view(-1, self.width)  # (H + 2 KV, D): which rows make a head
        q, k, v = rows.split([heads, kv_heads, kv_heads])
        mine = torch.cat([q[own], k[own_kv], v[own_kv]]).flatten()
        self.weight = shard(qkv.weight, mine)
        self.bias = None if qkv.bias is None else shard(qkv.bias, mine)
        out: nn.Linear = attention.out  # type: ignore[assignment]
        self.out = RowParallelLinear(out, group=group, sequence=sequence, all_reduce=all_reduce)

    def forward(self, x: Tensor) -> Tensor:
        x = enter(x, self.group, self.sequence, self.all_reduce)
        B, T, _ = x.shape
        qkv = F.linear(x, self.weight, self.bias)  # (B, T, C) @ (C, (H + 2 KV) D/tp)
        q, k, v = qkv.view(B, T, -1, self.width).transpose(1, 2).split([self.heads, self.kv_heads, self.kv_heads], 1)
        dropout = self.dropout if self.training else 0.0
        with _own_draws(self.group, x.device) if dropout and not self.sequence else contextlib.nullcontext():
            y = self._attend(q, k, v, dropout)
        return self.out(y.transpose(1, 2).reshape(B, T, -1))  # (B, T, C/tp) -> (B, T, C)

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, dropout: float) -> Tensor:
        grouped = self.heads != self.kv_heads
        if self.kind == "sdpa":
            return F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True, enable_gqa=grouped)
        if grouped:
            k, v = (t.repeat_interleave(self.heads // self.kv_heads, 1) for t in (k, v))
        return explicit_attention(q, k, v, dropout)


@contextlib.contextmanager
def _own_draws(group: ProcessGroup | None, device: torch.device) -> Iterator[None]:
    """Random numbers that differ from rank to rank, for heads that do; afterwards ranks draw alike again.

    With `sequence` every draw differs already (see `HybridGPT`).
    """
    seed = int(torch.randint(2**31, ()))  # alike on all ranks of tp, and another in each call
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed + dist.get_rank(group))
        yield
