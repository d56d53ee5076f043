"""Collectives on a ring: every rank sends to the next one and receives from the one before, all at the same time.

n is the number of ranks in the group, S the bytes of the whole tensor; ranks are those within the group. Rank r owns
chunk r, cut as `torch.tensor_split` cuts: the first chunks are bigger by one. Bandwidth-optimal for any n (Patarasuk
and Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of workstations").
Tensors here are contiguous: what callers may bring besides is `doors`'s business. Trees are in `tree`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import P2POp, ProcessGroup


def ring_shift(t: Tensor, *, group: ProcessGroup | None = None) -> Tensor:
    """What the rank before sent: a new tensor of t's shape and dtype. Rank 0 gets the last rank's.

    t: any shape and dtype, the same on all ranks.
    A rank sends 1 message of S bytes and receives one; with one rank nothing is sent.
    """
    n, rank = dist.get_world_size(group), dist.get_rank(group)
    if n == 1:
        return t.clone()
    arrived = torch.empty_like(t)
    receive = P2POp(dist.irecv, arrived, group=group, group_peer=(rank - 1) % n)
    send = P2POp(dist.isend, t, group=group, group_peer=(rank + 1) % n)
    for work in dist.batch_isend_irecv([receive, send]):
        work.wait()
    return arrived


def ring_reduce_scatter(t: Tensor, *, group: ProcessGroup | None = None, segments: int = 1) -> Tensor:
    """The sum over ranks of chunk r, on rank r: a new flat tensor. t stays as it was.

    t: any shape, read flat; float or integer, the same length and dtype on all ranks.
    segments: pieces that a chunk is sent in, so that one is added while the next is on its way.
    A rank sends (n-1) * segments messages: each chunk once but its own, (n-1)/n * S bytes where n divides the length.
    The group sends (n-1) * S exactly. Memory: up to 2S for a copy and for what
    arrives. With one rank nothing is sent.
    """
    n, rank = dist.get_world_size(group), dist.get_rank(group)
    sums = t.view(-1).clone()
    _go_round(sums, rank - 1, group, segments, add=n - 1)
    return sums.tensor_split(n)[rank].clone()


def ring_all_gather(chunk: Tensor, numel: int, *, group: ProcessGroup | None = None) -> Tensor:
    """The chunks of all ranks, in the order of ranks: a new flat tensor of `numel` elements.

    chunk: rank r's part of `numel` elements, of any dtype, the same on all ranks.
    A rank sends n-1 messages: each chunk once but the next rank's, (n-1)/n * S bytes where n divides numel. The group
    sends (n-1) * S exactly. With one rank nothing is sent.
    """
    n, rank = dist.get_world_size(group), dist.get_rank(group)
    whole = chunk.new_empty(numel)
    whole.tensor_split(n)[rank].copy_(chunk.view(-1))
    _go_round(whole, rank, group, replace=n - 1)
    return whole


def ring_all_reduce(t: Tensor, *, group: ProcessGroup | None = None, segments: int = 1) -> None:
    """Replaces t by its sum over the ranks, in place; equal to the bit on all of them.

    t: any shape; float or integer, the same length and dtype on all ranks.
    segments: pieces that a chunk is sent in, so that one is added while the next is on its way.
    A reduce-scatter, then an all-gather (Rabenseifner 2004; Thakur, Rabenseifner and Gropp 2005), both on the ring:
    a rank sends 2(n-1) * segments messages, 2(n-1)/n * S bytes where n divides the length, so never 2S, for any n. The
    group sends 2(n-1) * S exactly. Memory: up to S for what arrives. With one rank nothing is sent.
    """
    n, rank = dist.get_world_size(group), dist.get_rank(group)
    _go_round(t.view(-1), rank - 1, group, segments, add=n - 1, replace=n - 1)


def _go_round(
    flat: Tensor, first: int, group: ProcessGroup | None, segments: int = 1, *, add: int = 0, replace: int = 0
) -> None:
    """Steps around the ring, in place: sends chunk `first`, then the one before it, and so on, to the next rank.

    In each step the chunk before the one sent arrives from the rank before; the next step sends it on. In the first
    `add` steps it is added to this rank's, in the `replace` steps after them it replaces this rank's. All receives are
    posted before the first send, so that no message waits for its receiver; what will be replaced has left by then,
    since what comes in its place is made of it.
    """
    n, rank = dist.get_world_size(group), dist.get_rank(group)
    if n == 1:
        return
    left, right = (rank - 1) % n, (rank + 1) % n
    chunks = flat.tensor_split(n)
    pieces = [piece for step in range(add + replace + 1) for piece in _cut(chunks[(first - step) % n], segments)]
    kept = pieces[segments:]  # all but those of the first chunk sent
    added = [len(piece) for piece in kept[: add * segments]]
    arriving = [*flat.new_empty(sum(added)).split(added), *kept[len(added) :]]
    if _needs_batches(flat):
        return _go_round_in_batches(pieces, arriving, segments, group)
    receives = [dist.irecv(piece, group=group, group_src=left) for piece in arriving]
    sends = [dist.isend(piece, group=group, group_dst=right) for piece in pieces[:segments]]
    for piece, arrived, receive in zip(kept, arriving, receives, strict=True):
        receive.wait()
        if arrived is not piece:
            piece += arrived
        if len(sends) < len(kept):
            sends.append(dist.isend(piece, group=group, group_dst=right))
    for send in sends:
        send.wait()


def _needs_batches(flat: Tensor) -> bool:
    """NCCL carries messages out in the order they are posted: a receive alone would wait for ever before its send."""
    return flat.is_cuda


def _go_round_in_batches(
    pieces: Sequence[Tensor], arriving: Sequence[Tensor], segments: int, group: ProcessGroup | None
) -> None:
    """The same, each step's receives and sends posted as one batch."""
    n, rank = dist.get_world_size(group), dist.get_rank(group)
    for start in range(0, len(arriving), segments):
        step = slice(start, start + segments)
        receives = [P2POp(dist.irecv, piece, group=group, group_peer=(rank - 1) % n) for piece in arriving[step]]
        sends = [P2POp(dist.isend, piece, group=group, group_peer=(rank + 1) % n) for piece in pieces[step]]
        for work in dist.batch_isend_irecv([*receives, *sends]):
            work.wait()
        for piece, arrived in zip(pieces[segments:][step], arriving[step], strict=True):
            if arrived is not piece:
                piece += arrived


def _cut(chunk: Tensor, segments: int) -> Sequence[Tensor]:
    """Views of the pieces that a chunk is sent in."""
    return chunk.tensor_split(segments) if segments > 1 else [chunk]
