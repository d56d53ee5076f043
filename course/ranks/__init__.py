"""Ranks that live: the gang of torch.distributed processes behind a notebook. Loads torch only inside the ranks."""

from course.errors import RankDied, RankError, RanksError, RunInterrupted, RunTimeout, StallError
from course.ranks.pool import Ranks, Run, usable_cores

__all__ = [
    "RankDied",
    "RankError",
    "Ranks",
    "RanksError",
    "Run",
    "RunInterrupted",
    "RunTimeout",
    "StallError",
    "calls_made",
    "usable_cores",
]


def calls_made() -> int:
    """Inside a rank: how many communication calls it has made in this run so far. 0 outside of ranks."""
    import sys

    worker = sys.modules.get("course.ranks.worker")
    return worker.Current.recorder.calls if worker and worker.Current.recorder else 0
