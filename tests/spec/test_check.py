"""Five faults of a schedule, five sentences; and schedules that are right in another way than ours."""

from __future__ import annotations

import pytest

from course.errors import DeadlockError, UsageError
from course.spec.check import check_schedule
from course.spec.schedule import gpipe_schedule, interleaved_1f1b, one_f_one_b, zero_bubble_h1

SIZES = [(1, 1), (1, 3), (2, 4), (3, 1), (4, 2), (4, 4), (4, 8), (8, 16)]


@pytest.mark.parametrize(("p", "m"), SIZES)
def test_our_schedules_can_run(p, m):
    for schedule in (gpipe_schedule(p, m), one_f_one_b(p, m), zero_bubble_h1(p, m)):
        assert check_schedule(schedule, microbatches=m) == schedule
    if m % p == 0:
        check_schedule(interleaved_1f1b(p, m, 2))


def test_gpipe_may_go_backward_in_either_order():
    check_schedule([["F0", "F1", "F2", "B2", "B1", "B0"]] * 3)


@pytest.mark.parametrize(
    ("schedule", "says"),
    [
        ([["F0", "F1", "B0"], ["F0", "B0", "F1", "B1"]], "stage 0 lacks B1: the backward of microbatch 1 is missing"),
        ([["F0", "F1", "B0", "B1"], ["F0", "B0"]], "stage 1 lacks F1: the forward of microbatch 1 is missing"),
        ([["F0", "B0", "W0"], ["F0", "B0"]], "stage 1 lacks W0"),
        ([["F0", "F0", "B0"]], "stage 0 has F0 2 times"),
        ([["F0", "B0"], ["B0", "F0"]], "stage 1 does B0 before its F0"),
        ([["F0", "W0", "B0"]], "stage 0 does W0 before its B0"),
        ([["F0", "B0"], []], "none empty"),
        ([], "none empty"),
    ],
)
def test_what_is_wrong_is_said_with_its_stage(schedule, says):
    with pytest.raises(UsageError, match=says):
        check_schedule(schedule)


def test_microbatches_that_nobody_does_are_missed():
    with pytest.raises(UsageError, match="stage 0 lacks F2"):
        check_schedule(one_f_one_b(2, 2), microbatches=3)
    with pytest.raises(UsageError, match="stage 0 has F2, which is none of microbatches 0 to 1"):
        check_schedule(one_f_one_b(2, 3), microbatches=2)


def test_a_circle_is_told_link_by_link():
    with pytest.raises(
        DeadlockError, match="stage 0 waits at B0 for stage 1; stage 1 waits at F1 for stage 0"
    ) as caught:
        check_schedule([["F0", "B0", "F1", "B1"], ["F0", "F1", "B0", "B1"]])
    assert caught.value.cycle == ((0, "B0", 1), (1, "F1", 0))


def test_a_stage_that_holds_too_much():
    with pytest.raises(UsageError, match="stage 1 holds the activations of 4 microbatches at once, 2 are allowed"):
        check_schedule(gpipe_schedule(2, 4), limits=[4, 2])
    check_schedule(one_f_one_b(3, 8), limits=[3, 2, 1])
