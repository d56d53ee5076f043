"""Checks of `recompute_forward`: output, gradients, dropout, how often the function is called, and what is held.

The oracle is the same code with a learner who calls the function and no more.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from course.grading.bench import Bench, Seat, Trouble
from course.grading.check import Check, Finding
from course.grading.checks.against_one import first_wrong
from course.grading.checks.hello import lazy
from course.grading.checks.messages import close
from course.grading.checks.sharding import distinct, random
from course.grading.checks.unaided import CHECKPOINT_CALLED, without_checkpoint
from course.grading.mistakes import Mistake
from course.grading.mistakes import lesson_04 as known
from course.grading.plain import TensorData, plain, type_in_words

ROWS, WIDTH, HIDDEN, VOCAB = 5, 6, 10, 9
TOLERANCE = 1e-5


@dataclass(frozen=True, slots=True)
class Case:
    """What the function does, and how often it is used one after another.

    kind: "one" input, "two" of which the second needs no gradient, or "tokens" and an input.
    """

    kind: str = "one"
    dropout: float = 0.0
    times: int = 1
    ones: bool = False  # start backward with ones: what an answer gives that ignores the gradient that comes in

    def __str__(self) -> str:
        what = {"one": "with one input", "two": "with a second input that needs no gradient", "tokens": "with tokens"}
        drop = f", dropout {self.dropout}" if self.dropout else ""
        return f"{what[self.kind]}{drop}" + (f", {self.times} functions in a row" if self.times > 1 else "")


PLAIN = (Case(), Case("two"))
DROPPED = (Case(dropout=0.5), Case("two", dropout=0.3, times=2))
IN_A_ROW = (Case(times=3), Case("tokens"), Case("tokens", times=2))


class Work:
    """A function that counts its calls and knows which of the tensors made in it are still in memory."""

    def __init__(self, case: Case, number: int) -> None:
        from torch import nn

        self.case, self.calls, self.made = case, 0, list[Any]()
        self.module = distinct(nn.ModuleList([nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)]), 0.5 + 0.1 * number)
        self.table = distinct(nn.Embedding(VOCAB, WIDTH))

    def __call__(self, *inputs: Any) -> Any:
        import torch

        self.calls += 1
        x = inputs[0] + self.table(inputs[1]) if self.case.kind == "tokens" else inputs[0]
        h = self._watched(self.module[0](self._watched(x * 1.5)))
        h = self._watched(h.tanh())
        if self.case.dropout:
            h = self._watched(torch.nn.functional.dropout(h, self.case.dropout))
        h = self._watched(h * h.exp())
        if self.case.kind == "two":
            h = self._watched(h * inputs[1])
        return self.module[1](h)

    def _watched(self, t: Any) -> Any:
        from torch.multiprocessing.reductions import StorageWeakRef

        self.made.append(StorageWeakRef(t.untyped_storage()))  # type: ignore[no-untyped-call]
        return t

    @property
    def held(self) -> int:
        """How many of the tensors made inside are in memory."""
        return sum(not reference.expired() for reference in self.made)

    def parameters(self) -> list[Any]:
        return [*self.module.parameters(), *self.table.parameters()]


def _inputs(case: Case) -> tuple[Any, ...]:
    import torch

    x = random(ROWS, WIDTH, seed=80).requires_grad_()
    if case.kind == "tokens":
        return x, torch.tensor([3, 1, 4, 1, 5])
    return (x, random(ROWS, HIDDEN, seed=81)) if case.kind == "two" else (x,)


def _forward(learner: Any, case: Case) -> tuple[list[Work], tuple[Any, ...], Any]:
    """The functions, the inputs, and the output of one function after another."""
    import torch

    works = [Work(case, number) for number in range(case.times)]
    inputs = _inputs(case)
    torch.manual_seed(5)
    output = inputs[0] if case.times == 1 else inputs[0] * 1.0  # so that one gets a leaf, and a row of them does not
    with without_checkpoint():
        for work in works:
            output = learner(work, output, *inputs[1:])
    return works, inputs, output


def _probe_forward(learner: Any, case: Case, seat: Seat) -> Any:
    """Runs in the rank: forward, and what is in memory after it."""
    given = plain(list(_inputs(case)))
    works, inputs, output = _forward(learner, case)
    gc.collect()
    return {
        "output": plain(output),
        "calls": max(work.calls for work in works),
        "held": max(work.held for work in works),
        "changed": plain(list(inputs)) != given,
    }


def _probe(learner: Any, case: Case, seat: Seat) -> Any:
    """Runs in the rank: forward, other random numbers, backward, more random numbers."""
    import torch

    works, inputs, output = _forward(learner, case)
    found, grows = plain(output), output.requires_grad
    torch.rand(7)
    if grows:
        upstream = torch.ones(ROWS, WIDTH) if case.ones else random(ROWS, WIDTH, seed=82)
        torch.autograd.backward(output, upstream)
    return {
        "output": found,
        "grows": grows,
        "calls": max(work.calls for work in works),
        "input gradient": plain(inputs[0].grad),
        "gradients": [plain(p.grad) for work in works for p in work.parameters()],
        "later": plain(torch.rand(3)),
    }


@cache
def wanted(case: Case) -> Any:
    return _probe(lambda function, *inputs: function(*inputs), case, Seat(0, 1, "cpu"))


# --- checks -----------------------------------------------------------------------------------------------------------


_SAID = (
    (CHECKPOINT_CALLED, known.RECOMPUTE_LIBRARY),
    ("can require gradients", known.RECOMPUTE_INTEGERS),
    ("through the graph a second time", known.RECOMPUTE_TWICE_COUNTED),
    ("does not require grad and does not have a grad_fn", known.RECOMPUTE_NOT_RECORDED),
)


def _run(bench: Bench, case: Case, probe: Callable[[Any, Case, Seat], Any] = _probe) -> Any:
    """What the probe sent home, or a Finding where it stopped in a way that has a name."""
    try:
        return bench.run(probe, case, n=1).values[0]
    except Trouble as trouble:
        for words, mistake in _SAID if trouble.kind == "raised" else ():
            if words in trouble.got:
                return Finding(f"{case}: {trouble.got}", "", "", mistake)
        raise


def _is(got: Any, want: Any) -> bool:
    if type(got) is not TensorData or type(want) is not TensorData:
        return got is None and want is None
    return got.shape == want.shape and close(got.numbers, want.numbers, TOLERANCE)


def _output(bench: Bench) -> Finding | None:
    for case in PLAIN:
        value = _run(bench, case, _probe_forward)
        if isinstance(value, Finding):
            return value
        got, want = value["output"], wanted(case)["output"]
        if type(got) is not TensorData or got.shape != want.shape:
            said = f"{case}, it returned {type_in_words(got)}"
            return Finding(said, f"a tensor of shape {want.shape}", "Return what the function gives.", lazy(got))
        if not _is(got, want):
            return Finding(f"{case}, the output is {first_wrong(got.numbers, want.numbers)}", "")
        if value["changed"]:
            return Finding(f"{case}, an input was changed", "inputs as they were", "Only read them.")
    return None


def _held(bench: Bench) -> Finding | None:
    for case in (*PLAIN, *DROPPED):
        value = bench.run(_probe_forward, case, n=1).values[0]
        if value["calls"] != 1:
            got = f"{case}, forward calls the function {value['calls']} times"
            return Finding(got, "one call", "", known.RECOMPUTE_AT_ONCE)
        if value["held"]:
            got = f"{case}, {value['held']} tensors that were made inside are still held after forward"
            return Finding(got, "none", "", known.RECOMPUTE_KEEPS)
    return _held_otherwise(bench)


def _held_otherwise(bench: Bench) -> Finding | None:
    """A finding where gradients come without a second call: then copies of what was made inside were kept."""
    for case in PLAIN:
        try:
            value = bench.run(_probe, case, n=1).values[0]
        except Trouble:  # another check says so
            return None
        if value["calls"] == 1 and type(value["input gradient"]) is TensorData:
            got = f"{case}, backward does not call the function: what it needs was kept in some form"
            return Finding(got, "nothing kept", "", known.RECOMPUTE_KEEPS)
    return None


def _gradients(bench: Bench, cases: Sequence[Case]) -> Finding | None:
    for case in cases:
        value = _run(bench, case)
        if isinstance(value, Finding):
            return value
        want = wanted(case)
        mistake = _gradient_mistake(case, value)
        if not value["grows"]:
            return Finding(f"{case}, the output does not require a gradient", "", "", known.RECOMPUTE_NO_GRAPH)
        if not _is(value["input gradient"], want["input gradient"]):
            said = _said(value["input gradient"], want["input gradient"])
            return Finding(f"{case}, the gradient of the input is {said}", "", "", mistake)
        for got, other in zip(value["gradients"], want["gradients"], strict=True):
            if not _is(got, other):
                return Finding(f"{case}, the gradient of a parameter is {_said(got, other)}", "", "", mistake)
    return None


def _said(got: Any, want: Any) -> str:
    if type(got) is not TensorData or type(want) is not TensorData or got.shape != want.shape:
        return type_in_words(got)
    return first_wrong(got.numbers, want.numbers)


def _gradient_mistake(case: Case, value: Any) -> Mistake | None:
    want, ones = wanted(case), wanted(Case(case.kind, case.dropout, case.times, ones=True))
    found, of_input = value["gradients"], value["input gradient"]
    if of_input is None and all(one is None for one in found):
        return known.RECOMPUTE_NO_GRAPH
    if of_input is None:
        return known.RECOMPUTE_NO_INPUT_GRADIENT
    if all(one is None for one in found):
        return known.RECOMPUTE_NO_PARAMETER_GRADIENT
    if type(of_input) is not TensorData:
        return None
    right = want["input gradient"].numbers
    parameters = all(map(_is, found, want["gradients"]))
    if parameters and len(right) == len(of_input.numbers):
        doubled = close(of_input.numbers, [2 * number for number in right], 1e-4)
        return known.RECOMPUTE_TWICE_COUNTED if doubled else None
    if _is(of_input, ones["input gradient"]) and all(map(_is, found, ones["gradients"])):
        return known.RECOMPUTE_UPSTREAM_IGNORED
    return known.RECOMPUTE_OTHER_MASK if case.dropout else None


def _dropped(bench: Bench) -> Finding | None:
    for case in DROPPED:
        got, want = bench.run(_probe_forward, case, n=1).values[0]["output"], wanted(case)["output"]
        if not _is(got, want):
            said = f"{case}, the output is not what one call gives with the same random numbers"
            return Finding(said, "the output of one call", "Draw no random numbers of your own in forward.")
    if finding := _gradients(bench, DROPPED):
        return finding
    for case in (*DROPPED, *PLAIN):
        if not _is(_run(bench, case)["later"], wanted(case)["later"]):
            got = f"{case}, right, but random numbers drawn after backward are others than without recomputation"
            return Finding(got, "the same numbers", "", known.RECOMPUTE_RANDOM_STATE)
    return None


def _calls(bench: Bench) -> Finding | None:
    for case in (*PLAIN, *DROPPED):
        calls = _run(bench, case)["calls"]
        if calls != 2:
            got = f"{case}, right, but the function is called {calls} times in all"
            mistake = known.RECOMPUTE_CALLED_TOO_OFTEN if calls > 2 else known.RECOMPUTE_KEEPS
            return Finding(got, "twice: once in forward, once in backward", "", mistake)
    return None


OUTPUT, GRADIENTS = "the output of the function", "the gradients of inputs and parameters"
HELD = "nothing inside is held after forward"

CHECKS = {
    "recompute_forward": (
        Check(OUTPUT, 2, _output, "what the function returns"),
        Check(HELD, 4, _held, "one call, and only the output is left", needs=OUTPUT),
        Check(GRADIENTS, 4, partial(_gradients, cases=PLAIN), "as without recomputing", needs=OUTPUT),
        Check("functions in a row, and tokens", 2, partial(_gradients, cases=IN_A_ROW), "the same", needs=GRADIENTS),
        Check("dropout and random numbers", 2, _dropped, "the same masks as in forward", needs=GRADIENTS),
        Check("called once more in backward", 1, _calls, "two calls in all", needs=GRADIENTS),
    )
}
