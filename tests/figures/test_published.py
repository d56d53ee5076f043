"""Predicted beside published: each run where its error puts it, the same errors in the table and in words."""

from __future__ import annotations

import pytest

from course.errors import UsageError
from course.figures import draw_published, errors_table
from course.planner.scores import Pair

FAMILIES = {
    "near": [Pair("a", 1.0, 1.0), Pair("b", 105.0, 100.0)],
    "far": [Pair("c", 6.0, 10.0)],
    "none": [],
}


def test_marks_lie_at_predicted_over_published():
    ax = draw_published(FAMILIES)
    drawn = {line.get_label(): line for line in ax.lines}
    assert list(drawn["near (2)"].get_xdata()) == [1.0, 100.0]
    assert list(drawn["near (2)"].get_ydata()) == pytest.approx([1.0, 1.05])
    assert list(drawn["far (1)"].get_ydata()) == pytest.approx([0.6])
    assert ax.get_xscale() == "log" and ax.get_yscale() == "linear"
    assert ax.get_xlabel() == "published: seconds a step" and ax.get_ylabel() == "predicted / published"


def test_the_table_has_each_family_and_all():
    table = errors_table(FAMILIES)
    assert table.rows == (
        ("near", "2", "2.5%", "+2.5%", "+5.0%", "b"),
        ("far", "1", "40.0%", "-40.0%", "-40.0%", "c"),
        ("all", "3", "15.0%", "-11.7%", "-40.0%", "c"),
    )
    assert draw_published(FAMILIES).table.rows == table.rows


def test_the_sentence_names_the_worst():
    said = draw_published(FAMILIES).description
    assert said == ("3 published runs, mean error 15.0%; 2 are within 10%. The worst, c, is off by -40%.")


def test_twelve_families_look_different():
    ax = draw_published({str(i): [Pair("x", 1.0, 1.0 + i)] for i in range(12)})
    looks = {(line.get_marker(), line.get_color()) for line in ax.lines[1:]}
    assert len({mark for mark, _ in looks}) == 12


@pytest.mark.parametrize("families", [{}, {"empty": []}])
def test_nothing_to_compare_is_refused(families):
    with pytest.raises(UsageError, match="no pair"):
        draw_published(families)
