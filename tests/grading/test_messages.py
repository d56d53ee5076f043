"""What the checks of lesson 03 lean on: cuts, digits, rings that go wrong, and rounds read off a trace."""

from __future__ import annotations

import pytest
import torch

from course.grading.bench import Result
from course.grading.checks import digits, messages, reducing
from course.grading.checks.tree import rounds
from course.grading.mistakes.lesson_03 import ADDS_THE_SENT, KEEPS_OWN, OVERWRITES, RUNNING_SUM, STEP_SHORT
from course.trace import Span, Trace


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_cuts_are_those_of_tensor_split(n: int) -> None:
    for numel in (0, 1, n - 1, n, n + 1, 23):
        sizes = [len(chunk) for chunk in torch.empty(numel).tensor_split(n)]
        assert [stop - start for start, stop in messages.cuts(numel, n)] == sizes


def test_digits_tell_how_often_each_rank_is_in_a_sum() -> None:
    x = messages.digit(5)
    assert 1 <= x <= 9
    assert digits.counts(x + x * 1000 + x * 1_000_000, 5, 3) == (1, 1, 1)
    assert digits.counts(2 * x + x * 1_000_000, 5, 3) == (2, 0, 1)
    assert digits.counts(x * 1_000_000_000, 5, 3) is None and digits.counts(1.0, 5, 3) is None
    assert digits.counts(x + 1, 5, 3) is None


@pytest.mark.parametrize(
    ("rows", "mistake"),
    [
        ([(2, 1, 0), (0, 2, 1), (1, 0, 2)], ADDS_THE_SENT),
        ([(1, 1, 2), (2, 1, 1), (1, 2, 1)], RUNNING_SUM),
        ([(1, 0, 1), (1, 1, 0), (0, 1, 1)], STEP_SHORT),
        ([(1, 0, 0), (0, 1, 0), (0, 0, 1)], KEEPS_OWN),
        ([(0, 1, 0), (0, 0, 1), (1, 0, 0)], OVERWRITES),
        ([(1, 1, 1), (1, 1, 1), (1, 1, 1)], None),
    ],
)
def test_each_pattern_of_counts_has_its_name(rows: list[tuple[int, ...]], mistake: object) -> None:
    assert digits.pattern([[row] for row in rows], steps=2) is mistake


@pytest.mark.parametrize("n", [2, 3, 4, 5])
@pytest.mark.parametrize("way", [1, -1])
def test_a_whole_ring_leaves_the_sum_and_no_wrong_ring_does(n: int, way: int) -> None:
    right = [[(1,) * n] * n] * n
    for start in range(n):
        assert digits.around(n, way, start, n - 1, n - 1, start + 1) == right
    if n > 2:
        assert all(ring != right for _, ring in reducing._wrong_rings(n))


def result(n: int, calls: list[tuple[int, str, int, int]]) -> Result:
    """A run in which these calls were made: (rank, kind, peer, how many calls it had made when it was through)."""
    made = [0] * n
    spans = []
    for rank, kind, peer, done in calls:
        spans.append(Span(rank, kind, kind, 0.0, 1.0, peer=peer, order=made[rank], done_order=done))
        made[rank] += 1
    return Result((None,) * n, ("",) * n, Trace(n, tuple(spans)))


def test_a_star_takes_as_many_rounds_as_messages() -> None:
    star = [(0, "send", 1, 1), (0, "send", 2, 2), (0, "send", 3, 3), *[(r, "recv", 0, 1) for r in (1, 2, 3)]]
    assert rounds(result(4, star)) == 3


def test_a_chain_takes_as_many_rounds_as_messages() -> None:
    links = [[(r, "recv", r - 1, 1), (r, "send", r + 1, 2)] for r in (1, 2)]
    chain = [(0, "send", 1, 1), *links[0], *links[1], (3, "recv", 2, 1)]
    assert rounds(result(4, chain)) == 3


def test_a_tree_takes_rounds_as_deep_as_it_is() -> None:
    tree = [(0, "send", 2, 1), (2, "recv", 0, 1), (0, "send", 1, 2), (1, "recv", 0, 1), (2, "send", 3, 2)]
    assert rounds(result(4, [*tree, (3, "recv", 2, 1)])) == 2


def test_a_receive_holds_back_only_what_is_sent_after_it_is_done() -> None:
    early = [(1, "recv", 0, 2), (1, "send", 2, 2), (0, "send", 1, 1), (2, "recv", 1, 1)]
    assert rounds(result(3, early)) == 1
    waited = [(1, "recv", 0, 1), *early[1:]]
    assert rounds(result(3, waited)) == 2
