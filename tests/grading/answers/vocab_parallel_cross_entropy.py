# ruff: noqa: F811
import torch
import torch.distributed as dist
import torch.distributed.nn.functional as differentiable
import torch.nn.functional as F

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


def largest_of(logits):
    largest = logits.detach().amax(-1)
    dist.all_reduce(largest, dist.ReduceOp.MAX)
    return largest


def at(logits, targets, start):
    """The target's logit, where this rank has it, else 0."""
    places = targets - start
    outside = (places < 0) | (places >= logits.shape[-1])
    return logits.gather(-1, places.masked_fill(outside, 0)[..., None])[..., 0].masked_fill(outside, 0.0)


@right("the largest apart, the two sums through a Function")
def vocab_parallel_cross_entropy(logits, targets, start):
    shifted = logits - largest_of(logits)[..., None]
    sums = Reduce.apply(torch.stack([shifted.exp().sum(-1), at(shifted, targets, start)]))
    return (sums[0].log() - sums[1]).mean()


@right("backward written by hand")
def vocab_parallel_cross_entropy(logits, targets, start):
    class Loss(torch.autograd.Function):
        @staticmethod
        def forward(ctx, logits):
            shifted = logits - largest_of(logits).unsqueeze(-1)
            total = shifted.exp().sum(-1)
            dist.all_reduce(total)
            mine = (targets[..., None] - start) == torch.arange(logits.shape[-1])
            right_ones = (shifted * mine).sum(-1)
            dist.all_reduce(right_ones)
            ctx.save_for_backward(shifted.exp() / total[..., None] - mine.float())
            return (total.log() - right_ones).sum() / targets.numel()

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0] / targets.numel()

    return Loss.apply(logits)


@right("log-sum-exp a rank, then of the ranks")
def vocab_parallel_cross_entropy(logits, targets, start):
    own = logits.logsumexp(-1)
    largest = own.detach().clone()
    dist.all_reduce(largest, dist.ReduceOp.MAX)
    whole = Reduce.apply((own - largest).exp()).log() + largest
    return (whole - Reduce.apply(at(logits, targets, start))).mean()


@wrong("LOSS_OVER_RANKS", points=0)
def vocab_parallel_cross_entropy(logits, targets, start):
    shifted = logits - largest_of(logits)[..., None]
    sums = Reduce.apply(torch.stack([shifted.exp().sum(-1), at(shifted, targets, start)]))
    return (sums[0].log() - sums[1]).mean() / dist.get_world_size()


@wrong("LOSS_ADDED_UP", points=0)
def vocab_parallel_cross_entropy(logits, targets, start):
    shifted = logits - largest_of(logits)[..., None]
    sums = Reduce.apply(torch.stack([shifted.exp().sum(-1), at(shifted, targets, start)]))
    return (sums[0].log() - sums[1]).sum()


@wrong("LOCAL_LARGEST", points=0)
def vocab_parallel_cross_entropy(logits, targets, start):
    shifted = logits - logits.detach().amax(-1, keepdim=True)
    sums = Reduce.apply(torch.stack([shifted.exp().sum(-1), at(shifted, targets, start)]))
    return (sums[0].log() - sums[1]).mean()


@wrong("LOCAL_LARGEST", points=0)
def vocab_parallel_cross_entropy(logits, targets, start):
    largest = logits.detach().amax(-1)
    total = Reduce.apply((logits - largest[..., None]).exp().sum(-1))
    return (total.log() + largest - Reduce.apply(at(logits, targets, start))).mean()


@wrong("LOCAL_SOFTMAX", points=0)
def vocab_parallel_cross_entropy(logits, targets, start):
    return (logits.logsumexp(-1) - Reduce.apply(at(logits, targets, start))).mean()


@wrong("LOCAL_SOFTMAX", points=0)
def vocab_parallel_cross_entropy(logits, targets, start):
    return Reduce.apply((logits.logsumexp(-1) - at(logits, targets, start)).mean())


@wrong("NOT_SUMMED", points=0)
def vocab_parallel_cross_entropy(logits, targets, start):
    largest = largest_of(logits)
    total = Reduce.apply((logits - largest[..., None]).exp().sum(-1))
    return (total.log() + largest - at(logits, targets, start)).mean()


@wrong("FOREIGN_TOKENS", points=0)
def vocab_parallel_cross_entropy(logits, targets, start):
    largest = largest_of(logits)
    total = Reduce.apply((logits - largest[..., None]).exp().sum(-1))
    places = (targets - start).clamp(0, logits.shape[-1] - 1)
    found = logits.gather(-1, places[..., None])[..., 0]
    return (total.log() + largest - Reduce.apply(found)).mean()


@wrong("FOREIGN_TOKENS", points=0)
def vocab_parallel_cross_entropy(logits, targets, start):
    largest = largest_of(logits)
    total = Reduce.apply((logits - largest[..., None]).exp().sum(-1))
    places = targets - start
    outside = (places < 0) | (places >= logits.shape[-1])
    found = logits.gather(-1, places.masked_fill(outside, 0)[..., None])[..., 0]
    return (total.log() + largest - Reduce.apply(found)).mean()


@wrong("TOKENS_NOT_SHIFTED", points=0)
def vocab_parallel_cross_entropy(logits, targets, start):
    return Reduce.apply(F.cross_entropy(logits.flatten(0, 1), targets.flatten()))


@wrong("NO_LARGEST", points=9)
def vocab_parallel_cross_entropy(logits, targets, start):
    sums = Reduce.apply(torch.stack([logits.exp().sum(-1), at(logits, targets, start)]))
    return (sums[0].log() - sums[1]).mean()


@wrong("LARGEST_IN_GRAPH", points=4)
def vocab_parallel_cross_entropy(logits, targets, start):
    own = logits.amax(-1)
    largest = own + (largest_of(logits) - own.detach())
    shifted = logits - largest[..., None]
    sums = Reduce.apply(torch.stack([shifted.exp().sum(-1), at(shifted, targets, start)]))
    return (sums[0].log() - sums[1]).mean()


@wrong("SUMMED_BOTH_WAYS", points=4)
def vocab_parallel_cross_entropy(logits, targets, start):
    shifted = logits - largest_of(logits)[..., None]
    sums = torch.stack([shifted.exp().sum(-1), at(shifted, targets, start)])
    sums = differentiable.all_reduce(sums)
    return (sums[0].log() - sums[1]).mean()


@wrong("OUTPUT_CUT_OFF", points=4)
def vocab_parallel_cross_entropy(logits, targets, start):
    with torch.no_grad():
        shifted = logits - largest_of(logits)[..., None]
        sums = Reduce.apply(torch.stack([shifted.exp().sum(-1), at(shifted, targets, start)]))
        return (sums[0].log() - sums[1]).mean()


@wrong("GATHERS", points=8)
def vocab_parallel_cross_entropy(logits, targets, start):
    n, rank = dist.get_world_size(), dist.get_rank()
    sizes = [None] * n
    dist.all_gather_object(sizes, logits.shape[-1])
    parts = [logits.new_empty(*logits.shape[:-1], max(sizes)) for _ in sizes]
    padded = F.pad(logits.detach(), (0, max(sizes) - logits.shape[-1]))
    dist.all_gather(parts, padded.contiguous())
    parts = [part[..., :size] for part, size in zip(parts, sizes, strict=True)]
    parts[rank] = logits
    return F.cross_entropy(torch.cat(parts, -1).flatten(0, 1), targets.flatten())


@wrong("ALL_REDUCE_RETURNED", points=0)
def vocab_parallel_cross_entropy(logits, targets, start):
    total = dist.all_reduce(logits.exp().sum(-1))
    return (total.log() - at(logits, targets, start)).mean()


@wrong("REDUCED_IN_PLACE")
def vocab_parallel_cross_entropy(logits, targets, start):
    with torch.no_grad():
        logits -= largest_of(logits)[..., None]
    sums = Reduce.apply(torch.stack([logits.exp().sum(-1), at(logits, targets, start)]))
    return (sums[0].log() - sums[1]).mean()
