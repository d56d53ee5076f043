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


class Reduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        total = x.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx, grad):
        return grad


def own(t, dim=0, parts=None):
    """This rank's part, as a parameter; refused where it does not divide."""
    n = dist.get_world_size()
    if t.shape[dim] % n:
        raise ValueError(f"{t.shape[dim]} over {n} ranks")
    return nn.Parameter(t.detach().chunk(n, dim)[dist.get_rank()].clone())


class Base(nn.Module):
    """A plain right answer, cut into methods so that a wrong one changes a few lines."""

    def __init__(self, linear):
        super().__init__()
        self.weight = own(linear.weight)
        self.bias = None if linear.bias is None else own(linear.bias)

    def forward(self, x):
        return F.linear(Copy.apply(x), self.weight, self.bias)


@right("a Function and F.linear")
class ColumnParallelLinear(Base):
    """As it stands."""


@right("a smaller nn.Linear, and a hook")
class ColumnParallelLinear(nn.Module):
    def __init__(self, linear):
        super().__init__()
        rank, n = dist.get_rank(), dist.get_world_size()
        size, rest = divmod(linear.out_features, n)
        if rest:
            raise ValueError("does not divide")
        self.part = nn.Linear(linear.in_features, size, bias=linear.bias is not None)
        here = slice(rank * size, (rank + 1) * size)
        with torch.no_grad():
            self.part.weight.copy_(linear.weight[here])
            if linear.bias is not None:
                self.part.bias.copy_(linear.bias[here])

    def forward(self, x):
        def sum_up(grad):
            grad = grad.clone()
            dist.all_reduce(grad)
            return grad

        x = x.view_as(x)
        if x.requires_grad:
            x.register_hook(sum_up)
        return self.part(x)


@right("keeps the weight transposed, and a list of biases")
class ColumnParallelLinear(nn.Module):
    def __init__(self, linear):
        super().__init__()
        self.weight = nn.Parameter(own(linear.weight).detach().t().contiguous())
        self.biases = nn.ParameterList([] if linear.bias is None else [own(linear.bias)])

    def forward(self, x):
        y = Copy.apply(x) @ self.weight
        for bias in self.biases:
            y = y + bias
        return y


@wrong("NO_BACKWARD_SUM", points=7)
class ColumnParallelLinear(Base):
    def forward(self, x):
        return F.linear(x, self.weight, self.bias)


@wrong("SHARES_AVERAGED", points=7)
class ColumnParallelLinear(Base):
    def forward(self, x):
        y = Copy.apply(x)
        n = dist.get_world_size()
        if y.requires_grad:
            y.register_hook(lambda grad: grad / n)
        return F.linear(y, self.weight, self.bias)


@wrong("ALL_REDUCE_RETURNED", points=0)
class ColumnParallelLinear(Base):
    def forward(self, x):
        return dist.all_reduce(F.linear(x, self.weight, self.bias))


@wrong("COLUMN_GATHERED", points=0)
class ColumnParallelLinear(Base):
    def forward(self, x):
        y = super().forward(x)
        parts = [torch.empty_like(y) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, y.detach())
        parts[dist.get_rank()] = y
        return torch.cat(parts, -1)


@wrong("COLUMN_GATHERED", points=0)
class ColumnParallelLinear(Base):
    def __init__(self, linear):
        super().__init__(linear)
        self.linear = linear

    def forward(self, x):
        return self.linear(x)


@wrong("SAME_PART", points=0)
class ColumnParallelLinear(Base):
    def __init__(self, linear):
        nn.Module.__init__(self)
        size = linear.out_features // dist.get_world_size()
        self.weight = nn.Parameter(linear.weight.detach()[:size].clone())
        self.bias = None if linear.bias is None else nn.Parameter(linear.bias.detach()[:size].clone())


@wrong("STRIDED_PART", points=0)
class ColumnParallelLinear(Base):
    def __init__(self, linear):
        nn.Module.__init__(self)
        rank, n = dist.get_rank(), dist.get_world_size()
        self.weight = nn.Parameter(linear.weight.detach()[rank::n].clone())
        self.bias = None if linear.bias is None else nn.Parameter(linear.bias.detach()[rank::n].clone())


@wrong("BIAS_LOST", points=0)
class ColumnParallelLinear(Base):
    def forward(self, x):
        return F.linear(Copy.apply(x), self.weight)


@wrong("WRONG_DIMENSION", points=0)
class ColumnParallelLinear(Base):
    def __init__(self, linear):
        super().__init__(linear)
        self.weight = own(linear.weight, dim=1)


@wrong("KEEPS_THE_WHOLE", points=9)
class ColumnParallelLinear(nn.Module):
    def __init__(self, linear):
        super().__init__()
        if linear.out_features % dist.get_world_size():
            raise ValueError
        self.linear = linear

    def forward(self, x):
        n, rank = dist.get_world_size(), dist.get_rank()
        weight = self.linear.weight.chunk(n)[rank]
        bias = None if self.linear.bias is None else self.linear.bias.chunk(n)[rank]
        return F.linear(Copy.apply(x), weight, bias)


@wrong("NO_PARAMETERS", points=8)
class ColumnParallelLinear(Base):
    def __init__(self, linear):
        nn.Module.__init__(self)
        n, rank = dist.get_world_size(), dist.get_rank()
        if linear.out_features % n:
            raise ValueError
        self.weight = linear.weight.chunk(n)[rank]
        self.bias = None if linear.bias is None else linear.bias.chunk(n)[rank]


@wrong("NOT_REFUSED", points=9)
class ColumnParallelLinear(Base):
    def __init__(self, linear):
        nn.Module.__init__(self)
        n, rank = dist.get_world_size(), dist.get_rank()
        self.weight = nn.Parameter(linear.weight.detach().tensor_split(n)[rank].clone())
        self.bias = None if linear.bias is None else nn.Parameter(linear.bias.detach().tensor_split(n)[rank].clone())


@wrong("OTHER_ERROR", points=9)
class ColumnParallelLinear(Base):
    def __init__(self, linear):
        if linear.out_features % dist.get_world_size():
            raise RuntimeError("does not divide")
        super().__init__(linear)


@wrong("GATHERS", points=9)
class ColumnParallelLinear(Base):
    def forward(self, x):
        y = super().forward(x)
        parts = [torch.empty_like(y) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, y.detach())
        return y


@wrong(says="it makes a function", points=0)
def ColumnParallelLinear(linear):
    weight, bias = own(linear.weight), None if linear.bias is None else own(linear.bias)
    return lambda x: F.linear(Copy.apply(x), weight, bias)


@wrong("BIAS_ASSUMED", points=0)
class ColumnParallelLinear(Base):
    def __init__(self, linear):
        nn.Module.__init__(self)
        self.weight, self.bias = own(linear.weight), own(linear.bias)
