# ruff: noqa: F811
import hashlib
import random

import numpy as np
import torch
import torch.distributed as dist

from tests.grading.bank import right, wrong


@right("torch, every world_size-th")
def shard_indices(n, rank, world_size, *, epoch=0, seed=0):
    generator = torch.Generator().manual_seed(1000 * seed + epoch)
    return torch.randperm(n, generator=generator).tolist()[rank::world_size]


@right("random, cut at rounded bounds")
def shard_indices(n, rank, world_size, *, epoch=0, seed=0):
    order = list(range(n))
    random.Random(f"{seed}/{epoch}").shuffle(order)
    return order[n * rank // world_size : n * (rank + 1) // world_size]


@right("numpy, array_split")
def shard_indices(n, rank, world_size, *, epoch=0, seed=0):
    order = np.random.default_rng([seed, epoch]).permutation(n)
    return [int(i) for i in np.array_split(order, world_size)[rank]]


@right("torch, tensor_split, seeds the global generator")
def shard_indices(n, rank, world_size, *, epoch=0, seed=0):
    torch.manual_seed(seed + epoch)
    return torch.randperm(n).tensor_split(world_size)[rank].tolist()


@right("sorts by a hash, numpy ints")
def shard_indices(n, rank, world_size, *, epoch=0, seed=0):
    order = sorted(range(n), key=lambda i: hashlib.sha256(f"{seed} {epoch} {i}".encode()).digest())
    return list(np.array(order, dtype=np.int64)[rank::world_size])


@right("torch's sampler without padding, by hand")
def shard_indices(n, rank, world_size, *, epoch=0, seed=0):
    if n == 0:
        return []
    g = torch.Generator()
    g.manual_seed(seed * 7919 + epoch)
    order = torch.randperm(n, generator=g).tolist()
    base, extra = divmod(n, world_size)
    start = rank * base + min(rank, extra)
    return order[start : start + base + (rank < extra)]


@wrong("PADDING", points=1)
def shard_indices(n, rank, world_size, *, epoch=0, seed=0):
    order = list(range(n))
    random.Random(f"{seed}/{epoch}").shuffle(order)
    while order and len(order) % world_size:
        order.append(order[len(order) - n])
    return order[rank::world_size]


@wrong("PADDING", points=1)
def shard_indices(n, rank, world_size, *, epoch=0, seed=0):
    if n == 0:
        return []
    sampler = torch.utils.data.DistributedSampler(range(n), world_size, rank, shuffle=True, seed=seed)
    sampler.set_epoch(epoch)
    return list(sampler)


@wrong("DROPS_LAST", points=1)
def shard_indices(n, rank, world_size, *, epoch=0, seed=0):
    order = list(range(n))
    random.Random(f"{seed}/{epoch}").shuffle(order)
    size = n // world_size
    return order[rank * size : (rank + 1) * size]


@wrong("SEED_PER_RANK", points=1)
def shard_indices(n, rank, world_size, *, epoch=0, seed=0):
    order = list(range(n))
    random.Random(f"{seed}/{epoch}/{rank}").shuffle(order)
    return order[rank::world_size]


@wrong("UNSEEDED", points=1)
def shard_indices(n, rank, world_size, *, epoch=0, seed=0):
    return torch.randperm(n).tolist()[rank::world_size]


@wrong("UNSEEDED", points=1)
def shard_indices(n, rank, world_size, *, epoch=0, seed=0):
    order = list(range(n))
    random.shuffle(order)
    return order[rank::world_size]


@wrong("EVERYONE_EVERYTHING", points=1)
def shard_indices(n, rank, world_size, *, epoch=0, seed=0):
    order = list(range(n))
    random.Random(f"{seed}/{epoch}").shuffle(order)
    return order


@wrong("EPOCH_IGNORED", points=7)
def shard_indices(n, rank, world_size, *, epoch=0, seed=0):
    order = list(range(n))
    random.Random(seed).shuffle(order)
    return order[rank::world_size]


@wrong("EPOCH_IGNORED", points=7)
def shard_indices(n, rank, world_size, *, epoch=0, seed=0):
    sequence = torch.randperm(n, generator=torch.Generator().manual_seed(seed * epoch + seed)).tolist()
    return sequence[rank::world_size]


@wrong("SEED_IGNORED", points=7)
def shard_indices(n, rank, world_size, *, epoch=0, seed=0):
    order = list(range(n))
    random.Random(epoch).shuffle(order)
    return order[rank::world_size]


@wrong("NOT_SHUFFLED", points=6)
def shard_indices(n, rank, world_size, *, epoch=0, seed=0):
    return list(range(rank, n, world_size))


@wrong("NOT_SHUFFLED", points=6)
def shard_indices(n, rank, world_size, *, epoch=0, seed=0):
    return torch.arange(n).tensor_split(world_size)[rank].tolist()


@wrong("REST_ON_ONE", points=7)
def shard_indices(n, rank, world_size, *, epoch=0, seed=0):
    order = list(range(n))
    random.Random(f"{seed}/{epoch}").shuffle(order)
    size = n // world_size
    return order[rank * size : (rank + 1) * size if rank < world_size - 1 else n]


@wrong("CEIL_CHUNKS", points=7)
def shard_indices(n, rank, world_size, *, epoch=0, seed=0):
    order = list(range(n))
    random.Random(f"{seed}/{epoch}").shuffle(order)
    size = -(-n // world_size)
    return order[rank * size : (rank + 1) * size]


@wrong("FIXED_SHARES", points=7)
def shard_indices(n, rank, world_size, *, epoch=0, seed=0):
    mine = list(range(rank, n, world_size))
    random.Random(f"{seed}/{epoch}").shuffle(mine)
    return mine


@wrong("SAMPLES_FROM_ONE", points=1)
def shard_indices(n, rank, world_size, *, epoch=0, seed=0):
    order = list(range(1, n + 1))
    random.Random(f"{seed}/{epoch}").shuffle(order)
    return order[rank::world_size]


@wrong("ASKS_DIST", points=1)
def shard_indices(n, rank, world_size, *, epoch=0, seed=0):
    order = list(range(n))
    random.Random(f"{seed}/{epoch}").shuffle(order)
    return order[dist.get_rank() :: world_size]


@wrong("GENERATOR", points=0)
def shard_indices(n, rank, world_size, *, epoch=0, seed=0):
    order = list(range(n))
    random.Random(f"{seed}/{epoch}").shuffle(order)
    yield from order[rank::world_size]


@wrong(says="rank 0 got a int64 tensor", points=7)
def shard_indices(n, rank, world_size, *, epoch=0, seed=0):
    return torch.randperm(n, generator=torch.Generator().manual_seed(1000 * seed + epoch))[rank::world_size]


@wrong(says="rank 0 got a tuple", points=7)
def shard_indices(n, rank, world_size, *, epoch=0, seed=0):
    order = list(range(n))
    random.Random(f"{seed}/{epoch}").shuffle(order)
    return tuple(order[rank::world_size])


@wrong(says="rank 0 got a range", points=0)
def shard_indices(n, rank, world_size, *, epoch=0, seed=0):
    return range(rank, n, world_size)


@wrong(says="raised ZeroDivisionError", points=0)
def shard_indices(n, rank, world_size, *, epoch=0, seed=0):
    step = world_size // (n // 100)
    return list(range(rank, n, step))


@wrong(says="raised IndexError", points=7)
def shard_indices(n, rank, world_size, *, epoch=0, seed=0):
    order = list(range(n))
    random.Random(f"{seed}/{epoch}").shuffle(order)
    return [order[rank], *order[rank + world_size :: world_size]]


@wrong(says="missing", points=1)
def shard_indices(n, rank, world_size, *, epoch=0, seed=0):
    order = list(range(n))
    random.Random(f"{seed}/{epoch}").shuffle(order)
    return order[rank::2]


@wrong(says="missing", points=1)
def shard_indices(n, rank, world_size, *, epoch=0, seed=0):
    generator = random.Random(f"{seed}/{epoch}")
    return [generator.randrange(n) for _ in range(rank, n, world_size)]


@wrong("NOT_SHUFFLED", points=7)
def shard_indices(n, rank, world_size, *, epoch=0, seed=0):
    return [(i + epoch + 5 * seed) % n for i in range(rank, n, world_size)]


@wrong("NOT_SHUFFLED", points=7)
def shard_indices(n, rank, world_size, *, epoch=0, seed=0):
    order = list(range(n))
    if epoch or seed:
        random.Random(f"{seed}/{epoch}").shuffle(order)
    return order[rank::world_size]
