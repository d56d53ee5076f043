# ruff: noqa: F811
import math

import torch
import torch.distributed as dist

from tests.grading.bank import right, wrong


def part_of(x, y, group):
    n, index = dist.get_world_size(group), dist.get_rank(group)
    return x.tensor_split(n)[index], y.tensor_split(n)[index]


def sum_parts(stage, groups):
    for p in stage.copies:
        dist.all_reduce(p.grad, group=groups["tp"])
    if stage.tied is not None:
        dist.all_reduce(stage.tied.grad, group=groups["ends"])


def average(stage, groups, share):
    for p in stage.parameters():
        p.grad *= share
        dist.all_reduce(p.grad, group=groups["dp"])


def square(parameters):
    return sum((p.grad.double().square().sum() for p in parameters), torch.zeros((), dtype=torch.float64))


def summed(number, group):
    dist.all_reduce(number, group=group)
    return number


def counted(stage, groups):
    last = dist.get_rank(groups["pp"]) > 0
    return [p for p in stage.shards if not (last and p is stage.tied)]


def clip(stage, groups, max_norm):
    total = summed(square(counted(stage, groups)), groups["model"]) + summed(square(stage.copies), groups["pp"])
    scale(stage, total.sqrt().item(), max_norm)


def scale(stage, norm, max_norm):
    if norm > max_norm:
        for p in stage.parameters():
            p.grad *= max_norm / norm


def mean_loss(loss, share, groups):
    total = torch.tensor(0.0 if loss is None else loss * share)
    dist.all_reduce(total, group=groups["pp"])
    dist.all_reduce(total, group=groups["dp"])
    return total.item()


@right("call by call, one flat message over dp")
def hybrid_step(stage, optimizer, x, y, groups, max_norm):
    optimizer.zero_grad()
    its_x, its_y = part_of(x, y, groups["dp"])
    share = len(its_x) / len(x)
    loss = stage.forward_backward(its_x, its_y)
    sum_parts(stage, groups)
    flat = torch.cat([p.grad.flatten() for p in stage.parameters()]) * share
    dist.all_reduce(flat, group=groups["dp"])
    for p, grad in zip(stage.parameters(), flat.split([p.numel() for p in stage.parameters()]), strict=True):
        p.grad = grad.view_as(p)
    clip(stage, groups, max_norm)
    optimizer.step()
    return mean_loss(loss, share, groups)


@right("averaged over dp first, tp summed flat, the norm summed over tp and then over pp, clipped as torch does")
def hybrid_step(stage, optimizer, x, y, groups, max_norm):
    dp, pp, tp = (groups[axis] for axis in ("dp", "pp", "tp"))
    mine = [t.tensor_split(dist.get_world_size(dp))[dist.get_rank(dp)] for t in (x, y)]
    loss = stage.forward_backward(*mine)
    for p in stage.parameters():
        p.grad = p.grad * len(mine[0])
        dist.all_reduce(p.grad, group=dp)
        p.grad = p.grad / len(x)
    flat = torch.cat([p.grad.flatten() for p in stage.copies])
    dist.all_reduce(flat, group=tp)
    start = 0
    for p in stage.copies:
        p.grad.copy_(flat[start : start + p.numel()].view_as(p))
        start += p.numel()
    if groups["ends"]:
        dist.all_reduce(stage.tied.grad, group=groups["ends"])
    is_second = groups["ends"] is not None and dist.get_rank(groups["ends"]) == 1
    shards = torch.zeros(())
    for p in stage.shards:
        if p is not stage.tied or not is_second:
            shards += p.grad.norm() ** 2
    dist.all_reduce(shards, group=tp)
    squares = shards + sum(p.grad.norm() ** 2 for p in stage.copies)
    dist.all_reduce(squares, group=pp)
    torch.nn.utils.clip_grads_with_norm_(stage.parameters(), max_norm, squares.sqrt())
    optimizer.step()
    optimizer.zero_grad()
    total = torch.zeros(1) if loss is None else torch.tensor([loss * len(mine[0])])
    for group in (dp, pp):
        dist.all_reduce(total, group=group)
    return total / len(x)


@right("handles, broadcast of the loss, copies in the model's sum as a part of one over tp, gradients set to None")
def hybrid_step(stage, optimizer, x, y, groups, max_norm):
    for p in stage.parameters():
        p.grad = None
    dp, tp = dist.get_world_size(groups["dp"]), dist.get_world_size(groups["tp"])
    its_x, its_y = part_of(x, y, groups["dp"])
    loss = stage.forward_backward(its_x, its_y)
    handles = [dist.all_reduce(p.grad, group=groups["tp"], async_op=True) for p in stage.copies]
    if stage.tied is not None:
        handles.append(dist.all_reduce(stage.tied.grad, group=groups["ends"], async_op=True))
    for handle in handles:
        handle.wait()
    weight = dp * len(its_x) / len(x)
    for p in stage.parameters():
        if weight != 1:
            p.grad.mul_(weight)
        dist.all_reduce(p.grad, group=groups["dp"])
        p.grad /= dp
    total = square(counted(stage, groups)) + square(stage.copies) / tp
    scale(stage, math.sqrt(summed(total, groups["model"])), max_norm)
    optimizer.step()
    number = torch.tensor([0.0 if loss is None else loss * weight / dp])
    dist.all_reduce(number, group=groups["dp"])
    members = dist.get_process_group_ranks(groups["pp"])
    dist.broadcast(number, members[-1], group=groups["pp"])
    return number[0]


@right("the ends exchange their gradients; both add in the order of the stages")
def hybrid_step(stage, optimizer, x, y, groups, max_norm):
    optimizer.zero_grad()
    its_x, its_y = part_of(x, y, groups["dp"])
    share = len(its_x) / len(x)
    loss = stage.forward_backward(its_x, its_y)
    for p in stage.copies:
        dist.all_reduce(p.grad, group=groups["tp"])
    if groups["ends"] is not None and dist.get_world_size(groups["ends"]) == 2:
        parts = [torch.empty_like(stage.tied) for _ in range(2)]
        dist.all_gather(parts, stage.tied.grad, group=groups["ends"])
        stage.tied.grad = parts[0] + parts[1]
    average(stage, groups, share)
    clip(stage, groups, max_norm)
    optimizer.step()
    return mean_loss(loss, share, groups)


@right("clips what it counts, then scales the other end's tied weight by the same factor")
def hybrid_step(stage, optimizer, x, y, groups, max_norm):
    optimizer.zero_grad(set_to_none=False)
    its_x, its_y = part_of(x, y, groups["dp"])
    share = len(its_x) / len(x)
    loss = stage.forward_backward(its_x, its_y)
    sum_parts(stage, groups)
    average(stage, groups, share)
    entries = [(counted(stage, groups), groups["model"]), (stage.copies, groups["pp"])]
    norm = math.sqrt(sum(summed(square(parameters), group).item() for parameters, group in entries))
    if norm > max_norm:
        for p in [p for parameters, _ in entries for p in parameters]:
            p.grad.mul_(max_norm / norm)
        if stage.tied is not None and dist.get_rank(groups["pp"]) > 0:
            stage.tied.grad.mul_(max_norm / norm)
    optimizer.step()
    return mean_loss(loss, share, groups)


@wrong("HYBRID_WHOLE_BATCH")
def hybrid_step(stage, optimizer, x, y, groups, max_norm):
    optimizer.zero_grad()
    loss = stage.forward_backward(x, y)
    sum_parts(stage, groups)
    average(stage, groups, 1 / dist.get_world_size(groups["dp"]))
    clip(stage, groups, max_norm)
    optimizer.step()
    return mean_loss(loss, 1 / dist.get_world_size(groups["dp"]), groups)


@wrong("HYBRID_PART_BY_RANK")
def hybrid_step(stage, optimizer, x, y, groups, max_norm):
    optimizer.zero_grad()
    n = dist.get_world_size(groups["dp"])
    its_x, its_y = (t.tensor_split(n)[dist.get_rank() % n] for t in (x, y))
    share = len(its_x) / len(x)
    loss = stage.forward_backward(its_x, its_y)
    sum_parts(stage, groups)
    average(stage, groups, share)
    clip(stage, groups, max_norm)
    optimizer.step()
    return mean_loss(loss, share, groups)


@wrong("HYBRID_PART_BY_RANK")
def hybrid_step(stage, optimizer, x, y, groups, max_norm):
    optimizer.zero_grad()
    its_x, its_y = part_of(x, y, None)
    share = len(its_x) / len(x)
    loss = stage.forward_backward(its_x, its_y)
    sum_parts(stage, groups)
    average(stage, groups, share)
    clip(stage, groups, max_norm)
    optimizer.step()
    return mean_loss(loss, share, groups)


@wrong("HYBRID_COPIES_NOT_SUMMED")
def hybrid_step(stage, optimizer, x, y, groups, max_norm):
    optimizer.zero_grad()
    its_x, its_y = part_of(x, y, groups["dp"])
    share = len(its_x) / len(x)
    loss = stage.forward_backward(its_x, its_y)
    if stage.tied is not None:
        dist.all_reduce(stage.tied.grad, group=groups["ends"])
    average(stage, groups, share)
    clip(stage, groups, max_norm)
    optimizer.step()
    return mean_loss(loss, share, groups)


@wrong("HYBRID_COPIES_AVERAGED")
def hybrid_step(stage, optimizer, x, y, groups, max_norm):
    optimizer.zero_grad()
    its_x, its_y = part_of(x, y, groups["dp"])
    share = len(its_x) / len(x)
    loss = stage.forward_backward(its_x, its_y)
    sum_parts(stage, groups)
    for p in stage.copies:
        p.grad /= dist.get_world_size(groups["tp"])
    average(stage, groups, share)
    clip(stage, groups, max_norm)
    optimizer.step()
    return mean_loss(loss, share, groups)


@wrong("HYBRID_SHARDS_SUMMED")
def hybrid_step(stage, optimizer, x, y, groups, max_norm):
    optimizer.zero_grad()
    its_x, its_y = part_of(x, y, groups["dp"])
    share = len(its_x) / len(x)
    loss = stage.forward_backward(its_x, its_y)
    for p in stage.parameters():
        dist.all_reduce(p.grad, group=groups["tp"])
    if stage.tied is not None:
        dist.all_reduce(stage.tied.grad, group=groups["ends"])
    average(stage, groups, share)
    clip(stage, groups, max_norm)
    optimizer.step()
    return mean_loss(loss, share, groups)


@wrong("HYBRID_TIED_NOT_SUMMED")
def hybrid_step(stage, optimizer, x, y, groups, max_norm):
    optimizer.zero_grad()
    its_x, its_y = part_of(x, y, groups["dp"])
    share = len(its_x) / len(x)
    loss = stage.forward_backward(its_x, its_y)
    for p in stage.copies:
        dist.all_reduce(p.grad, group=groups["tp"])
    average(stage, groups, share)
    clip(stage, groups, max_norm)
    optimizer.step()
    return mean_loss(loss, share, groups)


@wrong("HYBRID_TIED_AVERAGED")
def hybrid_step(stage, optimizer, x, y, groups, max_norm):
    optimizer.zero_grad()
    its_x, its_y = part_of(x, y, groups["dp"])
    share = len(its_x) / len(x)
    loss = stage.forward_backward(its_x, its_y)
    sum_parts(stage, groups)
    if stage.tied is not None:
        stage.tied.grad /= dist.get_world_size(groups["ends"])
    average(stage, groups, share)
    clip(stage, groups, max_norm)
    optimizer.step()
    return mean_loss(loss, share, groups)


@wrong("HYBRID_MIDDLE_STAGE")
def hybrid_step(stage, optimizer, x, y, groups, max_norm):
    optimizer.zero_grad()
    its_x, its_y = part_of(x, y, groups["dp"])
    share = len(its_x) / len(x)
    loss = stage.forward_backward(its_x, its_y)
    for p in stage.copies:
        dist.all_reduce(p.grad, group=groups["tp"])
    if stage.tied is not None:
        dist.all_reduce(stage.tied.grad, group=groups["pp"])
    average(stage, groups, share)
    clip(stage, groups, max_norm)
    optimizer.step()
    return mean_loss(loss, share, groups)


@wrong(says="'NoneType' object has no attribute")
def hybrid_step(stage, optimizer, x, y, groups, max_norm):
    optimizer.zero_grad()
    its_x, its_y = part_of(x, y, groups["dp"])
    share = len(its_x) / len(x)
    loss = stage.forward_backward(its_x, its_y)
    for p in stage.copies:
        dist.all_reduce(p.grad, group=groups["tp"])
    dist.all_reduce(stage.tied.grad, group=groups["ends"])
    average(stage, groups, share)
    clip(stage, groups, max_norm)
    optimizer.step()
    return mean_loss(loss, share, groups)


@wrong("HYBRID_DP_FORGOTTEN")
def hybrid_step(stage, optimizer, x, y, groups, max_norm):
    optimizer.zero_grad()
    its_x, its_y = part_of(x, y, groups["dp"])
    share = len(its_x) / len(x)
    loss = stage.forward_backward(its_x, its_y)
    sum_parts(stage, groups)
    clip(stage, groups, max_norm)
    optimizer.step()
    return mean_loss(loss, share, groups)


@wrong("HYBRID_DP_SUMMED")
def hybrid_step(stage, optimizer, x, y, groups, max_norm):
    optimizer.zero_grad()
    its_x, its_y = part_of(x, y, groups["dp"])
    loss = stage.forward_backward(its_x, its_y)
    sum_parts(stage, groups)
    average(stage, groups, 1.0)
    clip(stage, groups, max_norm)
    optimizer.step()
    return mean_loss(loss, len(its_x) / len(x), groups)


@wrong("HYBRID_DP_SUMMED")
def hybrid_step(stage, optimizer, x, y, groups, max_norm):
    optimizer.zero_grad()
    its_x, its_y = part_of(x, y, groups["dp"])
    loss = stage.forward_backward(its_x, its_y)
    sum_parts(stage, groups)
    average(stage, groups, len(its_x) / len(x))
    clip(stage, groups, max_norm)
    optimizer.step()
    return mean_loss(loss, 1.0, groups)


@wrong("HYBRID_MEAN_OF_MEANS")
def hybrid_step(stage, optimizer, x, y, groups, max_norm):
    optimizer.zero_grad()
    its_x, its_y = part_of(x, y, groups["dp"])
    share = 1 / dist.get_world_size(groups["dp"])
    loss = stage.forward_backward(its_x, its_y)
    sum_parts(stage, groups)
    average(stage, groups, share)
    clip(stage, groups, max_norm)
    optimizer.step()
    return mean_loss(loss, share, groups)


@wrong("HYBRID_DIVIDED_BY_ALL")
def hybrid_step(stage, optimizer, x, y, groups, max_norm):
    optimizer.zero_grad()
    its_x, its_y = part_of(x, y, groups["dp"])
    loss = stage.forward_backward(its_x, its_y)
    sum_parts(stage, groups)
    average(stage, groups, 1 / dist.get_world_size())
    clip(stage, groups, max_norm)
    optimizer.step()
    return mean_loss(loss, len(its_x) / len(x), groups)


@wrong("HYBRID_OTHER_PARTS")
def hybrid_step(stage, optimizer, x, y, groups, max_norm):
    optimizer.zero_grad()
    its_x, its_y = part_of(x, y, groups["dp"])
    share = len(its_x) / len(x)
    loss = stage.forward_backward(its_x, its_y)
    for p in stage.parameters():
        p.grad *= share
        dist.all_reduce(p.grad)
    clip(stage, groups, max_norm)
    optimizer.step()
    return mean_loss(loss, share, groups)


@wrong(points=0)
def hybrid_step(stage, optimizer, x, y, groups, max_norm):
    optimizer.zero_grad()
    its_x, its_y = part_of(x, y, groups["dp"])
    share = len(its_x) / len(x)
    loss = stage.forward_backward(its_x, its_y)
    sum_parts(stage, groups)
    for p in stage.parameters():
        p.grad *= share
        dist.all_reduce(p.grad, group=groups["pp"])
    average(stage, groups, 1.0)
    clip(stage, groups, max_norm)
    optimizer.step()
    return mean_loss(loss, share, groups)


@wrong("HYBRID_NOT_ZEROED")
def hybrid_step(stage, optimizer, x, y, groups, max_norm):
    its_x, its_y = part_of(x, y, groups["dp"])
    share = len(its_x) / len(x)
    loss = stage.forward_backward(its_x, its_y)
    sum_parts(stage, groups)
    average(stage, groups, share)
    clip(stage, groups, max_norm)
    optimizer.step()
    return mean_loss(loss, share, groups)


@wrong("CLIP_LOCAL_NORM")
def hybrid_step(stage, optimizer, x, y, groups, max_norm):
    optimizer.zero_grad()
    its_x, its_y = part_of(x, y, groups["dp"])
    share = len(its_x) / len(x)
    loss = stage.forward_backward(its_x, its_y)
    sum_parts(stage, groups)
    average(stage, groups, share)
    torch.nn.utils.clip_grad_norm_(stage.parameters(), max_norm)
    optimizer.step()
    return mean_loss(loss, share, groups)


@wrong("HYBRID_TIED_TWICE")
def hybrid_step(stage, optimizer, x, y, groups, max_norm):
    optimizer.zero_grad()
    its_x, its_y = part_of(x, y, groups["dp"])
    share = len(its_x) / len(x)
    loss = stage.forward_backward(its_x, its_y)
    sum_parts(stage, groups)
    average(stage, groups, share)
    total = summed(square(stage.shards), groups["model"]) + summed(square(stage.copies), groups["pp"])
    scale(stage, total.sqrt().item(), max_norm)
    optimizer.step()
    return mean_loss(loss, share, groups)


@wrong("CLIP_COUNTED_OFTEN")
def hybrid_step(stage, optimizer, x, y, groups, max_norm):
    optimizer.zero_grad()
    its_x, its_y = part_of(x, y, groups["dp"])
    share = len(its_x) / len(x)
    loss = stage.forward_backward(its_x, its_y)
    sum_parts(stage, groups)
    average(stage, groups, share)
    total = summed(square([*counted(stage, groups), *stage.copies]), groups["model"])
    scale(stage, total.sqrt().item(), max_norm)
    optimizer.step()
    return mean_loss(loss, share, groups)


@wrong("CLIP_COUNTED_OFTEN")
def hybrid_step(stage, optimizer, x, y, groups, max_norm):
    optimizer.zero_grad()
    its_x, its_y = part_of(x, y, groups["dp"])
    share = len(its_x) / len(x)
    loss = stage.forward_backward(its_x, its_y)
    sum_parts(stage, groups)
    average(stage, groups, share)
    scale(stage, summed(square(stage.parameters()), None).sqrt().item(), max_norm)
    optimizer.step()
    return mean_loss(loss, share, groups)


@wrong("HYBRID_STAGE_NORM")
def hybrid_step(stage, optimizer, x, y, groups, max_norm):
    optimizer.zero_grad()
    its_x, its_y = part_of(x, y, groups["dp"])
    share = len(its_x) / len(x)
    loss = stage.forward_backward(its_x, its_y)
    sum_parts(stage, groups)
    average(stage, groups, share)
    total = summed(square(stage.shards), groups["tp"]) + square(stage.copies)
    scale(stage, total.sqrt().item(), max_norm)
    optimizer.step()
    return mean_loss(loss, share, groups)


@wrong("HYBRID_CLIPPED_EARLY")
def hybrid_step(stage, optimizer, x, y, groups, max_norm):
    optimizer.zero_grad()
    its_x, its_y = part_of(x, y, groups["dp"])
    share = len(its_x) / len(x)
    loss = stage.forward_backward(its_x, its_y)
    sum_parts(stage, groups)
    clip(stage, groups, max_norm)
    average(stage, groups, share)
    optimizer.step()
    return mean_loss(loss, share, groups)


@wrong("HYBRID_CLIPPED_EARLY")
def hybrid_step(stage, optimizer, x, y, groups, max_norm):
    optimizer.zero_grad()
    its_x, its_y = part_of(x, y, groups["dp"])
    share = len(its_x) / len(x)
    loss = stage.forward_backward(its_x, its_y)
    torch.nn.utils.clip_grad_norm_(stage.parameters(), max_norm)
    sum_parts(stage, groups)
    average(stage, groups, share)
    optimizer.step()
    return mean_loss(loss, share, groups)


@wrong("CLIP_NOT_SCALED")
def hybrid_step(stage, optimizer, x, y, groups, max_norm):
    optimizer.zero_grad()
    its_x, its_y = part_of(x, y, groups["dp"])
    share = len(its_x) / len(x)
    loss = stage.forward_backward(its_x, its_y)
    sum_parts(stage, groups)
    average(stage, groups, share)
    optimizer.step()
    clip(stage, groups, max_norm)
    return mean_loss(loss, share, groups)


@wrong("CLIP_SCALES_UP")
def hybrid_step(stage, optimizer, x, y, groups, max_norm):
    optimizer.zero_grad()
    its_x, its_y = part_of(x, y, groups["dp"])
    share = len(its_x) / len(x)
    loss = stage.forward_backward(its_x, its_y)
    sum_parts(stage, groups)
    average(stage, groups, share)
    total = summed(square(counted(stage, groups)), groups["model"]) + summed(square(stage.copies), groups["pp"])
    for p in stage.parameters():
        p.grad *= max_norm / total.sqrt().item()
    optimizer.step()
    return mean_loss(loss, share, groups)


@wrong("HYBRID_LOSS_ON_ONE_STAGE")
def hybrid_step(stage, optimizer, x, y, groups, max_norm):
    optimizer.zero_grad()
    its_x, its_y = part_of(x, y, groups["dp"])
    share = len(its_x) / len(x)
    loss = stage.forward_backward(its_x, its_y)
    sum_parts(stage, groups)
    average(stage, groups, share)
    clip(stage, groups, max_norm)
    optimizer.step()
    if loss is None:
        return None
    return summed(torch.tensor(loss * share), groups["dp"])


@wrong("HYBRID_LOSS_OF_A_PART")
def hybrid_step(stage, optimizer, x, y, groups, max_norm):
    optimizer.zero_grad()
    its_x, its_y = part_of(x, y, groups["dp"])
    share = len(its_x) / len(x)
    loss = stage.forward_backward(its_x, its_y)
    sum_parts(stage, groups)
    average(stage, groups, share)
    clip(stage, groups, max_norm)
    optimizer.step()
    return summed(torch.tensor(loss or 0.0), groups["pp"])


@wrong("HYBRID_LOSS_COUNTED")
def hybrid_step(stage, optimizer, x, y, groups, max_norm):
    optimizer.zero_grad()
    its_x, its_y = part_of(x, y, groups["dp"])
    share = len(its_x) / len(x)
    loss = stage.forward_backward(its_x, its_y)
    sum_parts(stage, groups)
    average(stage, groups, share)
    clip(stage, groups, max_norm)
    optimizer.step()
    return summed(torch.tensor((loss or 0.0) * share), None).item()


@wrong("HYBRID_SENT_TWICE", points=17)
def hybrid_step(stage, optimizer, x, y, groups, max_norm):
    optimizer.zero_grad()
    its_x, its_y = part_of(x, y, groups["dp"])
    share = len(its_x) / len(x)
    loss = stage.forward_backward(its_x, its_y)
    sum_parts(stage, groups)
    average(stage, groups, share)
    for p in stage.copies:  # "to be sure"
        p.grad /= dist.get_world_size(groups["tp"])
        dist.all_reduce(p.grad, group=groups["tp"])
    clip(stage, groups, max_norm)
    optimizer.step()
    return mean_loss(loss, share, groups)


@wrong("HYBRID_SENT_TWICE", points=17)
def hybrid_step(stage, optimizer, x, y, groups, max_norm):
    optimizer.zero_grad()
    its_x, its_y = part_of(x, y, groups["dp"])
    share = len(its_x) / len(x)
    loss = stage.forward_backward(its_x, its_y)
    for p in stage.copies:
        dist.all_reduce(p.grad, group=groups["tp"])
    rows = 12 // dist.get_world_size(groups["tp"])
    gradient = torch.zeros(rows, 8) if stage.tied is None else stage.tied.grad
    dist.all_reduce(gradient, group=groups["pp"])  # the middle brings zeros
    average(stage, groups, share)
    clip(stage, groups, max_norm)
    optimizer.step()
    return mean_loss(loss, share, groups)


@wrong(points=16, says="has other numbers on rank")
def hybrid_step(stage, optimizer, x, y, groups, max_norm):
    optimizer.zero_grad()
    its_x, its_y = part_of(x, y, groups["dp"])
    share = len(its_x) / len(x)
    loss = stage.forward_backward(its_x, its_y)
    sum_parts(stage, groups)
    n, index = dist.get_world_size(groups["dp"]), dist.get_rank(groups["dp"])
    for p in stage.parameters():
        parts = [torch.empty_like(p) for _ in range(n)]
        dist.all_gather(parts, p.grad * share, group=groups["dp"])
        p.grad = sum(parts[(index + k) % n] for k in range(n))  # its own first
    clip(stage, groups, max_norm)
    optimizer.step()
    return mean_loss(loss, share, groups)


@wrong(says="called `optimizer.step()` 0 times")
def hybrid_step(stage, optimizer, x, y, groups, max_norm):
    optimizer.zero_grad()
    its_x, its_y = part_of(x, y, groups["dp"])
    share = len(its_x) / len(x)
    loss = stage.forward_backward(its_x, its_y)
    sum_parts(stage, groups)
    average(stage, groups, share)
    clip(stage, groups, max_norm)
    with torch.no_grad():
        for p in stage.parameters():
            p -= 0.3 * p.grad
    return mean_loss(loss, share, groups)


@wrong(points=0, says="called `forward_backward` 2 times in a step")
def hybrid_step(stage, optimizer, x, y, groups, max_norm):
    optimizer.zero_grad()
    its_x, its_y = part_of(x, y, groups["dp"])
    for part_x, part_y in zip(its_x.tensor_split(2), its_y.tensor_split(2), strict=True):
        stage.forward_backward(part_x, part_y)
    optimizer.step()
    return 0.0


@wrong("GENERATOR", points=0)
def hybrid_step(stage, optimizer, x, y, groups, max_norm):
    optimizer.zero_grad()
    yield stage.forward_backward(*part_of(x, y, groups["dp"]))


@wrong("CLIP_WHOLE_LEFT_OUT")
def hybrid_step(stage, optimizer, x, y, groups, max_norm):
    optimizer.zero_grad()
    its_x, its_y = part_of(x, y, groups["dp"])
    share = len(its_x) / len(x)
    loss = stage.forward_backward(its_x, its_y)
    sum_parts(stage, groups)
    average(stage, groups, share)
    total = summed(square(counted(stage, groups)), groups["model"])
    scale(stage, total.sqrt().item(), max_norm)
    optimizer.step()
    return mean_loss(loss, share, groups)


@wrong("HYBRID_ONE_END_SCALED")
def hybrid_step(stage, optimizer, x, y, groups, max_norm):
    optimizer.zero_grad()
    its_x, its_y = part_of(x, y, groups["dp"])
    share = len(its_x) / len(x)
    loss = stage.forward_backward(its_x, its_y)
    sum_parts(stage, groups)
    average(stage, groups, share)
    total = summed(square(counted(stage, groups)), groups["model"]) + summed(square(stage.copies), groups["pp"])
    for p in [*counted(stage, groups), *stage.copies]:
        p.grad *= min(1.0, max_norm / total.sqrt().item())
    optimizer.step()
    return mean_loss(loss, share, groups)
