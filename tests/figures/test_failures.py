"""Time lost over the interval between checkpoints: the curve is the planner's formula, lowest at Young's interval."""

from __future__ import annotations

import pytest

from course.errors import UsageError
from course.figures import draw_lost
from course.figures.failures import lost_share
from course.planner.run import checkpoint_interval, goodput

GIVEN = {"checkpoint_seconds": 30.0, "restart_seconds": 300.0, "to_failure": 10_000.0}


def test_the_least_is_where_young_says_and_as_much_as_the_planner_says():
    best = checkpoint_interval(30.0, 10_000.0)
    stays = goodput(checkpoint_seconds=30.0, restart_seconds=300.0, mean_seconds_to_failure=10_000.0)
    assert lost_share(best, **GIVEN) == pytest.approx(1 - stays)
    for factor in (0.5, 0.9, 1.1, 2.0):
        assert lost_share(best * factor, **GIVEN) > lost_share(best, **GIVEN)


def test_the_curve_and_the_marks_lie_where_they_should():
    points = [(60.0, 0.55), (600.0, 0.12)]
    ax = draw_lost(**GIVEN, points=points)
    drawn = {line.get_label(): line for line in ax.lines}
    x, y = drawn["formula"].get_data()
    assert list(y) == pytest.approx([100 * lost_share(60 * minutes, **GIVEN) for minutes in x])
    assert min(y) == pytest.approx(100 * lost_share(checkpoint_interval(30.0, 10_000.0), **GIVEN), rel=1e-3)
    assert list(drawn["simulated"].get_xdata()) == [1.0, 10.0]
    assert list(drawn["simulated"].get_ydata()) == pytest.approx([55.0, 12.0])
    assert min(x) <= 1.0 and max(x) >= 10.0 and "minutes" in ax.get_xlabel()


def test_words_and_table_say_the_same():
    ax = draw_lost(**GIVEN, points=[(600.0, 0.12)])
    assert ax.description == (
        "A failure every 2.78 h, checkpoints of 30 s, restarts of 300 s: least lost, 10.7%, "
        "with a checkpoint every 12.9 minutes."
    )
    assert ("10", "11.0%", "12.0%") in ax.table.rows and len(ax.table.rows) == 4
    assert "simulated" not in {line.get_label() for line in draw_lost(**GIVEN).lines}


def test_what_cannot_be_is_refused():
    with pytest.raises(UsageError, match="seconds above 0"):
        draw_lost(checkpoint_seconds=0.0, restart_seconds=1.0, to_failure=10.0)
