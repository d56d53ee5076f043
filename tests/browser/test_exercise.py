"""Lesson 05's exercise page as a learner uses it: a wrong answer, its hint, a right one, a restart."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from course.grading import solution
from tests.browser.lab import ROOT, LabPage, wait_until

pytestmark = [pytest.mark.browser, pytest.mark.timeout(400)]

SUM_ALONE = """def average_gradients(module):
    for p in module.parameters():
        if p.grad is not None:
            dist.all_reduce(p.grad)
"""
BY_HAND = """def average_gradients(module):
    num_ranks = dist.get_world_size()
    if num_ranks == 1:
        return
    for p in module.parameters():
        holders = torch.tensor(float(p.grad is not None))
        dist.all_reduce(holders)
        if holders == 0:
            continue
        total = torch.zeros_like(p) if p.grad is None else p.grad.clone()
        dist.all_reduce(total)
        p.grad = total / num_ranks
"""


def test_a_wrong_answer_gets_its_hint_a_right_one_passes_and_a_restart_ends_every_rank(
    lab: Callable[[Path], LabPage], shot: Callable[[LabPage, str], None], tmp_path: Path
) -> None:
    (tmp_path / "exercises").mkdir()
    shutil.copy(ROOT / "exercises" / "05_data_parallel.ipynb", tmp_path / "exercises")
    page = lab(tmp_path)
    page.open("exercises/05_data_parallel.ipynb")
    page.run_all()
    assert page.errors() == []
    assert "not attempted" in page.output("average_gradients-grade")

    imports = next(cell for cell in page.code_cells() if "import" in page.source(cell))
    page.run(imports)  # the last cell of the page has closed the ranks
    page.type_into("average_gradients-answer", SUM_ALONE)
    page.run("average_gradients-answer")
    report = page.run("average_gradients-grade")
    assert "What turns a sum into a mean?" in report and "FAIL" in report and page.errors() == []
    shot(page, "wrong answer")

    for answer in (BY_HAND, str(solution("average_gradients"))):
        page.type_into("average_gradients-answer", answer)
        page.run("average_gradients-answer")
        report = page.run("average_gradients-grade")
        assert "9 of 9 points" in report and "All checks passed." in report and page.errors() == []
    shot(page, "right answer")

    page.type_into("shard_indices-answer", "ranks.run(dist.get_rank).values == [0, 1, 2]")
    assert page.run("shard_indices-answer") == "True"
    ranks = page.server.behind_kernels()
    assert len(ranks) >= 3
    page.restart_kernel()
    wait_until(lambda: not any(map(psutil.Process.is_running, ranks)), "every rank to end", 10)
    assert page.server.behind_kernels() == []
    assert page.page_errors == []
