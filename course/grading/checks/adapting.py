"""Checks of `LoRALinear`: its start, what is trained, outputs and gradients with other numbers, merging."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from course.grading.bench import Bench, Result, Seat
from course.grading.check import Check, Finding
from course.grading.checks.against_one import first_wrong, flat
from course.grading.checks.counting import refused
from course.grading.checks.low_rank import (
    CASES,
    IMPOSSIBLE,
    TOLERANCE,
    Case,
    agrees,
    base_changed,
    factors,
    output_of,
    probe_filled,
    probe_merged,
    probe_refusals,
    probe_start,
    tensor,
    wrong,
)
from course.grading.checks.messages import close
from course.grading.mistakes import Mistake
from course.grading.mistakes import lesson_04 as known
from course.grading.plain import TensorData

# --- checks -----------------------------------------------------------------------------------------------------------


def _value(bench: Bench, probe: Callable[[Any, Case, Seat], Any], case: Case) -> Any:
    result: Result = bench.run(probe, case, n=1)
    return result.values[0]


def _start(bench: Bench) -> Finding | None:
    for case in CASES:
        value = _value(bench, probe_start, case)
        if value["module"]:
            return Finding(f"it makes a {value['module']}", "a torch.nn.Module", "Derive the class from `nn.Module`.")
        want = case.linear()(case.x())
        if finding := wrong(f"{case}: its first output", value["output"], want, _start_mistake(case, value)):
            return finding
        if base_changed(case, value):
            return Finding(f"{case}: the numbers of `linear` have changed", "the numbers as they were", "Only read it.")
    return None


def _start_mistake(case: Case, value: Any) -> Mistake | None:
    pair = factors(case, value["trained"])
    if pair and all(bool(factor.count_nonzero()) for factor in pair):
        return known.LORA_B_NOT_ZERO
    linear = case.linear()
    return known.LORA_BIAS_LOST if case.biased and agrees(value["output"], case.x() @ linear.weight.T) else None


def _learns(bench: Bench) -> Finding | None:
    for case in CASES:
        trained = _value(bench, probe_start, case)["trained"]
        pair = factors(case, trained)
        if pair is None:
            return _not_the_factors(case, trained)
        a, b = (bool(factor.count_nonzero()) for factor in pair)
        if not a or b:
            mistake = known.LORA_BOTH_ZERO if not b else known.LORA_B_NOT_ZERO if a else known.LORA_A_ZERO
            words = ("zero", "not zero")
            return Finding(f"{case}: A starts {words[a]}, B {words[b]}", "A random, B zero", "", mistake)
        if len({tuple(row) for row in pair[0].tolist()}) < case.rank:
            return Finding(f"{case}: rows of A are equal", "random numbers", "", known.LORA_ROWS_ALIKE)
    return None


def _not_the_factors(case: Case, trained: Sequence[TensorData]) -> Finding:
    numbers = sum(len(data.numbers) for data in trained)
    pair = case.rank * (case.inside + case.outside)
    shapes = ", ".join(str(data.shape) for data in trained) or "none"
    got = f"{case}: the parameters that require a gradient have the shapes {shapes}"
    mistake = known.LORA_BASE_TRAINED if numbers > pair else known.LORA_NOT_PARAMETERS if not trained else None
    advice = f"A has {case.rank * case.inside} numbers here, B {case.outside * case.rank}."
    return Finding(got, "A and B, nothing else", advice, mistake)


def _filled(bench: Bench) -> Finding | None:
    for case in CASES:
        value = _value(bench, probe_filled, case)
        a, b = factors(case, value["trained"]) or (None, None)
        if a is None:
            return Finding(f"{case}: what is trained changes after it is made", "A and B")
        what = f"{case}: with other numbers in A and B, the output"
        mistake = _scale_mistake(case, value["output"], a, b)
        if finding := wrong(what, value["output"], output_of(case, a, b), mistake):
            return finding
        if value["changed"] or base_changed(case, value):
            return Finding(f"{case}: x or the numbers of `linear` have changed", "both as they were", "Only read them.")
    return None


def _scale_mistake(case: Case, got: Any, a: Any, b: Any) -> Mistake | None:
    guesses = (
        (known.LORA_NO_SCALE, 1.0),
        (known.LORA_SCALE_ALPHA, case.alpha),
        (known.LORA_SCALE_INVERTED, case.rank / case.alpha),
        (known.LORA_SCALE_ROOT, case.alpha / math.sqrt(case.rank)),
        (known.LORA_NOT_ADDED, 0.0),
    )
    return next((mistake for mistake, scale in guesses if agrees(got, output_of(case, a, b, scale=scale))), None)


def _gradients(bench: Bench) -> Finding | None:
    for case in CASES:
        value = _value(bench, probe_filled, case)
        a, b = (factor.clone().requires_grad_() for factor in factors(case, value["trained"]) or ())
        x = case.x().requires_grad_()
        output_of(case, a, b, x=x).backward(case.upstream())
        through_base = case.upstream() @ case.linear().weight
        mistake = None
        if agrees(value["input gradient"], x.grad - through_base):
            mistake = known.LORA_BASE_WITHOUT_GRADIENT
        elif agrees(value["input gradient"], through_base):
            mistake = known.LORA_ADAPTER_DETACHED
        if finding := wrong(f"{case}: the gradient of x", value["input gradient"], x.grad, mistake):
            return finding
        found = [g if type(g) is TensorData else TensorData("", (0,), "", ()) for g in value["gradients"]]
        got = factors(case, found)
        if value["base trained"]:
            said = f"{case}: `linear` got gradients of its own weights"
            return Finding(said, "gradients of x, A and B alone", "", known.LORA_BASE_TRAINED)
        for name, factor, mine in zip("AB", (a, b), got or (None, None), strict=True):
            if mine is None or not close(flat(mine), flat(factor.grad), TOLERANCE):
                said = "missing" if mine is None else first_wrong(flat(mine), flat(factor.grad))
                return Finding(f"{case}: the gradient of {name} is {said}", "", "Does autograd see the whole formula?")
    return None


def _merged(bench: Bench) -> Finding | None:
    for case in CASES:
        value = _value(bench, probe_merged, case)
        if value["kind"]:
            got = f"{case}: merged() returned a {value['kind']}"
            return Finding(got, "an nn.Linear", "", known.LORA_MERGED_KIND)
        a, b = factors(case, value["trained"]) or (None, None)
        if a is None:
            return Finding(f"{case}: after merged(), A and B are not trained any more", "the layer as it was")
        want = output_of(case, a, b)
        if base_changed(case, value) or not agrees(value["again"], want):
            got = f"{case}: after merged(), the layer is another than before"
            return Finding(got, "the layer as it was", "", known.LORA_MERGED_IN_PLACE)
        mistake = _merge_mistake(case, value["output"], a, b)
        if finding := wrong(f"{case}: the output of the merged layer", value["output"], want, mistake):
            return finding
        if value["bias"] != case.biased:
            got = f"{case}: the merged layer has a bias: {value['bias']}"
            return Finding(got, str(case.biased), "", known.LORA_MERGED_NO_BIAS)
    return None


def _merge_mistake(case: Case, got: Any, a: Any, b: Any) -> Mistake | None:
    if agrees(got, output_of(case, a, b, scale=1.0)):
        return known.LORA_MERGED_UNSCALED
    if agrees(got, output_of(case, a, b, scale=0.0)):
        return known.LORA_MERGED_NOTHING
    right, mine = output_of(case, a, b), tensor(got) if type(got) is TensorData else None
    if mine is None or mine.shape != right.shape:
        return None
    off = (mine - right).reshape(-1, case.outside)  # the same for every token: another bias
    return known.LORA_MERGED_NO_BIAS if close(flat(off), flat(off[:1].expand_as(off)), 1e-3) else None


def _refuses(bench: Bench) -> Finding | None:
    return refused(bench, probe_refusals, IMPOSSIBLE, str, did="was made, no error")


START, LEARNS = "starts as the layer it was made from", "A and B are trained, and nothing else"
OUTPUT = "the output with other numbers in A and B"

CHECKS = {
    "LoRALinear": (
        Check(START, 2, _start, "what `linear` gives"),
        Check(LEARNS, 2, _learns, "two parameters, B zero", needs=START),
        Check(OUTPUT, 2, _filled, "linear(x) + (alpha / rank) · x Aᵀ Bᵀ", needs=LEARNS),
        Check("the gradients of x, A and B", 1, _gradients, "as in one formula", needs=OUTPUT),
        Check("merged into a plain layer", 2, _merged, "the same outputs", needs=OUTPUT),
        Check("the impossible is refused", 1, _refuses, "a ValueError", needs=START),
    )
}
