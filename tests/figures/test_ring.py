"""The all-reduces as drawn: cells, frames and arrows are those of the schedule, and the words count the same."""

from __future__ import annotations

import pytest
from matplotlib.text import Annotation

from course.errors import UsageError
from course.figures import draw_all_reduces, draw_step
from course.figures.ring import PALE, Step, all_reduces_table, sum_colour, sum_text
from course.spec import all_reduce_rounds


def test_each_cell_names_its_parts_and_a_frame_marks_what_travels():
    now, ax = Step(4, "ring", 2), draw_step(4, "ring", 2)
    cells = [text.get_text() for text in ax.texts]
    assert cells[:4] == ["0", "0", "0+2+3", "0+3"] and cells[4] == "chunk 2 to rank 1"
    bold = [patch.get_xy() for patch in ax.patches if patch.get_linewidth() > 1]
    assert sorted((round(x + 0.45), round(y + 0.42)) for x, y in bold) == [(0, 2), (1, 3), (2, 0), (3, 1)]
    assert ax.table.rows == now.table.rows and now.messages == 8 and now.most == 0.5


def test_the_last_step_holds_everything_and_sends_nothing():
    now = Step(3, "tree", 4)
    assert now.sends == () and {cell for row in now.table.rows for cell in row[1:]} == {"all", "–"}
    assert "done after 4 rounds" in now.sentence


@pytest.mark.parametrize("step", [-1, 7])
def test_a_step_that_is_not_there_is_refused(step):
    with pytest.raises(UsageError, match="there are 6 rounds"):
        draw_step(4, "ring", step)


def test_sums_read_without_colour_and_darken_as_they_grow():
    assert [sum_text(frozenset(range(k)), 6) for k in (1, 3, 5, 6)] == ["0", "0+1+2", "5 of 6", "all"]
    shades = [sum_colour(frozenset(range(k)), 8) for k in range(1, 8)]
    assert shades == sorted(shades, reverse=True) and set(shades) == set(PALE)


def test_every_message_of_every_round_is_an_arrow_at_its_time():
    ax = draw_all_reduces(4)
    arrows = [text for text in ax.texts if isinstance(text, Annotation)]
    sends = [send for name in ("ring", "tree", "naive") for sends in all_reduce_rounds(4, name) for send in sends]
    assert len(arrows) == len(sends) == 36
    first, last_of_naive = arrows[0], arrows[-1]
    assert first.xyann == (0, 0) and first.xy == (0.25, 1)  # a quarter of the tensor takes a quarter of the time
    assert last_of_naive.xyann == (5, 10) and last_of_naive.xy == (6, 13)


def test_the_table_tells_ring_tree_and_naive_apart():
    rows = {row[0]: row[1:] for row in all_reduces_table(4).rows}
    assert rows["ring"] == ("6", "24", "1.50 S", "1.50 sends of S")
    assert rows["tree"] == ("4", "6", "2.00 S", "4.00 sends of S")
    assert rows["naive"] == ("6", "6", "3.00 S", "6.00 sends of S")
    assert "1.50 S" in draw_all_reduces(4)._repr_html_()
