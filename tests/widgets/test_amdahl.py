"""The Amdahl explorer follows its controls, keeps the learner's points, and says the same in text."""

from __future__ import annotations

import pytest

from course.errors import UsageError
from course.figures.amdahl import describe_amdahl
from course.widgets.amdahl import AmdahlExplorer

POINTS = {"game": [(1, 1.0), (2, 1.6)]}


def field(explorer, words):
    return next(control for control in explorer.children[0].children if control.description == words)


def test_the_controls_move_the_laws_and_the_picture():
    explorer = AmdahlExplorer(POINTS)
    before = explorer._picture.value
    field(explorer, "serial share").value = 0.05
    field(explorer, "workers").value = 1000
    assert (explorer.serial, explorer.workers) == (0.05, 1000)
    assert explorer.amdahl == pytest.approx(19.63, abs=0.01) and explorer.gustafson == pytest.approx(950.05)
    assert explorer.sentence == describe_amdahl(0.05, 1000) and explorer.sentence in explorer._picture.value
    assert explorer._picture.value != before and "1,000 workers" in explorer._picture.value


def test_traits_set_by_code_reach_the_controls():
    explorer = AmdahlExplorer()
    explorer.workers, explorer.serial = 3, 1.0
    assert field(explorer, "workers").value == 3 and field(explorer, "serial share").value == 1.0
    assert explorer.amdahl == explorer.gustafson == 1


def test_the_points_are_in_the_table_and_the_figure_but_not_in_the_text():
    explorer = AmdahlExplorer(POINTS, serial=0.25, workers=4)
    assert explorer.table().rows[1][3] == "game 1.6 (80%)"
    assert "game 1.6 (80%)" in explorer._picture.value
    assert any(list(line.get_xdata()) == [1, 2] for line in explorer.figure().lines)
    assert repr(explorer) == f"AmdahlExplorer(serial=0.25, workers=4)\n{describe_amdahl(0.25, 4)}"
    assert explorer._repr_mimebundle_()["text/plain"] == repr(explorer)


def test_a_list_without_a_name_is_yours():
    assert AmdahlExplorer([(2, 1.5)]).table().rows[1][3] == "yours 1.5 (75%)"


@pytest.mark.parametrize(("serial", "workers"), [(1.5, 4), (-0.1, 4), (0.1, 0), (0.1, 10_000)])
def test_the_impossible_is_refused(serial, workers):
    with pytest.raises(UsageError, match="AmdahlExplorer"):
        AmdahlExplorer(serial=serial, workers=workers)


def test_points_that_cannot_be_are_refused():
    with pytest.raises(UsageError, match="speed-up of -1"):
        AmdahlExplorer([(2, -1)])
