"""Lesson 08's own functions, from its page: right splits agree, wrong ones are told apart, and the numbers hold."""

from __future__ import annotations

import ast
from pathlib import Path

import nbformat
import pytest
import torch
import torch.distributed as dist

from course import Ranks
from course.collectives import ring_all_reduce
from course.gpt import load_text
from course.planner import all_reduce_seconds
from course.spec import LINKS
from course.trace.statistics import bytes_sent

PAGE = Path(__file__).resolve().parents[2] / "notebooks" / "08_tensor_parallel.ipynb"
KEPT = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)
ELEMENTS = 8 * 64 * 128  # b s h of the lesson's layer


def names_of(page):
    """The names that the page's cells import and define, and the tuple CUT, as if they had been run in a notebook."""
    names = {"__name__": "__main__", "text": load_text(), "all_reduce": dist.all_reduce}
    for cell in nbformat.read(page, as_version=4).cells:
        if cell.cell_type == "code":
            kept = [
                node
                for node in ast.parse(cell.source).body
                if isinstance(node, KEPT) or (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "CUT")
            ]
            exec(compile(ast.Module(kept, []), "<lesson 08>", "exec"), names)
    return names


@pytest.fixture(scope="module")
def lesson():
    names = names_of(PAGE)
    copy, reduce, nothing = names["Copy"].apply, names["Reduce"].apply, names["nothing"]
    names["whole"] = {"enter": copy, "leave": reduce}
    names["no_f"], names["no_g"] = {"enter": nothing, "leave": reduce}, {"enter": copy, "leave": nothing}
    names["cut_sequence"] = {"enter": names["Gather"].apply, "leave": names["Scatter"].apply}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as on the page
    for layer in ("mlp", "attention"):
        names[f"{layer}_alone"] = names["one_layer"](layer, lambda x, module: module(x))
    names["alone"] = names["train_once"](lambda model, x, y: model.loss(x, y))
    torch.set_num_threads(threads)
    return names


@pytest.fixture(scope="module")
def ranks():
    with Ranks(3, live=False) as ranks:
        yield ranks


def parts_that_differ(lesson, run, alone) -> set[str]:
    """Names for which the page's `judge` does not agree."""
    alike = type("Run", (), {})()
    wrong = set()
    for name, want in alone.items():
        alike.values = [{name: values[name]} for values in run.values]
        if not lesson["judge"](alike, {name: want}):
            wrong.add(name)
    return wrong


@pytest.mark.parametrize("layer", ["mlp", "attention"])
def test_a_layer_with_both_doors_is_the_whole_layer(lesson, ranks, layer):
    run = ranks.run(lesson["one_layer"], layer, lesson[layer], **lesson["whole"])
    assert lesson["judge"](run, lesson[f"{layer}_alone"])
    assert len(run.values[0]) == 6  # loss, x, two weights and two biases


@pytest.mark.parametrize("layer", ["mlp", "attention"])
def test_without_f_the_gradient_of_x_alone_is_wrong(lesson, ranks, layer):
    run = ranks.run(lesson["one_layer"], layer, lesson[layer], **lesson["no_f"])
    assert parts_that_differ(lesson, run, lesson[f"{layer}_alone"]) == {"x"}


def test_without_g_the_loss_is_wrong(lesson, ranks):
    run = ranks.run(lesson["one_layer"], "mlp", lesson["mlp"], **lesson["no_g"])
    assert "loss" in parts_that_differ(lesson, run, lesson["mlp_alone"])


def test_the_whole_gpt_agrees_and_misses_f(lesson, ranks):
    train, split = lesson["train_once"], lesson["split_loss"]
    assert lesson["judge"](ranks.run(train, split, **lesson["whole"]), lesson["alone"])
    run = ranks.run(train, split, **lesson["no_f"])
    wrong = parts_that_differ(lesson, run, lesson["alone"])
    assert "loss" not in wrong and "positions.weight" in wrong


def test_sequence_parallel_agrees_once_gradients_of_whole_weights_are_summed(lesson, ranks):
    ranks.resize(2)
    part = lesson["part"]
    run = ranks.run(lesson["train_once"], lesson["split_loss"], own=lambda t: part(t, 0), **lesson["cut_sequence"])
    wrong = lesson["judge"](run, lesson["alone"])
    assert not wrong and "DIFFER" in repr(wrong)
    assert lesson["judge"](run, lesson["alone"], cut=("weight", "bias"))


@pytest.mark.parametrize("n", [2, 4])
def test_a_layer_sends_what_the_formula_says(lesson, ranks, n):
    ranks.resize(n)
    want = 8 * ELEMENTS * (n - 1) // n * 4
    for all_reduce, source in ((dist.all_reduce, "computed"), (ring_all_reduce, "measured")):
        lesson["all_reduce"] = all_reduce
        sent = bytes_sent(ranks.run(lesson["one_block"], **lesson["whole"]).trace)
        assert [(t.nbytes, t.source) for t in sent] == [(want, source)] * n
    lesson["all_reduce"] = dist.all_reduce
    sent = bytes_sent(ranks.run(lesson["one_block"], tokens=64 // n, **lesson["cut_sequence"]).trace)
    assert {t.source for t in sent} == {"measured"}
    assert all(sum(t.nbytes for t in sent if t.rank == rank) == want for rank in range(n))


def loss_of_random_logits(cross_entropy, part):
    logits = part(torch.randn(2, 5, 96, generator=torch.Generator().manual_seed(0)), 2)
    cross_entropy(logits.requires_grad_(), torch.arange(10).view(2, 5), 32 * dist.get_rank()).backward()


def test_the_loss_sends_three_numbers_a_token(lesson, ranks):
    ranks.resize(3)
    sent = bytes_sent(ranks.run(loss_of_random_logits, lesson["cross_entropy"], lesson["part"]).trace)
    assert [(t.name, t.calls) for t in sent] == [("all_reduce", 3)] * 3
    assert sent[0].nbytes == round(2 * 2 / 3 * (3 * 10 * 4))


def test_ring_attention_and_torchs_dtensor(lesson, ranks):
    ranks.resize(2)
    y = torch.cat(ranks.run(lesson["in_parts"]).values, 2)
    assert lesson["compare"](y, torch.nn.functional.scaled_dot_product_attention(*lesson["heads"]()))
    run = ranks.run(lesson["train_dtensor"])
    assert lesson["judge"](run, lesson["alone"], cut=())
    assert sum(t.calls for t in bytes_sent(run.trace) if t.rank == 0) >= 8  # the MLPs' all-reduces were there


def test_what_the_page_says_of_llama_and_the_links():
    layer = 12 * 25_600**2 * 16
    assert layer > 80e9 and round(layer / 1e9) == 126
    assert round(834_304 * 4 / 1e6, 1) == 3.3  # "3.3 MB here"
    b, s, h, t, flops = 1, 8192, 16384, 8, 430e12
    computing = 6 * 405e9 / 126 * b * s / t / flops
    shares = {
        link.name: 4 * all_reduce_seconds(b * s * h * 2, t, alpha=link.alpha, bandwidth=link.bandwidth) / computing
        for link in LINKS
    }
    assert LINKS[3].name == "InfiniBand NDR" and LINKS[0].name == "NVLink, H100"
    assert shares["NVLink, H100"] < 0.15 and 0.7 < shares["InfiniBand NDR"] < 1 < shares["Ethernet, 10 Gbit/s"]
    for link in LINKS:  # "even at h": sending takes as long as computing, alpha left out
        even = 2 / 9 * flops / link.bandwidth * (t - 1)
        assert 16 * b * s * even * (t - 1) / t / link.bandwidth == pytest.approx(72 * b * s * even**2 / t / flops)
