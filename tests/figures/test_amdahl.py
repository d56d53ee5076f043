"""Both laws as drawn: curves where they should be, marks where measured, the same numbers in the table."""

from __future__ import annotations

import pytest

from course.errors import UsageError
from course.figures.amdahl import amdahl_table, describe_amdahl, draw_amdahl

POINTS = {"game": [(1, 1.0), (2, 1.6)], "lock": [(3, 1.5)]}


def lines(ax):
    return {line.get_label(): line for line in ax.lines}


def test_curves_and_marks_lie_where_they_should():
    ax = draw_amdahl(POINTS, serial=0.25, workers=16)
    drawn = lines(ax)
    for name, at_16 in (("ideal", 16), ("Amdahl", 1 / (0.25 + 0.75 / 16)), ("Gustafson", 12.25)):
        x, y = drawn[name].get_data()
        assert (x[0], y[0]) == (1, 1) and (x[-1], y[-1]) == pytest.approx((16, at_16))
    assert list(zip(*drawn["measured: game"].get_data(), strict=True)) == POINTS["game"]
    assert ax.get_xscale() == ax.get_yscale() == "log" and "workers" in ax.get_xlabel()


def test_the_axes_reach_to_the_last_point():
    x = lines(draw_amdahl({"many": [(100, 50.0)]}, serial=0.1, workers=4))["Amdahl"].get_xdata()
    assert x[-1] == pytest.approx(100)
    assert lines(draw_amdahl({}, serial=0.1, workers=1))["Amdahl"].get_xdata()[-1] == pytest.approx(2)


def test_the_table_holds_laws_and_points():
    table = amdahl_table(POINTS, serial=0.25, workers=5)
    assert [row[0] for row in table.rows] == ["1", "2", "3", "4", "5"]
    assert table.rows[1] == ("2", "1.6", "1.75", "game 1.6 (80%)")
    assert table.rows[2][3] == "lock 1.5 (50%)" and table.rows[3][3] == "–"


def test_a_sentence_says_what_each_law_promises():
    said = describe_amdahl(0.05, 1000)
    assert said.startswith("5% serial, 1,000 workers. Amdahl, the same work: 19.6 times as fast, never above 20, ")
    assert "efficiency 2%" in said and said.endswith("950 times as much.")
    assert "without a limit" in describe_amdahl(0.0, 1) and "1 worker." in describe_amdahl(0.0, 1)


def test_looks_differ_without_colour():
    ax = draw_amdahl({name: [(2, 1.5)] for name in "abcd"}, serial=0.1)
    assert len({line.get_linestyle() for line in ax.lines[:3]}) == 3
    assert len({line.get_marker() for line in ax.lines[3:]}) == 4
    assert repr(ax) == "<speed-up over workers>" and ax.description == describe_amdahl(0.1, 64)


@pytest.mark.parametrize(
    ("points", "said"),
    [
        ({name: [(1, 1.0)] for name in "abcde"}, "at most 4"),
        ({"a": []}, "no points for 'a'"),
        ({"a": [(2, 0.0)]}, "speed-up of 0.0"),
        ({"a": [(0, 1.0)]}, "at least one worker"),
    ],
)
def test_points_that_cannot_be_are_refused(points, said):
    with pytest.raises(UsageError, match=said):
        draw_amdahl(points, serial=0.1)
