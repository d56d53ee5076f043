"""Checks of `copy_to_ranks` and `reduce_from_ranks`: one of them does nothing forward, the other nothing backward."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from course.grading.bench import Bench, Result, Seat, Trouble
from course.grading.check import Check, Finding
from course.grading.checks.against_one import SIZES, first_wrong, flat, overspent, ranks, recognised, stopped
from course.grading.checks.hello import lazy
from course.grading.checks.messages import close
from course.grading.checks.sharding import random
from course.grading.mistakes import Mistake
from course.grading.mistakes.lesson_08 import (
    ALL_REDUCE_RETURNED,
    NO_BACKWARD_SUM,
    NOT_SUMMED,
    OUTPUT_CUT_OFF,
    REDUCED_IN_PLACE,
    SHARES_AVERAGED,
    SUMMED_BOTH_WAYS,
    SUMMED_FORWARD,
)
from course.grading.plain import TensorData, plain, type_in_words

SHAPE = (3, 5, 4)
NBYTES = 4 * 3 * 5 * 4
ALIKE, APART = 0, 1  # whether the ranks' numbers are the same


def numbers(seed: int, rank: int) -> Any:
    """A tensor of SHAPE; `rank` 0 for one that all ranks have alike."""
    return random(*SHAPE, seed=100 * seed + rank)


def _probe(learner: Any, case: tuple[int, int], seat: Seat) -> Any:
    """Call it on the result of an exp, beside another branch, and run backward; (input, gradient) alike or apart."""
    import torch

    leaf = numbers(1, case[0] * seat.rank).requires_grad_()
    other = numbers(2, 0).requires_grad_()
    gradient = numbers(3, case[1] * seat.rank)
    branch = other * 2.0  # made before, so backward comes here last, with a gradient that nobody may have changed
    x = leaf.exp()
    given = plain(x)
    y = learner(x)
    output, changed = plain(y), plain(x) != given
    flows = isinstance(y, torch.Tensor) and y.shape == x.shape and y.requires_grad
    if flows:
        (branch + y).backward(gradient)
    return {"output": output, "flows": flows, "gradient": leaf.grad, "other": other.grad, "changed": changed}


COPY, REDUCE = (ALIKE, APART), (APART, ALIKE)


def _run(bench: Bench, case: tuple[int, int], n: int) -> Result | Finding:
    try:
        return bench.run(_probe, case, n=n)
    except Trouble as trouble:
        if mistake := stopped(trouble):
            return Finding(trouble.got, "", "", mistake)
        raise


def _total(seed: int, n: int, scale: float = 1.0) -> Any:
    return sum(numbers(seed, rank) for rank in range(n)) * scale


def _inputs(n: int) -> Any:
    """The sum of the ranks' inputs."""
    return sum(numbers(1, rank).exp() for rank in range(n))


Wants = Callable[[int, int], Any]  # what rank r of n should have
Guesses = Sequence[tuple[Mistake, Wants]]


def _compared(bench: Bench, case: tuple[int, int], what: str, want: Wants, guesses: Guesses) -> Finding | None:
    for n in SIZES:
        result = _run(bench, case, n)
        if isinstance(result, Finding):
            return result
        for rank, value in enumerate(result.values):
            got, wanted = value[what], want(rank, n)
            said = f"{ranks(n)}, the {what} on rank {rank} is "
            if type(got) is not TensorData or got.shape != SHAPE:
                return Finding(
                    said + type_in_words(got), f"a tensor of shape {SHAPE}", "", _nothing(result, value, what)
                )
            if not close(got.numbers, flat(wanted), 1e-5):
                mistake = recognised(result, what, guesses) or (REDUCED_IN_PLACE if value["changed"] else None)
                return Finding(said + first_wrong(got.numbers, flat(wanted)), "", "", mistake)
    return None


def _nothing(result: Result, value: Any, what: str) -> Mistake | None:
    """The mistake behind no tensor at all."""
    if what == "output":
        return lazy(value[what]) or (ALL_REDUCE_RETURNED if value[what] is None and result.calls(0) else None)
    return ALL_REDUCE_RETURNED if value["flows"] and result.calls(0) else OUTPUT_CUT_OFF


def _copied(bench: Bench) -> Finding | None:
    guesses: Guesses = ((SUMMED_FORWARD, lambda r, n: n * numbers(1, 0).exp()),)
    return _compared(bench, COPY, "output", lambda r, n: numbers(1, 0).exp(), guesses)


def _copy_backward(bench: Bench) -> Finding | None:
    slope = numbers(1, 0).exp()
    guesses: Guesses = (
        (NO_BACKWARD_SUM, lambda r, n: numbers(3, r) * slope),
        (SHARES_AVERAGED, lambda r, n: _total(3, n, 1 / n) * slope),
    )
    return _compared(bench, COPY, "gradient", lambda r, n: _total(3, n) * slope, guesses)


def _reduced(bench: Bench) -> Finding | None:
    guesses: Guesses = (
        (NOT_SUMMED, lambda r, n: numbers(1, r).exp()),
        (SHARES_AVERAGED, lambda r, n: _inputs(n) / n),
    )
    return _compared(bench, REDUCE, "output", lambda r, n: _inputs(n), guesses)


def _reduce_backward(bench: Bench) -> Finding | None:
    guesses: Guesses = (
        (SUMMED_BOTH_WAYS, lambda r, n: n * numbers(3, 0) * numbers(1, r).exp()),
        (SHARES_AVERAGED, lambda r, n: numbers(3, 0) * numbers(1, r).exp() / n),
    )
    return _compared(bench, REDUCE, "gradient", lambda r, n: numbers(3, 0) * numbers(1, r).exp(), guesses)


def _alone(bench: Bench, case: tuple[int, int]) -> Finding | None:
    """Whether the input, and the gradient of the other branch, are left as they are."""
    for n in SIZES:
        for rank, value in enumerate(bench.run(_probe, case, n=n).values):
            if value["changed"]:
                return Finding(f"{ranks(n)}, `x` was changed on rank {rank}", "", "", REDUCED_IN_PLACE)
            want = flat(2 * numbers(3, case[1] * rank))
            if value["flows"] and not close(value["other"].numbers, want, 1e-5):
                got = f"{ranks(n)}, on rank {rank} the gradient of what was added to the result is changed"
                return Finding(got, "", "", REDUCED_IN_PLACE)
    return None


def _copy_alone(bench: Bench) -> Finding | None:
    return _alone(bench, COPY)


def _reduce_alone(bench: Bench) -> Finding | None:
    return _alone(bench, REDUCE)


def _copy_bytes(bench: Bench) -> Finding | None:
    return next((f for n in SIZES if (f := overspent(bench.run(_probe, COPY, n=n), NBYTES))), None)


def _reduce_bytes(bench: Bench) -> Finding | None:
    return next((f for n in SIZES if (f := overspent(bench.run(_probe, REDUCE, n=n), NBYTES))), None)


COPIES, SUMS = "forward gives x as it is", "forward gives the sum over ranks"
BACKWARD_SUM, BACKWARD_COPY = "backward gives the sum of the gradients", "backward gives the gradient as it is"

CHECKS = {
    "copy_to_ranks": (
        Check(COPIES, 1, _copied, "the numbers of `x`"),
        Check(BACKWARD_SUM, 4, _copy_backward, "the sum over ranks of the incoming gradients", needs=COPIES),
        Check("nothing else is changed", 1, _copy_alone, "`x` and the incoming gradient as they were", needs=COPIES),
        Check("one all-reduce travels", 1, _copy_bytes, "an all-reduce's bytes in backward", needs=BACKWARD_SUM),
    ),
    "reduce_from_ranks": (
        Check(SUMS, 2, _reduced, "the sum over ranks of `x`, on each of them"),
        Check(BACKWARD_COPY, 3, _reduce_backward, "the incoming gradient", needs=SUMS),
        Check("nothing else is changed", 1, _reduce_alone, "`x` and the incoming gradient as they were", needs=SUMS),
        Check("one all-reduce travels", 1, _reduce_bytes, "an all-reduce's bytes in forward", needs=BACKWARD_COPY),
    ),
}
