"""Step time of DataParallel beside torch's DistributedDataParallel: same model, same ranks, same run, in turn.

`make bench` prints medians of the steps and of their ratios, round by round; ours to torch's should be at most 1.1.
"""

from __future__ import annotations

import statistics
import sys
import time

import cloudpickle
import pytest
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from course.gpt import encode, load_text, make_gpt, windows
from course.parallel import DataParallel, average_gradients
from course.ranks import Ranks

WARM_UP, ROUNDS = 5, 60


def timed_steps(tokens, batch, rounds, rank, device):
    """Seconds of each way's steps, taken in turn; a step starts and ends with all ranks together."""
    x, y = windows(tokens.to(device), range(rank * batch, (rank + 1) * batch), 64)

    def torchs():
        ddp(x, y).backward()

    def ours():
        wrapped(x, y).backward()
        wrapped.finish()

    def plain():
        naive.loss(x, y).backward()
        average_gradients(naive)

    (ddp_model, a), (wrapped_model, b), (naive, c) = (make_gpt(0, device=device) for _ in range(3))
    ddp, wrapped = DistributedDataParallel(ddp_model), DataParallel(wrapped_model)
    arms = {"torch": (torchs, a), "ours": (ours, b), "plain": (plain, c)}
    seconds = {name: [] for name in arms}
    for i in range(WARM_UP + rounds):
        for name in sorted(arms, reverse=i % 2 == 1):  # whoever comes first changes from round to round
            step, optimizer = arms[name]
            dist.barrier()
            start = time.perf_counter()
            optimizer.zero_grad()
            step()
            optimizer.step()
            dist.barrier()
            if i >= WARM_UP:
                seconds[name].append(time.perf_counter() - start)
    return seconds


@pytest.mark.timeout(900)
@pytest.mark.parametrize("batch", [4, 16])
@pytest.mark.parametrize("n", [2, 4])
def test_step_time_beside_torchs_ddp(n, batch):
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with Ranks(n, live=False, stall=60.0) as ranks:
        seconds = ranks.run(timed_steps, encode(load_text())[:10_000], batch, ROUNDS).values[0]
    median = {name: statistics.median(values) * 1e3 for name, values in seconds.items()}
    ratio = {
        name: statistics.median(a / b for a, b in zip(values, seconds["torch"], strict=True))
        for name, values in seconds.items()
    }
    print(
        f"\n{n} ranks, {batch} windows a rank, {ROUNDS} interleaved steps: torch's DDP {median['torch']:.1f} ms, "
        f"DataParallel {median['ours']:.1f} ms, ratio {ratio['ours']:.3f}; "
        f"one message a parameter {median['plain']:.1f} ms, ratio {ratio['plain']:.2f}"
    )
    assert all(len(values) == ROUNDS for values in seconds.values())
