"""Checks of `activation_bytes`: what the layers of a GPT hold for backward, in each of the ways to hold less.

The terms are those of Korthikanti et al. 2022, section 4.1: 34 + 5·heads·sequence / width bytes for each of a token's
`width` channels in 16 bits, with dropout and stored weights.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from course.grading.bench import Bench, Seat
from course.grading.check import Check, Finding
from course.grading.checks.cost import outcome
from course.grading.checks.counting import Guess, compared, refused
from course.grading.mistakes import lesson_04_counts as known


@dataclass(frozen=True, slots=True)
class Case:
    """The arguments of one call."""

    layers: int
    width: int
    heads: int
    sequence: int
    microbatch: int
    itemsize: int = 2
    attention: str = "fused"
    dropout: bool = False
    recompute: bool = False

    @property
    def named(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    def __str__(self) -> str:
        return f"activation_bytes({', '.join(f'{name}={value!r}' for name, value in self.named.items())})"


def _random(number: int, **settings: Any) -> tuple[Case, ...]:
    source = random.Random("layers")
    found = []
    for _ in range(number):
        heads = source.randint(1, 40)
        sizes = (source.randint(1, 90), heads * source.choice((16, 48, 64)), heads, source.randint(1, 3000))
        found.append(Case(*sizes, source.randint(2, 9), source.choice((2, 4)), **settings))
    return tuple(found)


_GPT_3 = Case(96, 12288, 96, 2048, 1)
_OURS = Case(4, 128, 4, 64, 8, itemsize=4)
FUSED = (_GPT_3, _OURS, *_random(6))
STORED = tuple(replace(case, attention="stored") for case in FUSED)
DROPOUT = tuple(replace(case, dropout=True) for case in (*FUSED, *STORED))
RECOMPUTE = tuple(replace(case, recompute=True) for case in (*FUSED[:5], *STORED[:5], *DROPOUT[:4], *DROPOUT[-4:]))
IMPOSSIBLE = (
    replace(_OURS, attention="flash"),
    replace(_OURS, layers=0),
    replace(_OURS, sequence=-1),
    replace(_OURS, microbatch=0),
    replace(_OURS, itemsize=0),
)


@dataclass(frozen=True, slots=True)
class Terms:
    """What one layer keeps, in numbers of `itemsize` bytes (`numbers`, `weights`, `dropped`) and in mask elements."""

    kept: float  # the input
    numbers: float  # input and all else that is `width` wide, or four times
    weights: float
    dropped: float
    masks: float
    weight_masks: float


def terms(case: Case) -> Terms:
    tokens = case.microbatch * case.sequence
    weights = case.heads * tokens * case.sequence * (case.attention == "stored")
    drop = int(case.dropout)
    channels = tokens * case.width
    return Terms(channels, 16 * channels, weights, drop * weights, 2 * drop * channels, drop * weights)


def whole(case: Case, t: Terms | None = None, mask: float = 1) -> float:
    """Bytes of one layer; of other terms, or with masks of another size, for a guess."""
    t = t or terms(case)
    return case.itemsize * (t.numbers + t.weights + t.dropped) + mask * (t.masks + t.weight_masks)


def total(case: Case, layer: float | None = None) -> float:
    """Bytes of all layers, of which each holds `layer` when it holds everything."""
    layer = whole(case) if layer is None else layer
    if not case.recompute:
        return case.layers * layer
    kept = case.itemsize * terms(case).kept
    return case.layers * kept + layer - kept


# --- what known mistakes give -----------------------------------------------------------------------------------------


def _with(case: Case, **changes: float) -> float:
    """All layers, where some of a layer's terms are others."""
    return total(case, whole(case, replace(terms(case), **changes)))


def _weights_times(case: Case, factor: float) -> float:
    t = terms(case)
    return _with(case, weights=factor * t.weights, dropped=factor * t.dropped, weight_masks=factor * t.weight_masks)


def _stored(case: Case) -> Case:
    return replace(case, attention="stored")


def _inputs(case: Case) -> float:
    return case.layers * case.itemsize * terms(case).kept


GUESSES: tuple[Guess, ...] = (
    (known.STASH_ONE_LAYER, lambda case: total(replace(case, layers=1))),
    (known.STASH_ONE_SEQUENCE, lambda case: total(replace(case, microbatch=1))),
    (known.STASH_ITEMSIZE_FIXED, lambda case: total(replace(case, itemsize=2))),
    (known.STASH_ELEMENTS, lambda case: total(replace(case, itemsize=1))),
    (known.STASH_DROPOUT_ALWAYS, lambda case: total(replace(case, dropout=True))),
    (known.STASH_DROPOUT_ALWAYS, lambda case: _with(case, masks=2 * terms(case).kept)),
    (known.STASH_WEIGHTS_LINEAR, lambda case: _weights_times(case, 1 / case.sequence)),
    (known.STASH_WEIGHTS_ACROSS, lambda case: _weights_times(case, case.microbatch)),
    (known.STASH_WEIGHTS_ONE_HEAD, lambda case: _weights_times(case, 1 / case.heads)),
    (known.STASH_WEIGHTS_ALWAYS, lambda case: total(_stored(case))),
    (known.STASH_WEIGHTS_NEVER, lambda case: total(replace(case, attention="fused"))),
    (known.STASH_TRIANGLE, lambda case: _weights_times(case, 1 / 2)),
    (known.STASH_TRIANGLE, lambda case: _weights_times(case, (case.sequence + 1) / 2 / case.sequence)),
    (known.STASH_MASKS_WIDE, lambda case: total(case, whole(case, mask=case.itemsize))),
    (known.STASH_MASKS_FORGOTTEN, lambda case: total(replace(case, dropout=False))),
    (known.STASH_MASKS_FORGOTTEN, lambda case: _with(case, masks=0)),
    (known.STASH_MASKS_FORGOTTEN, lambda case: _with(case, masks=0, weight_masks=0)),
    (known.STASH_WEIGHTS_NOT_DROPPED, lambda case: _with(case, dropped=0, weight_masks=0)),
    (known.STASH_WEIGHTS_NOT_DROPPED, lambda case: _with(case, dropped=0)),
    (known.STASH_WEIGHTS_NOT_DROPPED, lambda case: _with(case, weight_masks=0)),
    (known.STASH_RECOMPUTE_IGNORED, lambda case: total(replace(case, recompute=False))),
    (known.STASH_RECOMPUTE_FREE, _inputs),
    (known.STASH_INPUT_TWICE, lambda case: _inputs(case) + whole(case)),
)

# --- checks -----------------------------------------------------------------------------------------------------------


def _probe(learner: Any, cases: tuple[Case, ...], seat: Seat) -> Any:
    return [learner(**case.named) for case in cases]


def _probe_defaults(learner: Any, cases: tuple[Case, ...], seat: Seat) -> Any:
    sizes = ("layers", "width", "heads", "sequence", "microbatch")
    return [learner(**{name: getattr(case, name) for name in sizes}) for case in cases]


def _probe_refusals(learner: Any, cases: tuple[Case, ...], seat: Seat) -> Any:
    return [outcome(lambda case=case: learner(**case.named)) for case in cases]  # type: ignore[misc]


def _counted(bench: Bench, cases: Sequence[Case]) -> Finding | None:
    advice = "Count one token of one layer by hand, term by term."
    return compared(bench, _probe, cases, want=total, shown=str, guesses=GUESSES, advice=advice)


def _fused(bench: Bench) -> Finding | None:
    if finding := _counted(bench, FUSED):
        return finding
    advice = "Give the last four arguments the values that the statement names."
    shown = "with its five sizes alone, activation_bytes"
    return compared(bench, _probe_defaults, (_GPT_3,), want=total, shown=lambda case: shown, advice=advice)


def _refuses(bench: Bench) -> Finding | None:
    return refused(bench, _probe_refusals, IMPOSSIBLE, str)


_FUSED = "fused attention, no dropout"

CHECKS = {
    "activation_bytes": (
        Check(_FUSED, 2, _fused, "the bytes of all layers"),
        Check("stored attention weights", 2, lambda bench: _counted(bench, STORED), "the same", needs=_FUSED),
        Check("dropout", 1, lambda bench: _counted(bench, DROPOUT), "the same", needs=_FUSED),
        Check("recomputing", 1, lambda bench: _counted(bench, RECOMPUTE), "the fullest moment", needs=_FUSED),
        Check("the impossible is refused", 1, _refuses, "a ValueError", needs=_FUSED),
    )
}
