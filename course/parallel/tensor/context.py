"""Context parallel: attention over a sequence that is cut over the ranks. Keys and values go round a ring.

Shapes: B batch, H heads, T time, D channels a head; `/cp` is split over the ranks.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd import Function
from torch.distributed import ProcessGroup

from course.collectives import ring_shift
from course.errors import UsageError


def ring_attention(q: Tensor, k: Tensor, v: Tensor, *, group: ProcessGroup | None = None) -> Tensor:
    """Causal attention over the whole sequence: (B, H, T/cp, D) each -> (B, H, T/cp, D), rank r holding part r.

    Each rank keeps, for each of its queries, the largest score so far and the sums under it, so that no (T, T) matrix
    exists anywhere (Liu et al. 2023; the running softmax: Milakov and Gimelshein 2018). Later parts are skipped, so the
    last rank computes most.
    Bytes a rank sends, with S those of its k and v: (cp-1) S forward, (2 cp - 1) S backward, where k and v go round
    again with their gradients. Raises UsageError where q, k and v differ in shape.
    """
    if not q.shape == k.shape == v.shape:
        found = ", ".join(str(tuple(t.shape)) for t in (q, k, v))
        raise UsageError(f"ring_attention needs q, k and v of one shape (batch, heads, time, width), but got {found}")
    return _RingAttention.apply(q, k, v, group)  # type: ignore[no-any-return, no-untyped-call]


class _RingAttention(Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, group: ProcessGroup | None) -> Tensor:
        n, rank = dist.get_world_size(group), dist.get_rank(group)
        largest = q.new_full((*q.shape[:-1], 1), -math.inf)  # (B, H, T/cp, 1)
        weight_sum, total = torch.zeros_like(largest), torch.zeros_like(q)
        kv = torch.stack([k, v])  # they travel together
        for step in range(n):
            source = (rank - step) % n  # whose keys are here now
            if source <= rank:
                scores = _scores(q, kv[0], causal=source == rank)
                new = torch.maximum(largest, scores.amax(-1, keepdim=True))
                weights, keep = (scores - new).exp(), (largest - new).exp()
                weight_sum = weight_sum * keep + weights.sum(-1, keepdim=True)
                total, largest = total * keep + weights @ kv[1], new
            if step < n - 1:
                kv = ring_shift(kv, group=group)
        y = total / weight_sum
        ctx.group = group
        ctx.save_for_backward(q, k, v, y, largest + weight_sum.log())
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        q, k, v, y, log_sum = ctx.saved_tensors
        n, rank = dist.get_world_size(ctx.group), dist.get_rank(ctx.group)
        scale = 1 / math.sqrt(q.shape[-1])
        inner = (grad * y).sum(-1, keepdim=True)  # (B, H, T/cp, 1)
        grad_q = torch.zeros_like(q)
        moving = torch.stack([k, v, torch.zeros_like(k), torch.zeros_like(v)])  # k and v, and their gradients
        for step in range(n):
            source = (rank - step) % n
            if source <= rank:
                weights = (_scores(q, moving[0], causal=source == rank) - log_sum).exp()  # the softmax again
                moving[3] += weights.transpose(-2, -1) @ grad
                grad_scores = weights * (grad @ moving[1].transpose(-2, -1) - inner) * scale
                grad_q += grad_scores @ moving[0]
                moving[2] += grad_scores.transpose(-2, -1) @ q
            if step < n - 1:
                moving = ring_shift(moving, group=ctx.group)
        home = ring_shift(moving[2:], group=ctx.group)  # one step more, and they are back with their owner
        return grad_q, home[0], home[1], None


def _scores(q: Tensor, k: Tensor, *, causal: bool) -> Tensor:
    """q kᵀ / sqrt(D), (B, H, T, D) @ (B, H, D, T); with `causal`, no query sees a later key of its own part."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if not causal:
        return scores
    later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
    return scores.masked_fill_(later, -math.inf)
