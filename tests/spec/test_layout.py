"""Ranks, coordinates and groups against torch's DeviceMesh and by hand; layouts that do not fit."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from course.errors import UsageError
from course.spec import LESSON_GPT, ModelSpec
from course.spec.layout import (
    Layout,
    axis_groups,
    bytes_across,
    coordinates_to_rank,
    layouts_of,
    place_axes,
    rank_to_coordinates,
)

UNEVEN = {"dp": 3, "pp": 2, "tp": 4}  # 2x2x2 hides most mistakes


def test_tp_is_fastest_and_pp_slowest():
    grid = np.arange(24).reshape(2, 3, 4)  # pp, dp, tp
    for rank in range(24):
        coordinates = rank_to_coordinates(rank, **UNEVEN)
        assert grid[coordinates["pp"], coordinates["dp"], coordinates["tp"]] == rank
        assert coordinates_to_rank(coordinates, **UNEVEN) == rank
    assert axis_groups("tp", **UNEVEN) == grid.reshape(-1, 4).tolist()
    assert axis_groups("dp", **UNEVEN) == sorted(grid.transpose(0, 2, 1).reshape(-1, 3).tolist())
    assert axis_groups("pp", **UNEVEN) == sorted(grid.transpose(1, 2, 0).reshape(-1, 2).tolist())


def test_a_layout_is_read_and_printed():
    assert Layout.parse("tp=4, dp=2") == Layout(dp=2, tp=4)
    assert str(Layout.parse("pp=3")) == "dp=1,pp=3,tp=1"
    assert Layout(dp=2, pp=3, tp=4).world_size == 24


def test_all_layouts_of_so_many_ranks():
    assert len(layouts_of(8)) == 10
    assert all(layout.world_size == 8 for layout in layouts_of(8))
    assert layouts_of(1) == (Layout(),)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: Layout(dp=0), r"Layout\(dp=0\)"),
        (lambda: Layout.parse("dp=2,ep=2"), "cannot read 'ep=2'; write it as"),
        (lambda: Layout.parse("dp=2,dp=2"), "each axis once"),
        (lambda: Layout(dp=2, pp=2, tp=3).check(8), "needs 12 ranks, but this run has 8: try dp=2,pp=2,tp=2"),
        (lambda: Layout(tp=8).check(8, LESSON_GPT), "4 heads do not divide by tp=8: try"),
        (lambda: Layout(pp=8).check(8, LESSON_GPT), "make 6 layers, not 8 stages: try"),
        (lambda: Layout(dp=8).check(8, LESSON_GPT, batch=12), "batch of 12 does not divide by dp=8"),
        (lambda: Layout(tp=2).check(2, ModelSpec(heads=1)), "1 heads do not divide by tp=2: try"),
        (lambda: rank_to_coordinates(24, **UNEVEN), "has ranks 0 to 23"),
        (lambda: coordinates_to_rank({"pp": 2, "dp": 0, "tp": 0}, **UNEVEN), "pp must be from 0 to 1, found 2"),
        (lambda: coordinates_to_rank({"pp": 1, "dp": 0}, **UNEVEN), "tp must be from 0 to 3, found None"),
        (lambda: axis_groups("ep", **UNEVEN), "the axes are pp, dp, tp"),
        (lambda: place_axes({"tp": 1.0}, {"dp": 2}, 4), "name the same axes"),
    ],
)
def test_what_does_not_fit_is_said_with_what_does(call, says):
    with pytest.raises(UsageError, match=says):
        call()


def test_what_is_tried_next_does_fit():
    with pytest.raises(UsageError) as caught:
        Layout(dp=1, pp=1, tp=8).check(8, LESSON_GPT, batch=8)
    for text in str(caught.value).split("try ")[1].split(" or "):
        Layout.parse(text).check(8, LESSON_GPT, batch=8)


def crossing(order, nbytes, sizes, per_node):
    """Bytes across nodes, counted on a grid of ranks."""
    shape = [sizes[axis] for axis in reversed(order)]
    grid = np.arange(int(np.prod(shape))).reshape(shape)
    total = 0.0
    for place, axis in enumerate(reversed(order)):
        if sizes[axis] > 1:
            total += nbytes[axis] * np.sum(grid // per_node != np.roll(grid, -1, axis=place) // per_node)
    return total


def test_axes_with_most_bytes_stay_inside_a_node():
    sizes, nbytes = {"dp": 2, "pp": 2, "tp": 4}, {"dp": 5.0, "pp": 1.0, "tp": 100.0}
    assert place_axes(nbytes, sizes, 4)[0] == "tp"
    assert place_axes({"dp": 100.0, "pp": 1.0, "tp": 5.0}, {"dp": 4, "pp": 2, "tp": 2}, 4)[0] == "dp"
    for order in itertools.permutations(sizes):
        assert bytes_across(order, nbytes, sizes, 4) == crossing(order, nbytes, sizes, 4)
        assert bytes_across(order, nbytes, sizes, 6) == crossing(order, nbytes, sizes, 6)
