"""The mesh as drawn: ranks, groups and nodes are those of the layout, and lines that leave a node look so."""

from __future__ import annotations

import itertools

import pytest

from course.errors import UsageError
from course.figures import draw_mesh
from course.figures.mesh import ORDERS, PALE, Mesh
from course.figures.page import BLUE, VERMILION
from course.spec.layout import AXES, axis_groups, bytes_across, coordinates_to_rank

SIZES = [{"pp": 2, "dp": 2, "tp": 2}, {"pp": 1, "dp": 3, "tp": 4}, {"pp": 4, "dp": 1, "tp": 2}]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_ranks_and_groups_are_those_of_the_layout(sizes):
    mesh = Mesh(**sizes)
    for place, rank in mesh.ranks.items():
        assert rank == coordinates_to_rank(dict(zip(AXES, place, strict=True)), **sizes)
    for axis in AXES:
        assert mesh.groups(axis) == axis_groups(axis, **sizes)


@pytest.mark.parametrize("order", ORDERS, ids="-".join)
def test_another_order_numbers_the_same_mesh(order):
    mesh = Mesh(pp=2, dp=3, tp=4, order=order)
    assert sorted(mesh.ranks.values()) == list(range(24))
    fastest = mesh.groups(order[0])
    assert all(group == list(range(group[0], group[0] + len(group))) for group in fastest)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_bytes_inside_and_across_add_up(sizes):
    from course.planner.axes import axis_bytes

    sent = axis_bytes(Mesh().spec, **sizes, batch=32)
    for order in ORDERS:
        mesh = Mesh(**sizes, order=order, per_node=2)
        inside, across = (sum(side) for side in zip(*map(mesh.traffic, AXES), strict=True))
        assert across == pytest.approx(bytes_across(order, sent, sizes, 2)) == mesh.across
        assert inside + across == pytest.approx(sum(sent.values()) * len(mesh.ranks))


def test_the_sentence_knows_the_best_order():
    assert "no order of the axes sends less" in Mesh().sentence
    worst = Mesh(order=("pp", "dp", "tp"))
    assert "37.7 MB a step" in worst.sentence and "it would be 4.72 MB" in worst.sentence


def test_a_line_that_leaves_a_node_is_dashed_and_red():
    for order, dashes in ((("tp", "dp", "pp"), 0), (("pp", "dp", "tp"), 4)):
        ax = draw_mesh(Mesh(order=order))
        shown = [line for line in ax.lines if line.get_color() != PALE]
        assert len(ax.lines) == 12 + 4 and [line.get_color() for line in shown] == [VERMILION if dashes else BLUE] * 4
        assert sum(line.is_dashed() for line in shown) == dashes
    assert [text.get_text() for text in ax.texts][:2] == ["rank 0\nnode 0", "rank 4\nnode 1"]


def test_table_and_description_say_what_is_drawn():
    ax = draw_mesh(Mesh(axis="pp"))
    rows = {row[0]: row[1:] for row in ax.table.rows}
    assert rows["pp (shown)"] == ("0-4 1-5 2-6 3-7", "0 B", "4.72 MB") and "Shown: pp." in ax._repr_html_()


def test_no_two_ranks_are_drawn_at_one_spot():
    mesh = Mesh(pp=4, dp=4, tp=4, per_node=8)
    spots = [mesh.spot(place) for place in mesh.ranks]
    assert all(abs(a[0] - b[0]) >= 0.99 or abs(a[1] - b[1]) >= 0.99 for a, b in itertools.combinations(spots, 2))


@pytest.mark.parametrize(
    "wrong", [{"pp": 0}, {"dp": 5}, {"tp": "2"}, {"per_node": 0}, {"order": ("tp", "dp")}, {"axis": "ep"}], ids=str
)
def test_what_cannot_be_shown_is_refused(wrong):
    with pytest.raises(UsageError, match=str(next(iter(wrong.values())))[:2].strip("(") or next(iter(wrong))):
        Mesh(**wrong)
