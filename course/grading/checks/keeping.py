"""Checks of `training_bytes`: small modules, shared and frozen parameters, and a large one without memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from course.grading.bench import Bench, Seat
from course.grading.check import Check, Finding
from course.grading.checks.cost import outcome
from course.grading.checks.counting import Guess, compared, refused
from course.grading.mistakes import lesson_04_counts as known

STATES = {"sgd": 0, "momentum": 1, "adam": 2}
PRECISIONS = ("float32", "mixed")
KINDS = tuple((optimizer, precision) for precision in PRECISIONS for optimizer in STATES)


# --- the modules ------------------------------------------------------------------------------------------------------


def small() -> Any:
    from torch import nn

    return nn.Sequential(nn.Linear(7, 11), nn.BatchNorm1d(11), nn.ReLU(), nn.Linear(11, 3, bias=False))


def small_in_bfloat16() -> Any:
    import torch

    return small().to(torch.bfloat16)


def small_gpt() -> Any:
    from course.gpt.model import GPT
    from course.spec import ModelSpec

    return GPT(ModelSpec(vocab=31, context=5, layers=2, heads=2, width=8))


def one_layer_twice() -> Any:
    from torch import nn

    layer = nn.Linear(5, 5)
    return nn.Sequential(layer, nn.ReLU(), layer, nn.ReLU(), nn.Linear(5, 2))


def frozen_tables() -> Any:
    gpt = small_gpt()
    gpt.positions.requires_grad_(False)
    gpt.blocks[0].requires_grad_(False)
    return gpt


def all_frozen() -> Any:
    return small().requires_grad_(False)


def large() -> Any:
    """The tensors of GPT-3 (Brown et al. 2020, table 2.1), as shapes alone: nothing draws numbers for them."""
    import torch
    from torch import nn

    h, ffn = 12288, 4 * 12288
    layer = ((3 * h, h), (3 * h,), (h, h), (h,), (ffn, h), (ffn,), (h, ffn), (h,), (h,), (h,), (h,), (h,))
    shapes = ((50257, h), (2048, h), (h,), (h,), *(layer * 96))
    return nn.ParameterList(torch.empty(shape, device="meta") for shape in shapes)


MODULES: dict[str, Callable[[], Any]] = {
    "small": small,
    "bfloat16": small_in_bfloat16,
    "gpt": small_gpt,
    "twice": one_layer_twice,
    "part": frozen_tables,
    "frozen": all_frozen,
    "large": large,
}
WORDS = {
    "small": "a small module",
    "bfloat16": "a small module in bfloat16",
    "gpt": "a small GPT with a shared token table",
    "twice": "a module that uses one layer twice",
    "part": "a small GPT with frozen parts",
    "frozen": "a module that is frozen altogether",
    "large": "GPT-3 on the meta device",
}
Case = tuple[str, str, str]  # module, optimizer, precision

PLAIN: tuple[Case, ...] = (*(("small", *kind) for kind in KINDS), ("bfloat16", "adam", "float32"))
SHARED: tuple[Case, ...] = tuple((name, *kind) for name in ("gpt", "twice") for kind in KINDS)
FROZEN: tuple[Case, ...] = tuple((name, *kind) for name in ("part", "frozen") for kind in KINDS)
LARGE: tuple[Case, ...] = (("large", "adam", "mixed"), ("large", "sgd", "float32"))
IMPOSSIBLE: tuple[Case, ...] = (("small", "adamw2", "mixed"), ("small", "adam", "float8"), ("small", "", "float32"))


# --- what is counted --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of a module that are trained and frozen, once each; the same, once for each place; numbers in buffers.

    own: bytes of a number in the dtype that the parameters have.
    """

    trained: int
    frozen: int
    trained_places: int
    frozen_places: int
    by_module: int
    buffers: int
    own: int


@cache
def counts(name: str) -> Counts:
    module = MODULES[name]()
    places = [p for _, p in module.named_parameters(remove_duplicate=False)]
    by_module = [p for inner in module.modules() for p in inner.parameters(recurse=False)]
    return Counts(
        trained=_numbers(module.parameters(), True),
        frozen=_numbers(module.parameters(), False),
        trained_places=_numbers(places, True),
        frozen_places=_numbers(places, False),
        by_module=_numbers(by_module, True),
        buffers=sum(b.numel() for b in module.buffers()),
        own=next(module.parameters()).element_size(),
    )


def _numbers(parameters: Iterable[Any], trained: bool) -> int:
    return sum(p.numel() for p in parameters if p.requires_grad == trained)


def _bytes(trained: float, frozen: float, optimizer: str, precision: str) -> float:
    size, copy = (4, 0) if precision == "float32" else (2, 4)
    return trained * (2 * size + copy + 4 * STATES[optimizer]) + frozen * size


def want(case: Case) -> float:
    held = counts(case[0])
    return _bytes(held.trained, held.frozen, *case[1:])


def _a_number(weight: int, gradient: int, copy: int, state: int) -> Callable[[Case], float]:
    """Bytes where, of each number, so many are kept in mixed precision; 4, 4, 0 and 4 in float32."""

    def guess(case: Case) -> float:
        held, k = counts(case[0]), STATES[case[1]]
        if case[2] == "float32":
            return want(case)
        return held.trained * (weight + gradient + copy + state * k) + held.frozen * weight

    return guess


def _without(what: str) -> Callable[[Case], float]:
    def guess(case: Case) -> float:
        held, size = counts(case[0]), 4 if case[2] == "float32" else 2
        if what == "all but weights":
            return size * (held.trained + held.frozen)
        return want(case) - held.trained * (size if what == "gradient" else 4 * STATES[case[1]])

    return guess


def _states(numbers: dict[str, int]) -> Callable[[Case], float]:
    return lambda case: want(case) + 4 * counts(case[0]).trained * (numbers[case[1]] - STATES[case[1]])


def _elements(case: Case) -> float:
    return counts(case[0]).trained * (2 + STATES[case[1]] + (case[2] == "mixed"))


def _own_dtype(case: Case) -> float:
    held, mixed = counts(case[0]), case[2] == "mixed"
    return held.trained * (2 * held.own + 4 * mixed + 4 * STATES[case[1]])


def _as_float32(case: Case) -> float:
    return want((case[0], case[1], "float32"))


_FORMULAS: tuple[Guess, ...] = (
    (known.BYTES_WEIGHTS_ONLY, _without("all but weights")),
    (known.BYTES_NO_GRADIENT, _without("gradient")),
    (known.BYTES_NO_STATES, _without("states")),
    (known.BYTES_ONE_MOMENT, _states({"sgd": 0, "momentum": 1, "adam": 1})),
    (known.BYTES_OPTIMIZER_IGNORED, _states({"sgd": 2, "momentum": 2, "adam": 2})),
    (known.BYTES_NO_COPY, _a_number(2, 2, 0, 4)),
    (known.BYTES_GRADIENT_FLOAT32, _a_number(2, 4, 4, 4)),
    (known.BYTES_HALF_STATES, _a_number(2, 2, 4, 2)),
    (known.BYTES_HALF_STATES, _a_number(2, 2, 0, 2)),
    (known.BYTES_HALF_STATES, _a_number(2, 2, 2, 2)),
    (known.BYTES_OWN_DTYPE, _own_dtype),
    (known.BYTES_ELEMENTS, _elements),
    (known.BYTES_COPY_ALWAYS, lambda case: want(case) + 4 * counts(case[0]).trained * (case[2] == "float32")),
    (known.BYTES_BUFFERS, lambda case: want(case) + 4 * counts(case[0]).buffers),
    (known.BYTES_BUFFERS, lambda case: _bytes(counts(case[0]).trained + counts(case[0]).buffers, 0, *case[1:])),
    (known.BYTES_BUFFERS, lambda case: want(case) + (4 if case[2] == "float32" else 2) * counts(case[0]).buffers),
)


def _twice(case: Case) -> float:
    return _bytes(counts(case[0]).trained_places, counts(case[0]).frozen_places, *case[1:])


_SHARED: tuple[Guess, ...] = (
    (known.BYTES_SHARED_TWICE, _twice),
    (known.BYTES_SHARED_TWICE, lambda case: _bytes(counts(case[0]).by_module, 0, *case[1:])),
)


def _frozen_keeps(gradient: int, copy: int, states: int) -> Callable[[Case], float]:
    """Bytes where a frozen number also has these: 1 for yes."""

    def guess(case: Case) -> float:
        mixed = case[2] == "mixed"
        more = gradient * (2 if mixed else 4) + copy * 4 * mixed + states * 4 * STATES[case[1]]
        return want(case) + more * counts(case[0]).frozen

    return guess


_FROZEN: tuple[Guess, ...] = (
    (known.BYTES_PRECISION_IGNORED, _as_float32),  # trained numbers take as many bytes in both
    (known.BYTES_FROZEN_TRAINED, _frozen_keeps(1, 1, 1)),
    (known.BYTES_FROZEN_COPIED, _frozen_keeps(0, 1, 0)),
    (known.BYTES_FROZEN_STATES, _frozen_keeps(0, 0, 1)),
    (known.BYTES_FROZEN_STATES, _frozen_keeps(0, 1, 1)),
    (known.BYTES_FROZEN_GRADIENT, _frozen_keeps(1, 0, 0)),
    (known.BYTES_FROZEN_GRADIENT, _frozen_keeps(1, 1, 0)),
    (known.BYTES_FROZEN_LEFT_OUT, lambda case: _bytes(counts(case[0]).trained, 0, *case[1:])),
)


# --- checks -----------------------------------------------------------------------------------------------------------


def _state_of(module: Any) -> list[Any]:
    return [(name, p.dtype, p.device.type, p.requires_grad, p.grad is None) for name, p in module.named_parameters()]


def _probe(learner: Any, cases: tuple[Case, ...], seat: Seat) -> Any:
    return [_asked(learner, case)[0] for case in cases]


def _asked(learner: Any, case: Case) -> tuple[Any, bool]:
    """Runs in the rank: what came back, and whether the module is another than before."""
    module = MODULES[case[0]]()
    before = _state_of(module)
    returned = learner(module, optimizer=case[1], precision=case[2])
    return returned, _state_of(module) != before


def _probe_changes(learner: Any, cases: tuple[Case, ...], seat: Seat) -> Any:
    return [_asked(learner, case)[1] for case in cases]


def _probe_refusals(learner: Any, cases: tuple[Case, ...], seat: Seat) -> Any:
    return [outcome(lambda case=case: _asked(learner, case)[0]) for case in cases]  # type: ignore[misc]


def _shown(case: Case) -> str:
    return f'for {WORDS[case[0]]}, optimizer="{case[1]}" and precision="{case[2]}", it'


def _counted(bench: Bench, cases: Sequence[Case], guesses: Sequence[Guess], advice: str) -> Finding | None:
    return compared(bench, _probe, cases, want=want, shown=_shown, guesses=guesses, advice=advice)


def _plain(bench: Bench) -> Finding | None:
    advice = "Write down what is kept of one trained number, and how many bytes each of it takes."
    if finding := _counted(bench, PLAIN, _FORMULAS, advice):
        return finding
    changed = bench.run(_probe_changes, PLAIN, n=1).values[0]
    if any(changed):
        got = f"{_shown(PLAIN[changed.index(True)])} changed the module that was handed in"
        return Finding(got, "the module as it was", "", known.BYTES_MODULE_CHANGED)
    return None


def _shared(bench: Bench) -> Finding | None:
    return _counted(bench, SHARED, (*_SHARED, *_FORMULAS), "Which parameters are one and the same tensor?")


def _frozen(bench: Bench) -> Finding | None:
    return _counted(bench, FROZEN, _FROZEN, "Write down what is kept of one frozen number.")


def _large(bench: Bench) -> Finding | None:
    return _counted(bench, LARGE, (), "Count with `numel`, which needs no memory.")


def _refuses(bench: Bench) -> Finding | None:
    return refused(bench, _probe_refusals, IMPOSSIBLE, _shown)


_SMALL = "a small module, each optimizer and precision"

CHECKS = {
    "training_bytes": (
        Check(_SMALL, 4, _plain, "the bytes of weights, gradients, copies and states"),
        Check("a shared parameter counts once", 2, _shared, "the same", needs=_SMALL),
        Check("frozen parameters", 2, _frozen, "the bytes of their weights alone", needs=_SMALL),
        Check("175 billion parameters on the meta device", 1, _large, "the same, without their memory", needs=_SMALL),
        Check("the impossible is refused", 1, _refuses, "a ValueError", needs=_SMALL),
    )
}
