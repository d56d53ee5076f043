# ruff: noqa: F811
import torch
import torch.distributed as dist

from tests.grading.bank import right, wrong


def swap(out, into):
    """Send to the next rank and receive from the one before."""
    rank, n = dist.get_rank(), dist.get_world_size()
    handle = dist.isend(out.contiguous(), (rank + 1) % n)
    dist.recv(into, (rank - 1) % n)
    handle.wait()


def around(chunks, start, add, steps=None):
    """Once around the ring, from chunk rank + start on; what arrives is added or takes the place."""
    rank, n = dist.get_rank(), dist.get_world_size()
    for step in range(n - 1 if steps is None else steps):
        mine = chunks[(rank + start - step - 1) % n]
        arrived = torch.empty_like(mine)
        swap(chunks[(rank + start - step) % n], arrived)
        if add:
            mine += arrived
        else:
            mine.copy_(arrived)


@right("in the chunks of t itself")
def ring_all_reduce(t):
    chunks = t.view(-1).tensor_split(dist.get_world_size())
    around(chunks, 0, add=True)
    around(chunks, 1, add=False)


@right("rank r owns chunk r, with batch_isend_irecv")
def ring_all_reduce(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = t.view(-1).tensor_split(n)
    for step in range(2 * (n - 1)):
        out, into = chunks[(rank - step - 1) % n], chunks[(rank - step - 2) % n]
        buffer = torch.empty_like(into)
        operations = [
            dist.P2POp(dist.isend, out.clone(), (rank + 1) % n),
            dist.P2POp(dist.irecv, buffer, (rank - 1) % n),
        ]
        for handle in dist.batch_isend_irecv(operations):
            handle.wait()
        into.copy_(into + buffer if step < n - 1 else buffer)


@right("a copy, written back, and t returned")
def ring_all_reduce(t):
    chunks = [c.clone() for c in t.flatten().tensor_split(dist.get_world_size())]
    around(chunks, 2, add=True)
    around(chunks, 3, add=False)
    t.copy_(torch.cat(chunks).reshape(t.shape))
    return t


@right("recursive halving and doubling; with three ranks the third is folded into the first")
def ring_all_reduce(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    flat = t.view(-1)
    power = 1 << (n.bit_length() - 1)
    extra = n - power
    if rank >= power:
        dist.send(flat, rank - power)
        dist.recv(flat, rank - power)
        return
    if rank < extra:
        buffer = torch.empty_like(flat)
        dist.recv(buffer, rank + power)
        flat += buffer
    halves = []
    low, high, width = 0, len(flat), power // 2
    while width:
        middle = (low + high) // 2
        upper = bool(rank & width)
        keep, give = ((middle, high), (low, middle)) if upper else ((low, middle), (middle, high))
        buffer = torch.empty_like(flat[slice(*keep)])
        handle = dist.isend(flat[slice(*give)].clone(), rank ^ width)
        dist.recv(buffer, rank ^ width)
        handle.wait()
        flat[slice(*keep)] += buffer
        halves.append((keep, give, width))
        low, high = keep
        width //= 2
    for keep, give, width in reversed(halves):
        handle = dist.isend(flat[slice(*keep)].clone(), rank ^ width)
        dist.recv(flat[slice(*give)], rank ^ width)
        handle.wait()
    if rank < extra:
        dist.send(flat, rank + power)


@right("with torch's own reduce_scatter and all_gather, padded")
def ring_all_reduce(t):
    n = dist.get_world_size()
    if n == 1 or t.numel() == 0:
        return
    padded = torch.cat([t.flatten(), t.new_zeros(-t.numel() % n)])
    own = padded.new_empty(len(padded) // n)
    dist.reduce_scatter_tensor(own, padded)
    whole = torch.empty_like(padded)
    dist.all_gather_into_tensor(whole, own)
    t.copy_(whole[: t.numel()].view(t.shape))


@right("all_to_all, then a gather by hand")
def ring_all_reduce(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1:
        return
    size = -(-t.numel() // n)
    table = torch.cat([t.flatten(), t.new_zeros(size * n - t.numel())]).view(n, size)
    taken = torch.empty_like(table)
    dist.all_to_all_single(taken, table)
    table[rank] = taken.sum(0)
    around(list(table), 0, add=False)
    t.copy_(table.view(-1)[: t.numel()].view(t.shape))


@right("straight to the owner, straight back, through t.data")
def ring_all_reduce(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = t.data.reshape(-1).tensor_split(n)
    others = [r for r in range(n) if r != rank]
    buffers = [torch.empty_like(chunks[rank]) for _ in others]
    handles = [dist.isend(chunks[r], r) for r in others]
    for r, buffer in zip(others, buffers, strict=True):
        dist.recv(buffer, r)
    for handle in handles:
        handle.wait()
    for buffer in buffers:
        chunks[rank].add_(buffer)
    handles = [dist.isend(chunks[rank], r) for r in others]
    for r in others:
        dist.recv(chunks[r], r)
    for handle in handles:
        handle.wait()


@right("recursive in the number of steps")
def ring_all_reduce(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = t.view(-1).tensor_split(n)

    def step(k):
        if k == 2 * (n - 1):
            return
        arrived = torch.zeros_like(chunks[(rank - k - 1) % n])
        swap(chunks[(rank - k) % n], arrived)
        chunks[(rank - k - 1) % n].mul_(k < n - 1).add_(arrived)
        step(k + 1)

    step(0)


@wrong("GATHER_START", points=0)
def ring_all_reduce(t):
    chunks = t.view(-1).tensor_split(dist.get_world_size())
    around(chunks, 0, add=True)
    around(chunks, 0, add=False)


@wrong("GATHER_START", points=0)
def ring_all_reduce(t):
    chunks = t.view(-1).tensor_split(dist.get_world_size())
    around(chunks, 0, add=True)
    around(chunks, -1, add=False)


@wrong("STEP_SHORT", points=0)
def ring_all_reduce(t):
    n = dist.get_world_size()
    chunks = t.view(-1).tensor_split(n)
    around(chunks, 0, add=True)
    around(chunks, 1, add=False, steps=n - 2)


@wrong("STEP_SHORT", points=0)
def ring_all_reduce(t):
    n = dist.get_world_size()
    chunks = t.view(-1).tensor_split(n)
    around(chunks, 0, add=True, steps=n - 2)
    around(chunks, 1, add=False)


@wrong("NO_GATHER", points=0)
def ring_all_reduce(t):
    chunks = t.view(-1).tensor_split(dist.get_world_size())
    around(chunks, 0, add=True)


@wrong("NO_GATHER", points=0)
def ring_all_reduce(t):
    chunks = t.view(-1).tensor_split(dist.get_world_size())
    around(chunks, -1, add=True)


@wrong("ADDS_THE_SENT", points=0)
def ring_all_reduce(t):
    moving = t.clone()
    for _ in range(dist.get_world_size() - 1):
        arrived = torch.empty_like(t)
        swap(moving, arrived)
        t += moving
        moving = arrived


@wrong("RUNNING_SUM", points=0)
def ring_all_reduce(t):
    for _ in range(dist.get_world_size() - 1):
        arrived = torch.empty_like(t)
        swap(t.clone(), arrived)
        t += arrived


@wrong("FOR_TWO_RANKS", points=0)
def ring_all_reduce(t):
    if dist.get_world_size() > 1:
        arrived = torch.empty_like(t)
        swap(t, arrived)
        t += arrived


@wrong("COPY_SUMMED", points=0)
def ring_all_reduce(t):
    chunks = t.flatten().clone().tensor_split(dist.get_world_size())
    around(chunks, 0, add=True)
    around(chunks, 1, add=False)
    return torch.cat(chunks).view_as(t)


@wrong("COPY_SUMMED", points=0)
def ring_all_reduce(t):
    moving = t.clone()
    for _ in range(dist.get_world_size() - 1):
        arrived = torch.empty_like(t)
        swap(moving, arrived)
        t = t + arrived
        moving = arrived


@wrong("ONE_RANK_HAS_IT", points=0)
def ring_all_reduce(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank == 0:
        for other in range(1, n):
            arrived = torch.empty_like(t)
            dist.recv(arrived, other)
            t += arrived
    else:
        dist.send(t, 0)


@wrong("AVERAGED_SUM", points=0)
def ring_all_reduce(t):
    chunks = t.view(-1).tensor_split(dist.get_world_size())
    around(chunks, 0, add=True)
    around(chunks, 1, add=False)
    t /= dist.get_world_size()


@wrong("WHOLE_TENSORS", points=8)
def ring_all_reduce(t):
    moving = t.clone()
    for _ in range(dist.get_world_size() - 1):
        arrived = torch.empty_like(t)
        swap(moving, arrived)
        t += arrived
        moving = arrived


@wrong("ONE_MASTER", points=8)
def ring_all_reduce(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank == 0:
        for other in range(1, n):
            arrived = torch.empty_like(t)
            dist.recv(arrived, other)
            t += arrived
        for other in range(1, n):
            dist.send(t, other)
    else:
        dist.send(t, 0)
        dist.recv(t, 0)


@wrong("ONE_MASTER", points=8)
def ring_all_reduce(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    distance = 1
    while distance < n:
        if rank % (2 * distance) == distance:
            dist.send(t, rank - distance)
            break
        if rank + distance < n:
            arrived = torch.empty_like(t)
            dist.recv(arrived, rank + distance)
            t += arrived
        distance *= 2
    if rank:
        dist.recv(t, rank - distance)
    distance //= 2
    while distance:
        if rank % (2 * distance) == 0 and rank + distance < n:
            dist.send(t, rank + distance)
        distance //= 2


@wrong("BUILT_IN", points=8)
def ring_all_reduce(t):
    if dist.get_world_size() > 1:
        dist.all_reduce(t)


@wrong("BUILT_IN", points=8)
def ring_all_reduce(t):
    kept = vars(dist)["_".join(["all", "reduce"])]
    if dist.get_world_size() > 1:
        kept(t, async_op=True).wait()


@wrong("BUILT_IN", points=8)
def ring_all_reduce(t):
    if dist.get_world_size() > 1:
        for few in t.view(-1).split(8):
            dist.all_reduce(few)


@wrong("BY_OTHER_WAYS", points=8)
def ring_all_reduce(t):
    if dist.get_world_size() > 1:
        backend = dist.group.WORLD._get_backend(torch.device("cpu"))
        backend.allreduce([t]).wait()


@wrong("NO_EMPTY_CHUNK", says="IndexError", points=9)
def ring_all_reduce(t):
    chunks = t.view(-1).chunk(dist.get_world_size())
    around(chunks, 0, add=True)
    around(chunks, 1, add=False)


@wrong("EQUAL_CHUNKS")
def ring_all_reduce(t):
    n = dist.get_world_size()
    flat = t.view(-1)
    chunks = [flat[k * (len(flat) // n) : (k + 1) * (len(flat) // n)] for k in range(n)]
    around(chunks, 0, add=True)
    around(chunks, 1, add=False)


@wrong("BUFFER_SIZE")
def ring_all_reduce(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = t.view(-1).tensor_split(n)
    buffer = torch.empty_like(chunks[0])
    for step in range(2 * (n - 1)):
        swap(chunks[(rank - step) % n], buffer)
        into = chunks[(rank - step - 1) % n]
        into.copy_(into + buffer[: len(into)] if step < n - 1 else buffer[: len(into)])


@wrong("IN_FLOAT32", points=10)
def ring_all_reduce(t):
    chunks = t.flatten().float().tensor_split(dist.get_world_size())
    around(chunks, 0, add=True)
    around(chunks, 1, add=False)
    t.copy_(torch.cat(chunks).view(t.shape))


@wrong("ALL_SEND_FIRST", points=0)
def ring_all_reduce(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = t.view(-1).tensor_split(n)
    for step in range(2 * (n - 1)):
        into = chunks[(rank - step - 1) % n]
        buffer = torch.empty_like(into)
        dist.send(chunks[(rank - step) % n], (rank + 1) % n)
        dist.recv(buffer, (rank - 1) % n)
        into.copy_(into + buffer if step < n - 1 else buffer)


@wrong("UNWAITED")
def ring_all_reduce(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = t.view(-1).tensor_split(n)
    for step in range(2 * (n - 1)):
        into = chunks[(rank - step - 1) % n]
        buffer = torch.empty_like(into)
        dist.isend(chunks[(rank - step) % n].clone(), (rank + 1) % n)
        dist.recv(buffer, (rank - 1) % n)
        into.copy_(into + buffer if step < n - 1 else buffer)


@wrong("NO_MESSAGE", points=0)
def ring_all_reduce(t):
    t *= dist.get_world_size()


@wrong("GENERATOR", points=0)
def ring_all_reduce(t):
    chunks = t.view(-1).tensor_split(dist.get_world_size())
    around(chunks, 0, add=True)
    yield
    around(chunks, 1, add=False)


@wrong(says="raised IndexError", points=10)
def ring_all_reduce(t):
    table = t.view(t.shape[0], -1) if t.numel() else t
    chunks = table.view(-1).tensor_split(dist.get_world_size())
    around(chunks, 0, add=True)
    around(chunks, 1, add=False)


@wrong(says="of shape (24,) instead of (4, 6)", points=0)
def ring_all_reduce(t):
    t.data = t.data.view(-1)
    chunks = t.tensor_split(dist.get_world_size())
    around(chunks, 0, add=True)
    around(chunks, 1, add=False)
