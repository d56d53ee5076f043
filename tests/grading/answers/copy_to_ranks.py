# ruff: noqa: F811
import torch
import torch.distributed as dist

from tests.grading.bank import right, wrong


class Copy(torch.autograd.Function):
    """A plain right answer, of which wrong ones change a method."""

    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, grad):
        total = grad.clone()
        dist.all_reduce(total)
        return total


def summed(grad):
    total = grad.contiguous().clone()
    if dist.get_world_size() > 1:
        dist.all_reduce(total)
    return total


@right("a Function")
def copy_to_ranks(x):
    return Copy.apply(x)


@right("a hook on a view")
def copy_to_ranks(x):
    y = x.view_as(x)
    y.register_hook(summed)
    return y


@right("a hook on a copy, waiting for a handle")
def copy_to_ranks(x):
    def sum_up(grad):
        total = torch.empty_like(grad).copy_(grad)
        dist.all_reduce(total, async_op=True).wait()
        return total

    y = x.clone()
    y.register_hook(sum_up)
    return y


@right("a Function of new style, gradients gathered and added only with two ranks")
def copy_to_ranks(x):
    class Entrance(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x.view(x.shape)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.n = dist.get_world_size()

        @staticmethod
        def backward(ctx, grad):
            return grad if ctx.n == 1 else summed(grad)

    return Entrance.apply(x)


@wrong("NO_BACKWARD_SUM", points=2)
def copy_to_ranks(x):
    return x


@wrong("NO_BACKWARD_SUM", points=2)
def copy_to_ranks(x):
    class Identity(Copy):
        @staticmethod
        def backward(ctx, grad):
            return grad

    return Identity.apply(x)


@wrong("NO_BACKWARD_SUM", points=2)
def copy_to_ranks(x):
    class Forgetful(Copy):
        @staticmethod
        def backward(ctx, grad):
            dist.all_reduce(grad.clone())
            return grad

    return Forgetful.apply(x)


@wrong("SHARES_AVERAGED", points=2)
def copy_to_ranks(x):
    class Mean(Copy):
        @staticmethod
        def backward(ctx, grad):
            return summed(grad) / dist.get_world_size()

    return Mean.apply(x)


@wrong("ALL_REDUCE_RETURNED", points=2)
def copy_to_ranks(x):
    class Returned(Copy):
        @staticmethod
        def backward(ctx, grad):
            return dist.all_reduce(grad.clone())

    return Returned.apply(x)


@wrong("SUMMED_FORWARD", points=0)
def copy_to_ranks(x):
    class Wrong(Copy):
        @staticmethod
        def forward(ctx, x):
            return summed(x)

    return Wrong.apply(x)


@wrong("REDUCED_IN_PLACE", points=6)
def copy_to_ranks(x):
    class InPlace(Copy):
        @staticmethod
        def backward(ctx, grad):
            dist.all_reduce(grad)
            return grad

    return InPlace.apply(x)


@wrong("OUTPUT_CUT_OFF", points=2)
def copy_to_ranks(x):
    return x.detach().clone()


@wrong("SUMMED_TOO_OFTEN", points=6)
def copy_to_ranks(x):
    class Broadcast(Copy):
        @staticmethod
        def forward(ctx, x):
            return summed(x) / dist.get_world_size()

    return Broadcast.apply(x)


@wrong("GATHERS", points=6)
def copy_to_ranks(x):
    class Gathered(Copy):
        @staticmethod
        def backward(ctx, grad):
            parts = [torch.empty_like(grad) for _ in range(dist.get_world_size())]
            dist.all_gather(parts, grad.contiguous())
            return sum(parts)

    return Gathered.apply(x)


@wrong("GENERATOR", points=0)
def copy_to_ranks(x):
    yield Copy.apply(x)


@wrong(says="raised ZeroDivisionError", points=0)
def copy_to_ranks(x):
    return x * (1 // (dist.get_world_size() - dist.get_world_size()))
