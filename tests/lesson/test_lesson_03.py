"""What lesson 03 says in words about numbers that it does not print."""

from __future__ import annotations

from course.planner import all_reduce_seconds
from course.spec import LINKS, all_reduce_rounds


def times(nbytes):
    return [all_reduce_seconds(nbytes, 8, alpha=link.alpha, bandwidth=link.bandwidth) for link in LINKS]


def test_rounds_of_a_thousand_ranks():
    assert len(all_reduce_rounds(1000, "tree")) == 20 and all_reduce_seconds(0, 1000, alpha=1, bandwidth=1) == 1998


def test_rank_0_of_a_thousand_needs_a_second():
    assert 0.9 < 2 * 999 * 12e6 / 25e9 < 1.0


def test_first_and_last_link_differ_more_for_large_tensors():
    assert 3.5 < times(4_000)[-1] / times(4_000)[0] < 4.5 and times(1e9)[-1] / times(1e9)[0] > 300


def test_the_gradients_of_the_courses_gpt_are_all_alpha_on_a_thousand_ranks():
    assert all(1000 * link.alpha * link.bandwidth > 4 * 834_304 for link in LINKS)
