"""Lesson 04's own functions, from its page: equal gradients, the counts that its text quotes, and the decision aid."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest
import torch

from course.gpt import make_gpt
from course.lesson import compare
from course.planner import count_parameters
from course.planner.flops import training_flops
from course.planner.memory import fits, memory_parts
from course.spec import ModelSpec
from course.spec.chips import chip_of
from course.spec.plan import Plan
from course.spec.shape import shape_of

PAGE = Path(__file__).resolve().parents[2] / "notebooks" / "04_does_it_fit.ipynb"
KEPT = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)
SPEC = ModelSpec(vocab=256, context=16, layers=2, heads=4, width=32)


@pytest.fixture
def lesson():
    """The names that the page's cells import and define, and its steps, with a smaller model and batch."""
    model, optimizer = make_gpt(0, spec=SPEC)
    x, y = torch.randint(256, (2, 8, 16), generator=torch.Generator().manual_seed(0))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    names = {"__name__": "__main__", "model": model, "optimizer": optimizer, "x": x, "y": y, "tried": {}, "base": model}
    for cell in nbformat.read(PAGE, as_version=4).cells:
        if cell.cell_type == "code":
            kept = [node for node in ast.parse(cell.source).body if isinstance(node, KEPT)]
            exec(compile(ast.Module(kept, []), "<lesson 04>", "exec"), names)
    yield names
    torch.set_num_threads(threads)


def test_the_gpt_in_25_lines_is_the_courses(lesson):
    tiny, model = lesson["TinyGPT"](256, 16, 2, 4, 32), lesson["model"]
    with torch.no_grad():
        for mine, theirs in zip(tiny.parameters(), model.parameters(), strict=True):
            mine.copy_(theirs)
    assert compare(tiny(lesson["x"]).detach(), model(lesson["x"]).detach())
    lines = [
        line
        for cell in nbformat.read(PAGE, as_version=4).cells
        if cell.source.startswith(("class Block", "class TinyGPT"))
        for line in cell.source.splitlines()
        if line.strip()
    ]
    assert len(lines) <= 25


@pytest.mark.parametrize("m", [1, 2, 4, 8])
def test_accumulating_gives_the_gradient_of_the_whole(lesson, m):
    gradient, x, y = lesson["gradient"], lesson["x"], lesson["y"]
    whole = gradient(lesson["whole"])
    assert compare(gradient(lambda: lesson["accumulate"](lesson["model"], x, y, m)), whole, tolerance=1e-5)


def test_recomputing_gives_the_same_bits_and_bfloat16_nearly(lesson):
    gradient = lesson["gradient"]
    whole = gradient(lesson["whole"])
    assert compare(gradient(lesson["recomputed"]), whole, tolerance=0)
    loss, gradients = gradient(lesson["mixed"])
    assert compare(loss, whole[0], tolerance=1e-2) and not compare(gradients, whole[1], tolerance=1e-4)


@pytest.mark.parametrize(
    ("switches", "float32", "bfloat16"),
    [
        ({}, 64.2, 32.2),
        ({"attention": "explicit"}, 72.2, 36.1),
        ({"attention": "explicit", "dropout": 0.1}, 96.2, 48.1),
    ],
)
def test_bytes_a_channel(lesson, switches, float32, bfloat16):
    for dtype, meant in ((torch.float32, float32), (torch.bfloat16, bfloat16)):
        assert lesson["bytes_a_channel"](dtype, **switches) == pytest.approx(meant, abs=0.1)


def test_each_way_shrinks_what_the_page_says(lesson, capsys):
    measure, tried, model = lesson["measure"], lesson["tried"], lesson["model"]
    measure("whole", lesson["whole"])
    measure("accumulated", lambda: lesson["accumulate"](model, lesson["x"], lesson["y"], 4))
    measure("recomputed", lesson["recomputed"])
    measure("bfloat16", lesson["mixed"])
    rest = {name: memory.parts["rest"] for name, (memory, _) in tried.items()}
    assert rest["accumulated"] == pytest.approx(rest["whole"] / 4, rel=0.05)
    assert rest["recomputed"] < 0.8 * rest["whole"] and rest["bfloat16"] < 0.9 * rest["whole"]
    states = {max(sum(m.values()) - m["rest"] for m in memory.curve) for memory, _ in tried.values()}
    assert len(states) == 1  # none of them shrinks the states
    assert capsys.readouterr().out.count("ms of CPU a step") == 4


def test_lora_starts_as_the_model_and_trains_only_itself(lesson):
    model, _ = make_gpt(0, spec=SPEC)
    before = model(lesson["x"]).detach()
    lora = lesson["add_lora"](model, rank=2)
    assert torch.equal(model(lesson["x"]), before)
    assert len(lora) == 2 * 4 * SPEC.layers  # a and b beside each of four matrices a layer
    assert {id(p) for p in lora} == {id(p) for p in model.parameters() if p.requires_grad}  # tracked with the model's
    optimizer = torch.optim.AdamW(lora, lr=1e-2)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = model.loss(lesson["x"], lesson["y"])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] and all((p.grad is None) != p.requires_grad for p in model.parameters())


@pytest.mark.parametrize("bits", [8, 4, 2])
def test_rounding_leaves_so_many_values(lesson, bits):
    model, _ = make_gpt(0, spec=replace(SPEC, layers=1))
    largest = model.blocks[0].mlp.up.weight.abs().max()
    weight = lesson["rounded"](model, bits).blocks[0].mlp.up.weight
    assert weight.unique().numel() <= 2**bits - 1 and weight.abs().max().item() == pytest.approx(largest.item())


def test_the_decision_aid_says_what_the_page_reads_from_it(lesson):
    def first_step(model, chip):
        return lesson["first_step"](shape_of(model), chip_of(chip))

    order = ["as it is", "accumulate", "recompute", "LoRA", "LoRA int8", "LoRA 4bit", "split it"]
    for model in ("gpt-2", "llama-3.1-8b", "llama-3.1-70b", "gpt-3-175b"):
        steps = [order.index(first_step(model, chip)) for chip in ("rtx-4090", "h100", "h200", "b200", "gb300")]
        assert steps == sorted(steps, reverse=True)  # a bigger GPU never needs more
    assert first_step("llama-3.1-8b", "h100") == "LoRA" and first_step("llama-3.1-405b", "gb300") == "split it"
    assert first_step("llama-3.1-70b", "h100") == "LoRA 4bit"  # QLoRA's case
    assert first_step("llama-3.1-8b", "b200") == "recompute"  # so its 25 years become a third more


def test_the_tokens_decide_what_an_rtx_4090_does_with_8_billion(lesson):
    llama, chip = shape_of("llama-3.1-8b"), chip_of("rtx-4090")
    assert memory_parts(llama, lesson["plans"](llama)["recompute"])["logits"] == pytest.approx(14.7e9, rel=5e-3)
    assert lesson["first_step"](llama, chip) == "split it"
    shorter = replace(llama, positions=4096)  # to the page, the length of a text; Llama has no position table to fit
    assert lesson["first_step"](shorter, chip) == "LoRA int8"


def test_the_numbers_in_the_text():
    h100, llama = chip_of("h100").memory, count_parameters(shape_of("llama-3.1-8b"))
    assert h100 == pytest.approx(85.9e9, rel=1e-3) and 2 * llama / h100 == pytest.approx(0.19, abs=0.01)
    assert 4 * count_parameters(shape_of("gpt-3-175b")) == pytest.approx(700e9, rel=5e-3)
    assert 16 * llama > h100  # in either precision: no setting makes it fit one H100
    eight = Plan(dp=8, zero=1, microbatch=1, global_batch=16, sequence=2048)
    assert fits(shape_of("llama-3.1-8b"), eight, chip_of("h100"))
    parts = memory_parts(shape_of("gpt-2"), Plan(microbatch=8, global_batch=16, sequence=1024))
    assert max(parts, key=parts.get) == "logits"
    years = training_flops(llama, 15e12) / (0.4 * chip_of("b200").flops) / 3.15e7
    assert years == pytest.approx(25, abs=1)
