"""The mesh explorer follows its controls, keeps its traits true, and says the same in text and picture."""

from __future__ import annotations

import pytest

from course.errors import UsageError
from course.figures.page import VERMILION
from course.spec import ModelSpec
from course.widgets import MeshExplorer


def control(explorer, words):
    return next(part for part in explorer.children[0].children if part.description == words)


def test_controls_and_traits_are_one():
    explorer = MeshExplorer()
    control(explorer, "tp").value = 4
    control(explorer, "ranks a node").value = 2
    control(explorer, "fastest first").value = ("pp", "dp", "tp")
    control(explorer, "show").value = "dp"
    assert (explorer.tp, explorer.per_node, explorer.order, explorer.axis) == (4, 2, ("pp", "dp", "tp"), "dp")
    assert explorer.groups[0] == [0, 2] and len(explorer.groups) == 8
    explorer.pp = 1
    assert control(explorer, "pp").value == 1 and explorer.groups[0] == [0, 1]


def test_transposing_moves_bytes_between_nodes_and_loses_none():
    explorer = MeshExplorer()
    inside, across = explorer.inside, explorer.across
    explorer.order = ("pp", "dp", "tp")
    assert explorer.across > 7 * across and explorer.inside + explorer.across == pytest.approx(inside + across)
    assert "it would be" in explorer.sentence


def test_the_picture_has_every_rank_and_marks_what_leaves_a_node():
    explorer = MeshExplorer(axis="pp", per_node=4)
    picture = explorer._picture.value
    assert all(f">rank {rank}<" in picture for rank in range(8)) and picture.count("<line") == 12 + 4
    assert picture.count(VERMILION) == 4 and explorer.sentence in picture
    explorer.per_node = 8
    assert VERMILION not in explorer._picture.value and explorer.across == 0


def test_text_and_figure_say_what_the_table_says():
    explorer = MeshExplorer(dp=1, order=("dp", "tp", "pp"))
    words = repr(explorer)
    assert words.startswith("MeshExplorer(pp=2, dp=1, tp=2, per_node=4, order=('dp', 'tp', 'pp'), axis='tp')\n")
    assert words == repr(MeshExplorer(dp=1, order=("dp", "tp", "pp"))) == explorer._repr_mimebundle_()["text/plain"]
    assert explorer.figure().table == explorer.table()


def test_another_model_sends_other_bytes():
    larger = MeshExplorer(spec=ModelSpec(layers=8, width=256), batch=64)
    assert larger.across > 2 * MeshExplorer().across


@pytest.mark.parametrize(
    "wrong",
    [{"pp": 0}, {"tp": 5}, {"dp": "2"}, {"per_node": 65}, {"order": "tp"}, {"order": 3}, {"axis": "ep"}],
    ids=str,
)
def test_what_cannot_be_shown_is_refused(wrong):
    with pytest.raises(UsageError, match=f"MeshExplorer\\({next(iter(wrong))}=.*go from 1 to 4"):
        MeshExplorer(**wrong)


def test_an_unknown_setting_is_named():
    with pytest.raises(UsageError, match="nodes=.*it takes pp, dp, tp, per_node"):
        MeshExplorer(nodes=2)
