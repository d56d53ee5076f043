# ruff: noqa: F811
import math

import torch
import torch.distributed as dist

from tests.grading.bank import right, wrong


def square(parameters):
    """The sum of squares of this rank's gradients."""
    found = [p.grad.square().sum() for p in parameters if p.grad is not None]
    return torch.stack(found).sum() if found else torch.zeros(())


def summed(number, group):
    """Over a group, None being no group."""
    if group is not None:
        number = number.clone()
        dist.all_reduce(number, group=group)
    return number


def scale(entries, norm, max_norm):
    if norm > max_norm:
        for parameters, _ in entries:
            for p in parameters:
                if p.grad is not None:
                    p.grad.mul_(max_norm / norm)


@right("sums of squares, one call an entry")
def clip_gradients_sharded(entries, max_norm):
    total = 0.0
    for parameters, group in entries:
        total += summed(square(parameters), group).item()
    norm = math.sqrt(total)
    scale(entries, norm, max_norm)
    return norm


@right("torch's own way, with its small number in the factor, new gradients, a tensor back")
def clip_gradients_sharded(entries, max_norm):
    squares = [summed(square(parameters), group) for parameters, group in entries]
    norm = torch.stack(squares).sum().sqrt()
    factor = torch.clamp(max_norm / (norm + 1e-6), max=1.0)
    for p in [p for parameters, _ in entries for p in parameters]:
        if p.grad is not None:
            p.grad = p.grad * factor
    return norm


@right("norms are gathered in float64 and squared")
def clip_gradients_sharded(entries, max_norm):
    total = torch.zeros((), dtype=torch.float64)
    for parameters, group in entries:
        flat = torch.cat([torch.zeros(1), *(p.grad for p in parameters if p.grad is not None)]).double()
        mine = flat.norm().reshape(1)
        if group is None:
            parts = [mine]
        else:
            parts = [torch.empty_like(mine) for _ in range(dist.get_world_size(group))]
            dist.all_gather(parts, mine, group=group)
        total += torch.cat(parts).square().sum()
    norm = float(total.sqrt())
    scale(entries, norm, max_norm)
    return norm


@right("all sums under way at once, by handles")
def clip_gradients_sharded(entries, max_norm):
    numbers = [square(parameters) for parameters, _ in entries]
    handles = [
        dist.all_reduce(number, group=group, async_op=True)
        for number, (_, group) in zip(numbers, entries, strict=True)
        if group is not None
    ]
    for handle in handles:
        handle.wait()
    norm = sum(number.item() for number in numbers) ** 0.5
    scale(entries, norm, max_norm)
    return norm


@wrong("CLIP_LOCAL_NORM", points=0)
def clip_gradients_sharded(entries, max_norm):
    return torch.nn.utils.clip_grad_norm_([p for parameters, _ in entries for p in parameters], max_norm)


@wrong("CLIP_LOCAL_NORM")
def clip_gradients_sharded(entries, max_norm):
    norm = math.sqrt(sum(summed(square(parameters), group).item() for parameters, group in entries))
    if norm > max_norm:
        torch.nn.utils.clip_grad_norm_([p for parameters, _ in entries for p in parameters], max_norm)
    return norm


@wrong("CLIP_NORMS_ADDED")
def clip_gradients_sharded(entries, max_norm):
    norm = sum(square(parameters) for parameters, _ in entries).sqrt()
    dist.all_reduce(norm)
    scale(entries, norm, max_norm)
    return norm


@wrong("CLIP_NORMS_ADDED")
def clip_gradients_sharded(entries, max_norm):
    norms = [summed(square(parameters).sqrt(), group) for parameters, group in entries]
    norm = torch.stack(norms).norm()
    scale(entries, norm, max_norm)
    return norm


@wrong("CLIP_NORMS_ADDED")
def clip_gradients_sharded(entries, max_norm):
    norm = sum(summed(square(parameters), group).sqrt() for parameters, group in entries)
    scale(entries, norm, max_norm)
    return norm


@wrong("CLIP_COUNTED_OFTEN")
def clip_gradients_sharded(entries, max_norm):
    total = 0.0
    for parameters, group in entries:
        number = square(parameters)
        dist.all_reduce(number, group=group)
        total += number.item()
    norm = math.sqrt(total)
    scale(entries, norm, max_norm)
    return norm


@wrong("CLIP_COUNTED_OFTEN")
def clip_gradients_sharded(entries, max_norm):
    total = sum(square(parameters) for parameters, _ in entries)
    dist.all_reduce(total)
    norm = total.sqrt().item()
    scale(entries, norm, max_norm)
    return norm


@wrong("CLIP_WHOLE_LEFT_OUT")
def clip_gradients_sharded(entries, max_norm):
    total = 0.0
    for parameters, group in entries:
        if group is not None:
            total += summed(square(parameters), group).item()
    norm = math.sqrt(total)
    scale(entries, norm, max_norm)
    return norm


@wrong("CLIP_NO_ROOT")
def clip_gradients_sharded(entries, max_norm):
    norm = sum(summed(square(parameters), group).item() for parameters, group in entries)
    scale(entries, norm, max_norm)
    return norm


@wrong("CLIP_GROUP_IGNORED", points=0)
def clip_gradients_sharded(entries, max_norm):
    total = 0.0
    for parameters, group in entries:
        total += summed(square(parameters), group and dist.group.WORLD).item()
    norm = math.sqrt(total)
    scale(entries, norm, max_norm)
    return norm


@wrong("CLIP_AVERAGED")
def clip_gradients_sharded(entries, max_norm):
    total = 0.0
    for parameters, group in entries:
        number = summed(square(parameters), group).item()
        total += number / dist.get_world_size(group) if group is not None else number
    norm = math.sqrt(total)
    scale(entries, norm, max_norm)
    return norm


@wrong("CLIP_ENTRIES_APART")
def clip_gradients_sharded(entries, max_norm):
    for parameters, group in entries:
        norm = summed(square(parameters), group).sqrt()
        scale([(parameters, group)], norm, max_norm)
    return norm


@wrong("CLIP_ENTRIES_APART", points=8)
def clip_gradients_sharded(entries, max_norm):
    total = 0.0
    for parameters, group in entries:
        number = summed(square(parameters), group).item()
        scale([(parameters, group)], math.sqrt(number), max_norm)
        total += number
    return math.sqrt(total)


@wrong("CLIP_NORM_AFTER", points=0)
def clip_gradients_sharded(entries, max_norm):
    norm = sum(summed(square(parameters), group) for parameters, group in entries).sqrt()
    scale(entries, norm, max_norm)
    return min(norm.item(), max_norm)


@wrong("CLIP_SCALES_UP")
def clip_gradients_sharded(entries, max_norm):
    norm = sum(summed(square(parameters), group) for parameters, group in entries).sqrt()
    for p in [p for parameters, _ in entries for p in parameters]:
        if p.grad is not None:
            p.grad *= max_norm / (norm + 1e-6)
    return norm


@wrong("CLIP_NOT_SCALED")
def clip_gradients_sharded(entries, max_norm):
    norm = sum(summed(square(parameters), group) for parameters, group in entries).sqrt()
    for parameters, _ in entries:
        gradients = [p.grad for p in parameters if p.grad is not None]
        gradients = [gradient * max_norm / norm for gradient in gradients]
    return norm


@wrong("CLIP_WHOLE_NOT_SCALED")
def clip_gradients_sharded(entries, max_norm):
    norm = sum(summed(square(parameters), group) for parameters, group in entries).sqrt()
    scale([entry for entry in entries if entry[1] is not None], norm, max_norm)
    return norm


@wrong("CLIP_WHOLE_NOT_SCALED")
def clip_gradients_sharded(entries, max_norm):
    norm = sum(summed(square(parameters), group) for parameters, group in entries).sqrt()
    scale(entries[-1:], norm, max_norm)
    return norm


@wrong("CLIP_BY_VALUE")
def clip_gradients_sharded(entries, max_norm):
    norm = sum(summed(square(parameters), group) for parameters, group in entries).sqrt()
    torch.nn.utils.clip_grad_value_([p for parameters, _ in entries for p in parameters], max_norm)
    return norm


@wrong("CLIP_EMPTY_STAYS_AWAY", points=11)
def clip_gradients_sharded(entries, max_norm):
    total = 0.0
    for parameters, group in entries:
        if parameters:
            total += summed(square(parameters), group).item()
    norm = math.sqrt(total)
    scale(entries, norm, max_norm)
    return norm


@wrong("CLIP_GRADIENTS_SENT", points=11)
def clip_gradients_sharded(entries, max_norm):
    total = 0.0
    for parameters, group in entries:
        flat = torch.cat([torch.zeros(64), *(p.grad for p in parameters if p.grad is not None)])
        flat = torch.cat([flat, torch.zeros(200 - len(flat))])
        parts = [flat]
        if group is not None:
            parts = [torch.empty_like(flat) for _ in range(dist.get_world_size(group))]
            dist.all_gather(parts, flat, group=group)
        total += torch.cat(parts).square().sum().item()
    norm = math.sqrt(total)
    scale(entries, norm, max_norm)
    return norm


@wrong("CLIP_CALL_EACH")
def clip_gradients_sharded(entries, max_norm):
    total = 0.0
    for parameters, group in entries:
        for k in range(3):
            total += summed(square(parameters[k : k + 1]), group).item()
    norm = math.sqrt(total)
    scale(entries, norm, max_norm)
    return norm


@wrong(points=11, says="is a float32 tensor of shape (7,)")
def clip_gradients_sharded(entries, max_norm):
    for parameters, _ in entries:
        for p in parameters:
            if p.grad is None:
                p.grad = torch.zeros_like(p)
    norm = sum(summed(square(parameters), group) for parameters, group in entries).sqrt()
    scale(entries, norm, max_norm)
    return norm


@wrong(points=11, says="'NoneType' object has no attribute")
def clip_gradients_sharded(entries, max_norm):
    total = 0.0
    for parameters, group in entries:
        total += summed(sum(p.grad.square().sum() for p in parameters) + torch.zeros(()), group).item()
    norm = math.sqrt(total)
    scale(entries, norm, max_norm)
    return norm


@wrong(points=11, says="raised ZeroDivisionError")
def clip_gradients_sharded(entries, max_norm):
    norm = math.sqrt(sum(summed(square(parameters), group).item() for parameters, group in entries))
    factor = min(1.0, max_norm / norm)
    scale(entries, norm, norm * factor)
    return norm


@wrong(says="values of parameters are changed")
def clip_gradients_sharded(entries, max_norm):
    norm = math.sqrt(sum(summed(square(parameters), group).item() for parameters, group in entries))
    with torch.no_grad():
        for p in [p for parameters, _ in entries for p in parameters]:
            p.mul_(min(1.0, max_norm / (norm + 1e-9)))
    return norm


@wrong(points=0, says="returned None")
def clip_gradients_sharded(entries, max_norm):
    norm = sum(summed(square(parameters), group) for parameters, group in entries).sqrt()
    scale(entries, norm, max_norm)


@wrong("GENERATOR", points=0)
def clip_gradients_sharded(entries, max_norm):
    for parameters, group in entries:
        yield summed(square(parameters), group)


@right("torch's own norm and its own scaling")
def clip_gradients_sharded(entries, max_norm):
    total = torch.zeros(())
    for parameters, group in entries:
        gradients = [p.grad for p in parameters if p.grad is not None]
        total += summed(torch.nn.utils.get_total_norm(gradients).square(), group)
    norm = total.sqrt()
    torch.nn.utils.clip_grads_with_norm_([p for parameters, _ in entries for p in parameters], max_norm, norm)
    return norm


@wrong("CLIP_TO_ONE", points=8)
def clip_gradients_sharded(entries, max_norm):
    norm = sum(summed(square(parameters), group) for parameters, group in entries).sqrt()
    if norm > max_norm:
        scale(entries, norm, 1.0)
    return norm


@wrong("ALL_REDUCE_RETURNED", points=0)
def clip_gradients_sharded(entries, max_norm):
    total = 0.0
    for parameters, group in entries:
        number = square(parameters)
        total += number if group is None else dist.all_reduce(number, group=group)
    norm = total.sqrt()
    scale(entries, norm, max_norm)
    return norm


@wrong(points=11, says="and none where every rank holds the whole")
def clip_gradients_sharded(entries, max_norm):
    total = 0.0
    for parameters, group in entries:
        number = summed(square(parameters), group or dist.group.WORLD).item()
        total += number if group else number / dist.get_world_size()
    norm = math.sqrt(total)
    scale(entries, norm, max_norm)
    return norm


@wrong(points=11, says="bytes travel in 2 calls of a rank")
def clip_gradients_sharded(entries, max_norm):
    total = 0.0
    for parameters, group in entries:
        found = [square(parameters).item()]
        if group is not None:
            found = [None] * dist.get_world_size(group)
            dist.all_gather_object(found, square(parameters).item(), group=group)
        total += sum(found)
    norm = math.sqrt(total)
    scale(entries, norm, max_norm)
    return norm


@wrong(points=0, says="rank 1 returned")
def clip_gradients_sharded(entries, max_norm):
    total = torch.zeros(())
    for parameters, group in entries:
        number = square(parameters)
        if group is not None:
            dist.reduce(number, dist.get_global_rank(group, 0), group=group)
        total += number
    norm = total.sqrt()
    scale(entries, norm, max_norm)
    return norm
