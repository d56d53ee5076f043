# ruff: noqa: F811
import threading

import numpy as np
import torch
import torch.distributed as dist

from tests.grading.bank import right, wrong


def swap(out, into):
    """Send to the next rank and receive from the one before."""
    rank, n = dist.get_rank(), dist.get_world_size()
    handle = dist.isend(out.contiguous(), (rank + 1) % n)
    dist.recv(into, (rank - 1) % n)
    handle.wait()


@right("one buffer that travels")
def ring_reduce_scatter(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = t.reshape(-1).tensor_split(n)
    moving = chunks[(rank - 1) % n].clone()
    for step in range(n - 1):
        own = chunks[(rank - step - 2) % n]
        arrived = torch.empty_like(own)
        swap(moving, arrived)
        moving = arrived + own
    return moving


@right("in a copy, with batch_isend_irecv")
def ring_reduce_scatter(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    work = list(t.clone().view(-1).tensor_split(n))
    for step in range(1, n):
        out, into = (rank - step) % n, (rank - step - 1) % n
        buffer = torch.empty_like(work[into])
        operations = [dist.P2POp(dist.irecv, buffer, (rank - 1) % n), dist.P2POp(dist.isend, work[out], (rank + 1) % n)]
        for handle in dist.batch_isend_irecv(operations):
            handle.wait()
        work[into] += buffer
    return work[rank].clone()


@right("blocking, even ranks send first")
def ring_reduce_scatter(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = [chunk.clone() for chunk in t.flatten().tensor_split(n)]
    for step in range(n - 1):
        out, mine = chunks[(rank - step - 1) % n], chunks[(rank - step - 2) % n]
        buffer = torch.zeros_like(mine)
        if rank % 2 == 0:
            dist.send(out, (rank + 1) % n)
            dist.recv(buffer, (rank - 1) % n)
        else:
            dist.recv(buffer, (rank - 1) % n)
            dist.send(out, (rank + 1) % n)
        mine.add_(buffer)
    return chunks[rank]


@right("no ring: each chunk straight to its owner")
def ring_reduce_scatter(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = t.reshape(-1).tensor_split(n)
    others = [r for r in range(n) if r != rank]
    buffers = [torch.empty_like(chunks[rank]) for _ in others]
    handles = [dist.isend(chunks[r], r) for r in others]
    handles += [dist.irecv(buffer, r) for r, buffer in zip(others, buffers, strict=True)]
    for handle in handles:
        handle.wait()
    return sum(buffers, chunks[rank].clone())


@right("with all_to_all, padded")
def ring_reduce_scatter(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1:
        return t.flatten().clone()
    chunks = t.reshape(-1).tensor_split(n)
    size = len(chunks[0])
    given = torch.stack([torch.cat([chunk, chunk.new_zeros(size - len(chunk))]) for chunk in chunks])
    taken = torch.empty_like(given)
    dist.all_to_all_single(taken, given)
    return taken.sum(0, dtype=t.dtype)[: len(chunks[rank])]


@right("with torch's own reduce_scatter, padded")
def ring_reduce_scatter(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = t.reshape(-1).tensor_split(n)
    size = len(chunks[0])
    if n == 1 or size == 0:
        return t.flatten().clone()
    padded = [torch.cat([chunk, chunk.new_zeros(size - len(chunk))]) for chunk in chunks]
    own = torch.empty_like(padded[0])
    dist.reduce_scatter(own, padded)
    return own[: len(chunks[rank])]


@right("a reduce for each chunk, to its owner")
def ring_reduce_scatter(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = [chunk.clone() for chunk in t.flatten().tensor_split(n)]
    if n > 1:
        for owner, chunk in enumerate(chunks):
            dist.reduce(chunk, dst=owner)
    return chunks[rank]


@right("recursive halving; with three ranks the last is folded into the first")
def ring_reduce_scatter(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    work = t.flatten().clone()
    chunks = work.tensor_split(n)
    power = 1 << (n.bit_length() - 1)
    extra = n - power
    if rank >= power:
        dist.send(work, rank - power)
        dist.recv(chunks[rank], rank - power)
        return chunks[rank]
    if rank < extra:
        buffer = torch.empty_like(work)
        dist.recv(buffer, rank + power)
        work += buffer

    def slots(low, high):
        """The chunks of places low to high, where place p holds that of rank p and of the one folded into it."""
        return [c for p in range(low, high) for c in ([p, p + power] if p < extra else [p])]

    low, high = 0, power
    while high - low > 1:
        middle = (low + high) // 2
        lower = rank < middle
        keep, give = ((low, middle), (middle, high)) if lower else ((middle, high), (low, middle))
        partner = rank + (high - low) // 2 * (1 if lower else -1)
        out = torch.cat([chunks[c] for c in slots(*give)])
        into = torch.empty(sum(len(chunks[c]) for c in slots(*keep)), dtype=t.dtype)
        handle = dist.isend(out, partner)
        dist.recv(into, partner)
        handle.wait()
        for c, part in zip(slots(*keep), into.split([len(chunks[c]) for c in slots(*keep)]), strict=True):
            chunks[c].add_(part)
        low, high = keep
    if rank < extra:
        dist.send(chunks[rank + power], rank + power)
    return chunks[rank]


@right("padded to equal chunks, the padding cut off")
def ring_reduce_scatter(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = t.reshape(-1).tensor_split(n)
    size = len(chunks[0])
    table = torch.zeros(n, size, dtype=t.dtype)
    for row, chunk in zip(table, chunks, strict=True):
        row[: len(chunk)] = chunk
    for step in range(n - 1):
        arrived = table.new_empty(size)
        swap(table[(rank - step - 1) % n], arrived)
        table[(rank - step - 2) % n] += arrived
    return table[rank, : len(chunks[rank])]


@right("the other way around the ring, in numpy")
def ring_reduce_scatter(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = np.array_split(t.numpy().reshape(-1).copy(), n)
    for step in range(n - 1):
        out, mine = chunks[(rank + step + 1) % n], chunks[(rank + step + 2) % n]
        buffer = torch.from_numpy(np.empty_like(mine))
        receive = dist.irecv(buffer, (rank + 1) % n)
        dist.send(torch.from_numpy(out), (rank - 1) % n)
        receive.wait()
        mine += buffer.numpy()
    return torch.from_numpy(chunks[rank])


@right("sends from a thread")
def ring_reduce_scatter(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = [chunk.clone() for chunk in t.flatten().tensor_split(n)]
    for step in range(n - 1):
        sender = threading.Thread(target=dist.send, args=(chunks[(rank - step - 1) % n], (rank + 1) % n))
        sender.start()
        arrived = torch.empty_like(chunks[(rank - step - 2) % n])
        dist.recv(arrived, (rank - 1) % n)
        sender.join()
        chunks[(rank - step - 2) % n] += arrived
    return chunks[rank]


@wrong("NEIGHBOURS_CHUNK", points=0)
def ring_reduce_scatter(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = [chunk.clone() for chunk in t.flatten().tensor_split(n)]
    for step in range(n - 1):
        mine = chunks[(rank - step - 1) % n]
        arrived = torch.empty_like(mine)
        swap(chunks[(rank - step) % n], arrived)
        mine += arrived
    return chunks[(rank + 1) % n]


@wrong("ADDS_THE_SENT", points=0)
def ring_reduce_scatter(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    total, moving = t.flatten().clone(), t.flatten().clone()
    for _ in range(n - 1):
        arrived = torch.empty_like(moving)
        swap(moving, arrived)
        total += moving
        moving = arrived
    return total.tensor_split(n)[rank]


@wrong("RUNNING_SUM", points=0)
def ring_reduce_scatter(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    total = t.flatten().clone()
    for _ in range(n - 1):
        arrived = torch.empty_like(total)
        swap(total, arrived)
        total = total + arrived
    return total.tensor_split(n)[rank]


@wrong("STEP_SHORT", points=0)
def ring_reduce_scatter(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = t.reshape(-1).tensor_split(n)
    moving = chunks[(rank - 1) % n].clone()
    for step in range(n - 2):
        own = chunks[(rank - step - 2) % n]
        arrived = torch.empty_like(own)
        swap(moving, arrived)
        moving = arrived + own
    return moving


@wrong("STEP_SHORT", points=0)
def ring_reduce_scatter(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = [chunk.clone() for chunk in t.flatten().tensor_split(n)]
    for step in range(1, n - 1):
        mine = chunks[(rank - step - 1) % n]
        arrived = torch.empty_like(mine)
        swap(chunks[(rank - step) % n], arrived)
        mine += arrived
    return chunks[rank]


@wrong("OVERWRITES", points=0)
def ring_reduce_scatter(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = [chunk.clone() for chunk in t.flatten().tensor_split(n)]
    for step in range(n - 1):
        swap(chunks[(rank - step - 1) % n], chunks[(rank - step - 2) % n])
    return chunks[rank]


@wrong("KEEPS_OWN", points=0)
def ring_reduce_scatter(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = t.flatten().tensor_split(n)
    for step in range(n - 1):
        arrived = torch.empty_like(chunks[(rank - step - 2) % n])
        swap(chunks[(rank - step - 1) % n], arrived)
        arrived = arrived + chunks[(rank - step - 2) % n]
    return chunks[rank]


@wrong("FOR_TWO_RANKS", points=0)
def ring_reduce_scatter(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = t.flatten().tensor_split(n)
    if n == 1:
        return chunks[0].clone()
    arrived = torch.empty_like(chunks[rank])
    swap(chunks[(rank + 1) % n], arrived)
    return chunks[rank] + arrived


@wrong("WHOLE_SUM", points=0)
def ring_reduce_scatter(t):
    n = dist.get_world_size()
    total, moving = t.flatten().clone(), t.flatten().clone()
    for _ in range(n - 1):
        arrived = torch.empty_like(moving)
        swap(moving, arrived)
        total += arrived
        moving = arrived
    return total


@wrong("AVERAGED_SUM", points=0)
def ring_reduce_scatter(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = t.flatten().tensor_split(n)
    moving = chunks[(rank - 1) % n].clone()
    for step in range(n - 1):
        arrived = torch.empty_like(chunks[(rank - step - 2) % n])
        swap(moving, arrived)
        moving = arrived + chunks[(rank - step - 2) % n]
    return moving / n


@wrong("WHOLE_TENSORS", points=9)
def ring_reduce_scatter(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    total, moving = t.flatten().clone(), t.flatten().clone()
    for _ in range(n - 1):
        arrived = torch.empty_like(moving)
        swap(moving, arrived)
        total += arrived
        moving = arrived
    return total.tensor_split(n)[rank].clone()


@wrong("CUT_AS_CHUNK", points=9)
def ring_reduce_scatter(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = list(t.flatten().chunk(n))
    chunks += [t.new_empty(0)] * (n - len(chunks))
    moving = chunks[(rank - 1) % n].clone()
    for step in range(n - 1):
        own = chunks[(rank - step - 2) % n]
        arrived = torch.empty_like(own)
        swap(moving, arrived)
        moving = arrived + own
    return moving


@wrong("EQUAL_CHUNKS")
def ring_reduce_scatter(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = t.clone().view(n, -1)
    for step in range(n - 1):
        arrived = torch.empty_like(chunks[0])
        swap(chunks[(rank - step - 1) % n], arrived)
        chunks[(rank - step - 2) % n] += arrived
    return chunks[rank]


@wrong("EQUAL_CHUNKS")
def ring_reduce_scatter(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    flat = t.flatten()
    size = len(flat) // n
    chunks = [flat[k * size : (k + 1) * size].clone() for k in range(n)]
    for step in range(n - 1):
        arrived = torch.empty_like(chunks[0])
        swap(chunks[(rank - step - 1) % n], arrived)
        chunks[(rank - step - 2) % n] += arrived
    return chunks[rank]


@wrong("PADDING_LEFT")
def ring_reduce_scatter(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    flat = torch.cat([t.flatten(), t.new_zeros(-t.numel() % n)])
    chunks = list(flat.view(n, -1).clone())
    for step in range(n - 1):
        arrived = torch.empty_like(chunks[0])
        swap(chunks[(rank - step - 1) % n], arrived)
        chunks[(rank - step - 2) % n] += arrived
    return chunks[rank]


@wrong("BUFFER_SIZE")
def ring_reduce_scatter(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = [chunk.clone() for chunk in t.flatten().tensor_split(n)]
    for step in range(n - 1):
        out = chunks[(rank - step - 1) % n]
        arrived = torch.empty_like(out)
        swap(out, arrived)
        chunks[(rank - step - 2) % n] += arrived
    return chunks[rank]


@wrong("NO_EMPTY_CHUNK", points=10)
def ring_reduce_scatter(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    if t.numel() < n:
        raise ValueError("too few elements")
    chunks = t.reshape(-1).tensor_split(n)
    moving = chunks[(rank - 1) % n].clone()
    for step in range(n - 1):
        own = chunks[(rank - step - 2) % n]
        arrived = torch.empty_like(own)
        swap(moving, arrived)
        moving = arrived + own
    return moving


@wrong("INPUT_CHANGED", points=10)
def ring_reduce_scatter(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = t.view(-1).tensor_split(n)
    for step in range(n - 1):
        mine = chunks[(rank - step - 2) % n]
        arrived = torch.empty_like(mine)
        swap(chunks[(rank - step - 1) % n], arrived)
        mine += arrived
    return chunks[rank].clone()


@wrong("BUFFER_DTYPE", points=10)
def ring_reduce_scatter(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = t.flatten().tensor_split(n)
    moving = chunks[(rank - 1) % n].clone()
    for step in range(n - 1):
        own = chunks[(rank - step - 2) % n]
        arrived = torch.empty(len(own))
        swap(moving, arrived)
        moving = arrived + own
    return moving


@wrong("IN_FLOAT32", points=10)
def ring_reduce_scatter(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = t.flatten().float().tensor_split(n)
    moving = chunks[(rank - 1) % n].clone()
    for step in range(n - 1):
        own = chunks[(rank - step - 2) % n]
        arrived = torch.empty_like(own)
        swap(moving, arrived)
        moving = arrived + own
    return moving.to(t.dtype)


@wrong("ALL_SEND_FIRST", points=0)
def ring_reduce_scatter(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = t.reshape(-1).tensor_split(n)
    moving = chunks[(rank - 1) % n].clone()
    for step in range(n - 1):
        own = chunks[(rank - step - 2) % n]
        arrived = torch.empty_like(own)
        dist.send(moving, (rank + 1) % n)
        dist.recv(arrived, (rank - 1) % n)
        moving = arrived + own
    return moving


@wrong("UNWAITED", points=10)
def ring_reduce_scatter(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = t.reshape(-1).tensor_split(n)
    moving = chunks[(rank - 1) % n].clone()
    for step in range(n - 1):
        own = chunks[(rank - step - 2) % n]
        arrived = torch.empty_like(own)
        dist.isend(moving, (rank + 1) % n)
        dist.recv(arrived, (rank - 1) % n)
        moving = arrived + own
    return moving


@wrong("UNWAITED", points=0)
def ring_reduce_scatter(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = t.reshape(-1).tensor_split(n)
    moving = chunks[(rank - 1) % n].clone()
    for step in range(n - 1):
        own = chunks[(rank - step - 2) % n]
        arrived = torch.zeros_like(own)
        dist.irecv(arrived, (rank - 1) % n)
        dist.isend(moving, (rank + 1) % n)
        moving = arrived + own
    return moving


@wrong("NO_MESSAGE", points=0)
def ring_reduce_scatter(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    return (t * n).flatten().tensor_split(n)[rank]


@wrong("GENERATOR", points=0)
def ring_reduce_scatter(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = t.reshape(-1).tensor_split(n)
    moving = chunks[(rank - 1) % n].clone()
    for step in range(n - 1):
        own = chunks[(rank - step - 2) % n]
        arrived = torch.empty_like(own)
        swap(moving, arrived)
        moving = arrived + own
    yield moving


@wrong(says="is None", points=0)
def ring_reduce_scatter(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = t.reshape(-1).tensor_split(n)
    moving = chunks[(rank - 1) % n].clone()
    for step in range(n - 1):
        own = chunks[(rank - step - 2) % n]
        arrived = torch.empty_like(own)
        swap(moving, arrived)
        moving = arrived + own


@wrong(says="of shape (1, 24) instead of (24,)", points=0)
def ring_reduce_scatter(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = t.reshape(-1).tensor_split(n)
    moving = chunks[(rank - 1) % n].clone()
    for step in range(n - 1):
        own = chunks[(rank - step - 2) % n]
        arrived = torch.empty_like(own)
        swap(moving, arrived)
        moving = arrived + own
    return moving[None] if n == 1 else moving


@wrong(says="2.00 times the bytes travel", points=9)
def ring_reduce_scatter(t):
    total = t.flatten().clone()
    rank, n = dist.get_rank(), dist.get_world_size()
    if n > 1:
        dist.all_reduce(total)
    return total.tensor_split(n)[rank]


@wrong(says="messages", points=9)
def ring_reduce_scatter(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = t.reshape(-1).tensor_split(n)
    moving = chunks[(rank - 1) % n].clone()
    for step in range(n - 1):
        own = chunks[(rank - step - 2) % n]
        arrived = torch.empty_like(own)
        for out, into in zip(moving.split(64), arrived.split(64), strict=False):
            swap(out, into)
        if len(moving.split(64)) > len(arrived.split(64)):
            swap(moving[-1:], moving.new_empty(1))
        moving = arrived + own
    return moving


@wrong(says="wrong", points=0)
def ring_reduce_scatter(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = t.reshape(-1).tensor_split(n)
    moving = chunks[(rank - 1) % n].clone()
    for step in range(n - 1):
        own = chunks[(rank - step - 2) % n]
        arrived = torch.full_like(own, 5)
        receive = dist.irecv(arrived, (rank - 1) % n)
        send = dist.isend(moving, (rank + 1) % n)
        moving = arrived + own
        receive.wait()
        send.wait()
    return moving
