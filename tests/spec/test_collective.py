"""The three schedules: everybody ends with every part once, in as many messages and bytes as the formulas say."""

from __future__ import annotations

from collections import Counter
from itertools import accumulate

import pytest

from course.errors import UsageError
from course.planner import ALGORITHMS, all_reduce_seconds
from course.spec import Send, after_round, all_reduce_rounds, start_holdings

EACH = pytest.mark.parametrize("algorithm", ALGORITHMS)
SIZES = pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8])


def play(n, algorithm):
    """What is held before the first round and after each."""
    return list(accumulate(all_reduce_rounds(n, algorithm), after_round, initial=start_holdings(n)))


@EACH
@SIZES
def test_everybody_ends_with_everything(n, algorithm):
    everyone = frozenset(range(n))
    assert all(chunk == everyone for rank in play(n, algorithm)[-1] for chunk in rank)


@EACH
@SIZES
def test_nothing_is_counted_twice(n, algorithm):
    """A sum grows only by parts that are not in it yet: sets alone would hide a double count."""
    holdings = play(n, algorithm)
    for before, sends in zip(holdings, all_reduce_rounds(n, algorithm), strict=False):
        for send in sends:
            for chunk in send.chunks:
                assert not send.adds or not before[send.src][chunk] & before[send.dst][chunk]


@EACH
@SIZES
def test_a_round_asks_no_rank_to_send_twice_or_receive_twice(n, algorithm):
    for sends in all_reduce_rounds(n, algorithm):
        assert len({send.src for send in sends}) == len({send.dst for send in sends}) == len(sends)


@EACH
@SIZES
def test_rounds_cost_what_the_planner_says(n, algorithm):
    rounds = all_reduce_rounds(n, algorithm)
    seconds = sum(1e-3 + max(len(send.chunks) for send in sends) / n for sends in rounds)
    assert seconds == pytest.approx(all_reduce_seconds(1, n, alpha=1e-3, bandwidth=1, algorithm=algorithm))


@SIZES
def test_on_a_ring_all_send_alike_and_less_than_two_tensors(n):
    sent = Counter()
    for sends in all_reduce_rounds(n):
        for send in sends:
            assert send.dst == (send.src + 1) % n and len(send.chunks) == 1
            sent[send.src] += 1
    assert all(sent[rank] == 2 * (n - 1) < 2 * n for rank in range(n))


def test_half_way_round_the_ring_each_rank_has_one_finished_chunk():
    middle = play(4, "ring")[3]
    assert [[len(chunk) for chunk in rank].index(4) for rank in middle] == [1, 2, 3, 0]


def test_a_small_tree_by_hand():
    up, top, down_top, down = all_reduce_rounds(3, "tree")
    assert [(s.src, s.dst, s.adds) for s in up] == [(1, 0, True)]
    assert [(s.src, s.dst, s.adds) for s in top] == [(2, 0, True)]
    assert [(s.src, s.dst, s.adds) for s in down_top] == [(0, 2, False)]
    assert down == (Send(0, 1, (0, 1, 2), adds=False),)


@pytest.mark.parametrize(("n", "algorithm", "word"), [(0, "ring", "n=0"), (2.0, "ring", "n=2.0"), (2, "star", "star")])
def test_the_impossible_is_refused(n, algorithm, word):
    with pytest.raises(UsageError, match=word):
        all_reduce_rounds(n, algorithm)
