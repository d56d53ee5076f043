"""Collectives on a binomial tree: in each round twice as many ranks have taken part, so ⌈log2 n⌉ rounds reach n ranks.

n is the number of ranks in the group, S the bytes of the whole tensor. Few rounds make it quick for small tensors; each
message carries the whole tensor, so large ones are cheaper on the ring (Thakur, Rabenseifner and Gropp 2005,
"Optimization of collective communication operations in MPICH", section 4).
Tensors here are contiguous: what callers may bring besides is `doors`'s business. Rings are in `ring`.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import ProcessGroup


def broadcast_tree(t: Tensor, src: int = 0, *, group: ProcessGroup | None = None) -> None:
    """Gives every rank the values of rank `src`, in place.

    t: any shape and dtype, the same on all ranks. src: a global rank, as in dist.broadcast.
    ⌈log2 n⌉ rounds. The group sends n-1 messages of S bytes; `src` sends ⌈log2 n⌉ of them, others between none and
    ⌈log2 n⌉ - 1, and all but `src` receive one. With one rank nothing is sent.
    """
    n, root = dist.get_world_size(group), dist.get_group_rank(group or dist.group.WORLD, src)
    place = (dist.get_rank(group) - root) % n  # as if src were rank 0
    sends, distance = [], 1
    while distance < n:  # the places below `distance` have it, and each passes it on to one that far away
        if distance <= place < 2 * distance:
            dist.recv(t, group=group, group_src=(root + place - distance) % n)
        elif place < distance and place + distance < n:
            sends.append(dist.isend(t, group=group, group_dst=(root + place + distance) % n))
        distance *= 2
    for send in sends:
        send.wait()


def tree_all_reduce(t: Tensor, *, group: ProcessGroup | None = None) -> None:
    """Replaces t by its sum over the ranks, in place; equal to the bit on all of them.

    t: any shape; float or integer, the same length and dtype on all ranks.
    The sum runs up a binomial tree to the group's rank 0, which broadcasts it down again: 2⌈log2 n⌉ rounds. The group
    sends 2(n-1) messages of S bytes, as many bytes as the ring, but not evenly: rank 0 receives and sends ⌈log2 n⌉ * S
    each, every other rank sends S and what it passes on in the broadcast. Memory: S where sums are made. With one rank
    nothing is sent.
    """
    n, rank = dist.get_world_size(group), dist.get_rank(group)
    distance = 1
    while distance < n and rank % (2 * distance) == 0:  # a parent of this round
        if rank + distance < n:
            child = torch.empty_like(t)
            dist.recv(child, group=group, group_src=rank + distance)
            t += child
        distance *= 2
    if rank > 0:
        dist.send(t, group=group, group_dst=rank - distance)
    broadcast_tree(t, dist.get_global_rank(group or dist.group.WORLD, 0), group=group)
