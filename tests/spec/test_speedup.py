"""Speed-up laws against work that is handed out one worker at a time, limits, and fits of lines that were chosen."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course.errors import UsageError
from course.spec.speedup import amdahl_speedup, gustafson_speedup, parallel_efficiency, serial_fraction

shares = st.floats(0, 1)
counts = st.integers(1, 10_000)


@pytest.mark.parametrize(
    ("serial", "workers", "speedup"),
    [(0.1, 1, 1.0), (0.1, 2, 1.818), (0.1, 10, 5.263), (0.1, 10**9, 10.0), (1.0, 8, 1.0), (0.0, 8, 8.0)],
)
def test_amdahl_by_hand(serial, workers, speedup):
    assert amdahl_speedup(serial=serial, workers=workers) == pytest.approx(speedup, abs=1e-3)


@pytest.mark.parametrize(
    ("serial", "workers", "speedup"), [(0.1, 1, 1.0), (0.1, 2, 1.9), (0.1, 10, 9.1), (1.0, 8, 1.0), (0.0, 8, 8.0)]
)
def test_gustafson_by_hand(serial, workers, speedup):
    assert gustafson_speedup(serial=serial, workers=workers) == pytest.approx(speedup)


@given(serial=shares, workers=st.integers(1, 8))
def test_amdahl_is_work_dealt_out_after_a_serial_start(serial, workers):
    free = [serial] * workers
    for _ in range(840):  # which 1 to 8 divide
        free[free.index(min(free))] += (1 - serial) / 840
    assert amdahl_speedup(serial=serial, workers=workers) == pytest.approx(1 / max(free), rel=1e-2)


@given(serial=shares, workers=counts)
def test_both_laws_stay_between_one_and_the_workers_and_gustafson_promises_more(serial, workers):
    amdahl = amdahl_speedup(serial=serial, workers=workers)
    gustafson = gustafson_speedup(serial=serial, workers=workers)
    assert amdahl * (1 + 1e-9) >= 1 and amdahl <= gustafson * (1 + 1e-9) and gustafson <= workers * (1 + 1e-9)


@given(serial=st.floats(0.001, 0.999), workers=counts)
def test_both_laws_describe_one_run_each_with_its_own_serial_share(serial, workers):
    of_parallel_run = serial / (serial + (1 - serial) / workers)
    ours = gustafson_speedup(serial=of_parallel_run, workers=workers)
    assert ours == pytest.approx(amdahl_speedup(serial=serial, workers=workers))


@given(serial=shares, scale=st.floats(1e-6, 1e6))
def test_the_fit_finds_the_share_of_times_that_obey_the_law(serial, scale):
    workers = [1, 2, 3, 5, 8]
    seconds = [scale * (serial + (1 - serial) / n) for n in workers]
    assert serial_fraction(workers, seconds) == pytest.approx(serial, abs=1e-9)


def test_the_fit_is_least_squares_in_one_over_n():
    source = random.Random(1)
    for _ in range(50):
        workers = [source.randint(1, 16) for _ in range(12)] + [1, 16]
        seconds = [(0.3 + 0.7 / n) * source.uniform(0.9, 1.1) for n in workers]
        b, a = np.polyfit(1 / np.array(workers), seconds, 1)
        assert serial_fraction(workers, seconds) == pytest.approx(a / (a + b))


def test_the_share_is_held_within_nothing_and_all():
    assert serial_fraction([1, 2, 4], [1.0, 0.45, 0.2]) == 0  # faster than the workers allow
    assert serial_fraction([1, 2, 4], [1.0, 1.1, 1.3]) == 1  # slower with more
    assert serial_fraction([4, 8], [1.0, 10.0]) == 1  # the line crosses 0 before it comes to one worker
    assert serial_fraction([1, 4], [2.0, 2.0]) == 1


def test_efficiency_is_the_speedup_a_worker():
    assert parallel_efficiency(12.0, 4.0, 4) == pytest.approx(0.75)
    assert parallel_efficiency(3.0, 3.0, 1) == 1
    assert parallel_efficiency(10.0, 2.0, 4) == pytest.approx(1.25)


@pytest.mark.parametrize("law", [amdahl_speedup, gustafson_speedup])
@pytest.mark.parametrize(
    ("serial", "workers"),
    [(-0.1, 2), (1.1, 2), (5, 2), (math.nan, 2), (0.5, 0), (0.5, -3), (0.5, 0.5), (0.5, math.inf)],
)
def test_impossible_shares_and_workers_are_refused(law, serial, workers):
    with pytest.raises(UsageError, match=law.__name__):
        law(serial=serial, workers=workers)


@pytest.mark.parametrize(
    ("workers", "seconds", "said"),
    [
        ([1, 2], [1.0], "pair them"),
        ([], [], "two different"),
        ([2, 2], [1.0, 1.1], "two different"),
        ([0, 2], [1.0, 0.5], "from 1 on"),
        ([1, 2], [1.0, 0.0], "above 0"),
        ([1, 2], [math.nan, 1.0], "above 0"),
    ],
)
def test_measurements_that_cannot_be_are_refused(workers, seconds, said):
    with pytest.raises(UsageError, match=said):
        serial_fraction(workers, seconds)


@pytest.mark.parametrize(("one", "many", "n"), [(0.0, 1.0, 2), (1.0, -1.0, 2), (1.0, 1.0, 0), (math.inf, 1.0, 2)])
def test_efficiency_of_the_impossible_is_refused(one, many, n):
    with pytest.raises(UsageError, match="parallel_efficiency"):
        parallel_efficiency(one, many, n)
