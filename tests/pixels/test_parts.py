"""Rows are covered once and as torch cuts them; the photograph fills its square; numba loads only when needed."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import course.pixels
from course.errors import UsageError
from course.pixels import large_photograph, photograph, split_rows


@given(rows=st.integers(0, 500), parts=st.integers(1, 70))
def test_rows_are_cut_as_torch_cuts_them(rows, parts):
    cut = [range(*part) for part in split_rows(rows, parts)]
    assert [list(part) for part in cut] == [part.tolist() for part in torch.tensor_split(torch.arange(rows), parts)]


@pytest.mark.parametrize(("rows", "parts"), [(-1, 2), (3, 0)])
def test_impossible_cuts_are_refused(rows, parts):
    with pytest.raises(UsageError, match=f"rows={rows}, parts={parts}"):
        split_rows(rows, parts)


def test_the_photograph_in_grey_and_in_colour():
    grey, colour = photograph(), photograph(colour=True)
    assert grey.shape == (600, 512) and colour.shape == (600, 512, 3) and grey.dtype == colour.dtype == np.uint8
    assert grey.std() > 30 and abs(grey.mean() - colour.mean()) < 20


@pytest.mark.parametrize("pixels", [1, 1000, 1_000_000])
def test_a_large_photograph_repeats_the_small_one(pixels):
    small, large = photograph(), large_photograph(pixels)
    side = int(pixels**0.5)
    assert large.shape == (side, side)
    rows, columns = np.indices(large.shape)
    np.testing.assert_array_equal(large, small[rows % 600, columns % 512])


def test_no_photograph_of_no_pixels():
    with pytest.raises(UsageError, match="pixels=0"):
        large_photograph(0)


def test_numba_is_not_loaded_before_it_is_needed():
    code = (
        "import sys, course.pixels as p\n"
        "p.brighten_swar(p.photograph(), 3); p.split_rows(3, 2); p.attainable(1, 2, 3)\n"
        "print('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_the_room_lists_what_it_has():
    assert all(getattr(course.pixels, name) is not None for name in course.pixels.__all__)
    assert set(course.pixels.__all__) <= set(dir(course.pixels))
    with pytest.raises(AttributeError, match="no_such_name"):
        course.pixels.no_such_name  # noqa: B018
