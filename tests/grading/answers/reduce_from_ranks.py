# ruff: noqa: F811
import torch
import torch.distributed as dist
import torch.distributed.nn.functional as differentiable

from tests.grading.bank import right, wrong


def summed(x):
    total = x.clone()
    dist.all_reduce(total)
    return total


class Reduce(torch.autograd.Function):
    """A plain right answer, of which wrong ones change a method."""

    @staticmethod
    def forward(ctx, x):
        return summed(x)

    @staticmethod
    def backward(ctx, grad):
        return grad


@right("a Function")
def reduce_from_ranks(x):
    return Reduce.apply(x)


@right("adds what the others brought, as a constant")
def reduce_from_ranks(x):
    with torch.no_grad():
        others = summed(x) - x
    return x + others


@right("all-reduces a clone, which autograd takes for a copy")
def reduce_from_ranks(x):
    y = x.clone()
    if dist.get_world_size() > 1:
        dist.all_reduce(y.detach())
    return y


@right("a Function of new style that returns a copy of the gradient")
def reduce_from_ranks(x):
    class Exit(torch.autograd.Function):
        @staticmethod
        def forward(x):
            total = torch.empty_like(x)
            total.copy_(x)
            dist.all_reduce(total, async_op=True).wait()
            return total

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.shape = inputs[0].shape

        @staticmethod
        def backward(ctx, grad):
            return grad.view(ctx.shape).clone()

    return Exit.apply(x)


@wrong("SUMMED_BOTH_WAYS", points=3)
def reduce_from_ranks(x):
    return differentiable.all_reduce(x)


@wrong("SUMMED_BOTH_WAYS", points=3)
def reduce_from_ranks(x):
    class Both(Reduce):
        @staticmethod
        def backward(ctx, grad):
            return summed(grad)

    return Both.apply(x)


@wrong("NOT_SUMMED", points=0)
def reduce_from_ranks(x):
    class Other(Reduce):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return summed(grad)

    return Other.apply(x)


@wrong("NOT_SUMMED", points=0)
def reduce_from_ranks(x):
    dist.all_reduce(x.detach().clone())
    return x * 1.0


@wrong("SHARES_AVERAGED", points=0)
def reduce_from_ranks(x):
    return Reduce.apply(x) / dist.get_world_size()


@wrong("SHARES_AVERAGED", points=3)
def reduce_from_ranks(x):
    class Divided(Reduce):
        @staticmethod
        def backward(ctx, grad):
            return grad / dist.get_world_size()

    return Divided.apply(x)


@wrong("ALL_REDUCE_RETURNED", points=0)
def reduce_from_ranks(x):
    return dist.all_reduce(x.clone())


@wrong("REDUCED_IN_PLACE", points=2)
def reduce_from_ranks(x):
    dist.all_reduce(x)
    return x


@wrong("REDUCED_IN_PLACE")
def reduce_from_ranks(x):
    class InPlace(Reduce):
        @staticmethod
        def forward(ctx, x):
            dist.all_reduce(x)
            return x.clone()

    return InPlace.apply(x)


@wrong("OUTPUT_CUT_OFF", points=3)
def reduce_from_ranks(x):
    with torch.no_grad():
        return summed(x)


@wrong("GATHERS", points=6)
def reduce_from_ranks(x):
    class Gathered(Reduce):
        @staticmethod
        def forward(ctx, x):
            parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
            dist.all_gather(parts, x)
            return torch.stack(parts).sum(0)

    return Gathered.apply(x)


@wrong("SUMMED_TOO_OFTEN", points=6)
def reduce_from_ranks(x):
    class Twice(Reduce):
        @staticmethod
        def backward(ctx, grad):
            return summed(grad) / dist.get_world_size()

    return Twice.apply(x)
