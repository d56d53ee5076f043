"""Checks of `VocabParallelEmbedding`: rows over several ranks, as uneven as `tensor_split` makes them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from course.grading.bench import Bench, Trouble
from course.grading.check import Check, Finding
from course.grading.checks.against_one import (
    Guess,
    forward,
    shares,
    traffic,
    weight_gradients,
)
from course.grading.checks.sharding import Layer, distinct, oracle
from course.grading.mistakes.lesson_08 import (
    FOREIGN_TOKENS,
    NOT_SUMMED,
    ROWS_LEFT_OVER,
    SAME_PART,
    SHARES_AVERAGED,
    TOKENS_NOT_SHIFTED,
)

ROWS, WIDTH = 13, 6  # 2, 3 and 4 ranks do not divide the rows


def cuts(size: int, n: int) -> list[tuple[int, int]]:
    """(start, stop) of each rank's tokens."""
    whole, rest = divmod(size, n)
    starts = [rank * whole + min(rank, rest) for rank in range(n + 1)]
    return list(zip(starts, starts[1:], strict=False))


def embedding() -> Any:
    from torch import nn

    return distinct(nn.Embedding(ROWS, WIDTH))


def words() -> Any:
    """(4, 5) tokens, each of the vocabulary at least once."""
    import torch

    generator = torch.Generator().manual_seed(5)
    return torch.cat([torch.randperm(ROWS, generator=generator), torch.arange(7)]).view(4, 5)


def _rows_held(n: int) -> int:
    return -(-ROWS // n) * WIDTH


LAYERS = (Layer(embedding, words, _rows_held, 4 * 4 * 5 * WIDTH),)


def _embedded(layer: Layer) -> Sequence[Guess]:
    weight, tokens, y = layer.make().weight.detach(), layer.inputs(), oracle(layer).output

    def share(r: int, n: int) -> Any:
        start, stop = cuts(ROWS, n)[r]
        return y * ((tokens >= start) & (tokens < stop))[..., None]

    def foreign(way: str, r: int, n: int) -> Any:
        total = 0.0
        for start, stop in cuts(ROWS, n):
            places = tokens - start
            outside = (places < 0) | (places >= stop - start)
            moved = {
                "first": places.masked_fill(outside, 0),
                "nearest": places.clamp(0, stop - start - 1),
                "around": places % (stop - start),
            }[way]
            total = total + weight[start:stop][moved]
        return total

    def first(r: int, n: int) -> Any:
        return n * share(0, n)

    return (
        *((FOREIGN_TOKENS, partial(foreign, way)) for way in ("first", "nearest", "around")),
        (NOT_SUMMED, share),
        (SHARES_AVERAGED, lambda r, n: y / n),
        (SAME_PART, first),
        (ROWS_LEFT_OVER, lambda r, n: y * (tokens < ROWS // n * n)[..., None]),
    )


def _embeds(bench: Bench) -> Finding | None:
    try:
        return forward(bench, LAYERS, _embedded)
    except Trouble as trouble:
        return out_of_range(trouble)


def out_of_range(trouble: Trouble) -> Finding:
    """The finding behind a lookup beyond this rank's part. Raises the trouble where it is another."""
    if trouble.kind == "raised" and ("out of range" in trouble.got or "out of bounds" in trouble.got):
        return Finding(trouble.got, "", "", TOKENS_NOT_SHIFTED)
    raise trouble


OUTPUT, WEIGHTS = "the rows of one embedding", "the gradients of the weights"

CHECKS = {
    "VocabParallelEmbedding": (
        Check(OUTPUT, 4, _embeds, "the rows of all tokens, on every rank"),
        Check(WEIGHTS, 2, partial(weight_gradients, layers=LAYERS), "as in one process", OUTPUT),
        Check("each rank keeps its rows only", 1, partial(shares, layers=LAYERS), "its share of the rows", OUTPUT),
        Check("one all-reduce travels", 1, partial(traffic, layers=LAYERS), "the output's size once", WEIGHTS),
    )
}
