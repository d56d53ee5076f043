"""Checks of `mfu`: what a log and a shape say of utilisation, for PaLM's run and for random ones."""

from __future__ import annotations

import random
from functools import partial

from course.grading.checks.reckoning import Case, Group, Guesses, Reckoning, checks
from course.grading.mistakes import lesson_10 as known

NAMES = ("tokens_per_second", "gpus", "peak_flops", "parameters", "layers", "heads", "head_width", "sequence")

# PaLM 540B as its paper has it (appendix B: 46.2 %); others made up, utilisation 0.1 to 0.6.
RUNS: tuple[Case, ...] = (
    (238300.0, 6144, 275e12, 540.35e9, 118, 48, 256, 2048),
    (140000.0, 1024, 312e12, 175e9, 96, 96, 128, 2048),
    (9000.0, 8, 989e12, 8.03e9, 32, 32, 128, 65536),
    (200, 1, 10**12, 3 * 10**8, 12, 4, 64, 1000),
)
IMPOSSIBLE: tuple[Case, ...] = (
    (9000.0, 0, 989e12, 8e9, 32, 32, 128, 8192),
    (9000.0, -8, 989e12, 8e9, 32, 32, 128, 8192),
    (9000.0, 8, 0.0, 8e9, 32, 32, 128, 8192),
    (-9000.0, 8, 989e12, 8e9, 32, 32, 128, 8192),
    (9000.0, 8, 989e12, -8e9, 32, 32, 128, 8192),
    (500000.0, 8, 989e12, 8e9, 32, 32, 128, 8192),  # more than three times the peak
    (9000.0, 8, 989.0, 8e9, 32, 32, 128, 8192),  # a peak in TFLOP/s
)


def utilisation(
    tokens_per_second: float,
    gpus: float,
    peak_flops: float,
    parameters: float,
    layers: float,
    heads: float,
    head_width: float,
    sequence: float,
    *,
    each: float = 6,
    scores: float = 12,
) -> float:
    """The oracle, equation of PaLM's appendix B. Other values of `each` and `scores` are those of mistakes."""
    a_token = each * parameters + scores * layers * heads * head_width * sequence
    return tokens_per_second * a_token / (gpus * peak_flops)


def _random() -> tuple[Case, ...]:
    source = random.Random("utilisation")
    cases: list[Case] = []
    for _ in range(20):
        width = source.choice((32, 64, 128, 256))
        shape = (source.randint(2, 128), source.randint(1, 128), width, source.choice((512, 2048, 8192, 131072)))
        parameters = 12.0 * shape[0] * (shape[1] * width) ** 2 * source.uniform(0.7, 1.6)
        chips = (source.randint(2, 20000), source.choice((125e12, 312e12, 989e12)))
        at_peak = 1 / utilisation(1.0, *chips, parameters, *shape)
        cases.append((at_peak * source.uniform(0.1, 0.6), *chips, parameters, *shape))
    return tuple(cases)


_GUESSES: Guesses = (
    (known.MFU_HARDWARE, partial(utilisation, each=8, scores=16)),
    (known.MFU_HARDWARE, partial(utilisation, each=8)),
    (known.MFU_HARDWARE, partial(utilisation, each=8, scores=0)),
    (known.MFU_RECOMPUTATION_TAKEN_OFF, lambda *case: 0.75 * utilisation(*case)),
    (known.MFU_RECOMPUTATION_TAKEN_OFF, partial(utilisation, each=4.5)),
    (known.MFU_NO_ATTENTION, partial(utilisation, scores=0)),
    (known.MFU_HALF_ATTENTION, partial(utilisation, scores=6)),
    (known.MFU_FORWARD_ONLY, partial(utilisation, each=2, scores=4)),
    (known.MFU_FORWARD_ONLY, partial(utilisation, each=2)),
    (known.MFU_FORWARD_ONLY, partial(utilisation, each=2, scores=0)),
    (known.MFU_BACKWARD_AGAIN, partial(utilisation, each=18, scores=36)),
    (known.MFU_SEQUENCES, lambda *case: utilisation(*case) * case[7]),
    (known.MFU_UNITS, lambda *case: utilisation(*case) / 1e12),
    (known.MFU_UNITS, lambda *case: utilisation(*case) * 1e12),
    (known.MFU_ONE_GPU, lambda *case: utilisation(*case) * case[1]),
    (known.MFU_ALL_GPUS_TWICE, lambda *case: utilisation(*case) * case[1] ** 2),
    (known.MFU_PERCENT, lambda *case: 100 * utilisation(*case)),
    (known.MFU_UPSIDE_DOWN, lambda *case: 1 / utilisation(*case)),
    (known.MFU_FLOPS, lambda *case: utilisation(*case) * case[1] * case[2]),
    (known.MFU_FLOPS, lambda *case: utilisation(*case) * case[2]),
    (known.MFU_SCORES_WRONG, lambda *case: utilisation(*case, scores=12 / case[5])),
    (known.MFU_SCORES_WRONG, lambda *case: utilisation(*case, scores=12 / case[6])),
    (known.MFU_SCORES_WRONG, lambda *case: utilisation(*case, scores=12 / case[4])),
    (known.MFU_SCORES_WRONG, lambda *case: utilisation(*case, scores=12 * case[7])),
    (known.MFU_SCORES_WRONG, partial(utilisation, scores=72)),
    (known.MFU_SCORES_WRONG, partial(utilisation, scores=1)),
)

_HAND, _EXPECTED = "PaLM's run and three others", "model FLOP/s over the peak of all GPUs"
_ADVICE = (
    "Go from the log to FLOP/s in units: tokens a second, times FLOPs a token. What could all GPUs do in a second?"
)

CHECKS = {
    "mfu": checks(
        Reckoning("mfu", NAMES, utilisation),
        (
            Group(_HAND, 3, RUNS, _GUESSES, _EXPECTED, _ADVICE),
            Group("twenty random runs", 2, _random(), _GUESSES, "the same", _ADVICE, needs=_HAND),
        ),
        IMPOSSIBLE,
        _HAND,
    )
}
