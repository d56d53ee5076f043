"""Checks of `model_flops`: matrix products of a decoder, counted for published and random shapes."""

from __future__ import annotations

import random
from functools import partial

from course.grading.checks.reckoning import Case, Group, Guesses, Reckoning, checks
from course.grading.mistakes import lesson_10 as known

NAMES = ("layers", "hidden", "heads", "kv_heads", "ffn", "ffn_matrices", "vocab", "batch", "sequence")

GPTS: tuple[Case, ...] = (
    (12, 768, 12, 12, 3072, 2, 50257, 8, 1024),
    (96, 12288, 96, 96, 49152, 2, 50257, 1536, 2048),
    (2, 24, 3, 3, 60, 2, 50, 1, 7),
    (3, 40, 5, 5, 90, 2, 31, 2, 16),
)
GROUPED: tuple[Case, ...] = (
    (32, 4096, 32, 8, 14336, 3, 128256, 4, 8192),
    (80, 8192, 64, 8, 28672, 3, 128256, 2, 8192),
    (2, 48, 6, 2, 80, 3, 40, 3, 5),
    (5, 32, 8, 1, 100, 2, 64, 1, 64),
)
IMPOSSIBLE: tuple[Case, ...] = (
    (0, 64, 4, 4, 256, 2, 100, 1, 16),
    (2, 64, 4, 4, 256, 2, 100, 0, 16),
    (2, 64, 4, 4, 256, 2, 100, 1, -16),
    (2, 64, 5, 5, 256, 2, 100, 1, 16),
    (2, 64, 4, 3, 256, 2, 100, 1, 16),
    (2, 64, 4, 8, 256, 2, 100, 1, 16),
)


def _random() -> tuple[Case, ...]:
    source = random.Random("flops")
    cases: list[Case] = []
    for _ in range(20):
        kv_heads = source.randint(1, 8)
        heads = kv_heads * source.choice((1, 2, 3, 4))
        hidden = heads * source.choice((4, 8, 16))
        mlp = (source.randint(hidden, 5 * hidden), source.choice((2, 3)))
        run = (source.randint(16, 2000), source.randint(1, 64), source.randint(8, 4096))
        cases.append((source.randint(1, 48), hidden, heads, kv_heads, *mlp, *run))
    return tuple(cases)


def flops(
    layers: float,
    hidden: float,
    heads: float,
    kv_heads: float,
    ffn: float,
    ffn_matrices: float,
    vocab: float,
    batch: float,
    sequence: float,
    *,
    each: float = 6,
    projections: float = 2,
    kv: float = 2,
    scores: float = 2,
    head: float = 1,
) -> float:
    """The oracle: 6 for each weight that a token meets and each multiplication of its scores.

    each: FLOPs of a product and those of its backward. projections, kv: square and narrow weights of attention.
    scores: products with all tokens. head: output heads. Other values than these are those of mistakes.
    """
    narrow = hidden * hidden * kv_heads / heads
    weights = layers * (projections * hidden * hidden + kv * narrow + ffn_matrices * hidden * ffn)
    return each * batch * sequence * (weights + head * hidden * vocab + layers * scores * hidden * sequence)


def _recomputed_layers(*case: float) -> float:
    """Every layer forward twice, the head once."""
    return flops(*case, each=8) - 2 * case[7] * case[8] * case[1] * case[6]


def _but(case: Case, **others: float) -> Case:
    """The case with other values for some arguments."""
    return tuple(others.get(name, number) for name, number in zip(NAMES, case, strict=True))


_TIMES: Guesses = (
    (known.FLOPS_FORWARD_ONLY, partial(flops, each=2)),
    (known.FLOPS_BACKWARD_AS_FORWARD, partial(flops, each=4)),
    (known.FLOPS_RECOMPUTED, partial(flops, each=8)),
    (known.FLOPS_RECOMPUTED, _recomputed_layers),
    (known.FLOPS_RECOMPUTED, lambda *case: _recomputed_layers(*_but(case, ffn=4 * case[1], ffn_matrices=2))),
    (known.FLOPS_MULTIPLY_ADDS, partial(flops, each=3)),
    (known.FLOPS_MULTIPLY_ADDS, partial(flops, each=1)),
    (known.FLOPS_TWICE, partial(flops, each=12)),
    (known.FLOPS_A_TOKEN, lambda *case: flops(*case) / case[7] / case[8]),
    (known.FLOPS_ONE_SEQUENCE, lambda *case: flops(*case) / case[7]),
)
_PARTS: Guesses = (
    (known.FLOPS_NO_SCORES, partial(flops, scores=0)),
    (known.FLOPS_NO_SCORES, partial(flops, scores=0, head=2)),
    (known.FLOPS_NO_SCORES, partial(flops, scores=0, head=0)),
    (known.FLOPS_HALF_THE_SCORES, partial(flops, scores=1)),
    (known.FLOPS_TWICE, partial(flops, scores=4)),
    (known.FLOPS_FORWARD_ONLY, partial(flops, scores=2 / 3)),
    (known.FLOPS_SCORES_ONE_LAYER, lambda *case: flops(*case, scores=2 / case[0])),
    (known.FLOPS_SCORES_A_HEAD, lambda *case: flops(*case, scores=2 * case[2] / case[1])),
    (known.FLOPS_SCORES_SQUARED, lambda *case: flops(*case, scores=2 * case[8] / case[1])),
    (known.FLOPS_SCORES_A_HEAD, lambda *case: flops(*case, scores=2 * case[2])),
    (known.FLOPS_SCORES_A_HEAD, lambda *case: flops(*case, scores=2 / case[2])),
    (known.FLOPS_SCORES_SQUARED, lambda *case: flops(*case, scores=2 * case[8])),
    (known.FLOPS_NO_HEAD, partial(flops, head=0)),
    (known.FLOPS_LOOKUP_COUNTED, partial(flops, head=2)),
    (known.FLOPS_HEAD_A_LAYER, lambda *case: flops(*case, head=case[0])),
    (known.FLOPS_PROJECTION_MISSING, partial(flops, projections=1)),
    (known.FLOPS_PROJECTION_MISSING, partial(flops, projections=1, kv=1)),
    (known.FLOPS_PROJECTION_MISSING, partial(flops, projections=0)),
    (known.FLOPS_KV_BY_HIDDEN, lambda *case: flops(*case, kv=2 * case[2] / case[1])),
    (known.FLOPS_FFN_IS_FOUR, lambda *case: flops(*_but(case, ffn=4 * case[1]))),
    (known.FLOPS_FFN_IS_FOUR, lambda *case: flops(*_but(case, ffn=4 * case[1], ffn_matrices=2))),
)
_GROUPED: Guesses = (
    (known.FLOPS_ALL_KV_HEADS, lambda *case: flops(*_but(case, kv_heads=case[2]))),
    (known.FLOPS_SCORES_OF_KV, lambda *case: flops(*case, scores=2 * case[3] / case[2])),
    (known.FLOPS_SCORES_OF_KV, lambda *case: flops(*case, scores=1 + case[3] / case[2])),
    (known.FLOPS_PROJECTION_MISSING, partial(flops, kv=1)),
    (known.FLOPS_ONE_NARROW, partial(flops, projections=3, kv=1)),
    (known.FLOPS_TWO_MATRICES, lambda *case: flops(*_but(case, ffn_matrices=2))),
    (known.FLOPS_TWO_MATRICES, lambda *case: flops(*_but(case, ffn_matrices=3))),
    (known.FLOPS_TWO_MATRICES, lambda *case: flops(*_but(case, ffn_matrices=1))),
)

_GPTS, _NARROW = "four GPTs, GPT-2 and GPT-3 among them", "grouped queries, three MLP matrices"
_EXPECTED = "the FLOPs of all matrix products"
_ADVICE = "Take one token through one layer and write down the size of each matrix it is multiplied with."

CHECKS = {
    "model_flops": checks(
        Reckoning("model_flops", NAMES, flops),
        (
            Group(_GPTS, 3, GPTS, (*_TIMES, *_PARTS), _EXPECTED, _ADVICE),
            Group(_NARROW, 2, GROUPED, (*_TIMES, *_PARTS, *_GROUPED), _EXPECTED, _ADVICE, needs=_GPTS),
            Group("twenty random shapes", 2, _random(), (*_TIMES, *_PARTS, *_GROUPED), _EXPECTED, _ADVICE, _GPTS),
        ),
        IMPOSSIBLE,
        _GPTS,
    )
}
