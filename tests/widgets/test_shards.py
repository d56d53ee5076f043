"""The shard explorer follows its controls, tells a wrong rule from a right one, and says the same in text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course.errors import UsageError
from course.figures.shards import IN_A_ROW, LEGEND, draw_shards, judge_shares, owners
from course.widgets import ShardExplorer


def strided(n, rank, world_size, *, epoch=0, seed=0):
    return list(range((rank + epoch + seed) % world_size, n, world_size))


def field(explorer, words):
    return next(control for control in explorer.children[0].children if control.description == words)


def test_the_controls_move_the_shares():
    explorer = ShardExplorer(strided, n=10, world_size=3)
    assert explorer.sizes == [4, 3, 3]
    field(explorer, "ranks").value = 4
    assert explorer.world_size == 4 and explorer.shares[1] == [1, 5, 9]
    field(explorer, "samples").value = 3
    assert explorer.sizes == [1, 1, 1, 0]
    field(explorer, "epoch").value = 1
    assert explorer.shares[0] == [1]


def test_traits_set_by_code_reach_the_controls_and_the_text():
    explorer = ShardExplorer(strided)
    explorer.n = 7
    assert field(explorer, "samples").value == 7
    assert repr(explorer).startswith("ShardExplorer(n=7, world_size=4, epoch=0, seed=0)\nAll 7 samples are dealt")
    assert explorer._repr_mimebundle_()["text/plain"] == repr(explorer)


def test_the_widget_and_its_picture_say_what_a_box_and_its_number_are():
    explorer = ShardExplorer(strided)
    assert LEGEND in explorer._picture.value and LEGEND in explorer.figure().get_xlabel()


@given(n=st.integers(0, 200), world_size=st.integers(1, 8))
def test_a_right_rule_is_called_right(n, world_size):
    shares = [strided(n, rank, world_size) for rank in range(world_size)]
    assert judge_shares(n, shares) == f"All {n} samples are dealt, each to one rank."


@pytest.mark.parametrize(
    ("shares", "verdict"),
    [
        ([[0, 1], [1, 2]], "1 dealt more than once."),
        ([[0], [2]], "1 left out."),
        ([[0, 1], [2, 3]], "3 not in the data set."),
        ([[0, 0], []], "0 dealt more than once; 1, 2 left out."),
    ],
)
def test_a_wrong_rule_is_told_what_is_wrong(shares, verdict):
    assert judge_shares(3, shares) == verdict
    explorer = ShardExplorer(lambda n, rank, world_size, epoch, seed: shares[rank], n=3, world_size=2)
    assert explorer.verdict == verdict and verdict in explorer._picture.value


def test_a_rule_that_raises_is_shown_and_can_be_recovered_from():
    def rule(n, rank, world_size, *, epoch, seed):
        return [n / 0] if n else []

    explorer = ShardExplorer(rule)
    assert explorer.verdict == "The rule raised ZeroDivisionError: division by zero" and explorer.shares == []
    assert "ZeroDivisionError" in explorer._picture.value and "ZeroDivisionError" in repr(explorer)
    explorer.n = 0
    assert explorer.verdict == "All 0 samples are dealt, each to one rank."


def test_a_rule_must_be_a_function():
    with pytest.raises(UsageError, match="got list"):
        ShardExplorer([1, 2])


def test_the_picture_and_the_figure_carry_each_ranks_number():
    explorer = ShardExplorer(strided, n=30, world_size=3)
    labels = [text.get_text() for text in explorer.figure().texts]
    assert labels == [str(ranks[0]) for ranks in owners(30, explorer.shares)]
    assert all(f'title="sample {i}">{labels[i]}<' in explorer._picture.value for i in range(30))


def test_the_figure_places_samples_row_by_row():
    ax = draw_shards(IN_A_ROW + 2, [list(range(IN_A_ROW + 2))])
    assert ax.texts[IN_A_ROW].get_position() == (0, 1)
    assert ax.get_ylim()[0] > ax.get_ylim()[1] and "sample number" in ax.get_xlabel()
    assert "rank 0 27" in ax.description and repr(ax) == "<27 samples over 1 ranks>"


def test_nobody_and_several_ranks_are_marked():
    assert [text.get_text() for text in draw_shards(2, [[1], [1]]).texts] == ["–", "0+1"]
