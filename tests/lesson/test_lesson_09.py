"""Lesson 09's own functions, taken from its page: they agree where they should, shout where they should, and what the
page says in words holds."""

from __future__ import annotations

import ast
import itertools
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
import torch

from course import Ranks
from course.figures.mesh import Mesh
from course.spec.layout import Layout

PAGE = Path(__file__).resolve().parents[2] / "notebooks" / "09_hybrid_parallel.ipynb"
KEPT = (ast.Import, ast.ImportFrom, ast.FunctionDef)
DATA = ("array", "data", "CUBE")  # variables that the functions need
CUBE = Layout(dp=2, pp=2, tp=2)


@pytest.fixture(scope="module")
def lesson():
    """The names that the page's cells import and define, as if they had been run in a notebook."""
    names = {"__name__": "__main__"}
    for cell in nbformat.read(PAGE, as_version=4).cells:
        if cell.cell_type == "code":
            kept = [
                node
                for node in ast.parse(cell.source).body
                if isinstance(node, KEPT) or (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in DATA)
            ]
            exec(compile(ast.Module(kept, []), "<lesson 09>", "exec"), names)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as on the page
    names["losses"], names["norms"], names["first"] = names["one_process"]()
    torch.set_num_threads(threads)
    return names


@pytest.fixture(scope="module")
def ranks():
    with Ranks(8, live=False) as ranks:
        yield ranks


def test_by_hand_each_rank_has_its_part_of_the_whole_gradient(lesson, ranks):
    for rank, grad in enumerate(ranks.run(lesson["by_hand"]).values):
        whole = lesson["first"][f"blocks.{3 * (rank // 4)}.mlp.up.weight"]
        assert lesson["compare"](grad, whole.chunk(2)[rank % 2], tolerance=1e-5)


def test_the_comparison_agrees_and_catches_what_is_wrong(lesson, ranks, capsys):
    run = ranks.run(lesson["train"], CUBE, steps=2)
    lesson["judge"](run, CUBE)
    assert capsys.readouterr().out.count("agree:") == 3
    losses, norms, first, parts, _ = run.values[5]
    name = next(iter(first))
    run.values[5] = losses, norms, first | {name: 2 * first[name]}, parts, "00000000"
    lesson["judge"](SimpleNamespace(values=run.values), CUBE)
    said = capsys.readouterr().out
    assert "first gradients: DIFFER" in said and "copies along dp: DIFFER" in said


def test_nodes_are_those_of_the_explorer(lesson):
    for order in itertools.permutations(("tp", "dp", "pp")):
        mesh = Mesh(order=order)
        recorded = {Mesh().ranks[place]: mesh.node(rank) for place, rank in mesh.ranks.items()}
        assert lesson["nodes"](order) == recorded


def test_a_clip_a_rank_gives_four_wrong_norms_and_parts_what_tp_holds_whole(lesson, ranks):
    found = ranks.run(lesson["clip_alone"]).values
    assert len({norm for norm, _ in found}) == 4
    assert all(norm < 0.9 * lesson["norms"][0] for norm, _ in found)
    for rank, (_, code) in enumerate(found):
        assert code != found[rank ^ 1][1]  # its partner along tp
        assert code == found[rank ^ 2][1]  # its copy along dp


def test_masks_are_equal_along_tp_alone(lesson, ranks):
    masks = ranks.run(lesson["mask"]).values
    for a, b in itertools.combinations(range(8), 2):
        assert (masks[a] == masks[b]) == (a ^ b == 1)


def test_every_token_arrives_at_one_expert_and_not_evenly(lesson, ranks):
    arrived = ranks.run(lesson["route"]).values
    assert sum(arrived) == 32 * 64 and max(arrived) > 1.1 * min(arrived)


def test_a_layer_of_llama_has_about_12_c_squared_parameters():
    width, hidden, kept = 16_384, 53_248, 8 * 128  # table 3 of the paper: 8 key-value heads of 128
    assert 2 * width**2 + 2 * width * kept + 3 * width * hidden == pytest.approx(12 * width**2, rel=0.02)
