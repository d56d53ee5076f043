"""Checks of `vocab_parallel_cross_entropy`: a softmax over a vocabulary that no rank has whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from course.grading.bench import Bench, Result, Seat, Trouble
from course.grading.check import Check, Finding
from course.grading.checks.against_one import (
    SIZES,
    Guess,
    first_wrong,
    flat,
    overspent,
    ranks,
    recognised,
    scaled,
    stopped,
)
from course.grading.checks.hello import lazy
from course.grading.checks.messages import close
from course.grading.checks.sharding import random
from course.grading.checks.vocabulary import cuts, out_of_range
from course.grading.mistakes import Mistake
from course.grading.mistakes.lesson_08 import (
    ALL_REDUCE_RETURNED,
    FOREIGN_TOKENS,
    LARGEST_IN_GRAPH,
    LOCAL_LARGEST,
    LOCAL_SOFTMAX,
    LOSS_ADDED_UP,
    LOSS_OVER_RANKS,
    NO_LARGEST,
    NOT_SUMMED,
    OUTPUT_CUT_OFF,
    REDUCED_IN_PLACE,
)
from course.grading.plain import TensorData, plain, real_number, type_in_words

VOCABULARY = 61  # 2, 3 and 4 ranks do not divide it
TOKENS = (2, 4)
SCALE = 0.7  # of the loss, so that the gradient that comes in is not 1


@cache
def logits(kind: str) -> Any:
    """(2, 4, V): "small" ones, or "large" ones that overflow where nothing is subtracted."""
    drawn = random(*TOKENS, VOCABULARY, seed=11) * 2
    return drawn + 120 if kind == "large" else drawn


def targets() -> Any:
    """(2, 4) tokens, on the first and the last rank too, the first and the last token among them."""
    import torch

    return torch.tensor([[0, 60, 17, 31], [44, 30, 5, 52]])


def _probe_loss(learner: Any, kind: str, seat: Seat) -> Any:
    """Run it on this rank's logits, then backward; what it gave and left behind."""
    import torch

    start, stop = cuts(VOCABULARY, seat.world_size)[seat.rank]
    leaf = logits(kind)[..., start:stop].contiguous().requires_grad_()
    mine, wanted = leaf * 1.0, targets()
    given = plain(mine), plain(wanted)
    loss = learner(mine, wanted, start)
    found = plain(loss)
    changed = (plain(mine), plain(wanted)) != given
    flows = isinstance(loss, torch.Tensor) and loss.numel() == 1 and loss.requires_grad
    if flows:
        (loss.sum() * SCALE).backward()
    return {"loss": found, "flows": flows, "gradient": leaf.grad, "changed": changed}


@cache
def _whole(kind: str) -> tuple[float, Any]:
    """One process: the loss and the gradient of all logits."""
    import torch

    x = logits(kind).clone().requires_grad_()
    loss = torch.nn.functional.cross_entropy(x.flatten(0, 1), targets().flatten())
    (loss * SCALE).backward()
    return loss.item(), x.grad


def _run(bench: Bench, kind: str, n: int) -> Result | Finding:
    try:
        return bench.run(_probe_loss, kind, n=n)
    except Trouble as trouble:
        if mistake := stopped(trouble):
            return Finding(trouble.got, "", "", mistake)
        return out_of_range(trouble)


def _loss(bench: Bench, kind: str, mistake: Mistake | None = None) -> Finding | None:
    want = _whole(kind)[0]
    for n in SIZES:
        result = _run(bench, kind, n)
        if isinstance(result, Finding):
            return result
        for rank, value in enumerate(result.values):
            number = real_number(value["loss"])
            if number is None or type(value["loss"]) is not TensorData:
                none = ALL_REDUCE_RETURNED if value["loss"] is None and result.calls(rank) else lazy(value["loss"])
                got = f"{ranks(n)}, rank {rank} returned {type_in_words(value['loss'])}"
                return Finding(got, "a tensor of one number", "Return the mean over all tokens.", none)
            if not abs(number - want) <= 1e-5 * abs(want):
                got = f"{ranks(n)}, the loss on rank {rank} is {number:.6g}"
                return Finding(got, f"{want:.6g}", "", mistake or _of_loss(result))
            if value["changed"]:
                return Finding(f"{ranks(n)}, an input was changed on rank {rank}", "", "", REDUCED_IN_PLACE)
    return None


def _of_loss(result: Result) -> Mistake | None:
    n = result.world_size
    found = [real_number(value["loss"]) for value in result.values]
    for mistake, guess in _loss_guesses(n):
        if all(f is not None and abs(f - g) <= 1e-4 * abs(g) for f, g in zip(found, guess, strict=True)):
            return mistake
    return None


def _loss_guesses(n: int) -> Sequence[tuple[Mistake, list[float]]]:
    """What each known mistake gives on each rank, for small logits."""
    import torch

    x, wanted, loss = logits("small"), targets(), _whole("small")[0]
    parts = [x[..., start:stop] for start, stop in cuts(VOCABULARY, n)]
    places = [wanted - start for start, _ in cuts(VOCABULARY, n)]
    outside = [(p < 0) | (p >= part.shape[-1]) for p, part in zip(places, parts, strict=True)]

    def at(r: int, way: str = "first") -> Any:
        last = parts[r].shape[-1] - 1
        index = places[r].clamp(0, last) if way == "nearest" else places[r].masked_fill(outside[r], 0)
        return parts[r].gather(-1, index[..., None])[..., 0]

    own = [at(r).masked_fill(outside[r], 0.0) for r in range(n)]
    target, whole = sum(own), x.logsumexp(-1)
    largest = [part.amax(-1) for part in parts]
    shifted = sum((part - m[..., None]).exp().sum(-1) for part, m in zip(parts, largest, strict=True)).log()
    own_shifted = sum((at(r) - largest[r]).masked_fill(outside[r], 0.0) for r in range(n))
    return (
        (LOSS_OVER_RANKS, [loss / n] * n),
        (LOSS_ADDED_UP, [loss * wanted.numel()] * n),
        (LOCAL_LARGEST, [(shifted - own_shifted).mean().item()] * n),
        (LOCAL_LARGEST, [(shifted + m - target).mean().item() for m in largest]),
        (LOCAL_SOFTMAX, [(parts[r].logsumexp(-1) - target).mean().item() for r in range(n)]),
        (LOCAL_SOFTMAX, [(parts[r].logsumexp(-1) - own[r]).mean().item() for r in range(n)]),
        (LOCAL_SOFTMAX, [sum((p.logsumexp(-1) - o).mean().item() for p, o in zip(parts, own, strict=True))] * n),
        (NOT_SUMMED, [(whole - own[r]).mean().item() for r in range(n)]),
        *(
            (FOREIGN_TOKENS, [(whole - sum(at(r, way) for r in range(n))).mean().item()] * n)
            for way in ("first", "nearest")
        ),
        (FOREIGN_TOKENS, [torch.stack([whole - at(r) for r in range(n)]).mean(0).mean().item()] * n),
    )


def _small(bench: Bench) -> Finding | None:
    return _loss(bench, "small")


def _small_gradient(bench: Bench) -> Finding | None:
    return _gradient(bench, "small")


def _large(bench: Bench) -> Finding | None:
    return _loss(bench, "large", NO_LARGEST) or _gradient(bench, "large", NO_LARGEST)


def _gradient(bench: Bench, kind: str, mistake: Mistake | None = None) -> Finding | None:
    for n in SIZES:
        result = bench.run(_probe_loss, kind, n=n)
        for rank, (value, (start, stop)) in enumerate(zip(result.values, cuts(VOCABULARY, n), strict=True)):
            got, want = value["gradient"], flat(_whole(kind)[1][..., start:stop])
            what = f"{ranks(n)}, the loss is right, but the gradient of the logits on rank {rank} is "
            if type(got) is not TensorData:
                return Finding(what + type_in_words(got), "", "", OUTPUT_CUT_OFF)
            if not close(got.numbers, want, 1e-5):
                known = scaled(got.numbers, want, n) or recognised(result, "gradient", _gradient_guesses(kind))
                return Finding(what + first_wrong(got.numbers, want), "", "", mistake or known)
    return None


def _gradient_guesses(kind: str) -> Sequence[Guess]:
    def through_largest(r: int, n: int) -> Any:
        start, stop = cuts(VOCABULARY, n)[r]
        part, right = logits(kind)[..., start:stop], _whole(kind)[1][..., start:stop]
        return right.scatter_add(-1, part.argmax(-1, keepdim=True), -right.sum(-1, keepdim=True))

    return ((LARGEST_IN_GRAPH, through_largest),)


def _few_numbers(bench: Bench) -> Finding | None:
    allowed = 4 * 4 * targets().numel()  # four numbers a token
    for n in SIZES:
        if finding := overspent(bench.run(_probe_loss, "small", n=n), allowed):
            return replace(finding, expected=f"at most {2 * (n - 1) * allowed} bytes over all ranks")
    return None


LOSS, GRADIENT = "the loss of one process", "the gradient of the logits"

CHECKS = {
    "vocab_parallel_cross_entropy": (
        Check(LOSS, 4, _small, "the mean over all tokens, on every rank"),
        Check(GRADIENT, 3, _small_gradient, "this rank's part of the gradient", needs=LOSS),
        Check("large logits", 1, _large, "the same", needs=GRADIENT),
        Check("no logits travel", 2, _few_numbers, "a few numbers a token", needs=GRADIENT),
    )
}
