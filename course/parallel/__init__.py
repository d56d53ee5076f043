"""Many ranks, one model: each module splits the GPT of `gpt` another way and lands on the same gradients and losses.

`data` holds the functions of data parallel training, `buckets` the wrapper that hides its all-reduces behind backward.
Everything here runs inside a rank of an initialised `torch.distributed` group.
"""

from course.parallel.buckets import DataParallel
from course.parallel.data import (
    accumulate_without_sync,
    average_gradients,
    broadcast_parameters,
    exposed_seconds,
    shard_indices,
    weighted_average_gradients,
)

__all__ = [
    "DataParallel",
    "accumulate_without_sync",
    "average_gradients",
    "broadcast_parameters",
    "exposed_seconds",
    "shard_indices",
    "weighted_average_gradients",
]
