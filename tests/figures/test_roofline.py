"""The roofline as drawn: roofs bend where memory and arithmetic meet, points stand where they were measured."""

from __future__ import annotations

import pytest

from course.figures.roofline import draw_roofline, roofline_table

POINTS = {"one core": [(0.5, 4e9), (16, 90e9)], "two cores": [(0.5, 6e9)]}
ROOFS = {"one core": (100e9, 10e9)}


def line(ax, label):
    return next(line for line in ax.lines if line.get_label() == label)


def test_the_roof_rises_with_bandwidth_and_bends_at_the_ridge():
    ax = draw_roofline(POINTS, ROOFS)
    x, y = line(ax, "roof: one core").get_data()
    assert x[1] == 10 and y[1] == y[2] == 100e9 and y[0] == pytest.approx(x[0] * 10e9)
    assert x[0] < 0.5 and x[2] > 16


def test_points_stand_where_they_were_measured():
    ax = draw_roofline(POINTS, ROOFS)
    for name, row in POINTS.items():
        assert list(zip(*line(ax, f"measured: {name}").get_data(), strict=True)) == row
    assert {ax.get_xscale(), ax.get_yscale()} == {"log"}
    assert "operations for each byte" in ax.get_xlabel() and "second" in ax.get_ylabel()


def test_series_differ_without_colour():
    ax = draw_roofline(POINTS, ROOFS | {"two cores": (200e9, 12e9)})
    assert len({line.get_marker() for line in ax.lines if line.get_label().startswith("measured")}) == 2
    assert len({line.get_linestyle() for line in ax.lines if line.get_label().startswith("roof")}) == 2


def test_the_table_sets_each_point_beside_its_roof_and_names_the_limit():
    assert roofline_table(POINTS, ROOFS).rows == (
        ("one core", "0.5", "4", "5", "80%", "memory"),
        ("one core", "16", "90", "100", "90%", "arithmetic"),
        ("two cores", "0.5", "6", "", "", ""),
    )


def test_the_words_say_where_arithmetic_takes_over():
    ax = draw_roofline(POINTS, ROOFS)
    assert "from 10 operations a byte on, arithmetic is the limit" in ax.description
    assert "10 GB/s" in ax.description and "100 billion" in ax.description
    assert "measured" in ax._repr_html_() and repr(ax) == "<roofline of 2 machines>"


def test_a_roof_without_points_can_be_drawn():
    ax = draw_roofline({}, ROOFS)
    assert [line.get_label() for line in ax.lines] == ["roof: one core"]
