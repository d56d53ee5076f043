"""Gradients to be averaged: what each rank is given, what one process makes of them, and how a wrong result is named.

Shared by `averaging` and `weighting`. The gradients are made up, differ on every rank and have both signs; a module
with several parameters of one shape is used, since that is where shifted calls stay silent.
"""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from course.grading.bench import Result
from course.grading.check import Finding
from course.grading.checks.hello import lazy
from course.grading.mistakes import Mistake
from course.grading.mistakes.lesson_05 import NOTHING_SENT
from course.grading.plain import Numbers, TensorData, difference, plain, ratio, same, type_in_words

Gradients = dict[str, tuple[float, ...] | None]

SHAPES: dict[str, tuple[int, ...]] = {
    "first.weight": (17, 5),
    "first.bias": (17,),
    "second.weight": (32, 17),
    "second.bias": (32,),
    "norm.weight": (32,),
    "norm.bias": (32,),
    "left.weight": (32, 32),
    "left.bias": (32,),
    "right.weight": (2, 32),
    "right.bias": (2,),
}
ALIKE = ("second.bias", "norm.weight", "norm.bias", "left.bias")  # one shape: a shifted call goes unnoticed
BASE = 100  # of the digits test: three ranks' digits, and a third of them, are exact enough in float32
NBYTES = 4 * sum(math.prod(shape) for shape in SHAPES.values())


def module() -> Any:
    """The module that the gradients belong to; its parameters are the same on every rank."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    layers = {
        "first": nn.Linear(5, 17),
        "second": nn.Linear(17, 32),
        "norm": nn.LayerNorm(32),
        "left": nn.Linear(32, 32),
        "right": nn.Linear(32, 2),
    }
    return nn.ModuleDict(layers)


def given(rank: int, without: Sequence[str] = (), digits: bool = False, zero: Sequence[str] = ()) -> Gradients:
    """Rank `rank`'s gradients: random, or for a digits test BASE**rank times a number from 1 to 9.

    `without`: names that have none; `zero`: names whose gradient is there and zero.
    """
    source = random.Random(f"gradients of rank {rank}")
    gradients: Gradients = {}
    for name, shape in SHAPES.items():
        size = math.prod(shape)
        if digits:
            gradients[name] = tuple(float((k * 7 + len(name)) % 9 + 1) * float(BASE**rank) for k in range(size))
        else:
            gradients[name] = tuple(float32(source.gauss(0.3, 1.0)) for _ in range(size))
        if name in zero:
            gradients[name] = (0.0,) * size
        if name in without:
            gradients[name] = None
    return gradients


def float32(number: float) -> float:
    """The nearest number that float32 holds."""
    return float(struct.unpack("f", struct.pack("f", number))[0])


def probe(learner: Callable[..., Any], gradients: Gradients, arguments: tuple[Any, ...]) -> Any:
    """Runs in the rank: `learner(module, *arguments)` on a module with these gradients; what it left behind."""
    import torch

    held = module()
    for name, parameter in held.named_parameters():
        numbers = gradients[name]
        if numbers is not None:
            parameter.grad = torch.tensor(numbers, dtype=parameter.dtype).reshape(parameter.shape)
    before = {name: plain(parameter) for name, parameter in held.named_parameters()}
    returned = plain(learner(held, *arguments))
    after = {name: plain(parameter) for name, parameter in held.named_parameters()}
    return {
        "returned": returned,
        "gradients": {name: parameter.grad for name, parameter in held.named_parameters()},
        "changed": [name for name in SHAPES if before[name] != after.get(name)],
    }


def numbers_of(value: Mapping[str, Any]) -> Numbers | str:
    """The gradients a rank came back with, None as empty; or what is wrong with one of them, in words."""
    found: dict[str, Sequence[float]] = {}
    for name, gradient in value["gradients"].items():
        if gradient is None:
            found[name] = ()
        elif type(gradient) is not TensorData or gradient.shape != SHAPES[name]:
            return f"the gradient of `{name}` is now {type_in_words(gradient)}"
        else:
            found[name] = [float(number) for number in gradient.numbers]
    return found


def weighted(parts: Sequence[Gradients], weights: Sequence[float]) -> Numbers:
    """sum(weight * gradient) over ranks, None as zero; names that nobody has are left out."""
    total: dict[str, Sequence[float]] = {}
    for name in SHAPES:
        held = [(part[name], weight) for part, weight in zip(parts, weights, strict=True)]
        columns = [(numbers, weight) for numbers, weight in held if numbers is not None]
        if columns:
            length = len(columns[0][0])
            total[name] = [sum(weight * numbers[k] for numbers, weight in columns) for k in range(length)]
    return total


def compare(
    result: Result,
    want: Numbers,
    guesses: Sequence[tuple[Mistake, Sequence[Numbers]]],
    what: str,
) -> Finding | None:
    """A finding where a rank's gradients are not `want`; `guesses` say what each known mistake would give, by rank.

    `what`: the case in words, "with 3 ranks".
    """
    found = []
    for rank, value in enumerate(result.values):
        if mistake := lazy(value["returned"]):
            return Finding(f"{what}, it returned {type_in_words(value['returned'])}", "", "", mistake)
        numbers = numbers_of(value)
        if isinstance(numbers, str):
            return Finding(f"{what}, on rank {rank} {numbers}", "", "Keep dtype and shape of each gradient.")
        found.append(numbers)
    wrong = [rank for rank, numbers in enumerate(found) if not agrees(numbers, want)]
    if not wrong:
        return None
    rank = wrong[0]
    got = f"{what}, {_how(found[rank], want, rank)}"
    return Finding(
        got, "", "Compare one gradient by hand with those of all ranks.", _recognised(result, found, guesses)
    )


def agrees(got: Numbers, want: Numbers) -> bool:
    """Whether the named gradients are there and equal `want` (those that `want` does not name are not looked at)."""
    return all(len(got[name]) == len(numbers) for name, numbers in want.items()) and same(got, want)


def _recognised(
    result: Result, found: Sequence[Numbers], guesses: Sequence[tuple[Mistake, Sequence[Numbers]]]
) -> Mistake | None:
    for mistake, predicted in guesses:
        if all(agrees(numbers, guess) for numbers, guess in zip(found, predicted, strict=True)):
            return mistake
    return NOTHING_SENT if result.world_size > 1 and not result.calls(0) else None


def _how(got: Numbers, want: Numbers, rank: int) -> str:
    for name, numbers in want.items():
        if len(got[name]) != len(numbers):
            return f"on rank {rank} the gradient of `{name}` is None"
    factor = ratio(got, want)
    if factor is not None and abs(factor) > 1e-6:
        return f"your gradient is {factor:.2f} times the reference on every parameter (rank {rank})"
    if all(not any(numbers) for numbers in got.values()):
        return f"all gradients are zero on rank {rank}"
    worst = difference(got, want)
    if worst is None:
        return f"the gradients differ on rank {rank}"
    right = sum(same({name: got[name]}, {name: numbers}) for name, numbers in want.items())
    return (
        f"on rank {rank} {right} of {len(want)} gradients are right; "
        f"one number of `{worst.worst}` is {worst.got:.4g} where {worst.want:.4g} was expected"
    )


def digits_finding(result: Result, factor: float, what: str) -> Finding | None:
    """Which rank is missing from a sum, or counted more than once, read off the digits of rank 0's result.

    `factor`: what the result has to be multiplied with to be the plain sum over ranks.
    """
    n = result.world_size
    for rank, value in enumerate(result.values):
        numbers = numbers_of(value)
        if isinstance(numbers, str) or any(len(numbers[name]) == 0 for name in SHAPES):
            return Finding(f"{what}, {numbers if isinstance(numbers, str) else 'a gradient is None'}", "")
        for name in SHAPES:
            own = given(0, digits=True)[name] or ()
            for mine, digit in zip(numbers[name], own, strict=True):
                total = round(mine * factor)
                times = [(total // BASE**r) % BASE / digit for r in range(n)]
                for r, count in enumerate(times):
                    if count != 1:
                        how = "missing from" if count == 0 else f"counted {count:g} times in"
                        got = f"{what}, rank {r} is {how} the gradient of `{name}` on rank {rank}"
                        return Finding(got, "each rank counted once")
    return None


def unequal(result: Result, what: str) -> Finding | None:
    """A finding where ranks hold gradients that differ, if only in the last bit."""
    first = result.values[0]["gradients"]
    for rank, value in enumerate(result.values):
        for name, gradient in value["gradients"].items():
            if gradient != first[name]:
                got = f"{what}, `{name}` has other numbers on rank {rank} than on rank 0"
                return Finding(got, "", "Every rank has to add in the same order, or one has to add for all.")
    return None


def changed(result: Result, what: str) -> Finding | None:
    """A finding where the parameters themselves were changed."""
    for rank, value in enumerate(result.values):
        if value["changed"]:
            return Finding(
                f"{what}, rank {rank} changed the parameter `{value['changed'][0]}`", "", "Write to `.grad`."
            )
    return None


def too_many_bytes(result: Result, what: str) -> Finding | None:
    """A finding where more travelled than one all-reduce of all gradients (and the little that is allowed besides)."""
    n = result.world_size
    allowed = 2 * (n - 1) * (NBYTES + 64 * len(SHAPES))
    if result.nbytes <= 1.01 * allowed:
        return None
    share = result.nbytes / (2 * (n - 1) * NBYTES)
    got = f"{what}, correct, but {share:.2f} times the bytes travel"
    return Finding(got, f"{2 * (n - 1) * NBYTES} bytes over all ranks", "Which call sends what was sent before?")
