"""Bars as long as their bytes, lines where GPUs end, the same in the table; the curve of a step with its top marked."""

from __future__ import annotations

import pytest

from course.errors import UsageError
from course.figures.memory import describe_memory, draw_memory_bars, draw_memory_curve, memory_table, smallest_chip
from course.spec.chips import CHIPS, chip_of

GIB = 2**30
BARS = {"small": {"weights": 4e9, "gradients": 4e9}, "large": {"weights": 60e9, "optimizer": 40e9, "odd": 10e9}}
CURVE = [{"weights": 4, "rest": 0}, {"weights": 4, "rest": 9}, {"weights": 4, "rest": 2}]


def test_parts_lie_one_after_another():
    ax = draw_memory_bars(BARS)
    drawn = [(bar.get_x(), bar.get_width(), round(bar.get_y() + bar.get_height() / 2)) for bar in ax.patches]
    for found, meant in zip(drawn, [(0, 4, 0), (4, 4, 0), (0, 60, 1), (60, 40, 1), (100, 10, 1)], strict=True):
        assert found == pytest.approx(meant)
    assert "GB" in ax.get_xlabel() and [label.get_text() for label in ax.get_yticklabels()] == ["small", "large"]


def test_kinds_look_different_without_colour_and_are_named_once():
    ax = draw_memory_bars(BARS)
    names = [text.get_text() for text in ax.get_figure().legends[0].get_texts()]
    assert names == ["weights", "gradients", "optimizer", "odd"]
    weights, gradients = ax.patches[:2]
    assert weights.get_hatch() != gradients.get_hatch() and weights.get_facecolor() != gradients.get_facecolor()


def test_a_line_stands_where_a_gpu_ends():
    ax = draw_memory_bars(BARS, chips=[chip_of("h100")])
    assert [line.get_xdata()[0] for line in ax.lines] == [pytest.approx(80 * GIB / 1e9)]
    assert [text.get_text() for text in ax.texts] == ["h100"]
    assert not draw_memory_bars(BARS, chips=()).lines


def test_names_that_would_overlap_are_left_to_the_table():
    bars = {"huge": {"weights": 3e12}}
    ax = draw_memory_bars(bars)
    assert len(ax.lines) == 6 > len(ax.texts) and "TB" in ax.get_xlabel()
    assert str(memory_table(bars)).count("times what it has") == 6


def test_table_and_sentence_say_what_fits():
    table = memory_table(BARS, chips=[chip_of("h100"), chip_of("h200")])
    assert table.rows[0] == ("weights", "4 GB", "60 GB")
    assert table.rows[1] == ("gradients", "4 GB", "–")
    assert table.rows[-3:] == (
        ("in all", "8 GB", "110 GB"),
        ("h100, 85.9 GB", "fits", "1.28 times what it has"),
        ("h200, 150 GB", "fits", "fits"),
    )
    assert describe_memory({"a": {"rest": 1e6}}, chips=()) == "a: 1 MB, most of it rest (100%)."
    said = describe_memory(BARS, chips=[chip_of("h100")])
    assert said == (
        "small: 8 GB, most of it weights (50%); fits h100. "
        "large: 110 GB, most of it weights (55%); fits none of these GPUs."
    )


def test_the_smallest_gpu_with_room():
    chips = tuple(CHIPS.values())
    assert smallest_chip(16 * GIB, chips).memory == 16 * GIB and smallest_chip(16 * GIB + 1, chips).name == "rtx-4090"
    assert smallest_chip(1e15, chips) is None


@pytest.mark.parametrize("bars", [{}, {"a": {"weights": -1.0}}])
def test_bars_that_cannot_be_are_refused(bars):
    with pytest.raises(UsageError, match="draw_memory_bars needs"):
        draw_memory_bars(bars)


def test_the_curve_reaches_its_peak_and_says_where():
    ax = draw_memory_curve(CURVE)
    assert ax.collections[-1].get_datalim(ax.transData).ymax == 13  # the top of the upper layer
    assert ax.lines[0].get_xdata()[0] == 1 and "operators" in ax.get_xlabel()
    assert ax.description == "At most 13 B, at 33% of the step: weights 4 B, rest 9 B."
    assert ax.table.rows == (("0", "4 B", "0 B", "4 B"), ("1", "4 B", "9 B", "13 B"), ("2", "4 B", "2 B", "6 B"))
    with pytest.raises(UsageError, match="at least two"):
        draw_memory_curve(CURVE[:1])
