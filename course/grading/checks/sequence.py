"""Checks of `SequenceParallelNorm`: whole weights, and a part of the tokens."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from course.grading.check import Check
from course.grading.checks.against_one import Guess, forward, input_gradient, traffic, weight_gradients
from course.grading.checks.sharding import Layer, distinct, oracle, part_of, random, upstream
from course.grading.mistakes.lesson_08 import (
    BIAS_LOST,
    EPS_LOST,
    NORM_WEIGHTS_LOST,
    OWN_TOKENS_ONLY,
    TOKENS_MIXED,
)

C, EPS = 8, 0.05


def norm() -> Any:
    from torch import nn

    return distinct(nn.LayerNorm(C, eps=EPS))


def tokens() -> Any:
    return random(2, 12, C, seed=4)


def _whole(n: int) -> int:
    return 2 * C


LAYER = Layer(norm, tokens, _whole, 4 * 2 * C, "input output", dim=1)


def _outputs(layer: Layer) -> Sequence[Guess]:
    from torch.nn.functional import layer_norm

    whole, x = layer.make(), layer.inputs()
    wrong = (
        (BIAS_LOST, layer_norm(x, (C,), whole.weight, None, EPS)),
        (NORM_WEIGHTS_LOST, layer_norm(x, (C,), None, None, EPS)),
        (EPS_LOST, layer_norm(x, (C,), whole.weight, whole.bias)),
    )
    return tuple((mistake, partial(part_of, y, layer, "output")) for mistake, y in wrong)


def _gradients(layer: Layer) -> Sequence[Guess]:
    def mixed(r: int, n: int) -> Any:
        return sum(oracle(layer).input_gradient.tensor_split(n, 1))

    return ((TOKENS_MIXED, mixed),)


def _own_tokens(rank: int, n: int) -> dict[float, float]:
    """The gradients of the weights that a rank's own tokens give."""
    whole = norm()
    y = whole(part_of(tokens(), LAYER, "input", rank, n))
    y.backward(part_of(upstream(LAYER), LAYER, "output", rank, n))
    return {
        number: gradient
        for p in (whole.weight, whole.bias)
        for number, gradient in zip(p.tolist(), p.grad.tolist(), strict=True)
    }


_weights = partial(weight_gradients, layers=(LAYER,), guess=(OWN_TOKENS_ONLY, _own_tokens))
OUTPUT, WEIGHTS = "the output of one process", "the gradients of the weights"

CHECKS = {
    "SequenceParallelNorm": (
        Check(OUTPUT, 2, partial(forward, layers=(LAYER,), guesses=_outputs), "this rank's part of the norm's output"),
        Check(
            "the gradient of the input", 1, partial(input_gradient, layers=(LAYER,), guesses=_gradients),
            "this rank's part of it", OUTPUT,
        ),
        Check(WEIGHTS, 3, _weights, "those of all tokens, on every rank", OUTPUT),
        Check("no tokens travel", 1, partial(traffic, layers=(LAYER,)), "the weights' gradients alone", WEIGHTS),
    )
}  # fmt: skip
