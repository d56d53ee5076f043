# ruff: noqa: F811
import threading

import torch
import torch.distributed as dist

from tests.grading.bank import right, wrong


@right("isend, recv, wait")
def ring_shift(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1:
        return t.clone()
    arrived = torch.empty_like(t)
    handle = dist.isend(t, (rank + 1) % n)
    dist.recv(arrived, (rank - 1) % n)
    handle.wait()
    return arrived


@right("batch_isend_irecv")
def ring_shift(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    arrived = t.clone()
    if n > 1:
        operations = [
            dist.P2POp(dist.irecv, arrived, (rank - 1) % n),
            dist.P2POp(dist.isend, t, (rank + 1) % n),
        ]
        for handle in dist.batch_isend_irecv(operations):
            handle.wait()
    return arrived


@right("even ranks send first, odd ones receive first")
def ring_shift(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    arrived = torch.zeros(t.shape, dtype=t.dtype)
    if n == 1:
        return t
    if rank % 2:
        dist.recv(arrived, rank - 1)
        dist.send(t, (rank + 1) % n)
    else:
        dist.send(t, (rank + 1) % n)
        dist.recv(arrived, (rank - 1) % n)
    return arrived


@right("rank 0 closes the ring at the end")
def ring_shift(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    arrived = t.clone()
    if rank > 0:
        dist.recv(arrived, rank - 1)
    if n > 1:
        dist.send(t, (rank + 1) % n)
    if rank == 0 and n > 1:
        dist.recv(arrived, n - 1)
    return arrived


@right("receives from whoever sends")
def ring_shift(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1:
        return t + 0
    arrived = torch.empty_like(t)
    handle = dist.isend(t, (rank + 1) % n)
    dist.recv(arrived)
    handle.wait()
    return arrived


@right("all_to_all with one part that is not empty")
def ring_shift(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1:
        return t.clone()
    arrived = torch.empty_like(t.view(-1))
    give = [t.numel() * (r == (rank + 1) % n) for r in range(n)]
    take = [t.numel() * (r == (rank - 1) % n) for r in range(n)]
    dist.all_to_all_single(arrived, t.view(-1), take, give)
    return arrived.view_as(t)


@right("sends from a thread")
def ring_shift(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    arrived = t.clone()
    if n > 1:
        sender = threading.Thread(target=dist.send, args=(t, (rank + 1) % n))
        sender.start()
        dist.recv(arrived, (rank - 1) % n)
        sender.join()
    return arrived


@wrong("ALL_SEND_FIRST", points=0)
def ring_shift(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    arrived = torch.empty_like(t)
    dist.send(t, (rank + 1) % n)
    dist.recv(arrived, (rank - 1) % n)
    return arrived


@wrong("ALL_RECEIVE_FIRST", points=0)
def ring_shift(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    arrived = torch.empty_like(t)
    dist.recv(arrived, (rank - 1) % n)
    dist.send(t, (rank + 1) % n)
    return arrived


@wrong("WRONG_WAY", points=0)
def ring_shift(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    arrived = t.clone()
    if n > 1:
        handle = dist.isend(t, (rank - 1) % n)
        dist.recv(arrived, (rank + 1) % n)
        handle.wait()
    return arrived


@wrong("NO_WRAP", points=0)
def ring_shift(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    arrived = t.clone()
    handle = dist.isend(t, rank + 1) if rank + 1 < n else None
    if rank:
        dist.recv(arrived, rank - 1)
    if handle:
        handle.wait()
    return arrived


@wrong("KEEPS_OWN", points=0)
def ring_shift(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    arrived = torch.empty_like(t)
    if n > 1:
        handle = dist.isend(t, (rank + 1) % n)
        dist.recv(arrived, (rank - 1) % n)
        handle.wait()
    return t


@wrong("NO_MESSAGE", points=0)
def ring_shift(t):
    return torch.roll(t, 1, 0)


@wrong("FOR_TWO_RANKS", points=0)
def ring_shift(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    partner = rank ^ 1
    if partner >= n:
        return t.clone()
    arrived = torch.empty_like(t)
    handle = dist.isend(t, partner)
    dist.recv(arrived, partner)
    handle.wait()
    return arrived


@wrong("SENDS_TO_ITSELF", points=7)
def ring_shift(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    arrived = torch.empty_like(t)
    handle = dist.isend(t, (rank + 1) % n)
    dist.recv(arrived, (rank - 1) % n)
    handle.wait()
    return arrived


@wrong("INPUT_CHANGED", points=7)
def ring_shift(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    if n > 1:
        handle = dist.isend(t.clone(), (rank + 1) % n)
        dist.recv(t, (rank - 1) % n)
        handle.wait()
    return t


@wrong("UNWAITED", points=7)
def ring_shift(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    arrived = t.clone()
    if n > 1:
        dist.isend(t, (rank + 1) % n)
        dist.recv(arrived, (rank - 1) % n)
    return arrived


@wrong("UNWAITED")
def ring_shift(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    arrived = t.clone()
    if n > 1:
        handle = dist.isend(t, (rank + 1) % n)
        dist.irecv(arrived, (rank - 1) % n)
        handle.wait()
    return arrived


@wrong("GATHERED_ALL", points=7)
def ring_shift(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1:
        return t.clone()
    everything = [torch.empty_like(t) for _ in range(n)]
    dist.all_gather(everything, t)
    return everything[rank - 1]


@wrong("GATHERED_ALL", points=7)
def ring_shift(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    everything = [t.clone() for _ in range(n)]
    others = [r for r in range(n) if r != rank]
    handles = [dist.isend(t, r) for r in others] + [dist.irecv(everything[r], r) for r in others]
    for handle in handles:
        handle.wait()
    return everything[rank - 1]


@wrong("BUFFER_DTYPE", points=7)
def ring_shift(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    arrived = torch.empty(t.shape)
    if n == 1:
        return t.clone()
    handle = dist.isend(t, (rank + 1) % n)
    dist.recv(arrived, (rank - 1) % n)
    handle.wait()
    return arrived


@wrong("IN_FLOAT32", points=7)
def ring_shift(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1:
        return t.clone()
    arrived = torch.empty(t.shape)
    handle = dist.isend(t.float(), (rank + 1) % n)
    dist.recv(arrived, (rank - 1) % n)
    handle.wait()
    return arrived.to(t.dtype)


@wrong(says="of shape (24,) instead of (4, 6)", points=0)
def ring_shift(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    arrived = torch.empty(t.numel(), dtype=t.dtype)
    if n == 1:
        return t.clone()
    handle = dist.isend(t, (rank + 1) % n)
    dist.recv(arrived, (rank - 1) % n)
    handle.wait()
    return arrived


@wrong(says="is None", points=7)
def ring_shift(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1:
        return
    arrived = torch.empty_like(t)
    handle = dist.isend(t, (rank + 1) % n)
    dist.recv(arrived, (rank - 1) % n)
    handle.wait()
    return arrived


@wrong(says="sends 4 messages", points=7)
def ring_shift(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    arrived = t.clone()
    if n > 1:
        for out, into in zip(t.view(-1).chunk(4), arrived.view(-1).chunk(4), strict=True):
            handle = dist.isend(out, (rank + 1) % n)
            dist.recv(into, (rank - 1) % n)
            handle.wait()
    return arrived


@wrong("BY_OTHER_WAYS", points=7)
def ring_shift(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    store = dist.distributed_c10d._get_default_store()
    ring_shift.calls = getattr(ring_shift, "calls", 0) + 1
    key = f"shift {t.numel()} {t.dtype} {ring_shift.calls}"
    store.set(f"{key} {rank}", t.numpy().tobytes())
    numbers = bytearray(store.get(f"{key} {(rank - 1) % n}"))
    return torch.frombuffer(numbers, dtype=t.dtype).view(t.shape)


@wrong("GENERATOR", points=0)
def ring_shift(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    arrived = t.clone()
    handle = dist.isend(t, (rank + 1) % n)
    yield dist.recv(arrived, (rank - 1) % n)
    handle.wait()


@wrong("CHANGED_UNDER_WAY")
def ring_shift(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    moving = t.clone()
    if n > 1:
        arrived = torch.empty_like(t)
        handle = dist.isend(moving, (rank + 1) % n)
        dist.recv(arrived, (rank - 1) % n)
        moving.copy_(arrived)
        handle.wait()
    return moving


@wrong("UNWAITED")
def ring_shift(t):
    rank, n = dist.get_rank(), dist.get_world_size()
    arrived = t.clone()
    if n > 1:
        operations = [
            dist.P2POp(dist.irecv, arrived, (rank - 1) % n),
            dist.P2POp(dist.isend, t, (rank + 1) % n),
        ]
        dist.batch_isend_irecv(operations)
    return arrived
