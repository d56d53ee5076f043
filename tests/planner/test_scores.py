"""Errors and ranks, by hand."""

from __future__ import annotations

import pytest

from course.planner.scores import Pair, error_table, kendall_table, kendall_tau


def pairs(predicted: list[float], measured: list[float]) -> list[Pair]:
    return [Pair(str(k), *values, "g", k) for k, values in enumerate(zip(predicted, measured, strict=True))]


def test_errors_by_hand() -> None:
    table = error_table(pairs([1.1, 0.8], [1.0, 1.0]))
    assert table["n"] == 2 and table["mape"] == pytest.approx(0.15) and table["bias"] == pytest.approx(-0.05)
    assert table["worst_id"] == "1" and table["worst"] == pytest.approx(-0.2)


def test_kendall_by_hand() -> None:
    assert kendall_tau(pairs([1, 2, 3], [1, 2, 3])) == 1
    assert kendall_tau(pairs([3, 2, 1], [1, 2, 3])) == -1
    assert kendall_tau(pairs([1, 3, 2], [1, 2, 3])) == pytest.approx(1 / 3)
    assert kendall_tau(pairs([1, 1], [1, 2])) == 0  # a tie in prediction decides nothing


def test_close_times_and_the_same_layout_are_not_ranked() -> None:
    assert kendall_tau(pairs([2, 1], [1.0, 1.02])) is None
    assert kendall_tau([Pair("a", 1, 1, "g", "same"), Pair("b", 1, 2, "g", "same")]) is None


def test_groups_have_eight_layouts() -> None:
    eight = pairs(list(range(1, 9)), list(range(1, 9)))
    assert kendall_table(eight) == {"g": 1.0}
    assert kendall_table(eight[:7]) == {}
