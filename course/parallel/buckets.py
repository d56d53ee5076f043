"""DataParallel: gradients averaged in buckets, while backward still runs (Li et al. 2020, PyTorch Distributed).

What `torch.nn.parallel.DistributedDataParallel` does, in a page of Python. The plain functions it stands on are in
`data`. Gradients become ready from the last layer to the first; when a bucket of them is full, its all-reduce starts
and backward goes on with the layers before it.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from course.errors import UsageError
from course.parallel.data import broadcast_parameters


class DataParallel(nn.Module):
    """A module whose gradients are averaged over all ranks: train it as one, and call `finish()` before each step.

        ddp = DataParallel(model)
        loss = ddp(x, y)
        loss.backward()          # all-reduces start inside
        ddp.finish()             # all are done: .grad is the mean over ranks, equal on all of them to the bit
        optimizer.step()

    `.module` is the module itself. Its parameters and buffers are broadcast from rank 0 once, here (running
    statistics of a BatchNorm then go their own way on each rank). Every rank wraps the same module, on the device it
    stays on; frozen parameters are skipped; parameters frozen or thawed later need a new wrapper.
    A parameter without gradient on some ranks counts as zero there; without one on every rank it keeps None. It holds
    its bucket, and all after it, back until `finish()`. Gradients are views of the buckets: clone what you keep.

    bucket_bytes: a bucket is closed before it would grow larger; a single larger parameter has one of its own.
    Bytes a rank sends a step (ring): 2(n-1)/n of the trainable parameters' bytes, plus one element a parameter.
    Raises UsageError for a bucket_bytes below 1, when nothing is trainable, and when `finish()` was forgotten.
    """

    def __init__(self, module: nn.Module, *, bucket_bytes: int = 2**21) -> None:
        super().__init__()
        parameters = [p for p in module.parameters() if p.requires_grad]  # a tied parameter comes once
        if not parameters:
            raise UsageError("DataParallel: no parameter of this module requires a gradient, so nothing is to average")
        if bucket_bytes < 1:
            raise UsageError(f"DataParallel(bucket_bytes={bucket_bytes}): a bucket needs at least 1 byte")
        broadcast_parameters(module)
        self.module = module
        self._buckets = [_Bucket(ps) for ps in _fill_buckets(reversed(parameters), bucket_bytes)]
        self._num_started = 0  # buckets whose all-reduce is on its way: always the first ones
        self._is_open = False  # between the first gradient of a backward and finish()
        self._syncs = True
        _hook_gradients(self)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if self._is_open and torch.is_grad_enabled():
            raise UsageError("DataParallel: the last backward was not finished: call finish() before optimizer.step()")
        return self.module(*args, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """A block whose backwards only add to the local `.grad`; the next backward outside, or `finish()`, averages."""
        before, self._syncs = self._syncs, False
        try:
            yield
        finally:
            self._syncs = before

    def finish(self) -> None:
        """Sends what backward did not fill and waits for all: then every `.grad` is the mean over ranks.

        Every rank calls it once a step, also one that had no data and ran no backward.
        """
        for bucket in self._buckets[self._num_started :]:
            bucket.start()
        for bucket in self._buckets:
            bucket.finish()
        self._num_started, self._is_open = 0, False

    def _gradient_ready(self, bucket: _Bucket, i: int) -> None:
        """Runs inside backward, once the gradient of a bucket's i-th parameter is whole."""
        if not self._syncs:
            return
        self._is_open = True
        bucket.take(i)
        # Every rank must make the same calls in the same order, also when their gradients become ready in another:
        # a full bucket waits until all before it have started.
        while self._num_started < len(self._buckets) and self._buckets[self._num_started].is_full:
            self._buckets[self._num_started].start()
            self._num_started += 1


def _fill_buckets(parameters: Iterable[nn.Parameter], bucket_bytes: int) -> list[list[nn.Parameter]]:
    """Parameters in their order, cut into lists of at most bucket_bytes (or one parameter), of one dtype and device."""
    buckets: list[list[nn.Parameter]] = []
    nbytes = 0
    for p in parameters:
        fits = buckets and nbytes + p.nbytes <= bucket_bytes
        if not fits or (p.dtype, p.device) != (buckets[-1][0].dtype, buckets[-1][0].device):
            buckets.append([])
            nbytes = 0
        buckets[-1].append(p)
        nbytes += p.nbytes
    return buckets


def _hook_gradients(wrapper: DataParallel) -> None:
    """Has autograd call `wrapper._gradient_ready` after each gradient, for as long as the wrapper lives."""
    ready = weakref.WeakMethod(wrapper._gradient_ready)

    def tell(bucket: _Bucket, i: int, parameter: Tensor) -> None:
        if (method := ready()) is not None:
            method(bucket, i)

    handles = [
        p.register_post_accumulate_grad_hook(partial(tell, bucket, i))
        for bucket in wrapper._buckets
        for i, p in enumerate(bucket.parameters)
    ]
    weakref.finalize(wrapper, lambda: [handle.remove() for handle in handles])  # so a module can be wrapped again


class _Bucket:
    """One flat tensor with the gradients of some parameters, and at its end, for each, on how many ranks it has one.

    Gradients live in it: from its first `take` on, a parameter's `.grad` is a view of the flat tensor, so nothing is
    copied back after the all-reduce.
    """

    def __init__(self, parameters: list[nn.Parameter]) -> None:
        self.parameters = parameters
        sizes = [p.numel() for p in parameters]
        self.flat = parameters[0].new_zeros(sum(sizes) + len(sizes))
        *grads, self.num_ranks = self.flat.detach().split([*sizes, len(sizes)])
        self.views = [grad.view(p.shape) for grad, p in zip(grads, parameters, strict=True)]
        self.taken: set[int] = set()
        self.work: dist.Work | None = None

    @property
    def is_full(self) -> bool:
        return len(self.taken) == len(self.parameters)

    def take(self, i: int) -> None:
        """Moves the i-th gradient into the flat tensor."""
        if i in self.taken:
            raise UsageError(
                "DataParallel: a second backward began before finish(): "
                "finish() after each backward, or put all but the last under no_sync()"
            )
        parameter, view = self.parameters[i], self.views[i]
        if parameter.grad is not view:
            view.copy_(parameter.grad)
            parameter.grad = view
        self.taken.add(i)

    def start(self) -> None:
        """Starts the sum over ranks; gradients that did not come count as zero."""
        self.num_ranks.fill_(1)
        for i, parameter in enumerate(self.parameters):
            if i not in self.taken and parameter.grad is not None:
                self.take(i)  # it came under no_sync, or is left from before
            elif i not in self.taken:
                self.views[i].zero_()
                self.num_ranks[i] = 0
        if dist.get_world_size() > 1:
            self.work = dist.all_reduce(self.flat, async_op=True)

    def finish(self) -> None:
        """Waits for the sum and turns it into the mean."""
        if self.work is not None:
            self.work.wait()
            self.flat /= dist.get_world_size()
        for i, parameter in enumerate(self.parameters):
            if i not in self.taken and self.num_ranks[i] > 0:
                parameter.grad = self.views[i]  # another rank had a gradient for it
        self.taken.clear()
        self.work = None
