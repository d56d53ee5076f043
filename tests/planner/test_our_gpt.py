"""The formulas against our own GPT: FLOPs against torch's counter, activations against the tensors autograd keeps, and
the peak of a whole step, tracked, on one process and on the ranks of a split."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from course.gpt import GPT, make_gpt
from course.lesson.memory import TrackMemory
from course.planner.flops import count_parameters, model_flops
from course.planner.memory import layer_activation_bytes, memory_parts, peak_memory
from course.spec import LESSON_GPT, ModelSpec
from course.spec.plan import Plan
from course.spec.shape import ModelShape

B = 8
SPEC = replace(LESSON_GPT, context=128, heads=2)


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Small steps lose more by threads that wait for busy cores than they gain."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def shape_of_spec(spec: ModelSpec) -> ModelShape:
    return ModelShape(
        name="ours", layers=spec.layers, hidden=spec.width, heads=spec.heads, kv_heads=spec.heads, vocab=spec.vocab,
        ffn=spec.hidden, tied=spec.tied, positions=spec.context,
    )  # fmt: skip


def tokens(spec: ModelSpec) -> torch.Tensor:
    return torch.randint(spec.vocab, (B, spec.context), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("spec", [SPEC, replace(SPEC, tied=False, layers=3, feedforward=200)])
def test_parameters_to_the_last(spec: ModelSpec) -> None:
    assert count_parameters(shape_of_spec(spec)) == sum(p.numel() for p in GPT(spec).parameters())


def test_flops_are_what_torch_counts() -> None:
    spec = replace(SPEC, attention="explicit")
    model, x = GPT(spec), tokens(spec)
    with FlopCounterMode(display=False) as counter:
        model(x, x).backward()
    ours = model_flops(shape_of_spec(spec), batch=B, sequence=spec.context)
    assert counter.get_total_flops() == pytest.approx(ours, rel=0.01)


def kept_bytes(spec: ModelSpec, dtype: torch.dtype) -> int:
    """Bytes that autograd keeps from a forward pass, each storage once, parameters not counted."""
    model, x = GPT(spec).to(dtype), tokens(spec)
    weights = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept: dict[int, torch.UntypedStorage] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = storage
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = model(x, x)
    total = sum(storage.nbytes() for storage in kept.values())
    del loss
    return total


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("dropout", "attention"), [(0.0, "sdpa"), (0.0, "explicit"), (0.1, "explicit")])
def test_a_layer_keeps_what_the_formula_says(dtype: torch.dtype, dropout: float, attention: str) -> None:
    """64.2, 72.2 and 96.2 bytes a channel of a token in float32, and half of it in bfloat16, measured."""
    spec = replace(SPEC, dropout=dropout, attention=attention)
    measured = kept_bytes(replace(spec, layers=3), dtype) - kept_bytes(replace(spec, layers=2), dtype)
    kind = "fused" if attention == "sdpa" else "stored"
    plan = Plan(microbatch=B, global_batch=B, sequence=spec.context, attention=kind, dropout=dropout > 0)
    size = dtype.itemsize
    ours = layer_activation_bytes(shape_of_spec(spec), plan, itemsize=size, mask_bytes=size)
    assert measured == pytest.approx(ours, rel=0.02)


def tracked_step(spec: ModelSpec, *, batch: int, microbatches: int, bf16: bool = False, recompute: bool = False):
    """What a step holds, after one that made Adam's states; `batch` samples a microbatch."""
    model, optimizer = make_gpt(0, spec=spec)
    if recompute:
        for block in model.blocks:
            block.forward = functools.partial(checkpoint, block.forward, use_reentrant=False)

    def step() -> None:
        optimizer.zero_grad()
        for seed in range(microbatches):
            x = torch.randint(spec.vocab, (batch, spec.context), generator=torch.Generator().manual_seed(seed))
            with torch.autocast("cpu", torch.bfloat16) if bf16 else nullcontext():
                loss = model.loss(x, x) / microbatches
            loss.backward()
        optimizer.step()

    step()
    with TrackMemory(model, optimizer) as memory:
        step()
    return memory


@pytest.mark.parametrize("recompute", [False, True], ids=["kept", "recomputed"])
@pytest.mark.parametrize("bf16", [False, True], ids=["float32", "bf16"])
@pytest.mark.parametrize(("batch", "context", "layers"), [(8, 128, 4), (2, 64, 8)])
def test_the_peak_of_a_step_is_within_a_tenth_of_the_formula(batch, context, layers, bf16, recompute) -> None:
    spec = replace(LESSON_GPT, context=context, layers=layers)
    memory = tracked_step(spec, batch=batch, microbatches=2, bf16=bf16, recompute=recompute)
    plan = Plan(
        microbatch=batch, global_batch=2 * batch, sequence=context, precision="bf16" if bf16 else "float32",
        recompute="full" if recompute else "none",
    )  # fmt: skip
    assert memory.peak == pytest.approx(peak_memory(shape_of_spec(spec), plan).total, rel=0.1)


def test_each_part_of_a_float32_step_is_what_the_formula_says() -> None:
    memory = tracked_step(LESSON_GPT, batch=24, microbatches=2)
    plan = Plan(microbatch=24, global_batch=48, sequence=64, precision="float32")
    ours = memory_parts(shape_of_spec(LESSON_GPT), plan)
    for kind in ("weights", "gradients", "optimizer"):
        assert memory.parts[kind] == pytest.approx(ours[kind], rel=1e-4), kind  # Adam counts its steps, too
    rest = ours["activations"] + ours["logits"] + ours["buffers"]
    assert memory.parts["rest"] == pytest.approx(rest, rel=0.03)


def test_one_microbatch_peaks_before_its_gradients_are_there() -> None:
    memory = tracked_step(LESSON_GPT, batch=24, microbatches=1)
    ours = memory_parts(
        shape_of_spec(LESSON_GPT), Plan(microbatch=24, global_batch=24, sequence=64, precision="float32")
    )
    assert memory.peak == pytest.approx(sum(ours.values()) - ours["gradients"], rel=0.03)
