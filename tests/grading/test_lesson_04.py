"""Lesson 04: the graders' formulas against the planner, against torch's modules, and against tensors that are there."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from course.gpt import GPT
from course.grading.checks import decoders, gathering_up, keeping, recomputing, rounding, stashing, unaided
from course.grading.checks.low_rank import CASES as ADAPTERS
from course.planner.flops import count_parameters
from course.planner.memory import layer_activation_bytes
from course.spec import ModelSpec
from course.spec.plan import Plan
from course.spec.shape import SHAPES, ModelShape


def nbytes(tensors: Any) -> int:
    return sum(t.nbytes for t in tensors)


# --- bytes of training ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gpt", "twice", "part"])
@pytest.mark.parametrize(
    ("kind", "make"),
    [
        ("sgd", functools.partial(torch.optim.SGD, lr=0.1)),
        ("momentum", functools.partial(torch.optim.SGD, lr=0.1, momentum=0.9)),
        ("adam", torch.optim.Adam),
    ],
)
def test_bytes_of_training_are_those_of_a_module_after_a_step(name: str, kind: str, make: Any) -> None:
    module = keeping.MODULES[name]()
    optimizer = make(module.parameters())
    torch.stack([p.square().sum() for p in module.parameters() if p.requires_grad]).sum().backward()
    optimizer.step()
    states = [t for state in optimizer.state.values() for key, t in state.items() if key != "step" and t is not None]
    kept = [*module.parameters(), *(p.grad for p in module.parameters() if p.grad is not None), *states]
    assert keeping.want((name, kind, "float32")) == nbytes(kept)


def test_mixed_precision_is_the_planners_sixteen_bytes() -> None:
    held = keeping.counts("large")
    assert keeping.want(("large", "adam", "mixed")) == 16 * held.trained
    assert held.trained == count_parameters(SHAPES["gpt-3-175b"])


# --- parameters -------------------------------------------------------------------------------------------------------


class Layer(nn.Module):
    """One layer of any shape, in torch's own modules."""

    def __init__(self, s: ModelShape) -> None:
        super().__init__()
        gpt, kv = s.ffn_matrices == 2, s.kv_heads * (s.hidden // s.heads)
        linear = functools.partial(nn.Linear, bias=gpt)
        self.attention = nn.ModuleList(linear(s.hidden, out) for out in (s.hidden, kv, kv, s.hidden))
        self.mlp = nn.ModuleList(
            [linear(s.hidden, s.ffn) for _ in range(s.ffn_matrices - 1)] + [linear(s.ffn, s.hidden)]
        )
        self.norms = nn.ModuleList(norm(s) for _ in range(2))


def norm(s: ModelShape) -> nn.Module:
    return nn.LayerNorm(s.hidden) if s.ffn_matrices == 2 else nn.RMSNorm(s.hidden)


@pytest.mark.parametrize("shape", decoders.RANDOM[:8], ids=lambda shape: shape.name)
def test_parameters_are_those_of_torchs_modules(shape: ModelShape) -> None:
    small = replace(shape, layers=2, vocab=97, ffn=50)
    model = nn.ModuleList([nn.Embedding(small.vocab, small.hidden), Layer(small), Layer(small), norm(small)])
    if small.positions:
        model.append(nn.Embedding(small.positions, small.hidden))
    if not small.tied:
        model.append(nn.Linear(small.hidden, small.vocab, bias=False))
    assert count_parameters(small) == sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize(("name", "published"), [("gpt-2", 124_439_808), ("llama-3.1-8b", 8_030_261_248)])
def test_parameters_are_the_published_ones(name: str, published: int) -> None:
    assert count_parameters(SHAPES[name]) == published


def test_random_decoders_tell_all_mistakes_apart() -> None:
    for number, (_, guess) in enumerate(decoders.GUESSES):
        found = [guess(shape) for shape in decoders.RANDOM]
        assert found != [count_parameters(shape) for shape in decoders.RANDOM], number


# --- activations ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", [*stashing.FUSED, *stashing.STORED, *stashing.DROPOUT], ids=str)
def test_bytes_of_a_layer_are_the_planners(case: stashing.Case) -> None:
    shape = ModelShape(
        name="", layers=1, hidden=case.width, heads=case.heads, kv_heads=case.heads, vocab=1, ffn=4 * case.width
    )
    plan = Plan(
        microbatch=case.microbatch, global_batch=case.microbatch, sequence=case.sequence, attention=case.attention,
        dropout=case.dropout,
    )  # fmt: skip
    assert stashing.whole(case) == layer_activation_bytes(shape, plan, itemsize=case.itemsize)


def test_gpt_3_keeps_34_and_80_bytes_a_channel() -> None:
    """Korthikanti et al. 2022, section 5: 5as/h is 80 for GPT-3 and 64 for MT-NLG."""
    for heads, width, scores in ((96, 12288, 80), (128, 20480, 64)):
        case = stashing.Case(1, width, heads, 2048, 1, attention="stored", dropout=True)
        assert stashing.total(case) == (34 + scores) * 2048 * width


def test_recomputing_one_layer_saves_nothing() -> None:
    for case in stashing.FUSED:
        one = replace(case, layers=1)
        assert stashing.total(replace(one, recompute=True)) == stashing.total(one)


def test_our_gpt_keeps_what_the_terms_say_without_dropout() -> None:
    """Autograd's own tensors, each storage once, for two layers of another size of the same model."""
    case = stashing.Case(2, 64, 2, 16, 3, itemsize=4)
    spec = ModelSpec(vocab=50, context=case.sequence, layers=case.layers, heads=case.heads, width=case.width)
    model, kept = GPT(spec).blocks, {}

    def pack(t: torch.Tensor) -> torch.Tensor:
        kept[t.untyped_storage().data_ptr()] = t
        return t

    x = torch.randn(case.microbatch, case.sequence, case.width, requires_grad=True)
    own = {p.untyped_storage().data_ptr() for p in model.parameters()}
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        for block in model:
            x = block(x)
    wide = [t for pointer, t in kept.items() if pointer not in own and t.numel() >= case.microbatch * 16 * case.width]
    assert sum(t.untyped_storage().nbytes() for t in wide) == pytest.approx(stashing.total(case), rel=0.05)


# --- what the others compare with -------------------------------------------------------------------------------------


def test_no_adapter_has_two_sizes_alike() -> None:
    for case in ADAPTERS:
        assert len({case.rank * case.inside, case.rank * case.outside, case.rank}) == 3
        assert case.scale not in (case.alpha, case.rank / case.alpha) or case is not ADAPTERS[0]


def test_losses_of_the_pairs_differ() -> None:
    for case in gathering_up.CASES:
        losses = gathering_up.losses(case)
        assert len({round(loss, 3) for loss in losses}) == len(losses)


def test_rows_have_their_largest_number_on_both_sides_of_zero() -> None:
    for case in rounding.CASES:
        weight = case.weight()
        largest = weight.gather(1, weight.abs().argmax(1, keepdim=True))[:, 0]
        assert (largest[::2] > 0).all() and (largest[1::2] < 0).all()


def test_the_function_knows_what_is_held_of_it() -> None:
    work = recomputing.Work(recomputing.Case(), 0)
    x = torch.randn(recomputing.ROWS, recomputing.WIDTH, requires_grad=True)
    output = work(x)
    assert work.held >= 3
    output.sum().backward()
    del output
    assert work.held == 0
    with torch.no_grad():
        work(x)
    assert work.held == 0 and work.calls == 2


@pytest.mark.parametrize("reentrant", [False, True])
def test_torchs_checkpoint_refuses_for_a_while_only(reentrant: bool) -> None:
    x = torch.ones(3, requires_grad=True)
    with unaided.without_checkpoint(), pytest.raises(RuntimeError, match=r"torch\.utils\.checkpoint was called"):
        checkpoint(torch.sin, x, use_reentrant=reentrant)
    checkpoint(torch.sin, x, use_reentrant=reentrant).sum().backward()
    assert torch.allclose(x.grad, x.detach().cos())
