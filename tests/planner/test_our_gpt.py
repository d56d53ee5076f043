"""The formulas against our own GPT: FLOPs against torch's counter, activations against the tensors autograd keeps."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from course.gpt import GPT
from course.planner.flops import count_parameters, model_flops
from course.planner.memory import layer_activation_bytes
from course.spec import LESSON_GPT, ModelSpec
from course.spec.plan import Plan
from course.spec.shape import ModelShape

B = 8
SPEC = replace(LESSON_GPT, context=128, heads=2)


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
