"""Whether the fields of a published run are what they should be: numbers, whole numbers, words. Each fault is named.

A field that is missing or null is no fault here: `rows` says what it cannot do without.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from course.errors import UsageError

PARTS = ("model", "cluster", "layout", "measured")
EXTRAS = ("derived", "source")
"""Parts that may be null."""

WHOLE = {
    "model": ("layers", "hidden", "heads", "kv_heads", "ffn", "ffn_matrices", "vocab", "seq", "experts",
              "active_experts"),
    "cluster": ("n_gpus", "gpus_per_node"),
    "layout": ("tp", "pp", "dp", "cp", "interleave_v", "micro_batch", "global_batch"),
}  # fmt: skip
"""Fields that are whole numbers of at least 1, by part."""

NUMBERS = {
    "model": ("params_b",),
    "measured": (
        "step_time_s", "tokens_per_s_per_gpu", "samples_per_s_per_gpu", "tflops_per_gpu", "mfu_pct", "peak_memory_gib",
        "peak_memory_gb", "peak_memory_gb_max_allocated", "params_grads_optimizer_gib", "activations_gib",
        "activations_pct_of_tp_baseline", "model_states_gb",
    ),
    "derived": ("step_time_s",),
}  # fmt: skip
"""Fields that are numbers above 0."""

WORDS = {
    "model": ("name", "pos_emb"),
    "cluster": ("gpu_id", "inter_link"),
    "layout": ("framework", "precision", "schedule", "recompute"),
}
"""Fields that are text."""


def check_fields(run: Mapping[str, Any]) -> None:
    """Raises UsageError that names the first field which is neither missing nor what it should be."""
    for name in ("family", "kind", "flops_convention"):
        if not isinstance(run.get(name), str | None):
            raise UsageError(f"{name}={run[name]!r}: text is expected")
    if not run.get("family"):
        raise UsageError("the field 'family' is missing")
    for part in (*PARTS, *EXTRAS):
        value = run.get(part, {})
        if not isinstance(value, Mapping) and not (part in EXTRAS and value is None):
            raise UsageError(f"{part}={value!r}: an object with fields is expected")
    for part, field, value in _given(run, WHOLE):
        if type(value) is not int or value < 1:
            raise UsageError(f"{part}.{field}={value!r}: a whole number of at least 1 is expected")
    for part, field, value in _given(run, NUMBERS):
        if type(value) not in (int, float) or not 0 < value < math.inf:
            raise UsageError(f"{part}.{field}={value!r}: a number above 0 is expected")
    for part, field, value in _given(run, WORDS):
        if not isinstance(value, str):
            raise UsageError(f"{part}.{field}={value!r}: text is expected")
    _check_stage((run.get("layout") or {}).get("zero_stage"))


def _given(run: Mapping[str, Any], fields: Mapping[str, tuple[str, ...]]) -> list[tuple[str, str, Any]]:
    """(part, field, value) of those fields that are there."""
    return [
        (part, name, run[part][name])
        for part, names in fields.items()
        for name in names
        if run.get(part) and run[part].get(name) is not None
    ]


def _check_stage(stage: object) -> None:
    if stage is not None and (type(stage) is not int or stage not in (0, 1, 2, 3)):
        raise UsageError(f"layout.zero_stage={stage!r}: 0, 1, 2 or 3 is expected")
