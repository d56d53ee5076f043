"""Seconds against bytes as drawn: marks where measured, curves where theory says, and the difference in words."""

from __future__ import annotations

import pytest

from course.errors import UsageError
from course.figures import draw_cost
from course.figures.cost import cost_table

POINTS = [(1e3, 2e-4), (1e6, 1.5e-3), (1e8, 0.1)]


def line(nbytes):
    return 1e-4 + nbytes / 1e9


def test_marks_and_curves_lie_where_they_should():
    ax = draw_cost({"message": POINTS}, {"message": line})
    curve, marks = ax.lines
    assert list(zip(*marks.get_data(), strict=True)) == POINTS
    x, y = curve.get_data()
    assert (x[0], x[-1]) == pytest.approx((1e3, 1e8)) and y == pytest.approx([line(nbytes) for nbytes in x])
    assert ax.get_xscale() == ax.get_yscale() == "log"
    assert "bytes" in ax.get_xlabel() and "(s)" in ax.get_ylabel()


def test_theory_alone_runs_from_a_kilobyte_to_a_gigabyte():
    (curve,) = draw_cost({}, {"link": line}).lines
    assert curve.get_xdata()[0] == pytest.approx(1e3) and curve.get_xdata()[-1] == pytest.approx(1e9)


def test_the_table_says_how_far_theory_is_off():
    table = cost_table({"message": POINTS}, {"message": line})
    assert table.rows[1] == ("message", "1 MB", "1.5 ms", "1.1 ms", "-27%")
    assert table.caption == "message: theory is off by 27% (median)."
    assert cost_table({"message": POINTS}, {}).rows[0][3:] == ("–", "–")


def test_looks_differ_without_colour():
    names = "abcde"
    ax = draw_cost(dict.fromkeys(names, POINTS), dict.fromkeys(names, line))
    assert len({curve.get_linestyle() + str(curve._dash_pattern) for curve in ax.lines[::2]}) == 5
    assert len({marks.get_marker() for marks in ax.lines[1::2]}) == 5


def test_nothing_or_too_much_is_refused():
    with pytest.raises(UsageError, match="got 0"):
        draw_cost({}, {})
    with pytest.raises(UsageError, match="got 6"):
        draw_cost({}, dict.fromkeys("abcdef", line))
