# ruff: noqa: F811
import math

import torch
import torch.distributed as dist
import torch.distributed.nn.functional as differentiable
import torch.nn.functional as F
from torch import nn

from tests.grading.bank import right, wrong


class Copy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, grad):
        total = grad.clone()
        dist.all_reduce(total)
        return total


class Reduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        total = x.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx, grad):
        return grad


class Base(nn.Module):
    """A plain right answer, cut into methods so that a wrong one changes a few lines."""

    def __init__(self, attention):
        super().__init__()
        n, rank = dist.get_world_size(), dist.get_rank()
        self.all_heads = attention.heads
        self.refuse(attention.heads % n)
        self.heads = attention.heads // n
        self.weight = nn.Parameter(self.own_rows(attention.qkv.weight.detach(), rank, n).clone())
        self.bias = nn.Parameter(self.own_rows(attention.qkv.bias.detach(), rank, n).clone())
        self.out = nn.Parameter(attention.out.weight.detach().chunk(n, 1)[rank].clone())
        self.out_bias = nn.Parameter(attention.out.bias.detach().clone())

    def refuse(self, rest):
        if rest:
            raise ValueError("heads do not divide")

    def own_rows(self, t, rank, n):
        return torch.cat([third.chunk(n)[rank] for third in t.chunk(3)])

    def enter(self, x):
        return Copy.apply(x)

    def leave(self, y):
        return Reduce.apply(F.linear(y, self.out)) + self.out_bias

    def qkv(self, x):
        q, k, v = F.linear(x, self.weight, self.bias).chunk(3, -1)
        return [t.view(*x.shape[:2], self.heads, -1).transpose(1, 2) for t in (q, k, v)]

    def attend(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    def forward(self, x):
        y = self.attend(*self.qkv(self.enter(x)))
        return self.leave(y.transpose(1, 2).reshape(*x.shape[:2], -1))


@right("thirds, then heads")
class ParallelAttention(Base):
    """As it stands."""


@right("three layers, scores written out, the bias on rank 0 only")
class ParallelAttention(nn.Module):
    def __init__(self, attention):
        super().__init__()
        n, rank = dist.get_world_size(), dist.get_rank()
        if attention.heads % n:
            raise ValueError(f"{attention.heads} heads over {n} ranks")
        self.heads = attention.heads // n
        C = attention.out.in_features
        self.width = C // attention.heads
        size = C // n
        self.q, self.k, self.v = (nn.Linear(C, size) for _ in range(3))
        with torch.no_grad():
            for number, layer in enumerate((self.q, self.k, self.v)):
                here = slice(number * C + rank * size, number * C + (rank + 1) * size)
                layer.weight.copy_(attention.qkv.weight[here])
                layer.bias.copy_(attention.qkv.bias[here])
        self.o = nn.Linear(size, C, bias=rank == 0)
        with torch.no_grad():
            self.o.weight.copy_(attention.out.weight[:, rank * size : (rank + 1) * size])
            if rank == 0:
                self.o.bias.copy_(attention.out.bias)

    def forward(self, x):
        x = Copy.apply(x)
        B, T, _ = x.shape
        q, k, v = (f(x).view(B, T, self.heads, self.width).transpose(1, 2) for f in (self.q, self.k, self.v))
        scores = q @ k.mT / math.sqrt(self.width)
        scores = scores.masked_fill(torch.ones(T, T).triu(1) > 0, float("-inf"))
        y = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
        return Reduce.apply(self.o(y))


@right("head by head, weights kept in four dims")
class ParallelAttention(Base):
    def __init__(self, attention):
        nn.Module.__init__(self)
        n, rank = dist.get_world_size(), dist.get_rank()
        self.refuse(attention.heads % n)
        H, C = attention.heads, attention.out.out_features
        mine = slice(rank * (H // n), (rank + 1) * (H // n))
        self.w = nn.Parameter(attention.qkv.weight.detach().view(3, H, C // H, C)[:, mine].clone())
        self.b = nn.Parameter(attention.qkv.bias.detach().view(3, H, C // H)[:, mine].clone())
        self.o = nn.Parameter(attention.out.weight.detach().view(C, H, C // H)[:, mine].clone())
        self.out_bias = nn.Parameter(attention.out.bias.detach().clone())

    def forward(self, x):
        x = self.enter(x)
        q, k, v = torch.einsum("btc,shdc->sbhtd", x, self.w) + self.b[:, None, :, None]
        y = self.attend(q, k, v)
        return Reduce.apply(torch.einsum("bhtd,chd->btc", y, self.o)) + self.out_bias


@wrong("QKV_IN_ONE_PIECE", points=0)
class ParallelAttention(Base):
    def own_rows(self, t, rank, n):
        return t.chunk(n)[rank]


@wrong("QKV_PER_HEAD", points=0)
class ParallelAttention(Base):
    def own_rows(self, t, rank, n):
        mine = t.view(self.all_heads, 3, -1, *t.shape[1:]).chunk(n)[rank]
        return mine.transpose(0, 1).reshape(-1, *t.shape[1:])


@wrong("LOCAL_WIDTH_SCALE", points=0)
class ParallelAttention(Base):
    def attend(self, q, k, v):
        width = q.shape[1] * q.shape[-1]
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=width**-0.5)


@wrong("LOCAL_WIDTH_SCALE", points=0)
class ParallelAttention(Base):
    def attend(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=self.out.shape[0] ** -0.5)


@wrong("LOCAL_WIDTH_SCALE", points=0)
class ParallelAttention(Base):
    def attend(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=1.0)


@wrong("HEADS_NOT_SHARED", points=0)
class ParallelAttention(Base):
    def __init__(self, attention):
        super().__init__(attention)
        self.heads = attention.heads


@wrong("SEES_THE_FUTURE", points=0)
class ParallelAttention(Base):
    def attend(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v)


@wrong("SAME_PART", points=0)
class ParallelAttention(Base):
    def __init__(self, attention):
        super().__init__(attention)
        n = dist.get_world_size()
        self.weight = nn.Parameter(self.own_rows(attention.qkv.weight.detach(), 0, n).clone())
        self.bias = nn.Parameter(self.own_rows(attention.qkv.bias.detach(), 0, n).clone())
        self.out = nn.Parameter(attention.out.weight.detach().chunk(n, 1)[0].clone())


@wrong("BIAS_ON_EVERY_RANK", points=0)
class ParallelAttention(Base):
    def leave(self, y):
        return Reduce.apply(F.linear(y, self.out, self.out_bias))


@wrong("NOT_SUMMED", points=0)
class ParallelAttention(Base):
    def leave(self, y):
        return F.linear(y, self.out, self.out_bias)


@wrong("NO_BACKWARD_SUM", points=9)
class ParallelAttention(Base):
    def enter(self, x):
        return x


@wrong("SUMMED_BOTH_WAYS", points=7)
class ParallelAttention(Base):
    def leave(self, y):
        return differentiable.all_reduce(F.linear(y, self.out)) + self.out_bias


@wrong("ALL_REDUCE_RETURNED", points=0)
class ParallelAttention(Base):
    def leave(self, y):
        return dist.all_reduce(F.linear(y, self.out))


@wrong("WRONG_DIMENSION", points=0)
class ParallelAttention(Base):
    def __init__(self, attention):
        super().__init__(attention)
        self.out = nn.Parameter(attention.out.weight.detach().chunk(dist.get_world_size())[dist.get_rank()].clone())


@wrong("KEEPS_THE_WHOLE", points=10)
class ParallelAttention(nn.Module):
    def __init__(self, attention):
        super().__init__()
        self.whole = attention

    def forward(self, x):
        return self.whole(x)


@wrong("NOT_REFUSED", points=11)
class ParallelAttention(Base):
    def refuse(self, rest):
        self.rest = rest


@wrong("GATHERS", points=11)
class ParallelAttention(Base):
    def leave(self, y):
        parts = [torch.empty_like(y) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, y.detach())
        return super().leave(y)
