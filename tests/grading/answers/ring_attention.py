# ruff: noqa: F811
import math

import torch
import torch.distributed as dist
import torch.nn.functional as F

from tests.grading.bank import right, wrong


def moved(t, by):
    """What the rank `by` places before this one has."""
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1:
        return t.clone()
    t = t.contiguous()
    arrived = torch.empty_like(t)
    sending = dist.isend(t, (rank + by) % n)
    dist.recv(arrived, (rank - by) % n)
    sending.wait()
    return arrived


class Shift(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t):
        return moved(t, 1)

    @staticmethod
    def backward(ctx, grad):
        return moved(grad, -1)


def scores_of(q, k, source, rank):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if source > rank:
        return scores.masked_fill(torch.ones_like(scores, dtype=torch.bool), -math.inf)
    later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return scores.masked_fill(later, -math.inf) if source == rank else scores


def around(q, k, v, shift=Shift.apply, scores_of=scores_of, rescale=True):
    """A plain right answer, of which wrong ones change a part."""
    rank, n = dist.get_rank(), dist.get_world_size()
    kv, largest, weight, total = torch.stack([k, v]), None, 0.0, 0.0
    for step in range(n):
        scores = scores_of(q, kv[0], (rank - step) % n, rank)
        top = scores.detach().amax(-1, keepdim=True)
        new = top if largest is None else largest.maximum(top)
        keep = 1.0 if largest is None or not rescale else (largest - new).exp()
        weights = (scores - new).exp()
        total, weight = total * keep + weights @ kv[1], weight * keep + weights.sum(-1, keepdim=True)
        largest = new
        if step < n - 1:
            kv = shift(kv)
    return total / weight


@right("a shift that autograd knows")
def ring_attention(q, k, v):
    return around(q, k, v)


@right("all scores first, one softmax, k and v in messages of their own")
def ring_attention(q, k, v):
    rank, n = dist.get_rank(), dist.get_world_size()
    scores, values = [], []
    for step in range(n):
        scores.append(scores_of(q, k, (rank - step) % n, rank))
        values.append(v)
        if step < n - 1:
            k, v = Shift.apply(k), Shift.apply(v)
    return torch.cat(scores, -1).softmax(-1) @ torch.cat(values, 2)


@right("through logarithms of sums")
def ring_attention(q, k, v):
    rank, n = dist.get_rank(), dist.get_world_size()
    kv = torch.stack([k, v])
    y, log_sum = None, None
    for step in range(n):
        scores = scores_of(q, kv[0], (rank - step) % n, rank)
        if step == 0:
            log_sum = scores.logsumexp(-1, keepdim=True)
            y = (scores - log_sum).exp() @ kv[1]
        else:
            filled = scores.clamp(min=-1e30)
            new = torch.logaddexp(log_sum, filled.logsumexp(-1, keepdim=True))
            y = y * (log_sum - new).exp() + (filled - new).exp() @ kv[1]
            log_sum = new
        if step < n - 1:
            kv = Shift.apply(kv)
    return y


@wrong("OWN_KEYS_ONLY", points=0)
def ring_attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


@wrong("LATER_PARTS_SEEN", points=0)
def ring_attention(q, k, v):
    return around(
        q,
        k,
        v,
        scores_of=lambda q, k, source, rank: (
            scores_of(q, k, min(source, rank), rank) if source <= rank else scores_of(q, k, rank - 1, rank)
        ),
    )


@wrong("LATER_PARTS_SEEN", points=0)
def ring_attention(q, k, v):
    return around(q, k, v, scores_of=lambda q, k, source, rank: q @ k.mT / math.sqrt(q.shape[-1]))


@wrong("MASKED_IN_EVERY_PART", points=0)
def ring_attention(q, k, v):
    def triangle(q, k, source, rank):
        return scores_of(q, k, rank if source <= rank else source, rank)

    return around(q, k, v, scores_of=triangle)


@wrong("SOFTMAX_PER_PART", points=0)
def ring_attention(q, k, v):
    rank, n = dist.get_rank(), dist.get_world_size()
    kv, total = torch.stack([k, v]), 0.0
    for step in range(n):
        source = (rank - step) % n
        if source <= rank:
            total = total + scores_of(q, kv[0], source, rank).softmax(-1) @ kv[1]
        kv = Shift.apply(kv) if step < n - 1 else kv
    return total / (rank + 1)


@wrong("SOFTMAX_PER_PART", points=0)
def ring_attention(q, k, v):
    rank, n = dist.get_rank(), dist.get_world_size()
    kv, total = torch.stack([k, v]), 0.0
    for step in range(n):
        source = (rank - step) % n
        if source <= rank:
            total = total + scores_of(q, kv[0], source, rank).softmax(-1) @ kv[1]
        kv = Shift.apply(kv) if step < n - 1 else kv
    return total


@wrong("NOT_RESCALED", points=0)
def ring_attention(q, k, v):
    return around(q, k, v, rescale=False)


@wrong("LOCAL_WIDTH_SCALE", points=0)
def ring_attention(q, k, v):
    return around(q * math.sqrt(q.shape[-1]), k, v)


@wrong("GRADIENT_STAYS", points=6)
def ring_attention(q, k, v):
    return around(q, k, v, shift=lambda kv: moved(kv.detach(), 1))


@wrong("OUTPUT_CUT_OFF", points=6)
def ring_attention(q, k, v):
    with torch.no_grad():
        return around(q, k, v)


@wrong("NOT_A_RING", points=10)
def ring_attention(q, k, v):
    class Gather(torch.autograd.Function):
        @staticmethod
        def forward(ctx, t):
            parts = [torch.empty_like(t) for _ in range(dist.get_world_size())]
            dist.all_gather(parts, t.contiguous())
            return torch.cat(parts, 2)

        @staticmethod
        def backward(ctx, grad):
            grad = grad.clone()
            dist.all_reduce(grad)
            return grad.chunk(dist.get_world_size(), 2)[dist.get_rank()]

    k, v = Gather.apply(k), Gather.apply(v)
    start, T = dist.get_rank() * q.shape[2], k.shape[2]
    later = torch.ones(T, T, dtype=torch.bool).triu(1)[start : start + q.shape[2]]
    return (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(later, -math.inf).softmax(-1) @ v


@wrong("ALL_SEND_FIRST", points=0)
def ring_attention(q, k, v):
    def blocking(kv):
        rank, n = dist.get_rank(), dist.get_world_size()
        arrived = torch.empty_like(kv)
        dist.send(kv.detach(), (rank + 1) % n)
        dist.recv(arrived, (rank - 1) % n)
        return arrived

    return around(q, k, v, shift=blocking)


@wrong("SHIFT_NOT_USED", points=6)
def ring_attention(q, k, v):
    rank, n = dist.get_rank(), dist.get_world_size()
    kv, scores, values = torch.stack([k, v]), [], []
    for step in range(n):
        source = (rank - step) % n
        if source <= rank:
            scores.append(scores_of(q, kv[0], source, rank))
            values.append(kv[1])
        kv = Shift.apply(kv) if step < n - 1 else kv
    return torch.cat(scores, -1).softmax(-1) @ torch.cat(values, 2)
