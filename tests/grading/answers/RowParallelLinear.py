# ruff: noqa: F811
import torch
import torch.distributed as dist
import torch.distributed.nn.functional as differentiable
import torch.nn.functional as F
from torch import nn

from tests.grading.bank import right, wrong


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
        self.weight = own(linear.weight, dim=1)
        self.bias = None if linear.bias is None else nn.Parameter(linear.bias.detach().clone())

    def plus(self, y):
        return y if self.bias is None else y + self.bias

    def forward(self, x):
        return self.plus(Reduce.apply(F.linear(x, self.weight)))


@right("the bias after the sum")
class RowParallelLinear(Base):
    """As it stands."""


@right("the bias on rank 0 only, before the sum")
class RowParallelLinear(nn.Module):
    def __init__(self, linear):
        super().__init__()
        self.weight = own(linear.weight, dim=1)
        here = linear.bias is not None and dist.get_rank() == 0
        self.bias = nn.Parameter(linear.bias.detach().clone()) if here else None

    def forward(self, x):
        return Reduce.apply(F.linear(x, self.weight, self.bias))


@right("the bias on every rank, used on the last only, before the sum")
class RowParallelLinear(Base):
    def forward(self, x):
        last = dist.get_rank() == dist.get_world_size() - 1
        return Reduce.apply(F.linear(x, self.weight, self.bias if last else None))


@right("the others' shares as constants")
class RowParallelLinear(Base):
    def forward(self, x):
        y = x @ self.weight.t()
        total = y.detach().clone()
        dist.all_reduce(total)
        return self.plus(y + (total - y.detach()))


@right("summed in place where nobody else needs the tensor")
class RowParallelLinear(Base):
    def forward(self, x):
        y = F.linear(x, self.weight)
        dist.all_reduce(y.detach())
        return self.plus(y)


@wrong("BIAS_ON_EVERY_RANK", points=0)
class RowParallelLinear(Base):
    def forward(self, x):
        return Reduce.apply(F.linear(x, self.weight, self.bias))


@wrong("BIAS_LOST", points=0)
class RowParallelLinear(Base):
    def forward(self, x):
        return Reduce.apply(F.linear(x, self.weight))


@wrong("NOT_SUMMED", points=0)
class RowParallelLinear(Base):
    def forward(self, x):
        return F.linear(x, self.weight, self.bias)


@wrong("SHARES_AVERAGED", points=0)
class RowParallelLinear(Base):
    def forward(self, x):
        return Reduce.apply(F.linear(x, self.weight, self.bias)) / dist.get_world_size()


@wrong("SHARES_AVERAGED")
class RowParallelLinear(Base):
    def forward(self, x):
        y = Reduce.apply(F.linear(x, self.weight))
        scaled = self.plus(y)
        n = dist.get_world_size()
        y.register_hook(lambda grad: grad / n)
        return scaled


@wrong("SUMMED_BOTH_WAYS", points=5)
class RowParallelLinear(Base):
    def forward(self, x):
        return self.plus(differentiable.all_reduce(F.linear(x, self.weight)))


@wrong("ALL_REDUCE_RETURNED", points=0)
class RowParallelLinear(Base):
    def forward(self, x):
        return dist.all_reduce(F.linear(x, self.weight))


@wrong("ALL_REDUCE_RETURNED", points=0)
class RowParallelLinear(Base):
    def forward(self, x):
        return dist.all_reduce(F.linear(x, self.weight)) + self.bias


@wrong("SHARD_CUT_AGAIN")
class RowParallelLinear(Base):
    def forward(self, x):
        size, rank = self.weight.shape[1], dist.get_rank()
        return self.plus(Reduce.apply(F.linear(x[..., rank * size : (rank + 1) * size], self.weight)))


@wrong("WRONG_DIMENSION", points=0)
class RowParallelLinear(Base):
    def __init__(self, linear):
        super().__init__(linear)
        self.weight = own(linear.weight, dim=0)


@wrong("SAME_PART", points=0)
class RowParallelLinear(Base):
    def __init__(self, linear):
        super().__init__(linear)
        size = linear.in_features // dist.get_world_size()
        self.weight = nn.Parameter(linear.weight.detach()[:, :size].clone())


@wrong("OUTPUT_CUT_OFF", points=5)
class RowParallelLinear(Base):
    def forward(self, x):
        with torch.no_grad():
            total = Reduce.apply(F.linear(x, self.weight))
        return self.plus(total)


@wrong("KEEPS_THE_WHOLE", points=8, says="gathers what could stay apart")
class RowParallelLinear(nn.Module):
    """Gathers the input and computes everything on each rank."""

    def __init__(self, linear):
        super().__init__()
        if linear.in_features % dist.get_world_size():
            raise ValueError
        self.linear = linear

    def forward(self, x):
        parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, x.detach())
        parts[dist.get_rank()] = x
        return self.linear(torch.cat(parts, -1))


@wrong("KEEPS_THE_WHOLE", points=9)
class RowParallelLinear(Base):
    def __init__(self, linear):
        if linear.in_features % dist.get_world_size():
            raise ValueError
        nn.Module.__init__(self)
        self.linear, self.bias = linear, linear.bias

    @property
    def weight(self):
        return self.linear.weight.chunk(dist.get_world_size(), 1)[dist.get_rank()]


@wrong(says="which the module does not have", points=8)
class RowParallelLinear(Base):
    def __init__(self, linear):
        super().__init__(linear)
        if linear.bias is not None:
            self.bias = nn.Parameter(linear.bias.detach() / dist.get_world_size())

    def forward(self, x):
        return Reduce.apply(F.linear(x, self.weight, self.bias))


@wrong("SUMMED_TOO_OFTEN", points=9)
class RowParallelLinear(Base):
    def forward(self, x):
        y = super().forward(x)
        total = y.detach().clone()
        dist.all_reduce(total)
        return y + 0 * total


@wrong("NOT_REFUSED", points=9)
class RowParallelLinear(Base):
    def __init__(self, linear):
        nn.Module.__init__(self)
        n, rank = dist.get_world_size(), dist.get_rank()
        self.weight = nn.Parameter(linear.weight.detach().tensor_split(n, 1)[rank].clone())
        self.bias = None if linear.bias is None else nn.Parameter(linear.bias.detach().clone())


@wrong("BIAS_ASSUMED", points=0)
class RowParallelLinear(Base):
    def plus(self, y):
        return y + self.bias


@wrong(says="the module that was handed in is changed", points=0)
class RowParallelLinear(Base):
    """Spreads the bias over the ranks, in the whole layer itself."""

    def __init__(self, linear):
        if linear.bias is not None:
            with torch.no_grad():
                linear.bias /= dist.get_world_size()
        super().__init__(linear)

    def forward(self, x):
        return Reduce.apply(F.linear(x, self.weight, self.bias))
