"""Lesson 01's own functions, taken from its page: each brightens as the library does."""

from __future__ import annotations

import ast
from pathlib import Path

import nbformat
import numba
import numpy as np
import pytest

from course.pixels import brighten_numpy, photograph

PAGE = Path(__file__).resolve().parents[2] / "notebooks" / "01_simd_brightening.ipynb"
KEPT = (ast.Import, ast.ImportFrom, ast.FunctionDef)
AMOUNT = 60


@pytest.fixture
def lesson(monkeypatch):
    """What the page's cells import and define, with a small photograph in place of the large one."""
    monkeypatch.setattr(numba.config, "THREADING_LAYER", "workqueue")  # as on the page
    image = photograph()[:50, :60].copy()
    out = np.zeros_like(image)
    names = {"__name__": "__main__", "image": image, "out": out, "AMOUNT": AMOUNT, "threads": 3}
    names |= {"flat": image.reshape(-1), "flat_out": out.reshape(-1)}
    names |= {"copy_seconds": 1e-3, "room": np.full(60, 255 - AMOUNT, np.uint8), "timings": {}, "ratios": {}}
    names |= {"LOW": 0x7F7F7F7F7F7F7F7F, "HIGH": 0x8080808080808080}
    for cell in nbformat.read(PAGE, as_version=4).cells:
        if cell.cell_type == "code":
            kept = [node for node in ast.parse(cell.source).body if isinstance(node, KEPT)]
            exec(compile(ast.Module(kept, []), "<lesson 01>", "exec"), names)
    return names


def agrees(lesson) -> bool:
    return np.array_equal(lesson["out"], brighten_numpy(lesson["image"], AMOUNT))


def test_the_loop_and_the_two_passes(lesson):
    assert np.array_equal(lesson["loop"](lesson["image"], AMOUNT), brighten_numpy(lesson["image"], AMOUNT))
    lesson["two_passes"]()
    assert agrees(lesson)


@pytest.mark.parametrize("kernel", ["one_pass", "everywhere"])
def test_the_compiled_kernels(lesson, kernel):
    lesson[kernel](lesson["flat_out"], lesson["flat"], AMOUNT)
    assert agrees(lesson)
    lesson["out"][:] = 0
    if kernel == "one_pass":
        lesson["in_parts"](lesson[kernel], AMOUNT)
        assert agrees(lesson)


def test_sixty_additions_of_one(lesson):
    lesson["repeated"](60)(lesson["flat_out"], lesson["flat"], 1)
    assert agrees(lesson)


def test_the_kernel_of_blocks_and_threads(lesson):
    lesson["brighten_in_threads"][(4, 4), (16, 16)](lesson["out"], lesson["image"], AMOUNT)
    assert agrees(lesson)


def test_lanes_add_without_a_leak(lesson):
    a, b = np.random.default_rng(0).integers(0, 256, (2, 8), dtype=np.uint8)
    words = [int.from_bytes(lanes.tobytes(), "big") for lanes in (a, b)]
    assert lesson["add_in_lanes"](*words).to_bytes(8, "big") == (a + b).tobytes()


def test_timed_tells_right_from_wrong(lesson, capsys):
    lesson["timed"]("right", lesson["two_passes"])
    lesson["timed"]("wrong", lesson["copy"])
    assert [line.split(", ")[-1] for line in capsys.readouterr().out.splitlines()] == ["right", "WRONG"]
