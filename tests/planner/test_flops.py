"""Counts against the papers that print them."""

from __future__ import annotations

import pytest

from course.planner.flops import count_parameters, hardware_flops, model_flops, training_flops
from course.spec.shape import SHAPES, ModelShape, gpt, shape_of


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("gpt-2", 0.1244),  # 124,439,808 in the released weights
        ("gpt-3-175b", 174.6),
        ("mt-nlg-530b", 530),
        ("llama-3.1-8b", 8.03),
        ("llama-3.1-70b", 70.55),
        ("llama-3.1-405b", 405.85),
        ("bloom-176b", 176.2),
    ],
)
def test_parameters_are_those_of_the_papers(name: str, billions: float) -> None:
    assert count_parameters(shape_of(name)) / 1e9 == pytest.approx(billions, rel=2e-3)


def test_gpt_2_to_the_last_parameter() -> None:
    assert count_parameters(SHAPES["gpt-2"]) == 124_439_808


def test_the_closed_form_of_sc21() -> None:
    L, h, V, s = 24, 2304, 51200, 2048
    closed = 12 * L * h**2 * (1 + 13 / (12 * h) + (V + s) / (12 * L * h))
    assert count_parameters(gpt("1.7B", L, h, 24)) == pytest.approx(closed, rel=1e-5)


@pytest.mark.parametrize("batch", [1, 512])
def test_flops_are_equations_2_and_3(batch: int) -> None:
    L, h, V, s = 96, 12288, 51200, 2048
    shape = gpt("175B", L, h, 96, vocab=V)
    model = 72 * batch * L * s * h**2 * (1 + s / (6 * h) + V / (12 * h * L))
    assert model_flops(shape, batch=batch, sequence=s) == pytest.approx(model)
    # Equation 3 counts the head a fourth time too (V / 16Lh); here it is not done again.
    layers = 96 * batch * s * L * h**2 * (1 + s / (6 * h))
    full = hardware_flops(shape, batch=batch, sequence=s, recompute="full")
    assert full == pytest.approx(layers + 6 * batch * s * h * V)


def test_recomputing_more_is_more() -> None:
    shape = gpt("22B", 48, 6144, 64)
    counts = [
        hardware_flops(shape, batch=4, sequence=2048, recompute=kind)
        for kind in ("none", "selective", "alternate", "full")
    ]
    assert counts == sorted(counts) and counts[0] == model_flops(shape, batch=4, sequence=2048)


def test_gpt_3_took_3e23_flops() -> None:
    assert training_flops(174.6e9, 300e9) == pytest.approx(3.14e23, rel=2e-3)


def test_experts_count_once_in_flops_and_all_in_parameters() -> None:
    sizes = {"layers": 32, "hidden": 4096, "heads": 32, "kv_heads": 8, "vocab": 32000, "ffn": 14336, "tied": False}
    sizes["ffn_matrices"] = 3
    mixtral = ModelShape(name="mixtral-8x7b", experts=8, active_experts=2, **sizes)
    assert count_parameters(mixtral) / 1e9 == pytest.approx(46.7, rel=2e-3)  # Jiang et al. 2024: 47B, 13B active
    assert count_parameters(mixtral, active=True) / 1e9 == pytest.approx(12.9, rel=2e-3)
    dense = ModelShape(name="dense", **sizes)
    assert 1 < model_flops(mixtral, batch=1, sequence=1) / model_flops(dense, batch=1, sequence=1) < 2
