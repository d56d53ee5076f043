"""Checks of `ParallelAttention`: heads over ranks, cut out of a fused weight."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from course.grading.checks.against_one import Guess
from course.grading.checks.linears import checks, refusals, summed_outputs
from course.grading.checks.sharding import Layer, distinct, oracle, random, upstream
from course.grading.mistakes.lesson_08 import (
    HEADS_NOT_SHARED,
    LOCAL_WIDTH_SCALE,
    NO_BACKWARD_SUM,
    QKV_IN_ONE_PIECE,
    QKV_PER_HEAD,
    SAME_PART,
    SEES_THE_FUTURE,
    SHARES_AVERAGED,
)

C, HEADS = 48, 12  # heads of 4 channels; 1, 2, 3 and 4 ranks divide them
B, T = 2, 5


def attention() -> Any:
    from course.gpt.model import Attention
    from course.spec import ModelSpec

    return distinct(Attention(ModelSpec(width=C, heads=HEADS)), scale=0.4)


def two_heads() -> Any:
    from course.gpt.model import Attention
    from course.spec import ModelSpec

    return Attention(ModelSpec(width=24, heads=2))


def tokens() -> Any:
    return random(B, T, C, seed=3)


def _share(n: int) -> int:
    return 3 * (C // n) * (C + 1) + C // n * C + C


LAYERS = (Layer(attention, tokens, _share, 2 * 4 * B * T * C),)


@dataclass(frozen=True, slots=True)
class Way:
    """How a rank computes: which rows it takes of the fused weight, in how many heads, scaled by the root of what."""

    rows: str = "thirds"
    width: int = 0  # channels a head is taken to have for the scale; 0: what it has
    local_width: bool = False
    whole_heads: bool = False
    causal: bool = True
    same: bool = False


def _rows(way: Way, rank: int, n: int) -> Any:
    """The rows of the fused weight that this rank computes with, as q, k and v, each (C/n,)."""
    import torch

    rows = torch.arange(3 * C)
    if way.rows == "one piece":
        return rows.tensor_split(n)[rank].view(3, -1)
    if way.rows == "per head":
        return rows.view(HEADS, 3, C // HEADS).tensor_split(n)[rank].transpose(0, 1).reshape(3, -1)
    return rows.view(3, C).tensor_split(n, 1)[rank]


def share(way: Way, x: Any, rank: int, n: int) -> Any:
    """What this rank adds to the output, the bias left out."""
    import torch

    whole = attention()
    part = 0 if way.same else rank
    rows = _rows(way, part, n)
    q, k, v = (x @ whole.qkv.weight[r].T + whole.qkv.bias[r] for r in rows)
    heads = HEADS if way.whole_heads else HEADS // n
    q, k, v = (t.view(B, T, heads, -1).transpose(1, 2) for t in (q, k, v))
    width = C // n if way.local_width else way.width or q.shape[-1]
    scores = q @ k.transpose(-2, -1) / math.sqrt(width)
    if way.causal:
        scores = scores.masked_fill(torch.ones(T, T, dtype=torch.bool).triu(1), -math.inf)
    y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(B, T, -1)
    return y @ whole.out.weight.tensor_split(n, 1)[part].T


def _outputs(layer: Layer) -> Sequence[Guess]:
    whole, x = layer.make(), layer.inputs()

    def summed(way: Way) -> Any:
        return lambda r, n: sum(share(way, x, k, n) for k in range(n)) + whole.out.bias

    ways = (
        (QKV_IN_ONE_PIECE, Way(rows="one piece")),
        (QKV_PER_HEAD, Way(rows="per head")),
        (LOCAL_WIDTH_SCALE, Way(local_width=True)),
        (LOCAL_WIDTH_SCALE, Way(width=C)),
        (LOCAL_WIDTH_SCALE, Way(width=1)),
        (HEADS_NOT_SHARED, Way(whole_heads=True)),
        (SEES_THE_FUTURE, Way(causal=False)),
        (SAME_PART, Way(same=True)),
    )
    return (
        *summed_outputs(layer, whole.out.bias, lambda r, n: share(Way(), x, r, n)),
        *((mistake, summed(way)) for mistake, way in ways),
    )


def _gradients(layer: Layer) -> Sequence[Guess]:
    def own(r: int, n: int) -> Any:
        x = layer.inputs().requires_grad_()
        share(Way(), x, r, n).backward(upstream(layer))
        return x.grad

    return ((NO_BACKWARD_SUM, own), (SHARES_AVERAGED, lambda r, n: oracle(layer).input_gradient / n))


CHECKS = {
    "ParallelAttention": checks(LAYERS, _outputs, _gradients, refusals(two_heads, "2 heads"), points=(5, 2, 2)),
}
