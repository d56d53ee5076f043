"""`course train`: starts ranks, or takes those that torchrun has started, and shows how training goes.

What is trained stands in `parallel.training`; here are the ranks around it, the progress bar, the log and the trace.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tqdm import tqdm

from course.errors import UsageError
from course.parallel.training import Training

Record = dict[str, Any]


def run_training(training: Training, *, log: Path | None, trace: Path | None) -> None:
    """Train until `training.steps`; a bar on the terminal, a line of JSON a step in `log`, the run's trace in `trace`.

    Under torchrun (RANK and WORLD_SIZE are set) this process is one rank of many; otherwise it starts the ranks.
    """
    for path in (log, trace):
        if path is not None:
            path.absolute().parent.mkdir(parents=True, exist_ok=True)
    if "RANK" in os.environ and "WORLD_SIZE" in os.environ:
        if trace is not None:
            raise UsageError("--trace needs the course's own ranks: leave it out, or run without torchrun")
        return _as_one_rank(training, log)
    _on_own_ranks(training, log, trace)


def _as_one_rank(training: Training, log: Path | None) -> None:
    import torch
    import torch.distributed as dist

    from course.parallel.training import train

    local = int(os.environ.get("LOCAL_RANK", 0))
    on_gpu = torch.cuda.is_available() and torch.cuda.device_count() > local
    if on_gpu:
        torch.cuda.set_device(local)
    dist.init_process_group("cpu:gloo,cuda:nccl" if on_gpu else "gloo")
    try:
        with _shown(training, log, visible=dist.get_rank() == 0) as show:
            train(training, show, device=f"cuda:{local}" if on_gpu else "cpu")
    finally:
        dist.destroy_process_group()


def _on_own_ranks(training: Training, log: Path | None, trace: Path | None) -> None:
    from course.ranks import Ranks
    from course.trace.perfetto import write_perfetto

    training.layout.check(training.layout.world_size, training.spec, batch=training.batch)
    with (
        Ranks(training.layout.world_size, trace=trace is not None, live=False) as ranks,
        _shown(training, log) as show,
        _pipe(show) as path,
    ):
        run = ranks.run(_train_on_rank, training, path)
        if trace is not None:
            write_perfetto(run.trace, trace)


def _train_on_rank(training: Training, path: str, device: Any) -> None:
    """Runs in each rank; records leave through the named pipe at `path`."""
    from course.parallel.training import train

    with open(path, "w", buffering=1) as pipe:
        train(training, lambda record: print(json.dumps(record), file=pipe), device=device)


@contextlib.contextmanager
def _pipe(show: Callable[[Record], None]) -> Iterator[str]:
    """A named pipe in a private folder; what comes through it is shown as it comes."""
    with tempfile.TemporaryDirectory(prefix="train-") as folder:
        path = os.path.join(folder, "records")
        os.mkfifo(path, mode=0o600)
        keep_open = os.open(path, os.O_RDWR)  # neither side then waits for the other to come, or ends when one goes

        def read() -> None:
            with open(path) as pipe:
                for line in pipe:
                    if not line.strip():
                        return
                    show(json.loads(line))

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        try:
            yield path
        finally:
            os.write(keep_open, b"\n")  # an empty line: that was all
            reader.join()
            os.close(keep_open)


@contextlib.contextmanager
def _shown(training: Training, log: Path | None, *, visible: bool = True) -> Iterator[Callable[[Record], None]]:
    """A function that shows one record: on the bar, and in the log."""
    with contextlib.ExitStack() as stack:
        bar = stack.enter_context(tqdm(total=training.steps, unit="step", disable=not visible, dynamic_ncols=True))
        bar.set_description(str(training.layout))
        file = stack.enter_context(open(log, "a", buffering=1)) if log and visible else None

        def show(record: Record) -> None:
            if file is not None:
                print(json.dumps(record), file=file)
            if "resumed" in record:
                bar.update(record["resumed"])
                return
            bar.set_postfix_str(
                f"loss {record['loss']:.3f}, {record['tokens_per_second']:,.0f} tokens/s, "
                f"{record['bytes_sent'] / 1e6:.1f} MB sent a step"
            )
            bar.update(1)

        yield show
