# ruff: noqa: F811
import math

import torch
import torch.distributed as dist

from tests.grading.bank import right, wrong


@right("doubling: those who have it send to the place d further")
def broadcast_tree(t, src=0):
    rank, n = dist.get_rank(), dist.get_world_size()
    place = (rank - src) % n
    distance = 1
    while distance < n:
        if place < distance and place + distance < n:
            dist.send(t, (place + distance + src) % n)
        elif distance <= place < 2 * distance:
            dist.recv(t, (place - distance + src) % n)
        distance *= 2


@right("halving: each hands on the far half of its part")
def broadcast_tree(t, src=0):
    rank, n = dist.get_rank(), dist.get_world_size()
    place = (rank - src) % n
    low, high = 0, n
    while high - low > 1:
        middle = (low + high + 1) // 2
        if place == low:
            dist.send(t, (middle + src) % n)
        elif place == middle:
            dist.recv(t, (low + src) % n)
        low, high = (low, middle) if place < middle else (middle, high)


@right("with isend, from the highest bit down")
def broadcast_tree(t, src=0):
    rank, n = dist.get_rank(), dist.get_world_size()
    place = (rank - src) % n
    top = 1 << math.ceil(math.log2(n)) if n > 1 else 1
    low_bit = place & -place if place else top
    if place:
        dist.irecv(t, (place - low_bit + src) % n).wait()
    handles = []
    bit = low_bit >> 1
    while bit:
        if place + bit < n:
            handles.append(dist.isend(t, (place + bit + src) % n))
        bit >>= 1
    for handle in handles:
        handle.wait()


@right("recursive")
def broadcast_tree(t, src=0):
    rank, n = dist.get_rank(), dist.get_world_size()

    def spread(places):
        if len(places) < 2:
            return
        half = (len(places) + 1) // 2
        if rank == places[0]:
            dist.send(t, places[half])
        if rank == places[half]:
            dist.recv(t, places[0])
        spread(places[:half] if rank in places[:half] else places[half:])

    spread([(k + src) % n for k in range(n)])


@right("into a buffer, then copied; batches")
def broadcast_tree(t, src=0):
    rank, n = dist.get_rank(), dist.get_world_size()
    order = sorted(range(n), key=lambda r: (r != src, r))
    place = order.index(rank)
    have = 1
    while have < n:
        operations = []
        if place < have and place + have < n:
            operations.append(dist.P2POp(dist.isend, t, order[place + have]))
        if have <= place < 2 * have:
            buffer = torch.empty_like(t)
            operations.append(dist.P2POp(dist.irecv, buffer, order[place - have]))
        for handle in dist.batch_isend_irecv(operations) if operations else []:
            handle.wait()
        if have <= place < 2 * have:
            t.copy_(buffer)
        have *= 2


@right("a list of rounds made first")
def broadcast_tree(t, src=0):
    rank, n = dist.get_rank(), dist.get_world_size()
    holders, rest = [src], [r for r in range(n) if r != src]
    while rest:
        pairs = list(zip(holders, rest, strict=False))
        for giver, taker in pairs:
            if rank == giver:
                dist.send(t, taker)
            if rank == taker:
                dist.recv(t, giver)
        holders += [taker for _, taker in pairs]
        rest = rest[len(pairs) :]


@right("leaves are told first in their round, then nothing more")
def broadcast_tree(t, src=0):
    rank, n = dist.get_rank(), dist.get_world_size()
    place = rank - src if rank >= src else rank - src + n
    step = (n - 1).bit_length()
    got = place == 0
    for k in reversed(range(step)):
        bit = 1 << k
        if got and place % (2 * bit) == 0 and place + bit < n:
            dist.send(t, (rank + bit) % n)
        elif not got and place % (2 * bit) == bit:
            dist.recv(t, (rank - bit) % n)
            got = True
    return t


@wrong("STAR", points=8)
def broadcast_tree(t, src=0):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank == src:
        for other in range(n):
            if other != src:
                dist.send(t, other)
    else:
        dist.recv(t, src)


@wrong("STAR", points=8)
def broadcast_tree(t, src=0):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank == src:
        for handle in [dist.isend(t, other) for other in range(n) if other != src]:
            handle.wait()
    else:
        dist.recv(t, src)


@wrong("CHAIN", points=8)
def broadcast_tree(t, src=0):
    rank, n = dist.get_rank(), dist.get_world_size()
    place = (rank - src) % n
    if place > 0:
        dist.recv(t, (rank - 1) % n)
    if place < n - 1:
        dist.send(t, (rank + 1) % n)


@wrong("LATE_BRANCH", points=8)
def broadcast_tree(t, src=0):
    rank, n = dist.get_rank(), dist.get_world_size()
    place = (rank - src) % n
    low_bit = place & -place if place else n
    if place:
        dist.recv(t, (place - low_bit + src) % n)
    bit = 1
    while bit < low_bit and place + bit < n:
        dist.send(t, (place + bit + src) % n)
        bit *= 2


@wrong("POWERS_OF_TWO", points=3)
def broadcast_tree(t, src=0):
    rank, n = dist.get_rank(), dist.get_world_size()
    place = (rank - src) % n
    distance = n // 2
    while distance:
        if place % (2 * distance) == 0:
            dist.send(t, (place + distance + src) % n)
        elif place % (2 * distance) == distance:
            dist.recv(t, (place - distance + src) % n)
        distance //= 2


@wrong("POWERS_OF_TWO")
def broadcast_tree(t, src=0):
    rank, n = dist.get_rank(), dist.get_world_size()
    place = (rank - src) % n
    distance = 1
    while distance < n:
        if place < distance:
            dist.send(t, (place + distance + src) % n)
        elif distance <= place < 2 * distance:
            dist.recv(t, (place - distance + src) % n)
        distance *= 2


@wrong("POWERS_OF_TWO", points=3)
def broadcast_tree(t, src=0):
    rank, n = dist.get_rank(), dist.get_world_size()
    place = (rank - src) % n
    for k in range(n.bit_length() - 1):
        distance = 1 << k
        if place < distance and place + distance < n:
            dist.send(t, (place + distance + src) % n)
        elif distance <= place < 2 * distance:
            dist.recv(t, (place - distance + src) % n)


@wrong("SRC_IGNORED", points=8)
def broadcast_tree(t, src=0):
    rank, n = dist.get_rank(), dist.get_world_size()
    distance = 1
    while distance < n:
        if rank < distance and rank + distance < n:
            dist.send(t, rank + distance)
        elif distance <= rank < 2 * distance:
            dist.recv(t, rank - distance)
        distance *= 2


@wrong("TREE_FROM_ZERO", points=8)
def broadcast_tree(t, src=0):
    rank, n = dist.get_rank(), dist.get_world_size()
    has = rank == src
    distance = 1
    while distance < n:
        if has and rank + distance < n:
            dist.send(t, rank + distance)
        elif not has and distance <= rank < 2 * distance:
            dist.recv(t, rank - distance)
            has = True
        distance *= 2


@wrong("FORWARDS_EARLY", points=0)
def broadcast_tree(t, src=0):
    rank, n = dist.get_rank(), dist.get_world_size()
    place = (rank - src) % n
    handles = []
    if place < 2 and place + 2 < n:
        handles.append(dist.isend(t.clone(), (rank + 2) % n))
    if place == 0 and n > 1:
        handles.append(dist.isend(t, (rank + 1) % n))
    if place == 1 or place > 3:
        dist.recv(t, src)
    elif place:
        dist.recv(t, (rank - 2) % n)
    for handle in handles:
        handle.wait()


@wrong("COPY_RECEIVED", points=0)
def broadcast_tree(t, src=0):
    rank, n = dist.get_rank(), dist.get_world_size()
    place = (rank - src) % n
    t = t.clone()
    distance = 1
    while distance < n:
        if place < distance and place + distance < n:
            dist.send(t, (place + distance + src) % n)
        elif distance <= place < 2 * distance:
            dist.recv(t, (place - distance + src) % n)
        distance *= 2
    return t


@wrong("MESSAGES_TWICE")
def broadcast_tree(t, src=0):
    rank, n = dist.get_rank(), dist.get_world_size()
    place = (rank - src) % n
    distance = 1
    while distance < n:
        has = place < distance
        partner = place + distance if has else place - distance
        if partner < n and (has or place < 2 * distance):
            handle = dist.isend(t.clone(), (partner + src) % n)
            other = torch.empty_like(t)
            dist.recv(other, (partner + src) % n)
            handle.wait()
            if not has:
                t.copy_(other)
        distance *= 2


@wrong("BUILT_IN")
def broadcast_tree(t, src=0):
    if dist.get_world_size() > 1:
        dist.broadcast(t, src)


@wrong("UNWAITED")
def broadcast_tree(t, src=0):
    rank, n = dist.get_rank(), dist.get_world_size()
    place = (rank - src) % n
    distance = 1
    while distance < n:
        if place < distance and place + distance < n:
            dist.isend(t, (place + distance + src) % n)
        elif distance <= place < 2 * distance:
            dist.recv(t, (place - distance + src) % n)
        distance *= 2


@wrong("NO_MESSAGE", points=0)
def broadcast_tree(t, src=0):
    torch.manual_seed(src)
    t.copy_(torch.randn(t.shape))


@wrong(says="is not in rank", points=0)
def broadcast_tree(t, src=0):
    raise RuntimeError("src is not in rank")


@wrong(says="the ranks wait for each other", points=0)
def broadcast_tree(t, src=0):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank != src:
        dist.recv(t, (rank - 1) % n)


@wrong(says="on rank 1 is that of rank 1", points=0)
def broadcast_tree(t, src=0):
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 4 and rank == 0:
        dist.send(t, 2)
    if n == 4 and rank == 2:
        dist.recv(t, 0)
    if n == 2:
        dist.send(t, 1) if rank == 0 else dist.recv(t.clone(), 0)


@wrong(says="messages and 2.00 times the bytes travel")
def broadcast_tree(t, src=0):
    rank, n = dist.get_rank(), dist.get_world_size()
    place = (rank - src) % n
    distance = 1
    while distance < n:
        for half in t.view(-1).tensor_split(2):
            if place < distance and place + distance < n:
                dist.send(t, (place + distance + src) % n)
            elif distance <= place < 2 * distance:
                dist.recv(t, (place - distance + src) % n)
            half.size()
        distance *= 2
