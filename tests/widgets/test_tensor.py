"""The tensor splitter follows its controls, keeps cuts in order, and says the same in text and picture."""

from __future__ import annotations

import pytest
import traitlets

from course.errors import UsageError
from course.figures.tensor import HIDDEN, LEGEND, WIDTH, Cut
from course.widgets import TensorSplitter


def control(splitter, words):
    return next(part for row in splitter.children[:-1] for part in row.children if part.description == words)


def test_the_least_sent_is_found_by_hand():
    splitter = TensorSplitter()
    assert splitter.sent == [160, 192] and "Every column of B" in splitter.sentence
    control(splitter, "cut B by").value = "rows"
    assert splitter.sent == [64, 64] and splitter.sentence.startswith("Nothing is sent between A and B")
    control(splitter, "A, cut 1").value = 10
    assert splitter.a_cuts == [10] and splitter.sent == [88, 88] and "change hands" in splitter.sentence
    control(splitter, "B, cut 1").value = 10
    assert splitter.sent == [64, 64] and splitter.held == [160, 352]


def test_controls_and_traits_are_one():
    splitter = TensorSplitter()
    control(splitter, "ranks").value = 4
    assert splitter.n == 4 and splitter.a_cuts == [8, 16, 24] and splitter.b_cuts == [2, 4, 6]
    splitter.first = "rows"
    assert control(splitter, "cut A by").value == "rows" and splitter.a_cuts == [2, 4, 6]
    assert control(splitter, "A, cut 3").max == WIDTH - 1
    splitter.first, splitter.a_cuts = "columns", [1, 2, 30]
    assert control(splitter, "A, cut 3").value == 30 and control(splitter, "A, cut 3").max == HIDDEN - 1
    splitter.n = 2
    assert control(splitter, "A, cut 2").layout.display == "none" and control(splitter, "A, cut 1").value == 16


def test_a_cut_stops_before_its_neighbours():
    splitter = TensorSplitter(4, "columns", "rows")
    control(splitter, "A, cut 2").value = 31
    assert splitter.a_cuts == [8, 23, 24] and control(splitter, "A, cut 2").value == 23
    control(splitter, "A, cut 2").value = 1
    assert splitter.a_cuts == [8, 9, 24]
    control(splitter, "A, cut 3").value = 31
    assert splitter.a_cuts == [8, 9, 31]


def test_the_picture_has_the_parts_and_the_words():
    splitter = TensorSplitter(3, "columns", "rows")
    shown = splitter._picture.value
    assert shown.count("<rect") == len(list(splitter.cut.bands)) == 11
    assert LEGEND in shown and 'role="status"' in shown and "Nothing is sent between A and B" in shown


def test_text_and_figure_say_what_the_tables_say():
    splitter = TensorSplitter(2, "columns", "rows", b_cuts=[4])
    words = repr(splitter)
    assert words.startswith("TensorSplitter(n=2, first='columns', second='rows', a_cuts=[16], b_cuts=[4])\nThe cuts")
    assert words == repr(eval(words.splitlines()[0])) == splitter._repr_mimebundle_()["text/plain"]
    assert "move 12 columns: 48" in words and splitter.table().rows == Cut(2, b_cuts=[4]).table.rows
    assert splitter.figure().description == splitter.sentence


@pytest.mark.parametrize("wrong", [{"n": 1}, {"n": "2"}, {"first": "both"}, {"a_cuts": [99]}, {"b_cuts": [1, 2]}])
def test_what_cannot_be_shown_is_refused(wrong):
    with pytest.raises(UsageError, match=r"ranks go from 2 to 4|try \["):
        TensorSplitter(**wrong)


def test_a_trait_set_wrongly_keeps_what_was_there():
    splitter = TensorSplitter()
    before = repr(splitter)
    with pytest.raises(UsageError, match="rising"):
        splitter.a_cuts = [0]
    with pytest.raises(traitlets.TraitError):
        splitter.n = 5
    with pytest.raises(traitlets.TraitError):
        splitter.second = "diagonal"
    assert repr(splitter) == before
