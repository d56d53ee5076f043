"""The ring stepper follows its controls, stays within the rounds there are, and says the same in text and picture."""

from __future__ import annotations

import pytest

from course.errors import UsageError
from course.figures.ring import LEGEND
from course.widgets import RingStepper


def control(stepper, words):
    return next(part for part in stepper.children[0].children if part.description == words)


def test_next_and_previous_walk_the_rounds_and_stop_at_both_ends():
    stepper = RingStepper()
    control(stepper, "Previous").click()
    assert stepper.step == 0 and stepper.last == 6 and stepper.messages == 0
    for _ in range(10):
        control(stepper, "Next").click()
    assert stepper.step == 6 and stepper.messages == 24 and stepper.most == 1.5
    control(stepper, "Previous").click()
    assert stepper.step == control(stepper, "step").value == 5


def test_controls_and_traits_are_one():
    stepper = RingStepper()
    control(stepper, "ranks").value = 6
    control(stepper, "all-reduce").value = "naive"
    control(stepper, "step").value = 10
    assert (stepper.n, stepper.algorithm, stepper.step, stepper.last) == (6, "naive", 10, 10)
    assert stepper.most == 5 and "done after 10 rounds" in stepper.sentence
    stepper.n = 2
    assert control(stepper, "ranks").value == 2 and stepper.step == stepper.last == control(stepper, "step").max == 2


@pytest.mark.parametrize("algorithm", ["ring", "tree", "naive"])
@pytest.mark.parametrize("n", range(2, 9))
def test_changing_the_algorithm_at_the_end_stays_within_the_rounds(n, algorithm):
    stepper = RingStepper(n, "naive", 2 * (n - 1))
    stepper.algorithm = algorithm
    assert stepper.step <= stepper.last and f"{stepper.step} of" in stepper.sentence or "done" in stepper.sentence


def test_the_picture_frames_what_travels_and_colours_what_is_finished():
    stepper = RingStepper(3, "ring", 2)
    assert stepper._picture.value.count("3px solid") == 3 and stepper._picture.value.count(">all<") == 3
    assert stepper.sentence in stepper._picture.value and LEGEND in stepper._picture.value


def test_text_and_figure_say_what_the_table_says():
    stepper = RingStepper(4, "tree", 1)
    words = repr(stepper)
    assert words.startswith("RingStepper(n=4, algorithm='tree', step=1)\ntree: 1 of 4 rounds done")
    assert words == repr(RingStepper(4, "tree", 1)) == stepper._repr_mimebundle_()["text/plain"]
    drawn = [text.get_text() for text in stepper.figure().texts]
    assert drawn == [cell for row in stepper.table().rows for cell in row[1:]]


@pytest.mark.parametrize("wrong", [{"n": 1}, {"n": 9}, {"n": "4"}, {"algorithm": "star"}, {"step": -1}])
def test_what_cannot_be_shown_is_refused(wrong):
    with pytest.raises(UsageError, match="n goes from 2 to 8"):
        RingStepper(**wrong)
