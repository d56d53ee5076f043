"""Collectives built from send and recv alone: on a ring, on a tree, and the naive way.

They run on any group of torch.distributed, take any dense tensor of the group's device, strided ones too, and behave as
torch's own: in place where torch's are. What each costs in messages and bytes stands at the function. `doors` refuses
what cannot work with a UsageError; tensors of unlike length or dtype on the ranks are refused by the ranks themselves
(MismatchError), at the first message whose ends differ and before it is sent. Data parallel training uses torch's own.
"""

from __future__ import annotations

from course.collectives import naive, ring, tree
from course.collectives.doors import chunk_fault, door, segments_fault, source_fault

__all__ = [
    "broadcast_tree",
    "naive_all_reduce",
    "ring_all_gather",
    "ring_all_reduce",
    "ring_reduce_scatter",
    "ring_shift",
    "tree_all_reduce",
]

broadcast_tree = door(tree.broadcast_tree, in_place=True, check=source_fault)
naive_all_reduce = door(naive.naive_all_reduce, adds=True, in_place=True)
ring_all_gather = door(ring.ring_all_gather, check=chunk_fault)
ring_all_reduce = door(ring.ring_all_reduce, adds=True, in_place=True, check=segments_fault)
ring_reduce_scatter = door(ring.ring_reduce_scatter, adds=True, check=segments_fault)
ring_shift = door(ring.ring_shift)
tree_all_reduce = door(tree.tree_all_reduce, adds=True, in_place=True)
