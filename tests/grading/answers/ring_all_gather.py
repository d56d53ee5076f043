# ruff: noqa: F811
import numpy as np
import torch
import torch.distributed as dist

from tests.grading.bank import right, wrong


def sizes(numel, n):
    return [numel // n + (k < numel % n) for k in range(n)]


def swap(out, into):
    """Send to the next rank and receive from the one before."""
    rank, n = dist.get_rank(), dist.get_world_size()
    handle = dist.isend(out.contiguous(), (rank + 1) % n)
    dist.recv(into, (rank - 1) % n)
    handle.wait()


@right("receives straight into the result")
def ring_all_gather(chunk, numel):
    rank, n = dist.get_rank(), dist.get_world_size()
    whole = chunk.new_empty(numel)
    chunks = whole.tensor_split(n)
    chunks[rank].copy_(chunk)
    for step in range(n - 1):
        swap(chunks[(rank - step) % n], chunks[(rank - step - 1) % n])
    return whole


@right("a list in order, put together at the end")
def ring_all_gather(chunk, numel):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = {rank: chunk}
    moving = chunk
    for step in range(1, n):
        owner = (rank - step) % n
        arrived = chunk.new_empty(sizes(numel, n)[owner])
        operations = [
            dist.P2POp(dist.isend, moving, (rank + 1) % n),
            dist.P2POp(dist.irecv, arrived, (rank - 1) % n),
        ]
        for handle in dist.batch_isend_irecv(operations):
            handle.wait()
        parts[owner] = moving = arrived
    return torch.cat([parts[r] for r in range(n)])


@right("everybody to everybody, all at once")
def ring_all_gather(chunk, numel):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = list(torch.zeros(numel, dtype=chunk.dtype).tensor_split(n))
    parts[rank].copy_(chunk)
    others = [r for r in range(n) if r != rank]
    handles = [dist.irecv(parts[r], r) for r in others] + [dist.isend(chunk, r) for r in others]
    for handle in handles:
        handle.wait()
    return torch.cat(parts)


@right("blocking; one rank starts by receiving")
def ring_all_gather(chunk, numel):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = list(chunk.new_empty(numel).tensor_split(n))
    chunks[rank] = chunk
    for step in range(n - 1):
        out, into = chunks[(rank - step) % n], chunks[(rank - step - 1) % n]
        if rank == 0:
            dist.recv(into, n - 1)
            dist.send(out, 1 % n)
        else:
            dist.send(out, (rank + 1) % n)
            dist.recv(into, rank - 1)
    return torch.cat(chunks)


@right("with torch's own all_gather, padded")
def ring_all_gather(chunk, numel):
    n = dist.get_world_size()
    if n == 1:
        return chunk.clone()
    longest = -(-numel // n)
    padded = torch.cat([chunk, chunk.new_zeros(longest - len(chunk))])
    rows = [torch.empty_like(padded) for _ in range(n)]
    dist.all_gather(rows, padded)
    return torch.cat([row[:size] for row, size in zip(rows, sizes(numel, n), strict=True)])


@right("a broadcast for each chunk")
def ring_all_gather(chunk, numel):
    rank, n = dist.get_rank(), dist.get_world_size()
    whole = torch.empty(numel, dtype=chunk.dtype)
    for owner, part in enumerate(whole.split(sizes(numel, n))):
        if owner == rank:
            part.copy_(chunk)
        if n > 1:
            dist.broadcast(part, owner)
    return whole


@right("in order of arrival, then rolled, in numpy")
def ring_all_gather(chunk, numel):
    rank, n = dist.get_rank(), dist.get_world_size()
    pieces = [chunk.numpy()]
    for step in range(1, n):
        arrived = torch.from_numpy(np.zeros(sizes(numel, n)[(rank + step) % n], pieces[0].dtype))
        receive = dist.irecv(arrived, (rank + 1) % n)
        dist.send(torch.from_numpy(pieces[-1].copy()), (rank - 1) % n)
        receive.wait()
        pieces.append(arrived.numpy())
    before = sum(sizes(numel, n)[:rank])
    return torch.from_numpy(np.roll(np.concatenate(pieces), before))


@right("tells the length of each chunk first, in the same message")
def ring_all_gather(chunk, numel):
    rank, n = dist.get_rank(), dist.get_world_size()
    longest = -(-numel // n) + 1
    table = chunk.new_zeros(n, longest)
    table[rank, 0] = len(chunk)
    table[rank, 1 : len(chunk) + 1] = chunk
    for step in range(n - 1):
        swap(table[(rank - step) % n], table[(rank - step - 1) % n])
    return torch.cat([row[1 : int(row[0]) + 1] for row in table])


@right("doubling between pairs, where ranks are a power of two")
def ring_all_gather(chunk, numel):
    rank, n = dist.get_rank(), dist.get_world_size()
    whole = chunk.new_empty(numel)
    chunks = whole.tensor_split(n)
    chunks[rank].copy_(chunk)
    if n & (n - 1):
        for step in range(n - 1):
            swap(chunks[(rank - step) % n], chunks[(rank - step - 1) % n])
        return whole
    width = 1
    while width < n:
        mine = rank // width * width
        theirs = mine ^ width
        out = torch.cat(chunks[mine : mine + width])
        into = chunk.new_empty(sum(map(len, chunks[theirs : theirs + width])))
        handles = [dist.isend(out, rank ^ width), dist.irecv(into, rank ^ width)]
        for handle in handles:
            handle.wait()
        for part, arrived in zip(
            chunks[theirs : theirs + width],
            into.split([len(c) for c in chunks[theirs : theirs + width]]),
            strict=True,
        ):
            part.copy_(arrived)
        width *= 2
    return whole


@wrong("ORDER_OF_ARRIVAL", points=0)
def ring_all_gather(chunk, numel):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [chunk]
    for step in range(1, n):
        arrived = chunk.new_empty(sizes(numel, n)[(rank - step) % n])
        swap(parts[-1], arrived)
        parts.append(arrived)
    return torch.cat(parts)


@wrong("MISPLACED", points=0)
def ring_all_gather(chunk, numel):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = chunk.new_empty(numel).tensor_split(n)
    chunks[(rank + 1) % n].copy_(chunk)
    for step in range(n - 1):
        swap(chunks[(rank + 1 - step) % n], chunks[(rank - step) % n])
    return torch.cat(chunks)


@wrong("MISPLACED", points=0)
def ring_all_gather(chunk, numel):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = chunk.new_empty(numel).tensor_split(n)
    chunks[rank].copy_(chunk)
    moving = chunk
    for step in range(n - 1):
        place = chunks[(rank + step + 1) % n]
        arrived = torch.empty_like(place)
        swap(moving, arrived)
        place.copy_(arrived)
        moving = arrived
    return torch.cat(chunks)


@wrong("OWN_CHUNKS_ONLY", points=0)
def ring_all_gather(chunk, numel):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = chunk.new_zeros(numel).tensor_split(n)
    chunks[rank].copy_(chunk)
    for step in range(n - 2):
        swap(chunks[(rank - step) % n], chunks[(rank - step - 1) % n])
    return torch.cat(chunks)


@wrong("OWN_CHUNKS_ONLY", points=0)
def ring_all_gather(chunk, numel):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = chunk.new_zeros(numel).tensor_split(n)
    chunks[rank].copy_(chunk)
    for step in range(n - 1):
        swap(chunk, chunks[(rank - step - 1) % n])
    return torch.cat(chunks)


@wrong("GATHER_START", points=0)
def ring_all_gather(chunk, numel):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = chunk.new_zeros(numel).tensor_split(n)
    chunks[rank].copy_(chunk)
    for step in range(n - 1):
        swap(chunks[(rank + 1 - step) % n], chunks[(rank - step) % n])
    return torch.cat(chunks)


@wrong("BUFFER_SIZE")
def ring_all_gather(chunk, numel):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [None] * n
    parts[rank] = chunk
    for step in range(n - 1):
        arrived = torch.empty_like(chunk)
        swap(parts[(rank - step) % n], arrived)
        parts[(rank - step - 1) % n] = arrived
    return torch.cat(parts)


@wrong("EQUAL_CHUNKS")
def ring_all_gather(chunk, numel):
    rank, n = dist.get_rank(), dist.get_world_size()
    table = chunk.new_empty(numel).view(n, -1)
    table[rank] = chunk
    for step in range(n - 1):
        swap(table[(rank - step) % n], table[(rank - step - 1) % n])
    return table.view(-1)


@wrong("CUT_AS_CHUNK")
def ring_all_gather(chunk, numel):
    n = dist.get_world_size()
    longest = -(-numel // n)
    whole = chunk.new_zeros(numel)
    rows = [chunk.new_zeros(longest) for _ in range(n)]
    if n == 1:
        return chunk.clone()
    dist.all_gather(rows, torch.cat([chunk, chunk.new_zeros(longest - len(chunk))]))
    for owner, size in enumerate(sizes(numel, n)):
        room = whole[owner * longest : owner * longest + size]
        room.copy_(rows[owner][: len(room)])
    return whole


@wrong("PADDING_LEFT")
def ring_all_gather(chunk, numel):
    rank, n = dist.get_rank(), dist.get_world_size()
    table = chunk.new_zeros(numel + -numel % n)
    chunks = table.split(max(1, -(-numel // n)))
    if n == 1:
        return chunk.clone()
    whole = chunk.new_zeros(numel)
    parts = whole.tensor_split(n)
    parts[rank].copy_(chunk)
    for step in range(n - 1):
        swap(parts[(rank - step) % n], parts[(rank - step - 1) % n])
    return torch.cat([whole, chunk.new_zeros(len(chunks) * len(chunks[0]) - numel)])


@wrong("NO_EMPTY_CHUNK", points=10)
def ring_all_gather(chunk, numel):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = chunk.new_empty(numel).tensor_split(n)
    chunks[rank].copy_(chunk)
    if len(chunk) == 0:
        return torch.cat(chunks)
    for step in range(n - 1):
        swap(chunks[(rank - step) % n], chunks[(rank - step - 1) % n])
    return torch.cat(chunks)


@wrong("BUFFER_DTYPE", points=10)
def ring_all_gather(chunk, numel):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [None] * n
    parts[rank] = chunk
    for step in range(n - 1):
        arrived = torch.empty(sizes(numel, n)[(rank - step - 1) % n])
        swap(parts[(rank - step) % n], arrived)
        parts[(rank - step - 1) % n] = arrived
    return torch.cat(parts)


@wrong("IN_FLOAT32", points=10)
def ring_all_gather(chunk, numel):
    rank, n = dist.get_rank(), dist.get_world_size()
    whole = torch.empty(numel)
    chunks = whole.tensor_split(n)
    chunks[rank].copy_(chunk)
    for step in range(n - 1):
        swap(chunks[(rank - step) % n], chunks[(rank - step - 1) % n])
    return whole


@wrong("INPUT_CHANGED", points=10)
def ring_all_gather(chunk, numel):
    rank, n = dist.get_rank(), dist.get_world_size()
    whole = chunk.new_empty(numel)
    chunks = whole.tensor_split(n)
    chunks[rank].copy_(chunk)
    for step in range(n - 1):
        swap(chunks[(rank - step) % n], chunks[(rank - step - 1) % n])
    chunk.zero_()
    return whole


@wrong("GROWING_MESSAGES")
def ring_all_gather(chunk, numel):
    rank, n = dist.get_rank(), dist.get_world_size()
    lengths = sizes(numel, n)
    held = chunk
    for step in range(n - 1):
        owners = [(rank - 1 - k) % n for k in range(step + 1)]
        arrived = chunk.new_empty(sum(lengths[r] for r in owners))
        swap(held, arrived)
        held = torch.cat([chunk, arrived])
    pieces = held.split([lengths[(rank - k) % n] for k in range(n)])
    return torch.cat([pieces[(rank - r) % n] for r in range(n)])


@wrong("ONE_MASTER", says="rank 0 sends 3.00 times its share", points=9)
def ring_all_gather(chunk, numel):
    rank, n = dist.get_rank(), dist.get_world_size()
    whole = chunk.new_empty(numel)
    chunks = whole.tensor_split(n)
    chunks[rank].copy_(chunk)
    if rank == 0:
        for other in range(1, n):
            dist.recv(chunks[other], other)
        for other in range(1, n):
            dist.send(torch.cat([chunks[r] for r in range(n) if r != other]), other)
    else:
        dist.send(chunk, 0)
        arrived = chunk.new_empty(numel - len(chunk))
        dist.recv(arrived, 0)
        before = sum(sizes(numel, n)[:rank])
        whole = torch.cat([arrived[:before], chunk, arrived[before:]])
    return whole


@wrong("ALL_RECEIVE_FIRST", points=0)
def ring_all_gather(chunk, numel):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = chunk.new_empty(numel).tensor_split(n)
    chunks[rank].copy_(chunk)
    for step in range(n - 1):
        dist.recv(chunks[(rank - step - 1) % n], (rank - 1) % n)
        dist.send(chunks[(rank - step) % n], (rank + 1) % n)
    return torch.cat(chunks)


@wrong("UNWAITED")
def ring_all_gather(chunk, numel):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = chunk.new_empty(numel).tensor_split(n)
    chunks[rank].copy_(chunk)
    for step in range(n - 1):
        dist.isend(chunks[(rank - step) % n], (rank + 1) % n)
        dist.irecv(chunks[(rank - step - 1) % n], (rank - 1) % n).wait()
    return torch.cat(chunks)


@wrong("NO_MESSAGE", points=0)
def ring_all_gather(chunk, numel):
    n = dist.get_world_size()
    return chunk.repeat(n)[:numel]


@wrong(says="is a list of 3", points=0)
def ring_all_gather(chunk, numel):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = chunk.new_empty(numel).tensor_split(n)
    chunks[rank].copy_(chunk)
    for step in range(n - 1):
        swap(chunks[(rank - step) % n], chunks[(rank - step - 1) % n])
    return list(chunks)


@wrong("BY_OTHER_WAYS", points=9)
def ring_all_gather(chunk, numel):
    import pickle

    rank, n = dist.get_rank(), dist.get_world_size()
    store = dist.distributed_c10d._get_default_store()
    ring_all_gather.calls = getattr(ring_all_gather, "calls", 0) + 1
    key = f"cheat {numel} {chunk.dtype} {ring_all_gather.calls}"
    store.set(f"{key} {rank}", pickle.dumps(chunk.tolist()))
    if n > 1:
        dist.barrier()
    numbers = [x for r in range(n) for x in pickle.loads(store.get(f"{key} {r}"))]
    return torch.tensor(numbers, dtype=chunk.dtype)
