"""A prediction keeps what the reader chose or typed, and shows it beside the result; nobody has to answer."""

from __future__ import annotations

import pytest

from course.errors import UsageError
from course.lesson import predict


def test_a_choice_is_kept_and_shown_beside_the_result():
    guess = predict("Sum or average?", ["sum", "average"])
    guess._field.value = "sum"  # what a click does
    assert guess.guess == "sum"
    assert repr(guess.result("average")) == "Sum or average?\n  your guess: sum\n  found: average"


def test_nobody_has_to_answer():
    assert (
        repr(predict("Sum or average?", ["sum", "average"]).result("sum")).splitlines()[1] == "  your guess: none yet"
    )
    assert "found: 5.006 MB" in repr(predict("How much?", unit="MB").result(5.0061))


@pytest.mark.parametrize(
    ("typed", "kept"),
    [("5.1", 5.1), ("5,1", 5.1), (" 3e6 ", 3e6), ("1 000", 1000.0), ("1,000", 1000.0), ("0,125", 0.125), ("-2", -2.0)],
)
def test_numbers_are_read_as_people_write_them(typed, kept):
    guess = predict("How much?", unit="MB")
    guess._field.value = typed
    assert guess.guess == kept


@pytest.mark.parametrize("typed", ["much", "1.2.3", "inf", "nan", ""])
def test_what_is_no_number_is_said_and_not_kept(typed):
    guess = predict("How much?", unit="MB")
    guess._field.value = "7"
    guess._field.value = typed
    assert guess.guess is None and "not a number" in guess._note.value


@pytest.mark.parametrize(
    ("typed", "found", "off"),
    [("10", 5.0, "a factor of 2, too high"), ("1", 5, "a factor of 5, too low"), ("0", 5, "-5"), ("5", 5, "nothing")],
)
def test_a_number_says_how_far_off_it_was(typed, found, off):
    guess = predict("How much?", unit="MB")
    guess._field.value = typed
    assert guess.result(found).rows[-1] == ("off by", off)


def test_a_reason_is_kept_and_shown():
    guess = predict("Which?", ["a", "b"], because="Adam")
    field = guess.children[2]
    assert field.placeholder == "Adam"
    field.value = "Adam ignores scale"
    assert ("because", "Adam ignores scale") in guess.result("b").rows


def test_the_text_twin_is_fixed_and_has_the_question_and_options():
    make = lambda: predict("How far?", ["a millionth", "a tenth"])  # noqa: E731
    assert repr(make()) == repr(make()) == "Predict: How far?\n  [ ] a millionth\n  [ ] a tenth"
    assert make()._repr_mimebundle_()["text/plain"] == repr(make())
    assert repr(predict("How much?", unit="MB")) == "Predict: How much?\n  ____ MB"


def test_what_readers_type_is_not_markup():
    guess = predict("Is 1 < 2 & <b>?", ["<i>", "b"], because="x")
    guess._field.value = "<i>"
    assert "<i>" not in guess._note.value and "<i>" not in guess.result("b")._repr_html_()


@pytest.mark.parametrize(
    "call", [lambda: predict("?", ["one"]), lambda: predict("?", "ab"), lambda: predict("?", ["a", "b"], unit="MB")]
)
def test_questions_that_cannot_be_answered_are_refused(call):
    with pytest.raises(UsageError, match="predict"):
        call()


def test_a_result_must_be_one_of_the_options():
    with pytest.raises(UsageError, match="give one of them"):
        predict("?", ["a", "b"]).result("c")
