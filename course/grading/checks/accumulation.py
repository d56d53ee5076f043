"""Checks of `accumulate_without_sync`: one synchronisation, the gradient of the mean over all samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from course.grading.bench import Bench, Result, Seat
from course.grading.check import Check, Finding
from course.grading.checks.hello import lazy
from course.grading.mistakes import Mistake
from course.grading.mistakes.lesson_05 import (
    BYPASSED,
    MEAN_OF_MEANS,
    NEVER_SYNCS,
    ONLY_LAST_PAIR,
    OPTIMIZER_CALLED,
    SCALED_BY_SIZE_ONLY,
    SUM_OF_MEANS,
    SYNCS_EVERY_PAIR,
    SYNCS_TWICE,
)
from course.grading.plain import Numbers, TensorData, difference, plain, ratio, same, type_in_words

# Sizes of the pairs of each rank: as many pairs, as many samples in all, cut another way on each rank.
PAIRS: dict[int, tuple[int, ...]] = {0: (5, 1, 3), 1: (2, 4, 3), 2: (1, 7, 1), 3: (6, 1, 2)}
TOTAL = 9
SIZES = (3, 4, 2, 1)
FEATURES = 6


def module() -> Any:
    """The module to be trained; the same on every rank."""
    import torch
    from torch import nn

    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(FEATURES, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 2))


def loss_fn(output: Any, target: Any) -> Any:
    """The mean over samples of the squared error."""
    return (output - target).pow(2).sum(dim=1).mean()


def pairs(rank: int, single: bool = False) -> list[tuple[Any, Any]]:
    """Rank `rank`'s microbatches; a single one with `single`."""
    import torch

    generator = torch.Generator().manual_seed(70 + rank)
    x = torch.randn(TOTAL, FEATURES, generator=generator) + rank
    y = torch.randn(TOTAL, 2, generator=generator)
    sizes = [TOTAL] if single else list(PAIRS[rank])
    return list(zip(x.split(sizes), y.split(sizes), strict=True))


def _probe(learner: Any, single: bool, seat: Seat) -> Any:
    from torch.nn.parallel import DistributedDataParallel

    from course.ranks import calls_made

    ddp = DistributedDataParallel(module())
    before = {name: plain(p) for name, p in ddp.module.named_parameters()}
    forwards: list[int] = []
    ddp.register_forward_hook(lambda *_: forwards.append(1))
    first_call = calls_made()
    returned = learner(ddp, pairs(seat.rank, single), loss_fn)
    return {
        "returned": plain(returned),
        "first_call": first_call,
        "forwards": len(forwards),
        "gradients": {name: plain(p.grad) for name, p in ddp.module.named_parameters()},
        "changed": [name for name, p in ddp.module.named_parameters() if plain(p) != before[name]],
    }


def _run(bench: Bench, n: int, single: bool = False) -> Result:
    result = bench.run(_probe, single, n=n)
    return result.since(value["first_call"] for value in result.values)


def _gradient(parts: Sequence[tuple[Any, Any]], weights: Sequence[float]) -> Numbers:
    """One process: the gradient of the weighted sum of the losses of these pairs."""
    held = module()
    for (x, y), weight in zip(parts, weights, strict=True):
        (loss_fn(held(x), y) * weight).backward()
    return {name: p.grad.reshape(-1).tolist() for name, p in held.named_parameters()}


def _want(n: int) -> Numbers:
    parts = [pair for rank in range(n) for pair in pairs(rank)]
    return _gradient(parts, [len(x) / (n * TOTAL) for x, _ in parts])


def _guesses(n: int) -> list[tuple[Mistake, Sequence[Numbers]]]:
    """What each known mistake would leave on each rank."""
    parts = [pair for rank in range(n) for pair in pairs(rank)]
    sizes = [len(x) for x, _ in parts]
    local = [_gradient(pairs(r), [len(x) / TOTAL for x, _ in pairs(r)]) for r in range(n)]
    num_pairs = len(PAIRS[0])
    last = [pairs(rank)[-1] for rank in range(n)]

    def all_ranks(weights: Sequence[float]) -> list[Numbers]:
        return [_gradient(parts, weights)] * n

    return [
        (SUM_OF_MEANS, all_ranks([1 / n] * len(parts))),
        (MEAN_OF_MEANS, all_ranks([1 / (n * num_pairs)] * len(parts))),
        (SCALED_BY_SIZE_ONLY, all_ranks([size / n for size in sizes])),
        (ONLY_LAST_PAIR, [_gradient(last, [len(x) / (n * TOTAL) for x, _ in last])] * n),
        (ONLY_LAST_PAIR, [_gradient(last, [1 / n] * n)] * n),
        (ONLY_LAST_PAIR, [_gradient(last, [1 / (n * num_pairs)] * n)] * n),
        (NEVER_SYNCS, local),
        (NEVER_SYNCS, [_gradient(pairs(r), [1.0] * num_pairs) for r in range(n)]),
        (NEVER_SYNCS, [_gradient(pairs(r), [1 / num_pairs] * num_pairs) for r in range(n)]),
    ]


def _mean(bench: Bench) -> Finding | None:
    for n in SIZES:
        result = _run(bench, n)
        what = f"with {n} rank{'s' if n > 1 else ''} and {len(PAIRS[0])} pairs of different sizes"
        want = _want(n)
        found = []
        for rank, value in enumerate(result.values):
            if mistake := lazy(value["returned"]):
                return Finding(f"{what}, it returned {type_in_words(value['returned'])}", "", "", mistake)
            missing = [name for name, gradient in value["gradients"].items() if type(gradient) is not TensorData]
            if missing:
                held = type_in_words(value["gradients"][missing[0]])
                got = f"{what}, the gradient of `{missing[0]}` on rank {rank} is {held}"
                return Finding(got, "", "Where is `backward()` called?")
            found.append({name: gradient.numbers for name, gradient in value["gradients"].items()})
        wrong = [rank for rank in range(n) if not same(found[rank], want)]
        if wrong:
            return Finding(f"{what}, {_how(found[wrong[0]], want, wrong[0])}", "", "", _mistake(result, found, n))
    return None


def _mistake(result: Result, found: Sequence[Numbers], n: int) -> Mistake | None:
    for mistake, predicted in _guesses(n):
        if n > 1 and all(same(mine, guess) for mine, guess in zip(found, predicted, strict=True)):
            unused = not any(value["forwards"] for value in result.values)
            return BYPASSED if mistake is NEVER_SYNCS and unused else mistake
    return None


def _how(got: Numbers, want: Numbers, rank: int) -> str:
    factor = ratio(got, want)
    if factor is not None and abs(factor) > 1e-6:
        return f"your gradient is {factor:.2f} times the reference on every parameter (rank {rank})"
    worst = difference(got, want)
    if worst is None:
        return f"the gradients differ on rank {rank}"
    return f"on rank {rank} one number of `{worst.worst}` is {worst.got:.4g} where {worst.want:.4g} was expected"


def _one_pair(bench: Bench) -> Finding | None:
    for n in (1, 3):
        result = _run(bench, n, single=True)
        want = _want(n)
        for rank, value in enumerate(result.values):
            found = {k: v.numbers for k, v in value["gradients"].items() if type(v) is TensorData}
            if set(found) != set(want) or not same(found, want):
                return Finding(f"with {n} ranks and a single pair, the gradient on rank {rank} is wrong", "")
    return None


def _once(bench: Bench) -> Finding | None:
    nbytes = 4 * sum(len(numbers) for numbers in _want(1).values())
    for n in (3, 4):
        result = _run(bench, n)
        once = 2 * (n - 1) * nbytes
        if result.nbytes > once + 2 * (n - 1) * 64:
            share = result.nbytes / once
            got = (
                f"with {n} ranks and {len(PAIRS[0])} pairs, correct, but {share:.2f} times the bytes of one sync travel"
            )
            every = abs(share - len(PAIRS[0])) < 0.2
            return Finding(got, f"{once} bytes over all ranks", "", SYNCS_EVERY_PAIR if every else SYNCS_TWICE)
    return None


def _parameters(bench: Bench) -> Finding | None:
    for rank, value in enumerate(_run(bench, 3).values):
        if value["changed"]:
            got = f"with 3 ranks, rank {rank} changed the parameter `{value['changed'][0]}`"
            return Finding(got, "", "", OPTIMIZER_CALLED)
    return None


MEAN = "the gradient of the mean over all samples"

CHECKS = {
    "accumulate_without_sync": (
        Check(MEAN, 4, _mean, "the gradient of one large batch, on every rank"),
        Check("a single pair is enough", 1, _one_pair, "the gradient of one large batch", needs=MEAN),
        Check("the gradients travel once", 2, _once, "the bytes of one synchronisation", needs=MEAN),
        Check("the parameters are left alone", 1, _parameters, "parameters as they were", needs=MEAN),
    )
}
