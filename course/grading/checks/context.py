"""Checks of `ring_attention`: causal attention over a sequence that no rank has whole."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

from course.grading.bench import Bench, Result, Seat, Trouble
from course.grading.check import Check, Finding
from course.grading.checks import messages
from course.grading.checks.against_one import SIZES, first_wrong, flat, ranks
from course.grading.checks.hello import lazy
from course.grading.checks.messages import close
from course.grading.checks.sharding import random
from course.grading.mistakes import Mistake
from course.grading.mistakes.lesson_08 import (
    GRADIENT_STAYS,
    LATER_PARTS_SEEN,
    LOCAL_WIDTH_SCALE,
    MASKED_IN_EVERY_PART,
    NOT_A_RING,
    NOT_RESCALED,
    OUTPUT_CUT_OFF,
    OWN_KEYS_ONLY,
    REDUCED_IN_PLACE,
    SHIFT_NOT_USED,
    SOFTMAX_PER_PART,
)
from course.grading.plain import TensorData, plain, type_in_words

SHAPE = (2, 2, 12, 4)  # batch, heads, time, width; 1, 2, 3 and 4 ranks divide the time
KV_BYTES = 2 * 4 * math.prod(SHAPE)  # keys and values of all ranks together
SPREAD = 3.0  # of queries and keys: largest scores differ much from part to part


def whole() -> list[Any]:
    """q, k and v of all ranks."""
    q, k, v = (random(*SHAPE, seed=20 + number) for number in range(3))
    return [q * SPREAD, k * SPREAD, v]


def own(t: Any, rank: int, n: int) -> Any:
    return t.tensor_split(n, 2)[rank].contiguous()


def _probe(learner: Any, case: str, seat: Seat) -> Any:
    """Run it on this rank's part, "forward" or "both" ways."""
    import torch

    mine = [own(t, seat.rank, seat.world_size).requires_grad_() for t in whole()]
    given = [plain(t) for t in mine]
    y = learner(*mine)
    output = plain(y)
    flows = isinstance(y, torch.Tensor) and y.shape == mine[0].shape and y.requires_grad
    if flows and case == "both":
        y.backward(own(upstream(), seat.rank, seat.world_size))
    changed = [plain(t) for t in mine] != given
    return {"output": output, "gradients": [t.grad for t in mine], "changed": changed}


def upstream() -> Any:
    return random(*SHAPE, seed=30)


def _scores(q: Any, k: Any) -> Any:
    return q @ k.transpose(-2, -1) / math.sqrt(SHAPE[-1])


def _later(size: int) -> Any:
    import torch

    return torch.ones(size, size, dtype=torch.bool).triu(1)


@cache
def oracle() -> tuple[Any, list[Any]]:
    """One process: the output, and the gradients of q, k and v."""
    q, k, v = (t.requires_grad_() for t in whole())
    y = _scores(q, k).masked_fill(_later(SHAPE[2]), -math.inf).softmax(-1) @ v
    y.backward(upstream())
    return y.detach(), [q.grad, k.grad, v.grad]


# --- what known mistakes give -----------------------------------------------------------------------------------------


def _blocks(rank: int, n: int, *, triangles: bool = False) -> list[tuple[Any, Any]]:
    """(masked scores, values) of each part that this rank may see, its own first, then backwards."""
    q, k, v = whole()
    found = []
    for source in range(rank, -1, -1):
        scores = _scores(own(q, rank, n), own(k, source, n))
        if triangles or source == rank:
            scores = scores.masked_fill(_later(scores.shape[-1]), -math.inf)
        found.append((scores, own(v, source, n)))
    return found


def _joined(blocks: Sequence[tuple[Any, Any]]) -> Any:
    import torch

    weights = torch.cat([scores for scores, _ in blocks], -1).softmax(-1)
    return weights @ torch.cat([values for _, values in blocks], 2)


def _unscaled_sums(blocks: Sequence[tuple[Any, Any]]) -> Any:
    """Each part under the largest score so far, and what was added up before left as it was."""
    largest, total, weight = None, 0.0, 0.0
    for scores, values in blocks:
        top = scores.amax(-1, keepdim=True)
        largest = top if largest is None else largest.maximum(top)
        weights = (scores - largest).exp()
        total, weight = total + weights @ values, weight + weights.sum(-1, keepdim=True)
    return total / weight


def _guesses(rank: int, n: int) -> list[tuple[Mistake, Any]]:
    import torch

    q, k, v = whole()
    blocks = _blocks(rank, n)
    parts = torch.stack([scores.softmax(-1) @ values for scores, values in blocks])
    mine = slice(*[bound * SHAPE[2] // n for bound in (rank, rank + 1)])
    everything = _scores(own(q, rank, n), k)
    hidden = everything.clone()
    hidden[..., mine] = blocks[0][0]
    plain_scores = (q @ k.transpose(-2, -1)).masked_fill(_later(SHAPE[2]), -math.inf)
    return [
        (OWN_KEYS_ONLY, blocks[0][0].softmax(-1) @ blocks[0][1]),
        (LATER_PARTS_SEEN, hidden.softmax(-1) @ v),
        (LATER_PARTS_SEEN, everything.softmax(-1) @ v),
        (MASKED_IN_EVERY_PART, _joined(_blocks(rank, n, triangles=True))),
        (SOFTMAX_PER_PART, parts.sum(0)),
        (SOFTMAX_PER_PART, parts.mean(0)),
        (NOT_RESCALED, _unscaled_sums(blocks)),
        (LOCAL_WIDTH_SCALE, own(plain_scores.softmax(-1) @ v, rank, n)),
    ]


def _recognised(result: Result) -> Mistake | None:
    """The first mistake that explains the outputs of all ranks."""
    n = result.world_size
    candidates = zip(*(_guesses(rank, n) for rank in range(n)), strict=True)
    for guesses in candidates:
        found = zip(result.values, guesses, strict=True)
        if all(close(value["output"].numbers, flat(guess), 1e-4) for value, (_, guess) in found):
            return guesses[0][0]
    return None


# --- checks -----------------------------------------------------------------------------------------------------------


def _output(bench: Bench) -> Finding | None:
    for n in SIZES:
        result = messages.run(bench, _probe, "forward", n)
        if isinstance(result, Finding):
            return result
        shape = (*SHAPE[:2], SHAPE[2] // n, SHAPE[3])
        for rank, value in enumerate(result.values):
            got = value["output"]
            if type(got) is not TensorData or got.shape != shape:
                said = f"{ranks(n)}, rank {rank} returned {type_in_words(got)}"
                return Finding(said, f"a tensor of shape {shape}", "Return this rank's part.", lazy(got))
        for rank, value in enumerate(result.values):
            want = flat(own(oracle()[0], rank, n))
            if not close(value["output"].numbers, want, 1e-5):
                said = f"{ranks(n)}, the output on rank {rank} is {first_wrong(value['output'].numbers, want)}"
                return Finding(said, "", "", _recognised(result))
            if value["changed"]:
                return Finding(f"{ranks(n)}, an input was changed on rank {rank}", "", "", REDUCED_IN_PLACE)
    return None


def _gradients(bench: Bench) -> Finding | None:
    for n in SIZES:
        try:
            result = bench.run(_probe, "both", n=n)
        except Trouble as trouble:
            if trouble.kind != "stalled":
                raise
            return Finding(f"forward is right, but in backward, {trouble.got}", "", "", SHIFT_NOT_USED)
        for rank, value in enumerate(result.values):
            for name, got, gradient in zip("qkv", value["gradients"], oracle()[1], strict=True):
                want = flat(own(gradient, rank, n))
                what = f"{ranks(n)}, the output is right, but the gradient of {name} on rank {rank} is "
                if type(got) is not TensorData:
                    return Finding(what + type_in_words(got), "", "", OUTPUT_CUT_OFF)
                if not close(got.numbers, want, 2e-5):
                    stays = close(got.numbers, flat(_of_own_queries(name, rank, n)), 2e-5)
                    mistake = GRADIENT_STAYS if stays else None
                    return Finding(what + first_wrong(got.numbers, want), "", "", mistake)
    return None


def _of_own_queries(name: str, rank: int, n: int) -> Any:
    """The gradient that this rank's own queries alone give its q, k or v."""
    leaves = [t.requires_grad_() for t in whole()]
    q, k, v = leaves
    y = _scores(q, k).masked_fill(_later(SHAPE[2]), -math.inf).softmax(-1) @ v
    own(y, rank, n).backward(own(upstream(), rank, n))
    return own(leaves["qkv".index(name)].grad, rank, n)


def _travels(bench: Bench) -> Finding | None:
    for n in (3, 4):
        result = bench.run(_probe, "both", n=n)
        of_one = KV_BYTES // n
        gathered = [s for s in result.trace.of(kind="collective") if s.nbytes > 64]
        largest = max((message.nbytes for message in result.trace.messages), default=0)
        if gathered:
            return Finding(f"{ranks(n)}, right, but by {gathered[0].name}", "sends and receives", "", NOT_A_RING)
        if largest > 2 * of_one + 64:
            said = f"{ranks(n)}, right, but one message has {largest} bytes"
            return Finding(said, f"k and v of one rank, {of_one} bytes, and their gradients", "", NOT_A_RING)
        allowed = n * (3 * n - 2) * of_one
        if result.nbytes > 1.02 * allowed:
            share = result.nbytes / allowed
            return Finding(f"{ranks(n)}, right, but {share:.2f} times the bytes travel", f"at most {allowed} bytes")
    return None


OUTPUT, GRADIENTS = "the attention of one process", "the gradients of q, k and v"

CHECKS = {
    "ring_attention": (
        Check(OUTPUT, 6, _output, "this rank's part of the whole sequence's attention"),
        Check(GRADIENTS, 4, _gradients, "this rank's part of them", needs=OUTPUT),
        Check("one part at a time, from neighbours", 2, _travels, "k and v of one rank a message", needs=GRADIENTS),
    )
}
