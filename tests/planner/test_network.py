"""All-reduce costs on paper, by hand-made figures and by counting rounds; the fit, against lines it did not choose."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course.errors import UsageError
from course.planner import ALGORITHMS, all_reduce_seconds, fit_alpha_beta

LINK = {"alpha": 1e-3, "bandwidth": 1e6}


@pytest.mark.parametrize(
    ("algorithm", "n", "seconds"),
    [
        ("ring", 4, 6 * (1e-3 + 0.25)),  # 6 rounds of a quarter
        ("ring", 3, 4 * (1e-3 + 1 / 3)),
        ("tree", 4, 4 * 1.001),  # 2 rounds up, 2 down
        ("tree", 5, 6 * 1.001),  # the fifth rank costs a whole level
        ("naive", 4, 6 * 1.001),  # 3 in, 3 out, one after the other
    ],
)
def test_a_megabyte_over_a_slow_link(algorithm, n, seconds):
    assert all_reduce_seconds(1_000_000, n, **LINK, algorithm=algorithm) == pytest.approx(seconds)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_one_rank_sends_nothing_and_two_ranks_pay_alpha_for_nothing(algorithm):
    assert all_reduce_seconds(10**9, 1, **LINK, algorithm=algorithm) == 0
    assert all_reduce_seconds(0, 2, **LINK, algorithm=algorithm) == pytest.approx(2e-3)


def test_ring_is_the_default_and_its_bytes_stay_below_two_tensors():
    for n in (2, 10, 1000):
        assert all_reduce_seconds(1e6, n, alpha=0, bandwidth=1e6) < 2
        assert all_reduce_seconds(1e6, n, **LINK) == all_reduce_seconds(1e6, n, **LINK, algorithm="ring")


@given(n=st.integers(2, 10_000))
def test_a_tree_wins_on_alpha_and_a_ring_on_bytes(n):
    small = {name: all_reduce_seconds(1, n, alpha=1e-5, bandwidth=1e9, algorithm=name) for name in ALGORITHMS}
    large = {name: all_reduce_seconds(1e12, n, alpha=1e-5, bandwidth=1e9, algorithm=name) for name in ALGORITHMS}
    assert small["tree"] <= small["ring"] * (1 + 1e-4) and large["ring"] <= large["tree"] <= large["naive"]


@given(n=st.integers(1, 3000))
def test_the_trees_rounds_are_as_many_as_doubling_takes(n):
    rounds, reached = 0, 1
    while reached < n:
        reached, rounds = 2 * reached, rounds + 1
    assert all_reduce_seconds(0, n, alpha=1.0, bandwidth=1.0, algorithm="tree") == 2 * rounds


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"n": 0}, "n=0"),
        ({"n": 2.5}, "n=2.5"),
        ({"n": True}, "n=True"),
        ({"nbytes": -1}, "nbytes=-1"),
        ({"nbytes": math.nan}, "nbytes=nan"),
        ({"alpha": -1e-6}, "alpha=-1e-06"),
        ({"bandwidth": 0}, "bandwidth=0"),
        ({"bandwidth": math.inf}, "bandwidth=inf"),
        ({"algorithm": "star"}, "'star'.*'ring', 'tree', 'naive'"),
    ],
)
def test_the_impossible_is_refused_by_name(wrong, sentence):
    with pytest.raises(UsageError, match=sentence):
        all_reduce_seconds(**{"nbytes": 1, "n": 2, **LINK, **wrong})


@given(alpha=st.floats(1e-6, 1e-2), bandwidth=st.floats(1e6, 1e12))
def test_points_on_a_line_give_the_line_back(alpha, bandwidth):
    points = [(2**k, alpha + 2**k / bandwidth) for k in range(10, 28, 2)]
    found = fit_alpha_beta(points)
    assert [alpha + size / bandwidth for size, _ in points] == pytest.approx(
        [found[0] + size / found[1] for size, _ in points]
    )


def relative_squares(points, alpha, bandwidth):
    return sum(((alpha + size / bandwidth) / seconds - 1) ** 2 for size, seconds in points)


def test_no_other_line_has_less_relative_squares():
    dice = random.Random(3)
    points = [(size, (2e-4 + size / 1.5e9) * dice.uniform(0.6, 1.7)) for size in (1e3, 1e4, 1e5, 1e6, 1e7, 6e7)]
    alpha, bandwidth = fit_alpha_beta(points)
    best = relative_squares(points, alpha, bandwidth)
    for _ in range(300):
        step = math.exp(dice.uniform(-12, 0)) * dice.choice((-1, 1))
        assert relative_squares(points, alpha * (1 + step), bandwidth) >= best
        assert relative_squares(points, alpha, bandwidth * (1 + 0.5 * step)) >= best


def test_small_messages_count_as_much_as_large_ones():
    """Least squares of seconds would let the last point decide and miss the first by a factor."""
    points = [(1e3, 100e-6), (1e5, 200e-6), (1e8, 90e-3)]
    alpha, bandwidth = fit_alpha_beta(points)
    assert all(0.75 < (alpha + size / bandwidth) / seconds < 1.25 for size, seconds in points)


def test_points_may_come_from_a_generator():
    assert fit_alpha_beta((size, 1 + size / 2) for size in (2, 4)) == pytest.approx((1, 2))


@pytest.mark.parametrize(
    ("points", "sentence"),
    [
        ([], "two different sizes, but got 0"),
        ([(8, 1.0), (8, 2.0)], "two different sizes, but got 1"),
        ([(8, 2.0), (16, 1.0)], "no positive bandwidth"),
        ([(8, 1.0), (16, 1.0)], "no positive bandwidth"),
        ([(8, 0.0), (16, 1.0)], r"\(8, 0.0\)"),
        ([(-8, 1.0), (16, 1.0)], r"\(-8, 1.0\)"),
        ([(8, 1.0), (16, math.nan)], "nan"),
    ],
)
def test_points_that_make_no_line_are_refused(points, sentence):
    with pytest.raises(UsageError, match=sentence):
        fit_alpha_beta(points)
