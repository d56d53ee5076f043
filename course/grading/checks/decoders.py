"""Checks of `count_parameters`: published decoders and random ones, against the planner's count."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from course.grading.bench import Bench, Seat
from course.grading.check import Check, Finding
from course.grading.checks.counting import Guess, compared
from course.grading.mistakes import Mistake
from course.grading.mistakes import lesson_04_counts as known
from course.planner.flops import count_parameters
from course.spec.shape import SHAPES, ModelShape

GPTS = tuple(SHAPES[name] for name in ("gpt-2", "gpt-3-175b", "mt-nlg-530b", "bloom-176b"))
LLAMAS = tuple(SHAPES[name] for name in ("llama-3.1-8b", "llama-3.1-70b", "llama-3.1-405b"))


def _random() -> tuple[ModelShape, ...]:
    """Every kind of MLP, tied or not, grouped or not, with positions or without, in any combination."""
    source = random.Random("decoders")
    found = []
    for number in range(32):
        kv_heads, groups, width = source.randint(1, 8), source.choice((1, 2, 3, 4)), source.choice((16, 24, 64))
        shape = ModelShape(
            name=f"random {number}",
            layers=source.randint(1, 40),
            hidden=kv_heads * groups * width,
            heads=kv_heads * groups,
            kv_heads=kv_heads,
            vocab=source.randint(100, 50000),
            ffn=source.randint(50, 9000),
            ffn_matrices=2 + number % 2,
            tied=number // 2 % 2 == 0,
            positions=source.choice((0, source.randint(1, 5000))),
        )
        found.append(shape)
    return tuple(found)


RANDOM = _random()

# --- what known mistakes count ----------------------------------------------------------------------------------------


def _is_gpt(shape: ModelShape) -> bool:
    return shape.ffn_matrices == 2


def _biases(shape: ModelShape) -> int:
    return shape.layers * (3 * shape.hidden + 2 * shape.kv_hidden + (shape.ffn_matrices - 1) * shape.ffn)


def _norms(shape: ModelShape, last: bool = True) -> int:
    return (2 * shape.layers + last) * shape.hidden


def _less(part: Callable[[ModelShape], float]) -> Callable[[ModelShape], float]:
    return lambda shape: count_parameters(shape) - part(shape)


def _all_heads(shape: ModelShape) -> float:
    missing = shape.hidden - shape.kv_hidden
    return -shape.layers * 2 * missing * (shape.hidden + _is_gpt(shape))


def _four_h(shape: ModelShape) -> float:
    numbers = shape.ffn_matrices * shape.hidden + _is_gpt(shape)
    return shape.layers * (shape.ffn - 4 * shape.hidden) * numbers


def _head(shape: ModelShape) -> int:
    return shape.vocab * shape.hidden


def _embeddings(shape: ModelShape) -> int:
    return (shape.vocab + shape.positions) * shape.hidden + (0 if shape.tied else _head(shape))


def _layers(shape: ModelShape) -> float:
    return count_parameters(shape) - _embeddings(shape) - (2 if _is_gpt(shape) else 1) * shape.hidden


_PARTS: tuple[tuple[Mistake, Callable[[ModelShape], float]], ...] = (  # what each leaves out, or below 0 adds
    (known.COUNT_NOT_GROUPED, _all_heads),
    (known.COUNT_NOT_GROUPED, lambda s: -s.layers * 2 * (s.hidden - s.kv_hidden) * s.hidden),
    (known.COUNT_TWO_MATRICES, lambda s: s.layers * (s.ffn_matrices - 2) * s.hidden * s.ffn),
    (known.COUNT_FOUR_H, _four_h),
    (known.COUNT_TIED_TWICE, lambda s: -_head(s) if s.tied else 0),
    (known.COUNT_NO_HEAD, lambda s: 0 if s.tied else _head(s)),
    (known.COUNT_NO_POSITIONS, lambda s: s.positions * s.hidden),
    (known.COUNT_NO_BIASES, lambda s: _biases(s) if _is_gpt(s) else 0),
    (known.COUNT_NO_BIASES, lambda s: _biases(s) + _norms(s) if _is_gpt(s) else 0),
    (known.COUNT_BIASES_ALWAYS, lambda s: 0 if _is_gpt(s) else -_biases(s)),
    (known.COUNT_BIASES_ALWAYS, lambda s: 0 if _is_gpt(s) else -_biases(s) - _norms(s)),
    (known.COUNT_NO_NORMS, lambda s: (2 if _is_gpt(s) else 1) * _norms(s)),
    (known.COUNT_NO_LAST_NORM, lambda s: (2 if _is_gpt(s) else 1) * s.hidden),
    (known.COUNT_NORM_HALF, lambda s: _norms(s) if _is_gpt(s) else 0),
    (known.COUNT_NORM_DOUBLE, lambda s: 0 if _is_gpt(s) else -_norms(s)),
    (known.COUNT_ONE_LAYER, lambda s: _layers(s) * (1 - 1 / s.layers)),
)

GUESSES: tuple[Guess, ...] = (
    *((mistake, _less(part)) for mistake, part in _PARTS),
    (known.COUNT_RULE_OF_THUMB, lambda s: 12 * s.layers * s.hidden**2),
    (known.COUNT_RULE_OF_THUMB, lambda s: 12 * s.layers * s.hidden**2 + _head(s)),
    (known.COUNT_RULE_OF_THUMB, lambda s: 12 * s.layers * s.hidden**2 + _embeddings(s)),
)

# --- checks -----------------------------------------------------------------------------------------------------------


def _probe(learner: Any, cases: tuple[ModelShape, ...], seat: Seat) -> Any:
    return [learner(shape) for shape in cases]


def _shown(shape: ModelShape) -> str:
    if shape.name in SHAPES:
        return f'count_parameters(SHAPES["{shape.name}"])'
    sizes = ("layers", "hidden", "heads", "kv_heads", "ffn", "ffn_matrices", "vocab", "positions", "tied")
    return f"for {', '.join(f'{name}={getattr(shape, name)}' for name in sizes)} it"


def _counted(bench: Bench, shapes: Sequence[ModelShape]) -> Finding | None:
    advice = "Count one layer by hand, then what is there once."
    return compared(bench, _probe, shapes, want=count_parameters, shown=_shown, guesses=GUESSES, advice=advice)


CHECKS = {
    "count_parameters": (
        Check("GPT-2, GPT-3 and two larger ones", 3, lambda bench: _counted(bench, GPTS), "the exact count"),
        Check("three Llamas", 2, lambda bench: _counted(bench, LLAMAS), "the exact count"),
        Check("32 random decoders", 2, lambda bench: _counted(bench, RANDOM), "the exact count"),
    )
}
