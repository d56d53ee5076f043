"""Lesson 02's own functions, taken from its page: stages agree with the loop, the three programs do all of the work."""

from __future__ import annotations

import ast
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import nbformat
import numpy as np
import pytest

PAGE = Path(__file__).resolve().parents[2] / "notebooks" / "02_tasks_and_amdahl.ipynb"
KEPT = (ast.Import, ast.ImportFrom, ast.FunctionDef)


@pytest.fixture
def lesson():
    """What the page's cells import and define, and the game's constants, with small arrays for the three programs."""
    source = np.ones(1001, np.float32)
    with ThreadPoolExecutor(8) as pool:
        names = {"__name__": "__main__", "source": source, "target": np.zeros_like(source), "pool": pool}
        for cell in nbformat.read(PAGE, as_version=4).cells:
            if cell.cell_type == "code":
                body = ast.parse(cell.source).body
                whole = cell.source.startswith("HEIGHT,")
                kept = [node for node in body if whole or isinstance(node, KEPT)]
                exec(compile(ast.Module(kept, []), "<lesson 02>", "exec"), names)
        yield names


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_two_stages_draw_what_the_loop_draws(lesson, depth):
    pictures, ahead = lesson["two_stages"](8, depth)
    assert np.array_equal(pictures, lesson["in_turn"](8))
    assert len(ahead) == 8 and max(ahead) <= depth


def test_balls_stay_on_the_screen_and_at_their_pace(lesson):
    state = lesson["START"]
    for _ in range(60):
        state = lesson["physics"](state)
    place, speed = state
    assert place.real.min() > -6 and place.real.max() < lesson["WIDTH"] + 6
    assert place.imag.min() > -6 and place.imag.max() < lesson["HEIGHT"] + 6
    assert 1 < np.abs(speed).mean() < 8


def test_a_ball_is_drawn_where_it_is(lesson):
    place = lesson["START"][0]
    picture = lesson["render"](lesson["START"])
    x, y = place.real.round().astype(int), place.imag.round().astype(int)
    inside = (x < lesson["WIDTH"]) & (y < lesson["HEIGHT"])
    assert (picture[y[inside], x[inside]].max(-1) > 40).all()
    assert (picture.max(-1) == 0).mean() > 0.5


@pytest.mark.parametrize("n", [1, 3, 7])
def test_parts_of_rows_make_the_picture(lesson, n):
    assert np.array_equal(lesson["render_in_parts"](lesson["START"], n), lesson["render"](lesson["START"]))
    fine = lesson["render_in_parts"](lesson["START"], n, np.arange(0, lesson["HEIGHT"], 0.5))
    assert np.array_equal(fine[::2], lesson["render"](lesson["START"]))


@pytest.mark.parametrize("program", ["triangle", "dealt"])
@pytest.mark.parametrize("n", [1, 2, 7])
def test_each_row_of_the_triangle_is_worked_on_once(lesson, program, n):
    taken = []
    lesson["block"] = np.arange(50_000)
    lesson["np"] = SimpleNamespace(sin=lambda row: taken.append(row.size // 80))
    for worker in range(n):
        lesson[program](worker, n)
    assert sorted(taken) == list(range(600))


@pytest.mark.parametrize("n", [1, 2, 7])
def test_every_number_is_added_to(lesson, n):
    lesson["run"](lesson["memory"], n)
    assert (lesson["target"] == 2).all()


def test_counts_come_a_worker(lesson):
    cpu, held = lesson["counted"](lambda worker, n: float(worker), 3)
    assert held == (0.0, 1.0, 2.0) and len(cpu) == 3 and min(cpu) >= 0
