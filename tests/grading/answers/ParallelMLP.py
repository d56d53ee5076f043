# ruff: noqa: F811
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


def own(t, dim=0, parts=None):
    """This rank's part, as a parameter; refused where it does not divide."""
    n = dist.get_world_size()
    if t.shape[dim] % n:
        raise ValueError(f"{t.shape[dim]} over {n} ranks")
    return nn.Parameter(t.detach().chunk(n, dim)[dist.get_rank()].clone())


class Base(nn.Module):
    """A plain right answer, cut into methods so that a wrong one changes a few lines."""

    def __init__(self, mlp):
        super().__init__()
        self.up, self.up_bias = own(mlp.up.weight), own(mlp.up.bias)
        self.down = own(mlp.down.weight, dim=1)
        self.down_bias = nn.Parameter(mlp.down.bias.detach().clone())

    def enter(self, x):
        return Copy.apply(x)

    def leave(self, y):
        return Reduce.apply(y) + self.down_bias

    def forward(self, x):
        hidden = F.gelu(F.linear(self.enter(x), self.up, self.up_bias))
        return self.leave(F.linear(hidden, self.down))


@right("two Functions")
class ParallelMLP(Base):
    """As it stands."""


@right("two small nn.Linears, the bias on rank 0 before the sum")
class ParallelMLP(nn.Module):
    def __init__(self, mlp):
        super().__init__()
        rank, n = dist.get_rank(), dist.get_world_size()
        if len(mlp.up.bias) % n:
            raise ValueError(f"{len(mlp.up.bias)} channels over {n} ranks")
        size = len(mlp.up.bias) // n
        here = slice(rank * size, (rank + 1) * size)
        self.net = nn.Sequential(
            nn.Linear(mlp.up.in_features, size), nn.GELU(), nn.Linear(size, mlp.up.in_features, bias=rank == 0)
        )
        state = {
            "0.weight": mlp.up.weight[here], "0.bias": mlp.up.bias[here],
            "2.weight": mlp.down.weight[:, here], "2.bias": mlp.down.bias,
        }  # fmt: skip
        self.net.load_state_dict(state, strict=rank == 0)

    def forward(self, x):
        return Reduce.apply(self.net(Copy.apply(x)))


@right("a hook and constants, no Function")
class ParallelMLP(Base):
    def enter(self, x):
        def sum_up(grad):
            grad = grad.clone()
            dist.all_reduce(grad)
            return grad

        x = x * 1.0
        x.register_hook(sum_up)
        return x

    def leave(self, y):
        total = y.detach().clone()
        dist.all_reduce(total)
        return y + (total - y.detach()) + self.down_bias


@right("weights in one parameter, cut by hand")
class ParallelMLP(Base):
    def __init__(self, mlp):
        nn.Module.__init__(self)
        up, bias, down = own(mlp.up.weight), own(mlp.up.bias), own(mlp.down.weight, dim=1)
        self.all = nn.Parameter(torch.cat([up.detach(), bias.detach()[:, None], down.detach().T], 1))
        self.C = mlp.up.in_features
        self.down_bias = nn.Parameter(mlp.down.bias.detach().clone())

    def forward(self, x):
        up, bias, down = self.all.split([self.C, 1, self.C], 1)
        hidden = F.gelu(Copy.apply(x) @ up.T + bias[:, 0])
        return self.leave(hidden @ down)


@wrong("BIAS_ON_EVERY_RANK", points=0)
class ParallelMLP(Base):
    def leave(self, y):
        return Reduce.apply(y + self.down_bias)


@wrong("NO_BACKWARD_SUM", points=7)
class ParallelMLP(Base):
    def enter(self, x):
        return x


@wrong("SUMMED_BOTH_WAYS", points=5)
class ParallelMLP(Base):
    def leave(self, y):
        return differentiable.all_reduce(y) + self.down_bias


@wrong("NOT_SUMMED", points=0)
class ParallelMLP(Base):
    def leave(self, y):
        return y + self.down_bias


@wrong("SHARES_AVERAGED", points=0)
class ParallelMLP(Base):
    def leave(self, y):
        return Reduce.apply(y) / dist.get_world_size() + self.down_bias


@wrong("BIAS_LOST", points=0)
class ParallelMLP(Base):
    def leave(self, y):
        return Reduce.apply(y)


@wrong("ALL_REDUCE_RETURNED", points=0)
class ParallelMLP(Base):
    def leave(self, y):
        return dist.all_reduce(y) + self.down_bias


@wrong("WRONG_DIMENSION", points=0)
class ParallelMLP(Base):
    def __init__(self, mlp):
        super().__init__(mlp)
        self.up, self.down = own(mlp.up.weight, dim=1), own(mlp.down.weight, dim=0)
        self.up_bias = nn.Parameter(mlp.up.bias.detach().clone())


@wrong("GELU_OF_PARTS", points=0)
class ParallelMLP(nn.Module):
    def __init__(self, mlp):
        super().__init__()
        self.up = own(mlp.up.weight, dim=1)
        self.down, self.bias, self.down_bias = mlp.down.weight, mlp.up.bias, mlp.down.bias

    def forward(self, x):
        part = x.chunk(dist.get_world_size(), -1)[dist.get_rank()]
        hidden = F.gelu(F.linear(part, self.up, self.bias if dist.get_rank() == 0 else None))
        return Reduce.apply(F.linear(hidden, self.down)) + self.down_bias


@wrong("KEEPS_THE_WHOLE", points=8)
class ParallelMLP(nn.Module):
    """Computes everything everywhere."""

    def __init__(self, mlp):
        super().__init__()
        self.mlp = mlp

    def forward(self, x):
        return self.mlp(x)


@wrong("SUMMED_TOO_OFTEN", points=9)
class ParallelMLP(Base):
    """Rows, then rows: sums before the activation, and after it."""

    def leave(self, y):
        y = super().leave(y)
        dist.all_reduce(y.detach().clone())
        return y


@wrong("GATHERS", points=9)
class ParallelMLP(Base):
    def forward(self, x):
        hidden = F.gelu(F.linear(self.enter(x), self.up, self.up_bias))
        parts = [torch.empty_like(hidden) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, hidden.detach())
        parts[dist.get_rank()] = hidden
        mine = torch.cat(parts, -1).chunk(dist.get_world_size(), -1)[dist.get_rank()]
        return self.leave(F.linear(mine, self.down))


@wrong("OUTPUT_CUT_OFF", points=5)
class ParallelMLP(Base):
    def leave(self, y):
        y = y.detach()
        dist.all_reduce(y)
        return y + self.down_bias


@wrong("NO_PARAMETERS", points=8)
class ParallelMLP(Base):
    def __init__(self, mlp):
        nn.Module.__init__(self)
        n, rank = dist.get_world_size(), dist.get_rank()
        if len(mlp.up.bias) % n:
            raise ValueError
        self.up, self.up_bias = mlp.up.weight.chunk(n)[rank], mlp.up.bias.chunk(n)[rank]
        self.down = mlp.down.weight.chunk(n, 1)[rank]
        self.down_bias = mlp.down.bias.detach()


@wrong("NOT_REFUSED", points=9)
class ParallelMLP(Base):
    def __init__(self, mlp):
        nn.Module.__init__(self)
        n, rank = dist.get_world_size(), dist.get_rank()
        self.up = nn.Parameter(mlp.up.weight.detach().tensor_split(n)[rank].clone())
        self.up_bias = nn.Parameter(mlp.up.bias.detach().tensor_split(n)[rank].clone())
        self.down = nn.Parameter(mlp.down.weight.detach().tensor_split(n, 1)[rank].clone())
        self.down_bias = nn.Parameter(mlp.down.bias.detach().clone())


@wrong("OTHER_ERROR", points=9)
class ParallelMLP(Base):
    def __init__(self, mlp):
        assert len(mlp.up.bias) % dist.get_world_size() == 0
        super().__init__(mlp)


@wrong("REDUCED_IN_PLACE", points=0)
class ParallelMLP(Base):
    """Averages the input over ranks first, in place."""

    def enter(self, x):
        with torch.no_grad():
            dist.all_reduce(x)
            x /= dist.get_world_size()
        return Copy.apply(x)
