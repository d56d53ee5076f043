"""Bytes against ZeRO's and Korthikanti's own numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from course.errors import UsageError
from course.planner.memory import (
    fits,
    layer_activation_bytes,
    memory_parts,
    microbatches_held,
    peak_memory,
    states_bytes,
)
from course.spec.chips import chip_of
from course.spec.plan import RECOMPUTE, Plan
from course.spec.shape import gpt, shape_of

OLD = Plan(tp=8, microbatch=4, global_batch=4, attention="stored", dropout=True)
GPT_22B = gpt("22B", 48, 6144, 64)


def test_weights_of_gpt_3_are_700_gb() -> None:
    from course.planner.flops import count_parameters

    assert 4 * count_parameters(shape_of("gpt-3-175b")) / 1e9 == pytest.approx(700, rel=5e-3)


@pytest.mark.parametrize(("zero", "gigabytes"), [(0, 120), (1, 31.4), (2, 16.6), (3, 1.9)])
def test_states_of_zero_figure_1(zero: int, gigabytes: float) -> None:
    assert states_bytes(7.5e9, dp=64, zero=zero) / 1e9 == pytest.approx(gigabytes, abs=0.05)


def test_float32_gradients_make_it_18() -> None:
    assert states_bytes(1.0, dp=1, zero=0, grad_bytes=4) == 18


def test_activations_are_the_formulas() -> None:
    s, b, h, a, t = 2048, 4, 6144, 64, 8
    sbh = s * b * h
    scores = 5 * a * s / h
    split = replace(OLD, sequence_parallel=True)
    assert layer_activation_bytes(GPT_22B, replace(OLD, tp=1)) == pytest.approx(sbh * (34 + scores))
    assert layer_activation_bytes(GPT_22B, OLD) == pytest.approx(sbh * (10 + 24 / t + scores / t))
    assert layer_activation_bytes(GPT_22B, split) == pytest.approx(sbh / t * (34 + scores))
    assert layer_activation_bytes(GPT_22B, replace(split, recompute="selective")) == pytest.approx(34 * sbh / t)
    assert layer_activation_bytes(GPT_22B, replace(OLD, recompute="full")) == pytest.approx(2 * sbh)


def test_fused_attention_without_dropout_keeps_32() -> None:
    plan = Plan(microbatch=1, global_batch=1, sequence=1024)
    assert layer_activation_bytes(GPT_22B, plan) == 32 * 1024 * 6144


@pytest.mark.parametrize("attention", ["stored", "fused"])
@pytest.mark.parametrize("name", ["gpt-3-175b", "llama-3.1-8b"])
def test_recomputing_more_keeps_less(attention: str, name: str) -> None:
    kept = [layer_activation_bytes(shape_of(name), Plan(attention=attention, recompute=kind)) for kind in RECOMPUTE]
    assert kept == sorted(kept, reverse=True)


def test_microbatches_held() -> None:
    plan = Plan(pp=8, global_batch=64, microbatch=1)
    assert [microbatches_held(plan, stage) for stage in (0, 1, 7)] == [8, 7, 1]
    assert microbatches_held(replace(plan, global_batch=4), 0) == 4
    assert microbatches_held(replace(plan, chunks=3), 0) == pytest.approx(8 * (1 + 7 / 24))
    assert microbatches_held(replace(plan, schedule="zb-1p"), 7) == 8
    assert microbatches_held(replace(plan, schedule="zb-2p"), 0) == 15


def test_memory_against_schedules_that_are_played() -> None:
    """The most that any order of actions holds, counted from the schedule itself."""
    from course.spec.schedule import one_f_one_b, peak_activations

    for p, m in [(4, 8), (4, 2), (8, 32)]:
        plan = Plan(pp=p, global_batch=m)
        for stage, actions in enumerate(one_f_one_b(p, m)):
            assert microbatches_held(plan, stage) == peak_activations(actions)


def test_an_8b_model_needs_more_than_one_gpu_and_eight_do() -> None:
    shape, chip = shape_of("llama-3.1-8b"), chip_of("h100")
    alone = Plan(global_batch=8, sequence=8192, recompute="full")
    assert not fits(shape, alone, chip)
    assert peak_memory(shape, alone).states > chip.memory  # states dwarf the 16 GB of weights
    assert fits(shape, replace(alone, dp=8, zero=3), chip)


def test_experts_are_kept_but_not_all_run() -> None:
    dense = shape_of("llama-3.1-8b")
    sparse = replace(dense, experts=8, active_experts=2)
    assert peak_memory(sparse, Plan()).states > 5 * peak_memory(dense, Plan()).states
    ratio = layer_activation_bytes(sparse, Plan()) / layer_activation_bytes(dense, Plan())
    assert 1 < ratio < 2


def test_parts_add_up_to_the_peak() -> None:
    shape = shape_of("llama-3.1-8b")
    for plan in (Plan(), Plan(dp=4, zero=2, global_batch=4), Plan(pp=4, global_batch=8, recompute="full")):
        assert sum(memory_parts(shape, plan).values()) == pytest.approx(peak_memory(shape, plan).total)
    parts = memory_parts(shape, Plan())
    assert parts["gradients"] == 2 * parts["weights"] and parts["optimizer"] == 6 * parts["weights"]


def test_float32_doubles_activations_and_has_no_second_weights() -> None:
    shape = shape_of("gpt-2")
    half, whole = (memory_parts(shape, Plan(precision=precision)) for precision in ("bf16", "float32"))
    assert whole["activations"] == 2 * half["activations"] and whole["weights"] == 2 * half["weights"]
    assert whole["optimizer"] == 2 * whole["weights"] and whole["gradients"] == half["gradients"]
    assert "float32" in str(pytest.raises(UsageError, chip_of("h100").peak, "float32").value)


def test_software_keeps_logits_and_buckets_of_its_own() -> None:
    shape = shape_of("gpt-2")
    plan = Plan(microbatch=4, global_batch=4, fused_loss=True)
    whole = peak_memory(shape, plan)
    half = peak_memory(shape, replace(plan, logit_grad_bytes=2, bucket_bytes=10**9))
    logits = 4 * 2048 * shape.vocab
    assert whole.logits == 6 * logits and half.logits == 4 * logits
    assert half.buffers - whole.buffers == 10**9
