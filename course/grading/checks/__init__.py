"""The checks: one file a subject, each with a `CHECKS` table of exercise id -> checks, in the order they are made.

A probe runs in the rank and only calls the learner's object and sends home what came back; tests run in the grader's
process. Oracles are plain arithmetic on what each rank was given, in one process.
"""

from __future__ import annotations

from importlib import import_module

from course.grading.check import Check

_SUBJECTS = {
    "hello_rank": "hello",
    "brighten": "brightening",
    "split_rows": "rows",
    "brighten_kernel": "kernel",
    "attainable": "roofline",
    "brighten_swar": "lanes",
    "two_stage_loop": "two_stages",
    "amdahl_speedup": "speedup",
    "gustafson_speedup": "speedup",
    "serial_fraction": "serial",
    "parallel_efficiency": "speedup",
    "ring_reduce_scatter": "scattering",
    "ring_all_gather": "gathering",
    "ring_all_reduce": "reducing",
    "ring_shift": "shift",
    "broadcast_tree": "tree",
    "all_reduce_seconds": "cost",
    "fit_alpha_beta": "fitting",
    "training_bytes": "keeping",
    "count_parameters": "decoders",
    "activation_bytes": "stashing",
    "LoRALinear": "adapting",
    "accumulate_gradients": "gathering_up",
    "quantize_int8": "rounding",
    "dequantize_int8": "rounding",
    "recompute_forward": "recomputing",
    "shard_indices": "shards",
    "weighted_average_gradients": "weighting",
    "broadcast_parameters": "replicas",
    "average_gradients": "averaging",
    "accumulate_without_sync": "accumulation",
    "exposed_seconds": "exposure",
    "DataParallel": "wrapper",
    "split_layers": "layers",
    "one_f_one_b": "turns",
    "pipeline_step": "stepping",
    "gpipe_schedule": "flush",
    "bubble_fraction": "bubble",
    "peak_activations": "peak",
    "interleaved_1f1b": "interleaving",
    "ParallelMLP": "linears",
    "copy_to_ranks": "exchange",
    "reduce_from_ranks": "exchange",
    "ColumnParallelLinear": "linears",
    "RowParallelLinear": "linears",
    "ParallelAttention": "heads",
    "kv_cache_bytes": "cache",
    "VocabParallelEmbedding": "vocabulary",
    "vocab_parallel_cross_entropy": "entropy",
    "SequenceParallelNorm": "sequence",
    "ring_attention": "context",
    "rank_to_coordinates": "coordinates",
    "coordinates_to_rank": "coordinates",
    "axis_groups": "groups",
    "place_axes": "placing",
    "clip_gradients_sharded": "clipping",
    "hybrid_step": "hybrid",
    "reshard_state": "resharding",
    "model_flops": "flops",
    "mfu": "utilisation",
    "step_seconds": "step_time",
    "checkpoint_interval": "saving",
    "training_cost": "price",
    "best_layout": "layouts",
}


def checks_of(exercise: str) -> tuple[Check, ...]:
    """The checks of one exercise."""
    checks: dict[str, tuple[Check, ...]] = import_module(f"{__name__}.{_SUBJECTS[exercise]}").CHECKS
    return checks[exercise]
