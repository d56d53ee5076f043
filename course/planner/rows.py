"""Published runs read from JSON: a row of the file to a shape, a plan, a cluster and what was measured.

What a framework does (keeps scores, overlaps, ...) is a fact about software and stands here; how fast chips are does
not. A row that cannot be expressed says why. Nothing is predicted here.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course.errors import UsageError
from course.planner.fields import check_fields
from course.planner.flops import model_flops
from course.spec.chips import Chip, Cluster, chip_of
from course.spec.plan import Plan
from course.spec.shape import ModelShape

CHIP_IDS = {
    "A100-SXM4-40GB": "a100-40gb", "A100-SXM4-80GB": "a100-80gb", "H100-SXM5-80GB": "h100",
    "H100-96GB-500W": "h100-96gb-500w", "H200": "h200", "H800-80GB": "h800", "B200": "b200", "GB200": "gb200",
    "GB300": "gb300", "V100-SXM2-32GB": "v100-32gb", "MI300X": "mi300x", "RTX 4090": "rtx-4090", "T4": "t4",
    "TPU v4": "tpu-v4", "TPU v5e": "tpu-v5e", "TPU v5p": "tpu-v5p",
}  # fmt: skip


FUSED = ("nemo", "core", "bridge", "nanotron", "maxtext")
"""Frameworks (parts of their names) that fuse attention and overlap messages on A100 as well."""


FUSED_SUMS = 2022
"""Since when Megatron-LM adds up the gradients of microbatches inside its products (--gradient-accumulation-fusion)."""


class Inexpressible(UsageError):
    """A row that lacks what a prediction needs, or has what the planner does not know. The message is the reason."""


@dataclass(frozen=True, slots=True)
class Row:
    """A published run. `free`: fields of the plan that the source does not print, to be chosen by search."""

    id: str
    family: str
    shape: ModelShape
    plan: Plan
    cluster: Cluster
    free: tuple[str, ...]
    measured: Mapping[str, Any]
    step_seconds: float | None
    oom: bool


def read_runs(path: str | Path) -> list[dict[str, Any]]:
    """The rows of a file: a list, or an object with a list `runs`. Raises UsageError where it holds neither."""
    try:
        data = json.loads(Path(path).read_text(encoding="utf8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read as JSON: {error}") from error
    runs = data.get("runs") if isinstance(data, dict) else data
    if not isinstance(runs, list):
        raise UsageError(f"{path}: expected a list of rows with an id, or an object with such a list as `runs`")
    for number, run in enumerate(runs, 1):
        if not isinstance(run, dict) or not isinstance(run.get("id"), str):
            raise UsageError(f"{path}: row {number} of {len(runs)} is no object with an id that is text")
    return runs


def is_kept_aside(run_id: str) -> bool:
    """Whether a row is for judging alone: half of them, by a checksum of the id, so that nobody chose."""
    return zlib.crc32(run_id.encode()) % 2 == 1


def read_row(run: Mapping[str, Any]) -> Row:
    """The Row of one entry. Raises Inexpressible with the reason where it cannot be predicted or not be read; a field
    that is missing or has the wrong type is named."""
    try:
        check_fields(run)
        shape = _shape(run["model"])
        cluster = _cluster(run["cluster"])
        plan, free = _plan(run, shape, cluster)
        plan.check(shape)
        measured = run["measured"]
        seconds = _seconds(run, shape, plan, cluster)
        return Row(run["id"], run["family"], shape, plan, cluster, free, measured, seconds, bool(measured.get("oom")))
    except KeyError as error:
        raise Inexpressible(f"the field {error} is missing") from error
    except Inexpressible:
        raise
    except UsageError as error:
        raise Inexpressible(str(error)) from error


def _shape(model: Mapping[str, Any]) -> ModelShape:
    for field in ("layers", "hidden", "heads", "vocab", "seq"):
        if model.get(field) is None:
            raise Inexpressible(f"the model's {field} is not printed")
    matrices = model.get("ffn_matrices") or 2
    return ModelShape(
        name=model["name"], layers=model["layers"], hidden=model["hidden"], heads=model["heads"], vocab=model["vocab"],
        ffn=model.get("ffn") or 4 * model["hidden"], kv_heads=model.get("kv_heads") or model["heads"],
        ffn_matrices=matrices, tied=model.get("tied_embeddings") is not False,
        positions=model["seq"] if model.get("pos_emb") == "learned" else 0,
        experts=model.get("experts") or 1, active_experts=model.get("active_experts") or 1,
    )  # fmt: skip


def _cluster(cluster: Mapping[str, Any]) -> Cluster:
    name = cluster.get("gpu_id")
    if name not in CHIP_IDS:
        raise Inexpressible(f"the chip {cluster.get('gpu')!r} (gpu_id {name!r}) is not in the catalogue")
    if not cluster.get("n_gpus"):
        raise Inexpressible("the number of chips is not printed")
    chip = chip_of(CHIP_IDS[name])
    node = max(cluster.get("gpus_per_node") or 8, chip.node)
    return Cluster(chip=chip, num_gpus=cluster["n_gpus"], node=node, network=network_bandwidth(cluster, chip))


def network_bandwidth(cluster: Mapping[str, Any], chip: Chip) -> float:
    """Bytes/s one way a chip has to other nodes, from what the source prints; the chip's usual card where it does not.

    Reads "12.5 GB/s per GPU", "400 Gb/s per GPU" and "1600 Gb/s RoCE per node".
    """
    text = cluster.get("inter_link") or ""
    if "not stated (" in text:
        return chip.network
    if found := re.search(r"([\d.]+) GB/s per GPU", text):
        return float(found[1]) * 1e9
    if found := re.search(r"([\d.]+) Gb/s[^,;(]* per GPU", text):
        return float(found[1]) * 1e9 / 8
    if found := re.search(r"(?:(\d+)x )?[^\d]*([\d.]+) Gb/s[^,;(]* per node", text):
        return float(found[1] or 1) * float(found[2]) * 1e9 / 8 / (cluster.get("gpus_per_node") or 8)
    return chip.network


def _plan(run: Mapping[str, Any], shape: ModelShape, cluster: Cluster) -> tuple[Plan, tuple[str, ...]]:
    layout = run["layout"]
    if layout.get("global_batch") is None:
        raise Inexpressible("the global batch is not printed")
    free: tuple[str, ...] = ()
    if layout.get("tp") is None or layout.get("pp") is None:
        free, layout = ("axes",), {**layout, "tp": 1, "pp": 1}
    cp = layout.get("cp") or 1
    axes = layout["tp"] * layout["pp"] * cp
    if cluster.num_gpus % axes:
        raise Inexpressible(f"tp x pp x cp = {axes} does not divide {cluster.num_gpus} chips")
    dp = cluster.num_gpus // axes if not free else 1
    layout = _defaults(layout, dp)
    names = {"micro_batch": "microbatch", "interleave_v": "chunks", "recompute": "recompute"}
    free += tuple(ours for printed, ours in names.items() if layout.get(printed) is None)
    if layout["pp"] == 1:
        free = tuple(field for field in free if field != "chunks")
    chunks = layout.get("interleave_v") or (2 if "interleaved" in (layout.get("schedule") or "") else 1)
    return (
        Plan(
            dp=dp, tp=layout["tp"], pp=layout["pp"], cp=cp, chunks=chunks, microbatch=layout.get("micro_batch") or 1,
            global_batch=layout["global_batch"], sequence=run["model"]["seq"], zero=layout.get("zero_stage") or 0,
            recompute=_recompute(layout), sequence_parallel=bool(layout.get("sequence_parallel")),
            schedule=_schedule(layout.get("schedule")), **_software(layout, cluster, _year(run)),
        ),
        free,
    )  # fmt: skip


def _is_fsdp(layout: Mapping[str, Any]) -> bool:
    """Whether PyTorch's own FSDP runs (torchtitan, llm-foundry): by its name, or by torchtitan's words for layouts."""
    framework = (layout.get("framework") or "").lower()
    ours = re.search(r"fsdp|torchtitan|foundry|float8|\b[1-4]d\b", framework)
    return ours is not None and not any(word in framework for word in ("megatron", "nemo"))


def _defaults(layout: Mapping[str, Any], dp: int) -> Mapping[str, Any]:
    """torchtitan's defaults where nothing is printed: as many microbatches as stages, two chunks where interleaved."""
    if not _is_fsdp(layout) or layout["pp"] == 1:
        return layout
    defaults = {"micro_batch": max(1, layout["global_batch"] // dp // layout["pp"]), "interleave_v": 2}
    return {**layout, **{field: value for field, value in defaults.items() if layout.get(field) is None}}


def _recompute(layout: Mapping[str, Any]) -> str:
    """What is printed; torchtitan's "selective" is every other product."""
    printed = layout.get("recompute") or "none"
    return "alternate" if printed == "selective" and _is_fsdp(layout) else str(printed)


def _schedule(printed: str | None) -> str:
    """ZB-H1 is what ZB-1p finds, ZB-H2 what ZB-2p finds (Qi et al. 2024, section 6.1); all else is 1F1B."""
    names = {"zb-1p": "zb-1p", "zb-h1": "zb-1p", "zb-2p": "zb-2p", "zb-h2": "zb-2p", "zb-v": "zb-v"}
    return names.get((printed or "").lower(), "1f1b")


def _year(run: Mapping[str, Any]) -> int:
    """The year of a row's source, 0 if it has none."""
    found = re.search(r"\b20\d\d\b", str((run.get("source") or {}).get("cite")))
    return int(found[0]) if found else 0


def _software(layout: Mapping[str, Any], cluster: Cluster, year: int) -> dict[str, Any]:
    """What the framework of a row does. Megatron-LM of 2021 and 2022 (fp16, or on A100) stores scores, has dropout,
    waits for its messages between stages and sums gradients after the last backward; later ones fuse attention and
    overlap. llm-foundry runs eager FSDP."""
    framework = (layout.get("framework") or "").lower()
    printed = (layout.get("precision") or "").lower()
    precision = "fp4" if "fp4" in printed else "fp8" if "fp8" in printed else "bf16"
    fsdp = _is_fsdp(layout)
    old = not fsdp and cluster.chip.family in ("ampere", "volta") and not any(word in framework for word in FUSED)
    fused_sums = not ("deepspeed" in framework or (old and 0 < year < FUSED_SUMS))
    return {
        "attention": "stored" if old else "flash-2" if fsdp else "fused",
        "dropout": old,
        "compiled": old or not fsdp or "compile" in framework,
        "overlap_dp": not old,
        "overlap_tp": not old and (not fsdp or "async" in framework),
        "overlap_pp": not old,
        "scatters_pp": "v2.0" not in framework,
        "fused_sums": fused_sums,
        "fused_loss": "fsdp2" in framework or "foundry" in framework,
        "grad_bytes": _grad_bytes(framework, printed),
        "wire_bytes": 2 if "pure" in framework or (printed.startswith("fp16") and not fused_sums) else 4,
        "logit_grad_bytes": 2 if "foundry" in framework else 4,  # flash-attn's loss, whose gradient is a logit's type
        "bucket_bytes": _bucket_bytes(framework, printed),
        "precision": precision,
        "casts": fsdp or printed.startswith(("mxfp8", "nvfp4")),  # blocks of 32 or 16 are scaled along both axes
        "repeats_kv": fsdp,
    }


def _grad_bytes(framework: str, precision: str) -> int:
    """Megatron-LM and FSDP hold float32 gradients; FSDP's "pure" precision and DeepSpeed's fp16 optimizer 16 bits;
    DeepSpeed's bf16 optimizer both."""
    if "fp32 grad" in framework or ("deepspeed" in framework and precision.startswith("bf16")):
        return 6
    return 2 if "pure" in framework or "deepspeed" in framework else 4


def _bucket_bytes(framework: str, precision: str) -> int:
    """DeepSpeed's pipeline copies 500 million gradients together before it sums them, in float32 beside its bf16
    optimizer (runtime/engine.py, MEMORY_OPT_ALLREDUCE_SIZE)."""
    if "deepspeed" not in framework:
        return 0
    return 500_000_000 * (4 if _grad_bytes(framework, precision) == 6 else 2)


def _seconds(run: Mapping[str, Any], shape: ModelShape, plan: Plan, cluster: Cluster) -> float | None:
    """Measured seconds of a step: as printed, or from tokens, samples or FLOPs a second, or from the utilisation."""
    measured, derived = run["measured"], run.get("derived") or {}
    samples = plan.global_batch / cluster.num_gpus  # a step, a chip
    flops = model_flops(shape, batch=plan.global_batch, sequence=plan.sequence) / cluster.num_gpus
    if "hfu_full_recompute" in (run.get("flops_convention") or ""):
        flops *= 4 / 3  # the source counts the recomputed forward pass too
    for seconds in (measured.get("step_time_s"), derived.get("step_time_s")):
        if seconds:
            return float(seconds)
    rates = {
        "tokens_per_s_per_gpu": samples * plan.sequence,
        "samples_per_s_per_gpu": samples,
        "tflops_per_gpu": flops / 1e12,
        "mfu_pct": flops / cluster.chip.flops * 100,
    }
    return next((amount / float(measured[rate]) for rate, amount in rates.items() if measured.get(rate)), None)
