"""Lesson 05's own functions, taken from its page: its comparison agrees where it should and shouts where it should."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import nbformat
import pytest
import torch

from course import Ranks
from course.gpt import load_text

PAGE = Path(__file__).resolve().parents[2] / "notebooks" / "05_data_parallel.ipynb"
KEPT = (ast.Import, ast.ImportFrom, ast.FunctionDef)


@pytest.fixture(scope="module")
def lesson():
    """The names that the page's cells import and define, as if they had been run in a notebook."""
    names = {"__name__": "__main__", "text": load_text()}
    for cell in nbformat.read(PAGE, as_version=4).cells:
        if cell.cell_type == "code" and not cell.source.startswith("%%"):
            kept = [node for node in ast.parse(cell.source).body if isinstance(node, KEPT)]
            exec(compile(ast.Module(kept, []), "<lesson 05>", "exec"), names)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as on the page
    names["alone"] = names["train"](lambda model: None, 0, 1)
    torch.set_num_threads(threads)
    return names


@pytest.fixture(scope="module")
def ranks():
    with Ranks(3, live=False) as ranks:
        yield ranks


def judged(lesson, run, capsys) -> dict[str, str]:
    lesson["judge"](run, lesson["alone"])
    lines = capsys.readouterr().out.splitlines()
    return {name: verdict.strip() for name, _, verdict in (line.partition(":") for line in lines)}


def test_averaging_over_three_ranks_is_the_big_batch(lesson, ranks, capsys):
    said = judged(lesson, ranks.run(lesson["train"], lesson["average"]), capsys)
    assert said["averaged losses"].startswith("agree") and said["first gradient"].startswith("agree")
    assert said["replicas"] == "equal to the bit"
    off = re.match(r"off by ([\d.]+)% at most", said["rank 0's own losses"])
    assert off and 0.1 < float(off[1]) < 10


def test_a_forgotten_division_is_caught_and_its_factor_named(lesson, ranks, capsys):
    said = judged(lesson, ranks.run(lesson["train"], lesson["total"]), capsys)
    assert said["first gradient"].startswith("DIFFER: 3.00 times everywhere")
    assert said["replicas"] == "equal to the bit"  # which alone would not have caught it


def test_a_forgotten_exchange_is_caught(lesson, ranks, capsys):
    said = judged(lesson, ranks.run(lesson["train"], lambda model: None), capsys)
    assert said["replicas"] == "DIFFER" and said["first gradient"].startswith("DIFFER")


def test_torchs_own_wrapper_gives_the_same_numbers(lesson, ranks, capsys):
    said = judged(lesson, ranks.run(lesson["train_ddp"]), capsys)
    assert said["averaged losses"].startswith("agree") and said["first gradient"].startswith("agree")
    assert said["replicas"] == "equal to the bit"  # though each rank drew weights of its own


def test_uneven_shards_need_the_weights(lesson, ranks):
    whole = lesson["first_gradient"](0, 1, batch=22, weigh=False)
    plain, weighed = (ranks.run(lesson["first_gradient"], batch=22, weigh=w).values[0] for w in (False, True))
    assert not lesson["compare"](plain, whole)
    assert lesson["compare"](weighed, whole)
