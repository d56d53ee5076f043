"""All-reduce as one would first write it: everyone sends to one rank, which sends the sum back.

What `ring` and `tree` are better than, and a plain statement of what they compute.
Tensors here are contiguous: what callers may bring besides is `doors`'s business.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import ProcessGroup


def naive_all_reduce(t: Tensor, *, group: ProcessGroup | None = None) -> None:
    """Replaces t by its sum over the ranks, in place, added in the order of ranks; equal to the bit on all of them.

    t: any shape; float or integer, the same length and dtype on all ranks. n ranks, S bytes:
    the group's rank 0 receives n-1 messages of S bytes and sends n-1, so that its link carries 2(n-1) * S; every other
    rank sends one and receives one. The group sends 2(n-1) * S, as much as the ring, but through one link.
    Memory: S on rank 0. With one rank nothing is sent.
    """
    n, rank = dist.get_world_size(group), dist.get_rank(group)
    if rank > 0:
        dist.send(t, group=group, group_dst=0)
        dist.recv(t, group=group, group_src=0)
        return
    arrived = torch.empty_like(t)
    for other in range(1, n):
        dist.recv(arrived, group=group, group_src=other)
        t += arrived
    for send in [dist.isend(t, group=group, group_dst=other) for other in range(1, n)]:
        send.wait()
