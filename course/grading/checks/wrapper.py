"""Checks of `DataParallel`: values step after step, then buckets and overlap, read from the order of events."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from inspect import isclass, isfunction
from types import CodeType
from typing import Any

from course.grading.bench import Bench, Result, Seat, Trouble
from course.grading.check import Check, Finding
from course.grading.checks import replicas
from course.grading.checks.averaging import stopped_by_order
from course.grading.checks.training import (
    BUCKET,
    DEPTH,
    SMALL,
    STEPS,
    WIDTH,
    model,
    numbers_of_step,
    probe,
    reference,
    step_finding,
)
from course.grading.mistakes import Mistake
from course.grading.mistakes.lesson_05 import (
    BUCKET_TOO_BIG,
    BUFFERS_FORGOTTEN,
    COPY_REDUCED,
    DIVIDED_TWICE,
    FORWARD_CHANGED,
    FROZEN_SKIPPED,
    FROZEN_TOUCHED,
    HANDLE_NOT_WAITED,
    NO_EARLY_START,
    NO_START_COPY,
    NOT_RESET,
    NOTHING_SENT,
    ONE_CALL_A_PARAMETER,
    ORDER_BY_HOOKS,
    SUM_NOT_AVERAGE,
    TIED_TWICE,
    UNUSED_FORGOTTEN,
    WAITS_IN_HOOK,
)
from course.grading.plain import Numbers, plain, same, type_in_words
from course.trace import Span


def _probe_start(learner: Any, case: None, seat: Seat) -> Any:
    """Wrap a module whose numbers differ from rank to rank; what it holds then."""
    held = replicas.module(seat.rank)
    wrapped = learner(held, bucket_bytes=BUCKET)
    kept = getattr(wrapped, "module", None)
    return {"state": replicas.state(held), "is_kept": kept is held, "kept": type(kept).__name__}


def _probe_call(learner: Any, case: None, seat: Seat) -> Any:
    """What calling the wrapper gives, and what the module itself gives."""
    import torch

    line, x = torch.nn.Linear(3, 2), torch.randn(4, 3)
    wrapped = learner(line, bucket_bytes=BUCKET)
    return {"output": plain(wrapped(x)), "wanted": plain(line(x))}


def _wraps(bench: Bench) -> Finding | None:
    for rank, value in enumerate(bench.run(_probe_start, n=3).values):
        if not value["is_kept"]:
            return Finding(f"`.module` is a {value['kept']}, not the module handed in (rank {rank})", "")
    for value in bench.run(_probe_call, n=3).values:
        if value["output"] != value["wanted"]:
            got = f"calling it returned {type_in_words(value['output'])}"
            return Finding(got, "what the module returns", "", FORWARD_CHANGED)
    return None


def _start(bench: Bench) -> Finding | None:
    result = bench.run(_probe_start, n=3)
    want = replicas.state(replicas.module(0))
    wrong = {k: r for r, v in enumerate(result.values) for k in want if v["state"].get(k) != want[k]}
    if not wrong:
        return None
    name, rank = next(iter(wrong.items()))
    got = f"with 3 ranks, once it is made `{name}` on rank {rank} is not rank 0's ({len(wrong)} tensors differ)"
    return Finding(got, "", "", _start_mistake(set(wrong), set(want)))


def _start_mistake(wrong: set[str], names: set[str]) -> Mistake | None:
    buffers = {name for name in names if "running" in name or "tracked" in name}
    if wrong == names:
        return NO_START_COPY
    if wrong <= buffers:
        return BUFFERS_FORGOTTEN
    return FROZEN_SKIPPED if wrong == {replicas.FROZEN} else None


def _average(bench: Bench) -> Finding | None:
    for n in (3, 4, 1, 2):
        what = f"with {n} rank{'s' if n > 1 else ''}"
        result = bench.run(probe, ("plain", BUCKET), n=n)
        finding = step_finding(result, 0, reference("plain", n)[0], what)
        unwaited = any("never waited for" in note for note in result.notes) and not _uses_futures(bench.learner)
        if finding and n > 1:
            return replace(finding, mistake=HANDLE_NOT_WAITED if unwaited else _scale_mistake(result, n))
        if finding:
            return finding
        if unwaited:
            got = f"{what}, right this time, but an all-reduce was never waited for"
            return Finding(got, "every handle waited for in `finish()`", "", HANDLE_NOT_WAITED)
    return None


def _uses_futures(learner: Any) -> bool:
    """Whether the class waits through futures, or asks until it is done, which the recorder does not see."""
    classes = [c for c in inspect.getmro(learner) if c.__module__ == learner.__module__] if isclass(learner) else []
    waiting = [f for f in (learner, *(value for c in classes for value in vars(c).values())) if isfunction(f)]
    seen: set[CodeType] = set()
    while waiting:
        code, names = waiting[-1].__code__, waiting.pop().__globals__
        codes = [code]
        while codes:
            code = codes.pop()
            if {"get_future", "is_completed"} & set(code.co_names):
                return True
            if code not in seen:
                seen.add(code)
                codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
                called = [names[name] for name in code.co_names if name in names]
                waiting += [f for f in called if isfunction(f) and f.__module__ == learner.__module__]
                waiting += [
                    f for c in called if isclass(c) and c.__module__ == learner.__module__
                    for f in vars(c).values() if isfunction(f)
                ]  # fmt: skip
    return False


def _scale_mistake(result: Result, n: int) -> Mistake | None:
    average = reference("plain", n)[0]
    scaled: Callable[[float], Numbers] = lambda s: {k: [s * x for x in v] for k, v in average.items()}  # noqa: E731
    found = [numbers_of_step(value, 0, average) for value in result.values]
    if any(isinstance(numbers, str) for numbers in found):
        return None
    own = [reference("plain", n, only=rank)[0] for rank in range(n)]
    guesses: tuple[tuple[Mistake, Sequence[Numbers]], ...] = (
        (SUM_NOT_AVERAGE, [scaled(float(n))] * n),
        (DIVIDED_TWICE, [scaled(1 / n)] * n),
        (COPY_REDUCED if _step_calls(result, 0, 0) else NOTHING_SENT, own),
    )
    for mistake, predicted in guesses:
        if all(not isinstance(f, str) and same(f, p, 2e-5) for f, p in zip(found, predicted, strict=True)):
            return mistake
    return None


def _later_steps(bench: Bench) -> Finding | None:
    result = bench.run(probe, ("plain", BUCKET), n=3)
    for step in range(1, STEPS):
        if finding := step_finding(result, step, reference("plain", 3)[step], "with 3 ranks"):
            return replace(finding, mistake=NOT_RESET)
    first = result.values[0]["end"]
    for rank, value in enumerate(result.values):
        if value["end"] != first:
            return Finding(f"with 3 ranks, after {STEPS} steps rank {rank} holds other parameters than rank 0", "")
    return None


def _some_ranks(bench: Bench) -> Finding | None:
    what = "with 3 ranks, some layers used on some ranks only"
    try:
        result = bench.run(probe, ("some", BUCKET), n=3)
    except Trouble as trouble:
        if trouble.kind not in ("stalled", "raised"):
            raise
        return Finding(f"{what}: {trouble.got}", "", "", UNUSED_FORGOTTEN)
    for step, want in enumerate(reference("some", 3)):
        if finding := step_finding(result, step, want, what):
            return replace(finding, mistake=UNUSED_FORGOTTEN)
    return None


def _order(bench: Bench) -> Finding | None:
    for n in (2, 3):
        what = f"with {n} ranks that finish their gradients in different orders"
        try:
            result = bench.run(probe, ("order", BUCKET), n=n)
        except Trouble as trouble:
            if not stopped_by_order(trouble):
                raise
            return Finding(f"{what}: {trouble.got}", "", "", ORDER_BY_HOOKS)
        for step, want in enumerate(reference("order", n)):
            if finding := step_finding(result, step, want, what):
                return replace(finding, mistake=ORDER_BY_HOOKS)
    return None


def _frozen_and_shared(bench: Bench) -> Finding | None:
    result = bench.run(probe, ("shared", BUCKET), n=3)
    what = "with 3 ranks, a frozen layer and a shared weight"
    for rank, value in enumerate(result.values):
        frozen = value["steps"][0]["gradients"]["layers.3.weight"]
        if frozen is not None or value["frozen"]:
            return Finding(f"{what}, the frozen layer is changed on rank {rank}", "", "", FROZEN_TOUCHED)
    for step, want in enumerate(reference("shared", 3)):
        if finding := step_finding(result, step, want, what):
            return finding
    nbytes = sum(span.nbytes for span in _step_calls(result, 0, 1))
    once, names = _size("shared")
    if nbytes > once + 8 * names:
        got = f"{what}, {nbytes} bytes are handed over in a step"
        weight, bias = 4 * WIDTH * WIDTH, 4 * WIDTH
        extra = nbytes - once
        mistake = FROZEN_TOUCHED if extra == weight + bias else None
        if mistake is None and weight <= extra <= weight + 8 * names:
            mistake = TIED_TWICE
        return Finding(got, f"{once} bytes", "List the parameters that you send, by name.", mistake)
    return None


def _size(kind: str) -> tuple[int, int]:
    """(bytes of the parameters that get a gradient, their number)."""
    parameters = [p for p in model(kind).parameters() if p.requires_grad]
    return sum(p.nbytes for p in parameters), len(parameters)


def _step_calls(result: Result, rank: int, step: int) -> list[Span]:
    """The collectives that a rank called in one step, in order."""
    before, _, _, done = result.values[rank]["steps"][step]["marks"]
    return [span for span in result.calls(rank) if before <= span.order < done]


def _buckets(bench: Bench) -> Finding | None:
    total, names = _size("plain")
    for bucket_bytes in (BUCKET, SMALL):
        result = bench.run(probe, ("plain", bucket_bytes), n=3)
        sent = [span.nbytes for span in _step_calls(result, 0, 1) if span.nbytes > 8 * names]
        small = [span.nbytes for span in _step_calls(result, 0, 1) if span.nbytes <= 8 * names]
        what = f"with bucket_bytes={bucket_bytes} and {names} parameters of {total} bytes in all"
        flags = max(0, sum(sent) + sum(small) - total)  # what travels besides the gradients, perhaps with them
        largest = max(bucket_bytes, 4 * WIDTH * WIDTH) + min(flags, 8 * names)
        if max(sent, default=0) > largest:
            return Finding(f"{what}, one all-reduce holds {max(sent)} bytes", "", "", BUCKET_TOO_BIG)
        if bucket_bytes == BUCKET and len(sent) + len(small) > 2 * total / bucket_bytes + 4:
            got = f"{what}, a step makes {len(sent) + len(small)} calls"
            return Finding(got, "", "", ONE_CALL_A_PARAMETER)
        if sum(sent) + sum(small) > total + 8 * names:
            share = (sum(sent) + sum(small)) / total
            return Finding(f"{what}, a step sends {share:.2f} times the gradients", "each gradient once", "")
    return None


def _overlap(bench: Bench) -> Finding | None:
    result = bench.run(probe, ("plain", BUCKET), n=3)
    for rank, value in enumerate(result.values):
        before, at_last, after, _ = value["steps"][1]["marks"]
        calls = _step_calls(result, rank, 1)
        large = [span for span in calls if span.nbytes > 8 * 2 * DEPTH]  # gradients, not flags
        early = [span for span in large if at_last is not None and span.order < at_last]
        if not early:
            got = f"with 3 ranks, rank {rank} had made no call when its last gradient came, and {len(calls)} after it"
            return Finding(got, "", "", NO_EARLY_START)
        during = [span for span in large if span.order < after]
        waits = {span.order: span.start for span in result.trace.of(rank=rank, kind="wait")}
        blocking = not early[0].is_async or waits.get(early[0].order, during[-1].start) < during[-1].start
        if len(during) > 1 and blocking:
            got = f"with 3 ranks, rank {rank} waited for its first all-reduce before it started the next"
            return Finding(got, "", "", WAITS_IN_HOOK)
    return None


AVERAGE = "each gradient is the average over the ranks"
ORDER = "whatever the order of gradients"

CHECKS = {
    "DataParallel": (
        Check("keeps and calls the module", 1, _wraps, "the module as `.module`, called by calling the wrapper"),
        Check("all ranks start from rank 0's numbers", 2, _start, "rank 0's parameters and buffers on every rank"),
        Check(AVERAGE, 4, _average, "the average of the ranks' gradients, on every rank"),
        Check("step after step", 2, _later_steps, "the average in each step, and equal replicas", needs=AVERAGE),
        Check(ORDER, 1, _order, "the average", needs=AVERAGE),
        Check("layers used on some ranks only", 2, _some_ranks, "the average, zero where unused", needs=ORDER),
        Check("frozen and shared parameters", 1, _frozen_and_shared, "frozen ones untouched", needs=AVERAGE),
        Check("sends in buckets", 1, _buckets, "few calls of at most `bucket_bytes` each", needs=AVERAGE),
        Check("starts before backward is over", 2, _overlap, "an early all-reduce, not waited for", needs=AVERAGE),
    )
}
