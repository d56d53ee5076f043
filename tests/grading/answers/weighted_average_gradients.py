# ruff: noqa: F811
import torch
import torch.distributed as dist

from tests.grading.bank import right, wrong


def total_of(count):
    total = torch.tensor(float(count))
    dist.all_reduce(total)
    return total.item()


def filled(module):
    for p in module.parameters():
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        yield p


@right("weights first, divides last")
def weighted_average_gradients(module, count):
    total = total_of(count)
    for p in filled(module):
        p.grad *= count
        dist.all_reduce(p.grad)
        p.grad /= total


@right("shares first, flat")
def weighted_average_gradients(module, count):
    share = count / total_of(count)
    flat = torch.cat([p.grad.reshape(-1) * share for p in filled(module)])
    dist.all_reduce(flat)
    at = 0
    for p in module.parameters():
        p.grad = flat[at : at + p.numel()].view_as(p)
        at += p.numel()


@right("the count travels with each gradient")
def weighted_average_gradients(module, count):
    for p in module.parameters():
        mine = torch.zeros(p.numel() + 1)
        if p.grad is not None:
            mine[:-1] = p.grad.reshape(-1) * count
        mine[-1] = count
        dist.all_reduce(mine)
        p.grad = (mine[:-1] / mine[-1]).view_as(p)


@right("averages, with weights that make up for it")
def weighted_average_gradients(module, count):
    n = dist.get_world_size()
    factor = count * n / total_of(count)
    for p in filled(module):
        p.grad.mul_(factor)
        dist.all_reduce(p.grad)
        p.grad.div_(n)


@right("counts as ints, gathered")
def weighted_average_gradients(module, count):
    counts = [torch.zeros((), dtype=torch.int64) for _ in range(dist.get_world_size())]
    dist.all_gather(counts, torch.tensor(count))
    total = sum(int(c) for c in counts)
    with torch.no_grad():
        for p in module.parameters():
            grad = p.grad * (count / total) if p.grad is not None and count else torch.zeros_like(p)
            dist.all_reduce(grad)
            p.grad = grad


@wrong("MEAN_OF_MEANS", points=0)
def weighted_average_gradients(module, count):
    for p in filled(module):
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()


@wrong("SUM_NOT_AVERAGE", points=0)
def weighted_average_gradients(module, count):
    for p in filled(module):
        dist.all_reduce(p.grad)


@wrong("NOT_DIVIDED_BY_TOTAL", points=0)
def weighted_average_gradients(module, count):
    for p in filled(module):
        p.grad *= count
        dist.all_reduce(p.grad)


@wrong("NOT_DIVIDED_BY_TOTAL", points=0)
def weighted_average_gradients(module, count):
    for p in filled(module):
        p.grad *= count
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()


@wrong("OWN_COUNT", points=0)
def weighted_average_gradients(module, count):
    for p in filled(module):
        p.grad *= count
        dist.all_reduce(p.grad)
        p.grad /= max(count, 1)


@wrong("UNWEIGHTED", points=0)
def weighted_average_gradients(module, count):
    total = total_of(count)
    for p in filled(module):
        dist.all_reduce(p.grad)
        p.grad /= total


@wrong("AVERAGED_AGAIN", points=0)
def weighted_average_gradients(module, count):
    total = total_of(count)
    for p in filled(module):
        p.grad *= count / total
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()


@wrong("EMPTY_RANK_AWAY", points=7)
def weighted_average_gradients(module, count):
    if count == 0:
        return
    total = total_of(count)
    for p in filled(module):
        p.grad *= count / total
        dist.all_reduce(p.grad)


@wrong("EMPTY_RANK_AWAY", points=7)
def weighted_average_gradients(module, count):
    total = total_of(count)
    for p in module.parameters():
        if p.grad is not None:
            p.grad *= count / total
            dist.all_reduce(p.grad)


@wrong("COPY_REDUCED", points=0)
def weighted_average_gradients(module, count):
    total = total_of(count)
    for p in filled(module):
        grad = p.grad * count / total
        dist.all_reduce(grad)


@wrong("COPY_REDUCED", points=0)
def weighted_average_gradients(module, count):
    for p in filled(module):
        p.grad *= count
        flat = p.grad.clone()
        dist.all_reduce(flat)


@wrong("NOTHING_SENT", points=0)
def weighted_average_gradients(module, count):
    for p in module.parameters():
        if p.grad is not None:
            p.grad /= max(count, 1)


@wrong("RANK_ZERO_ONLY", points=0)
def weighted_average_gradients(module, count):
    share = count / total_of(count)
    for p in filled(module):
        p.grad *= share
        dist.reduce(p.grad, dst=0)


@wrong(says="is None", points=7)
def weighted_average_gradients(module, count):
    total = total_of(count)
    for p in module.parameters():
        grad = torch.zeros_like(p) if p.grad is None else p.grad
        grad *= count / total
        dist.all_reduce(grad)


@wrong(says="and count 0 on rank 0", points=7)
def weighted_average_gradients(module, count):
    weight = count or 1
    total = total_of(weight)
    for p in filled(module):
        p.grad *= weight / total
        dist.all_reduce(p.grad)


@wrong(says="correct, but", points=8)
def weighted_average_gradients(module, count):
    total = total_of(count)
    for p in filled(module):
        parts = [torch.empty_like(p) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, p.grad * (count / total))
        p.grad = torch.stack(parts).sum(0)


@wrong(says="changed the parameter", points=8)
def weighted_average_gradients(module, count):
    total = total_of(count)
    for p in filled(module):
        p.grad *= count / total
        dist.all_reduce(p.grad)
        p.data.sub_(p.grad)


@wrong(says="times the reference on every parameter", points=0)
def weighted_average_gradients(module, count):
    total = total_of(count + 1)  # "so that it is never zero"
    for p in filled(module):
        p.grad *= count / total
        dist.all_reduce(p.grad)


@wrong(says="raised ZeroDivisionError", points=7)
def weighted_average_gradients(module, count):
    weight = total_of(count) / count
    for p in filled(module):
        p.grad /= weight
        dist.all_reduce(p.grad)
