"""Split layers against one process: outputs, gradients, weights held and bytes, for any `sharding.Layer`.

Guesses are what a known mistake would give on each rank; they stand with the checks of each exercise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from course.grading.bench import Bench, Result, Trouble
from course.grading.check import Finding
from course.grading.checks.messages import close
from course.grading.checks.sharding import Layer, oracle, part_of, probe
from course.grading.mistakes import Mistake
from course.grading.mistakes.lesson_08 import (
    ALL_REDUCE_RETURNED,
    BIAS_ASSUMED,
    GATHERS,
    KEEPS_THE_WHOLE,
    NO_PARAMETERS,
    OUTPUT_CUT_OFF,
    REDUCED_IN_PLACE,
    SHARD_CUT_AGAIN,
    SHARES_AVERAGED,
    SUMMED_BOTH_WAYS,
    SUMMED_TOO_OFTEN,
    WRONG_DIMENSION,
)
from course.grading.plain import TensorData, type_in_words

SIZES = (2, 3, 4, 1)
TOLERANCE = 1e-5
Numbers = tuple[float, ...]


def flat(t: Any) -> Numbers:
    return tuple(t.detach().reshape(-1).tolist())


def ranks(n: int) -> str:
    return f"with {n} rank{'s' if n > 1 else ''}"


def run(bench: Bench, layer: Layer, n: int) -> Result | Finding:
    """The result of a probe, or a finding where it stopped in a way that has a name. Raises Trouble for the others."""
    try:
        result = bench.run(probe, layer, n=n)
    except Trouble as trouble:
        mistake = stopped(trouble)
        if mistake is ALL_REDUCE_RETURNED and not layer.biased:
            mistake = BIAS_ASSUMED
        if mistake is None:
            raise
        return Finding(trouble.got, "", "", mistake)
    for rank, value in enumerate(result.values):
        if value["module"]:
            got = f"{ranks(n)}, it makes a {value['module']} on rank {rank}"
            return Finding(got, "a torch.nn.Module", "Derive the class from `nn.Module`.")
    return result


def stopped(trouble: Trouble) -> Mistake | None:
    """The mistake behind an error that the split itself raises."""
    if trouble.kind != "raised":
        return None
    if "modified by an inplace operation" in trouble.got or "leaf Variable" in trouble.got:
        return REDUCED_IN_PLACE
    if "NoneType" in trouble.got:
        return ALL_REDUCE_RETURNED
    if "shapes cannot be multiplied" in trouble.got:
        return SHARD_CUT_AGAIN if "x0 and" in trouble.got else WRONG_DIMENSION
    return None


# --- what is compared -------------------------------------------------------------------------------------------------

Guess = tuple[Mistake, Callable[[int, int], Any]]  # what a known mistake gives on rank r of n, as a tensor


def forward(bench: Bench, layers: Sequence[Layer], guesses: Callable[[Layer], Sequence[Guess]]) -> Finding | None:
    """A finding where an output is not that of one process."""
    for layer in layers:
        for n in SIZES:
            result = run(bench, layer, n)
            if isinstance(result, Finding):
                return result
            if finding := _outputs(result, layer, guesses(layer)):
                return finding
    return None


def _outputs(result: Result, layer: Layer, guesses: Sequence[Guess]) -> Finding | None:
    n = result.world_size
    for rank, value in enumerate(result.values):
        got, want = value["output"], part_of(oracle(layer).output, layer, "output", rank, n)
        what = f"{ranks(n)}, the output on rank {rank} is "
        if type(got) is not TensorData:
            none = ALL_REDUCE_RETURNED if got is None and result.calls(rank) else None
            return Finding(what + type_in_words(got), "a tensor", "Return the output.", none)
        if got.shape != tuple(want.shape):
            said = f"of shape {got.shape} instead of {tuple(want.shape)}"
            mistake = recognised(result, "output", guesses)
            return Finding(what + said, "", "Write the shapes beside each line.", mistake)
        if not close(got.numbers, flat(want), TOLERANCE):
            mistake = recognised(result, "output", guesses)
            return Finding(what + first_wrong(got.numbers, flat(want)), "", "", mistake)
        if value["changed"]:
            return Finding(f"{ranks(n)}, the input was changed on rank {rank}", "", "", REDUCED_IN_PLACE)
        if value["whole changed"]:
            got = f"{ranks(n)}, the module that was handed in is changed on rank {rank}"
            return Finding(got, "its weights as they were", "Copy what you keep, and write into the copy.")
    return None


def recognised(result: Result, what: str, guesses: Sequence[Guess]) -> Mistake | None:
    """The first mistake that explains what all ranks came back with."""
    n = result.world_size
    for mistake, guess in guesses:
        try:
            predicted = [guess(rank, n) for rank in range(n)]
        except RuntimeError:  # this mistake needs sizes that divide
            continue
        found = [value[what] for value in result.values]
        if all(_is(got, want) for got, want in zip(found, predicted, strict=True)):
            return mistake
    return None


def _is(got: Any, want: Any) -> bool:
    return type(got) is TensorData and got.shape == tuple(want.shape) and close(got.numbers, flat(want), 10 * TOLERANCE)


def first_wrong(got: Numbers, want: Numbers) -> str:
    """One number that is wrong, for a sentence."""
    scale = max(map(abs, want))
    right = sum(abs(a - b) <= TOLERANCE * scale for a, b in zip(got, want, strict=True))
    mine, other = next((a, b) for a, b in zip(got, want, strict=True) if not abs(a - b) <= TOLERANCE * scale)
    return f"wrong in {len(want) - right} of {len(want)} numbers: one is {mine:.4g} where {other:.4g} was expected"


def input_gradient(
    bench: Bench, layers: Sequence[Layer], guesses: Callable[[Layer], Sequence[Guess]]
) -> Finding | None:
    """A finding where the gradient of the input is not that of one process."""
    for layer in layers:
        for n in SIZES:
            result = bench.run(probe, layer, n=n)
            for rank, value in enumerate(result.values):
                got = value["input gradient"]
                want = part_of(oracle(layer).input_gradient, layer, "input", rank, n)
                what = f"{ranks(n)}, the output is right, but the gradient of the input on rank {rank} is "
                if type(got) is not TensorData:
                    return Finding(what + type_in_words(got), "", "", OUTPUT_CUT_OFF)
                if not close(got.numbers, flat(want), TOLERANCE):
                    mistake = recognised(result, "input gradient", guesses(layer)) or scaled(got.numbers, flat(want), n)
                    return Finding(what + first_wrong(got.numbers, flat(want)), "", "", mistake)
    return None


def scaled(got: Numbers, want: Numbers, n: int) -> Mistake | None:
    """The mistake behind numbers that are n times too large (or n times n), or too small."""
    factors = ((SUMMED_BOTH_WAYS, n), (SUMMED_BOTH_WAYS, n * n), (SHARES_AVERAGED, 1 / n))
    return next((mistake for mistake, k in factors if close(got, tuple(k * x for x in want), 1e-4)), None)


Gradients = Callable[[int, int], dict[float, float]]  # of each weight, by its value, on rank r of n


def weight_gradients(
    bench: Bench, layers: Sequence[Layer], guess: tuple[Mistake, Gradients] | None = None
) -> Finding | None:
    """A finding where the gradient of a weight is not that of the same number in one process.

    A rank may hold a weight that it does not use, as long as another rank trains it.
    """
    return next(
        (f for layer in layers for n in SIZES if (f := _weights(bench.run(probe, layer, n=n), layer, guess))), None
    )


def _weights(result: Result, layer: Layer, guess: tuple[Mistake, Gradients] | None) -> Finding | None:
    want, n = oracle(layer).gradients, result.world_size
    tolerance = TOLERANCE * max(map(abs, want.values()))
    trained: set[float] = set()
    for rank, value in enumerate(result.values):
        found = _by_weight(value["weights"])
        if strange := next((number for number in found if number not in want), None):
            got = f"{ranks(n)}, rank {rank} holds a weight {strange:.4g}, which the module does not have"
            return Finding(got, "", "Keep the weights as they are in the module.")
        right = {number for number, got in found.items() if abs(got - want[number]) <= tolerance}
        wrong = {number: got for number, got in found.items() if number not in right and got != 0}
        if wrong:
            number = next(iter(wrong))
            said = f"{wrong[number]:.4g} where {want[number]:.4g} was expected"
            mistake = scaled(tuple(wrong.values()), tuple(want[number] for number in wrong), n)
            if guess and all(abs(got - guess[1](rank, n)[number]) <= tolerance for number, got in found.items()):
                mistake = guess[0]
            return Finding(f"{ranks(n)}, on rank {rank} the gradient of a weight is {said}", "", "", mistake)
        trained |= right
    if missing := len(want) - len(trained):
        held = any(value["weights"] for value in result.values)
        got = f"{ranks(n)}, {missing} of the module's {len(want)} weights get no gradient on any rank"
        return Finding(got, "", "Which rank holds them?", OUTPUT_CUT_OFF if held else NO_PARAMETERS)
    return None


def _by_weight(weights: Sequence[tuple[TensorData, Any]]) -> dict[float, float]:
    """The gradient of each weight, by the weight's value; 0 where there is none."""
    found: dict[float, float] = {}
    for weight, gradient in weights:
        numbers = gradient.numbers if type(gradient) is TensorData else (0.0,) * len(weight.numbers)
        found |= dict(zip(weight.numbers, numbers, strict=True))
    return found


def shares(bench: Bench, layers: Sequence[Layer]) -> Finding | None:
    """A finding where a rank holds more of the weights than its part of the layer needs."""
    for layer in layers:
        for n in SIZES:
            for rank, value in enumerate(bench.run(probe, layer, n=n).values):
                held = sum(len(weight.numbers) for weight, _ in value["weights"])
                if held > layer.held(n):
                    got = f"{ranks(n)}, right, but rank {rank} holds {held} of {layer.held(1)} weights"
                    return Finding(got, f"{layer.held(n)}", "", KEEPS_THE_WHOLE)
    return None


def traffic(bench: Bench, layers: Sequence[Layer]) -> Finding | None:
    """A finding where more travels, forward and backward, than the all-reduces that are needed."""
    return next(
        (f for layer in layers for n in SIZES if (f := overspent(bench.run(probe, layer, n=n), layer.reduced))), None
    )


def overspent(result: Result, nbytes: int) -> Finding | None:
    """A finding where more travelled than all-reduces of that many bytes."""
    n = result.world_size
    allowed = 2 * (n - 1) * nbytes
    if result.nbytes <= 1.01 * allowed:
        return None
    names = {span.name for rank in range(n) for span in result.calls(rank)}
    mistake = SUMMED_TOO_OFTEN if names <= {"all_reduce"} else GATHERS
    often = f"{result.nbytes / allowed:.2f} times the bytes travel" if allowed else f"{result.nbytes} bytes travel"
    return Finding(f"{ranks(n)}, right, but {often}", f"{allowed} bytes over all ranks", "", mistake)
