# ruff: noqa: F811
import torch
import torch.distributed as dist
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


class Base(nn.Module):
    """A plain right answer, cut into methods so that a wrong one changes a few lines."""

    def __init__(self, norm):
        super().__init__()
        self.shape, self.eps = norm.normalized_shape, norm.eps
        self.weight, self.bias = (nn.Parameter(p.detach().clone()) for p in (norm.weight, norm.bias))

    def forward(self, x):
        return F.layer_norm(x, self.shape, Copy.apply(self.weight), Copy.apply(self.bias), self.eps)


@right("weight and bias through a Function")
class SequenceParallelNorm(Base):
    """As it stands."""


@right("keeps the norm, with hooks on its parameters")
class SequenceParallelNorm(nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.norm = nn.LayerNorm(norm.normalized_shape, eps=norm.eps)
        self.norm.load_state_dict(norm.state_dict())
        for p in self.norm.parameters():
            p.register_hook(self.sum_up)

    def sum_up(self, grad):
        grad = grad.clone()
        dist.all_reduce(grad)
        return grad

    def forward(self, x):
        return self.norm(x)


@right("by hand, both in one parameter and one all-reduce")
class SequenceParallelNorm(nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.eps = norm.eps
        self.both = nn.Parameter(torch.stack([norm.weight, norm.bias]).detach())

    def forward(self, x):
        weight, bias = Copy.apply(self.both)
        centred = x - x.mean(-1, keepdim=True)
        return centred / (centred.pow(2).mean(-1, keepdim=True) + self.eps).sqrt() * weight + bias


@wrong("OWN_TOKENS_ONLY", points=3)
class SequenceParallelNorm(Base):
    def forward(self, x):
        return F.layer_norm(x, self.shape, self.weight, self.bias, self.eps)


@wrong("SHARES_AVERAGED", points=3)
class SequenceParallelNorm(Base):
    def forward(self, x):
        weight, bias = Copy.apply(self.weight), Copy.apply(self.bias)
        n = dist.get_world_size()
        for p in (weight, bias):
            p.register_hook(lambda grad: grad / n)
        return F.layer_norm(x, self.shape, weight, bias, self.eps)


@wrong("TOKENS_MIXED", points=5)
class SequenceParallelNorm(Base):
    def forward(self, x):
        return super().forward(Copy.apply(x))


@wrong("EPS_LOST", points=0)
class SequenceParallelNorm(Base):
    def forward(self, x):
        return F.layer_norm(x, self.shape, Copy.apply(self.weight), Copy.apply(self.bias))


@wrong("NORM_WEIGHTS_LOST", points=0)
class SequenceParallelNorm(Base):
    def forward(self, x):
        return F.layer_norm(x, self.shape, eps=self.eps)


@wrong("BIAS_LOST", points=0)
class SequenceParallelNorm(Base):
    def forward(self, x):
        return F.layer_norm(x, self.shape, Copy.apply(self.weight), None, self.eps)


@wrong("NO_PARAMETERS", points=3)
class SequenceParallelNorm(Base):
    def __init__(self, norm):
        nn.Module.__init__(self)
        self.shape, self.eps = norm.normalized_shape, norm.eps
        self.weight, self.bias = norm.weight * 1, norm.bias * 1


@wrong("OUTPUT_CUT_OFF", points=3)
class SequenceParallelNorm(Base):
    def forward(self, x):
        return F.layer_norm(x, self.shape, self.weight.data, self.bias.data, self.eps)


@wrong("GATHERS")
class SequenceParallelNorm(Base):
    """Puts the whole sequence together, and takes its part out again."""

    def forward(self, x):
        parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, x.detach())
        parts[dist.get_rank()] = x
        y = super().forward(torch.cat(parts, 1))
        return y.chunk(dist.get_world_size(), 1)[dist.get_rank()]


@wrong("SUMMED_BOTH_WAYS", points=3)
class SequenceParallelNorm(Base):
    """Sums the gradients twice."""

    def forward(self, x):
        weight, bias = Copy.apply(Copy.apply(self.weight)), Copy.apply(Copy.apply(self.bias))
        return F.layer_norm(x, self.shape, weight, bias, self.eps)


@wrong("ALL_REDUCE_RETURNED", points=0)
class SequenceParallelNorm(Base):
    def forward(self, x):
        return dist.all_reduce(super().forward(x))
