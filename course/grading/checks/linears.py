"""Checks of `ColumnParallelLinear`, `RowParallelLinear` and `ParallelMLP`: one matrix, or two, over several ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from course.grading.bench import Bench, Seat
from course.grading.check import Check, Finding
from course.grading.checks.against_one import (
    Guess,
    forward,
    input_gradient,
    ranks,
    shares,
    traffic,
    weight_gradients,
)
from course.grading.checks.cost import outcome
from course.grading.checks.sharding import Layer, distinct, oracle, part_of, random, upstream
from course.grading.mistakes.any_exercise import NOT_REFUSED, OTHER_ERROR
from course.grading.mistakes.lesson_08 import (
    BIAS_LOST,
    BIAS_ON_EVERY_RANK,
    COLUMN_GATHERED,
    GELU_OF_PARTS,
    NO_BACKWARD_SUM,
    NOT_SUMMED,
    SAME_PART,
    SHARES_AVERAGED,
    STRIDED_PART,
)

C, F = 12, 48  # channels and hidden channels: 1, 2, 3 and 4 ranks divide both
TOKENS = (2, 3)
NBYTES = 4 * 2 * 3 * C  # of the narrow side's activations


# --- the whole modules ------------------------------------------------------------------------------------------------


def wide() -> Any:
    from torch import nn

    return distinct(nn.Linear(C, F))


def wide_without_bias() -> Any:
    from torch import nn

    return distinct(nn.Linear(C, F, bias=False))


def narrow() -> Any:
    from torch import nn

    return distinct(nn.Linear(F, C))


def narrow_without_bias() -> Any:
    from torch import nn

    return distinct(nn.Linear(F, C, bias=False))


def mlp() -> Any:
    from course.gpt.model import MLP
    from course.spec import ModelSpec

    return distinct(MLP(ModelSpec(width=C, heads=1, feedforward=F)))


def few_channels() -> Any:
    return random(*TOKENS, C, seed=1)


def many_channels() -> Any:
    return random(*TOKENS, F, seed=2)


def _wide_share(n: int) -> int:
    return F // n * (C + 1)


def _narrow_share(n: int) -> int:
    return F // n * C + C


def _mlp_share(n: int) -> int:
    return F // n * (2 * C + 1) + C


COLUMN = (
    Layer(wide, few_channels, _wide_share, NBYTES, "output"),
    Layer(wide_without_bias, few_channels, _wide_share, NBYTES, "output", biased=False),
)
ROW = (
    Layer(narrow, many_channels, _narrow_share, NBYTES, "input"),
    Layer(narrow_without_bias, many_channels, _narrow_share, NBYTES, "input", biased=False),
)
MLPS = (Layer(mlp, few_channels, _mlp_share, 2 * NBYTES),)


# --- what known mistakes give -----------------------------------------------------------------------------------------


def column_outputs(layer: Layer) -> Sequence[Guess]:
    whole, y = layer.make(), oracle(layer).output
    return (
        (COLUMN_GATHERED, lambda r, n: y),
        (SAME_PART, lambda r, n: part_of(y, layer, "output", 0, n)),
        (STRIDED_PART, lambda r, n: y[..., r::n]),
        (BIAS_LOST, lambda r, n: part_of(y if whole.bias is None else y - whole.bias, layer, "output", r, n)),
    )


def column_gradients(layer: Layer) -> Sequence[Guess]:
    weight = layer.make().weight

    def own(r: int, n: int) -> Any:
        return part_of(upstream(layer), layer, "output", r, n) @ weight.tensor_split(n)[r]

    return (
        (NO_BACKWARD_SUM, own),
        (SHARES_AVERAGED, lambda r, n: oracle(layer).input_gradient / n),
    )


def summed_outputs(layer: Layer, bias: Any, share: Callable[[int, int], Any]) -> Sequence[Guess]:
    """Of a layer that ends with a sum over ranks of `share(rank, n)`, to which `bias` is added once."""
    y = oracle(layer).output
    b = 0.0 if bias is None else bias
    return (
        (BIAS_ON_EVERY_RANK, lambda r, n: y + (n - 1) * b),
        (BIAS_LOST, lambda r, n: y - b),
        (NOT_SUMMED, share),
        (NOT_SUMMED, lambda r, n: share(r, n) + b),
        (SHARES_AVERAGED, lambda r, n: (y - b) / n + b),
        (SHARES_AVERAGED, lambda r, n: (y - b) / n),
    )


def row_outputs(layer: Layer) -> Sequence[Guess]:
    whole, x = layer.make(), layer.inputs()

    def share(r: int, n: int) -> Any:
        return part_of(x, layer, "input", r, n) @ whole.weight.tensor_split(n, 1)[r].T

    def of_first(r: int, n: int) -> Any:
        products = [part_of(x, layer, "input", k, n) @ whole.weight.tensor_split(n, 1)[0].T for k in range(n)]
        return sum(products) + (0.0 if whole.bias is None else whole.bias)

    return (*summed_outputs(layer, whole.bias, share), (SAME_PART, of_first))


def row_gradients(layer: Layer) -> Sequence[Guess]:
    return ((SHARES_AVERAGED, lambda r, n: part_of(oracle(layer).input_gradient, layer, "input", r, n) / n),)


def mlp_outputs(layer: Layer) -> Sequence[Guess]:
    import torch

    whole, x = layer.make(), layer.inputs()

    def share(r: int, n: int) -> Any:
        up, bias = whole.up.weight.tensor_split(n)[r], whole.up.bias.tensor_split(n)[r]
        hidden = torch.nn.functional.gelu(x @ up.T + bias)
        return hidden @ whole.down.weight.tensor_split(n, 1)[r].T

    def of_sums(biased: Callable[[int, int], float], r: int, n: int) -> Any:
        total = whole.down.bias.clone()
        for k in range(n):
            part = x.tensor_split(n, -1)[k] @ whole.up.weight.tensor_split(n, 1)[k].T
            total = total + torch.nn.functional.gelu(part + biased(k, n) * whole.up.bias) @ whole.down.weight.T
        return total

    first, all_of_it, shared = (lambda k, n: float(k == 0)), (lambda k, n: 1.0), (lambda k, n: 1.0 / n)
    return (
        *summed_outputs(layer, whole.down.bias, share),
        (SAME_PART, lambda r, n: n * share(0, n) + whole.down.bias),
        *((GELU_OF_PARTS, partial(of_sums, biased)) for biased in (first, all_of_it, shared)),
    )


def mlp_gradients(layer: Layer) -> Sequence[Guess]:
    import torch

    whole = layer.make()

    def own(r: int, n: int) -> Any:
        x = layer.inputs().requires_grad_()
        up, bias = whole.up.weight.tensor_split(n)[r], whole.up.bias.tensor_split(n)[r]
        hidden = torch.nn.functional.gelu(x @ up.T + bias)
        (hidden @ whole.down.weight.tensor_split(n, 1)[r].T).backward(upstream(layer))
        return x.grad

    return ((NO_BACKWARD_SUM, own), (SHARES_AVERAGED, lambda r, n: oracle(layer).input_gradient / n))


# --- refusals ---------------------------------------------------------------------------------------------------------


def probe_refusal(learner: Any, make: Callable[[], Any], seat: Seat) -> Any:
    """Runs in the rank: the name of the error that splitting this module raises."""
    return outcome(lambda: type(learner(make())).__name__)


def refused(bench: Bench, cases: Sequence[tuple[int, Callable[[], Any], str]]) -> Finding | None:
    """A finding where (ranks, module, in words) is not refused with ValueError."""
    for n, make, words in cases:
        for error, _ in bench.run(probe_refusal, make, n=n).values:
            if not error:
                return Finding(f"{ranks(n)}, {words} are split without a word", "", "", NOT_REFUSED)
            if error != "ValueError":
                return Finding(f"{ranks(n)}, {words} raised {error}", "", "", OTHER_ERROR)
    return None


def ten_out() -> Any:
    from torch import nn

    return nn.Linear(C, 10)


def ten_in() -> Any:
    from torch import nn

    return nn.Linear(10, C)


def ten_hidden() -> Any:
    from course.gpt.model import MLP
    from course.spec import ModelSpec

    return MLP(ModelSpec(width=C, heads=1, feedforward=10))


def refusals(make: Callable[[], Any], words: str) -> Callable[[Bench], Finding | None]:
    return partial(refused, cases=((3, make, words), (4, make, words)))


# --- checks -----------------------------------------------------------------------------------------------------------

OUTPUT = "the output of one process"
INPUT = "the gradient of the input"
WEIGHTS = "the gradients of the weights"


def checks(
    layers: Sequence[Layer],
    outputs: Callable[[Layer], Sequence[Guess]],
    gradients: Callable[[Layer], Sequence[Guess]],
    refuses: Callable[[Bench], Finding | None],
    points: tuple[int, int, int] = (3, 2, 2),
) -> tuple[Check, ...]:
    """The six checks that every split layer has; points of the first three."""
    for_output, for_input, for_weights = points
    return (
        Check(OUTPUT, for_output, partial(forward, layers=layers, guesses=outputs), "what the whole module gives"),
        Check(INPUT, for_input, partial(input_gradient, layers=layers, guesses=gradients), "as in one process", OUTPUT),
        Check(WEIGHTS, for_weights, partial(weight_gradients, layers=layers), "as in one process", OUTPUT),
        Check("each rank keeps its part only", 1, partial(shares, layers=layers), "its share of the weights", OUTPUT),
        Check("no more bytes than needed", 1, partial(traffic, layers=layers), "the all-reduces alone", INPUT),
        Check("what does not divide is refused", 1, refuses, "a ValueError", OUTPUT),
    )


CHECKS = {
    "ColumnParallelLinear": checks(COLUMN, column_outputs, column_gradients, refusals(ten_out, "10 out features")),
    "RowParallelLinear": checks(ROW, row_outputs, row_gradients, refusals(ten_in, "10 in features")),
    "ParallelMLP": checks(MLPS, mlp_outputs, mlp_gradients, refusals(ten_hidden, "10 hidden channels")),
}
