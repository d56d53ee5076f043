# ruff: noqa: B905, F811
import torch
import torch.distributed as dist

from tests.grading.bank import right, wrong


def agree(module):
    """How many ranks have each gradient."""
    holders = torch.tensor([float(p.grad is not None) for p in module.parameters()])
    dist.all_reduce(holders)
    return holders.tolist()


@right("divides before the sum")
def average_gradients(module):
    for p, count in zip(module.parameters(), agree(module)):
        if count == 0:
            continue
        grad = torch.zeros_like(p) if p.grad is None else p.grad / dist.get_world_size()
        dist.all_reduce(grad)
        p.grad = grad


@right("one flat message, missing ones as zero")
def average_gradients(module):
    n = dist.get_world_size()
    counts = agree(module)
    used = [p for p, count in zip(module.parameters(), counts) if count]
    grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in used]
    flat = torch.cat([grad.reshape(-1) for grad in grads])
    dist.all_reduce(flat)
    flat /= n
    for p, grad in zip(used, flat.split([p.numel() for p in used])):
        p.grad = grad.view_as(p).clone()


@right("by hand: reduce to rank 0, then broadcast")
def average_gradients(module):
    for p, count in zip(module.parameters(), agree(module)):
        if count == 0:
            continue
        grad = torch.zeros_like(p) if p.grad is None else p.grad.clone()
        dist.reduce(grad, dst=0)
        grad /= dist.get_world_size()
        dist.broadcast(grad, src=0)
        p.grad = grad


@right("asynchronous, and in reversed order")
def average_gradients(module):
    parameters = list(module.parameters())[::-1]
    counts = agree(module)[::-1]
    handles = []
    for p, count in zip(parameters, counts):
        if count:
            if p.grad is None:
                p.grad = torch.zeros_like(p)
            handles.append((p, dist.all_reduce(p.grad, async_op=True)))
    for p, handle in handles:
        handle.wait()
        p.grad.div_(dist.get_world_size())


@right("sends zeros for all, then puts None back")
def average_gradients(module):
    had = torch.tensor([int(p.grad is not None) for p in module.parameters()])
    for p in module.parameters():
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()
    dist.all_reduce(had, op=dist.ReduceOp.MAX)
    for p, any_rank in zip(module.parameters(), had):
        if not any_rank:
            p.grad = None


@right("gathers who has what as objects of a few bytes")
def average_gradients(module):
    with torch.no_grad():
        mask = torch.tensor([p.grad is not None for p in module.parameters()], dtype=torch.uint8)
        masks = [torch.empty_like(mask) for _ in range(dist.get_world_size())]
        dist.all_gather(masks, mask)
        someone = torch.stack(masks).any(0)
        for p, has in zip(module.parameters(), someone):
            if has:
                total = torch.zeros_like(p) if p.grad is None else p.grad
                dist.all_reduce(total)
                p.grad = total / dist.get_world_size()


@right("agrees through objects")
def average_gradients(module):
    mine = [p.grad is not None for p in module.parameters()]
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, mine)
    with torch.no_grad():
        for p, held in zip(module.parameters(), zip(*everyone)):
            if any(held):
                p.grad = torch.zeros_like(p) if p.grad is None else p.grad
                dist.all_reduce(p.grad)
                p.grad.mul_(1 / len(held))


@right("reduce-scatter and all-gather, by hand")
def average_gradients(module):
    n = dist.get_world_size()
    used = [p for p, count in zip(module.parameters(), agree(module)) if count]
    flat = torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in used])
    padded = torch.cat([flat, flat.new_zeros(-len(flat) % n)])
    handles = []
    parts = [chunk.clone() for chunk in padded.chunk(n)]
    for owner, part in enumerate(parts):
        handles.append(dist.reduce(part, dst=owner, async_op=True))
    for handle in handles:
        handle.wait()
    own = parts[dist.get_rank()] / n
    gathered = [torch.empty_like(own) for _ in range(n)]
    dist.all_gather(gathered, own)
    mean = torch.cat(gathered)[: len(flat)]
    for p, grad in zip(used, mean.split([p.numel() for p in used])):
        p.grad = grad.view_as(p)


@wrong("SUM_NOT_AVERAGE", points=0)
def average_gradients(module):
    for p in module.parameters():
        if p.grad is not None:
            dist.all_reduce(p.grad)


@wrong("DIVIDED_TWICE", points=0)
def average_gradients(module):
    for p in module.parameters():
        p.grad /= dist.get_world_size()
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()


@wrong("FIXED_DIVISOR", points=0)
def average_gradients(module):
    for p in module.parameters():
        dist.all_reduce(p.grad)
        p.grad /= 4


@wrong("COPY_REDUCED", points=0)
def average_gradients(module):
    for p in module.parameters():
        if p.grad is not None:
            grad = p.grad.clone()
            dist.all_reduce(grad)
            grad /= dist.get_world_size()


@wrong("COPY_REDUCED", points=0)
def average_gradients(module):
    flat = torch.cat([p.grad.reshape(-1) for p in module.parameters() if p.grad is not None])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()


@wrong("COPY_REDUCED", points=0)
def average_gradients(module):
    for p in module.parameters():
        grad = p.grad / dist.get_world_size()
        dist.all_reduce(grad)


@wrong("NOTHING_SENT", points=0)
def average_gradients(module):
    for p in module.parameters():
        if p.grad is not None:
            p.grad /= dist.get_world_size()


@wrong("NOTHING_SENT", points=0)
def average_gradients(module):
    gradients = [p.grad for p in module.parameters()]
    return gradients


@wrong("AVERAGED_PARAMETERS", points=0)
def average_gradients(module):
    for p in module.parameters():
        dist.all_reduce(p.data)
        p.data /= dist.get_world_size() + 1


@wrong("SKIPS_NONE", points=7)
def average_gradients(module):
    for p in module.parameters():
        if p.grad is None:
            continue
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()


@wrong("SKIPS_NONE", points=7)
def average_gradients(module):
    grads = [p.grad for p in module.parameters() if p.grad is not None]
    flat = torch.cat([grad.reshape(-1) for grad in grads])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    for grad, mean in zip(grads, flat.split([g.numel() for g in grads])):
        grad.copy_(mean.view_as(grad))


@wrong("HOLDERS_ONLY", points=7)
def average_gradients(module):
    for p, count in zip(module.parameters(), agree(module)):
        if count:
            p.grad = torch.zeros_like(p) if p.grad is None else p.grad
            dist.all_reduce(p.grad)
            p.grad /= count


@wrong("NONE_BECOMES_ZERO", points=8)
def average_gradients(module):
    for p in module.parameters():
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()


@wrong("RANK_ZERO_ONLY", points=0)
def average_gradients(module):
    for p in module.parameters():
        dist.reduce(p.grad, dst=0)
        if dist.get_rank() == 0:
            p.grad /= dist.get_world_size()


@wrong("RANK_ZERO_ONLY", points=0)
def average_gradients(module):
    for p in module.parameters():
        p.grad /= dist.get_world_size()
        dist.reduce(p.grad, dst=0)


@wrong("ONE_RANKS_GRADIENT", points=0)
def average_gradients(module):
    for p in module.parameters():
        dist.broadcast(p.grad, src=0)


@wrong("LARGEST", points=0)
def average_gradients(module):
    for p in module.parameters():
        dist.all_reduce(p.grad, op=dist.ReduceOp.MAX)


@wrong("GENERATOR", points=0)
def average_gradients(module):
    for p in module.parameters():
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()
        yield p.grad


@wrong(says="correct, but", points=8)
def average_gradients(module):
    n = dist.get_world_size()
    for p, count in zip(module.parameters(), agree(module)):
        if count == 0:
            continue
        grad = torch.zeros_like(p) if p.grad is None else p.grad
        parts = [torch.empty_like(grad) for _ in range(n)]
        dist.all_gather(parts, grad)
        p.grad = sum(parts) / n


@wrong(says="correct, but", points=8)
def average_gradients(module):
    for p, count in zip(module.parameters(), agree(module)):
        if count == 0:
            continue
        grad = torch.zeros_like(p) if p.grad is None else p.grad
        for _ in range(2):  # "to be sure"
            dist.all_reduce(grad)
            grad /= dist.get_world_size()
        p.grad = grad


@wrong(says="changed the parameter", points=8)
def average_gradients(module):
    for p, count in zip(module.parameters(), agree(module)):
        if count:
            p.grad = torch.zeros_like(p) if p.grad is None else p.grad
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()
            p.data -= 0.1 * p.grad


@wrong(says="the gradient of `first.weight` is now a float32 tensor of shape (85,)", points=0)
def average_gradients(module):
    for p in module.parameters():
        grad = p.grad.reshape(-1)
        dist.all_reduce(grad)
        p.data = p.data.reshape(-1)
        p.grad = grad / dist.get_world_size()


@wrong(says="all gradients are zero", points=0)
def average_gradients(module):
    module.zero_grad(set_to_none=False)
    for p in module.parameters():
        dist.all_reduce(p.grad)


@wrong(says="1 of 10 gradients are right", points=0)
def average_gradients(module):
    p = next(module.parameters())
    dist.all_reduce(p.grad)
    p.grad /= dist.get_world_size()


@wrong(says="has other numbers on rank", points=8)
def average_gradients(module):
    for p, count in zip(module.parameters(), agree(module)):
        if count:
            p.grad = torch.zeros_like(p) if p.grad is None else p.grad
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()
            p.grad += 1e-7 * dist.get_rank()


@right("leaves torch's defaults changed behind it")
def average_gradients(module):
    for p, count in zip(module.parameters(), agree(module)):
        if count:
            p.grad = torch.zeros_like(p) if p.grad is None else p.grad
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)


@wrong(says="on rank 0 the gradient of `left.bias` is None", points=8)
def average_gradients(module):
    for p in module.parameters():
        grad = torch.zeros_like(p) if p.grad is None else p.grad
        dist.all_reduce(grad)
        p.grad = grad / dist.get_world_size() if grad.any() else None


@right("torch's own reduce-scatter and all-gather")
def average_gradients(module):
    n = dist.get_world_size()
    for p, count in zip(module.parameters(), agree(module)):
        if count:
            grad = torch.zeros_like(p) if p.grad is None else p.grad
            flat = torch.cat([grad.flatten(), torch.zeros(-grad.numel() % n)])
            mine = torch.empty(flat.numel() // n)
            dist.reduce_scatter_tensor(mine, flat)
            dist.all_gather_into_tensor(flat, mine / n)
            p.grad = flat[: grad.numel()].view_as(p)
