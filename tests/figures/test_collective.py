"""Collectives on pictures: each image at its rank and side, parts where their chunk lies, blanks where nothing is."""

from __future__ import annotations

import numpy as np
import pytest

from course.errors import UsageError
from course.figures import draw_collectives, shape_image
from course.figures.collective import GAP

SHAPES = [shape_image(rank) for rank in range(4)]


def held(name, before, after):
    return [{name: pair} for pair in zip(before, after, strict=True)]


PARTS = np.split(sum(SHAPES), 4)


def test_the_shapes_differ_and_each_part_of_each_says_something():
    for rank, shape in enumerate(SHAPES):
        assert shape.shape == (32, 32) and set(np.unique(shape)) == {0, 1}
        assert all(part.any() for part in np.split(shape, 4))
        assert not any(np.array_equal(shape, other) for other in SHAPES[:rank])


def test_images_stand_at_their_rank_and_parts_where_their_chunk_lies():
    ax = draw_collectives(held("reduce-scatter", SHAPES, PARTS))
    boxes = [image.get_extent() for image in ax.images]  # rank by rank, before and after
    assert boxes[2] == pytest.approx([1 + GAP, 2 + GAP, 1, 0])
    assert [(top, bottom) for _, _, bottom, top in boxes[1::2]] == [(k / 4, (k + 1) / 4) for k in range(4)]
    assert boxes[1][0] > boxes[6][1]


def test_more_is_darker_within_a_row():
    ax = draw_collectives(held("all-reduce", SHAPES, [sum(SHAPES)] * 4))
    before, after = ax.images[0].get_array(), ax.images[1].get_array()
    assert after.max() == pytest.approx(0.93) and before.max() < after.max()


def test_a_rank_that_holds_nothing_gets_an_empty_place_and_a_word():
    ax = draw_collectives(held("scatter", [SHAPES[0], None, None, None], np.split(SHAPES[0], 4)))
    assert len(ax.images) == 5 and ax.table.rows[1][2:] == ("nothing", f"8 × 32, sum {SHAPES[0][8:16].sum():.0f}")
    assert "scatter" in ax.description and "<table>" in ax._repr_html_()


def test_what_is_no_image_is_refused():
    with pytest.raises(UsageError, match=r"shape \(3,\)"):
        draw_collectives(held("reduce", [np.zeros(3)], [None]))
    with pytest.raises(UsageError, match="shape_image\\(4\\)"):
        shape_image(4)
