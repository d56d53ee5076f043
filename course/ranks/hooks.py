"""Where the recorder looks: a kernel before each c10d operator, `Work.wait`, named regions, threads that start.

Installed once in a process, before ranks are forked. What is written down, `recorder` decides.
"""

from __future__ import annotations

import functools
import sys
import threading
from typing import TYPE_CHECKING, Any

from course.ranks.operators import OPERATORS, Operator

if TYPE_CHECKING:
    from course.ranks.recorder import Recorder

KEY = "TESTING_ONLY_GenericMode"  # the dispatch key of the kernels


def install(recorder: Recorder) -> Any:
    """Put a kernel before each c10d operator, and look at `Work.wait`. Returns what must be kept alive.

    The kernels sit at a dispatch key that is first in the order and that torch itself uses in tests only: every
    other operator falls through it at no cost. From there the call goes on with the GIL released. A kernel at the
    key of the device would hold the GIL and lock up with gloo's threads, which free tensors, and so want the GIL,
    while they hold the lock of gloo's queue (seen: one broadcast in some hundreds).
    """
    import torch

    everything_else = torch.library.Library("_", "IMPL")
    everything_else.fallback(torch.library.fallthrough_kernel, KEY)
    kernels = torch.library.Library("c10d", "IMPL")
    for operator in OPERATORS:
        kernels.impl(operator.schema, _kernel(recorder, operator), KEY, with_keyset=True)
    _hide_key_from_python_operators()
    _see_waits(recorder)
    _take_names(recorder)
    _include_key_in_new_threads()
    for name in ("monitored_barrier", "new_group"):
        _watch(recorder, name)
    return everything_else, kernels


def include_key() -> None:
    """Let calls of this thread, and of the backward passes it starts, pass through the kernels."""
    import torch

    torch._C._dispatch_tls_set_dispatch_key_included(KEY, True)


def _kernel(recorder: Recorder, operator: Operator) -> Any:
    import torch
    from torch._C._distributed_c10d import ProcessGroup, Work

    go_on = getattr(torch.ops.c10d, operator.schema).default._handle.redispatch_boxed
    after = torch._C._dispatch_keyset_full_after(torch._C._dispatch_key_parse(KEY))

    def call(keyset: Any, *args: Any) -> Any:
        keyset = keyset & after
        if not recorder.active:
            return go_on(keyset, *args)
        entry, args = recorder.begin(operator, args, ProcessGroup.unbox(args[operator.group_at]), sys._getframe(1))
        result = go_on(keyset, *args)
        work = result[-1] if isinstance(result, tuple) else result
        recorder.made(entry, Work.unbox(work) if work is not None else None)
        return result

    return call


def _see_waits(recorder: Recorder) -> None:
    from torch._C._distributed_c10d import Work

    original = Work.wait

    def wait(work: Any, *args: Any, **kwargs: Any) -> Any:
        entry = recorder.pending.get(id(work))
        if entry is None or not recorder.active:
            return original(work, *args, **kwargs)
        recorder.wait_begins(entry)
        try:
            return original(work, *args, **kwargs)
        finally:
            recorder.wait_ends(entry)

    Work.wait = wait


def _take_names(recorder: Recorder) -> None:
    """What runs under `torch.profiler.record_function(name)` is a compute span of that name."""
    from torch.autograd.profiler import record_function

    enter, leave = record_function.__enter__, record_function.__exit__

    def entered(region: Any) -> Any:
        recorder.enter_region(region.name)
        return enter(region)

    def left(region: Any, *error: Any) -> Any:
        recorder.leave_region()
        return leave(region, *error)

    record_function.__enter__, record_function.__exit__ = entered, left


def _watch(recorder: Recorder, name: str) -> None:
    """Announce a function of torch.distributed that waits for all ranks outside of any operator."""
    import torch.distributed as dist

    original = getattr(dist, name)

    @functools.wraps(original)
    def watched(*args: Any, **kwargs: Any) -> Any:
        if not recorder.active or not dist.is_initialized():
            return original(*args, **kwargs)
        with recorder.meeting(name, kwargs.get("group") or dist.group.WORLD, sys._getframe(1)):
            return original(*args, **kwargs)

    for module in (dist, dist.distributed_c10d):
        setattr(module, name, watched)


def _hide_key_from_python_operators() -> None:
    """Higher-order operators (flex_attention, cond) choose their kernel in Python, where falling through is unknown."""
    import torch

    choose, key = torch._ops.key_extractor, torch._C._dispatch_key_parse(KEY)

    @functools.wraps(choose)
    def key_extractor(tensors: Any, key_mask: Any) -> Any:
        return choose(tensors, key_mask.remove(key))

    torch._ops.key_extractor = key_extractor


def _include_key_in_new_threads() -> None:
    """Calls made by threads that the learner starts are seen too: the key is a setting of each thread."""
    begin = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]

    def bootstrap(thread: threading.Thread) -> None:
        include_key()
        begin(thread)

    threading.Thread._bootstrap_inner = bootstrap  # type: ignore[attr-defined]
