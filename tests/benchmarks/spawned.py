"""What each process of the spawn benchmark does: joins a gloo group and leaves."""

from __future__ import annotations

import torch.distributed as dist


def join(rank: int, world_size: int, path: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=world_size)
    dist.destroy_process_group()
