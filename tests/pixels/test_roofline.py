"""The roofline's rule, its kernels, and the measurements: what they compute, never how long it took."""

from __future__ import annotations

import math

import numpy as np
import pytest

from course.errors import UsageError
from course.pixels import (
    attainable,
    brighten_numpy,
    median_seconds,
    memcpy_seconds,
    repeated_kernel,
    seconds_beside,
    vector_instructions,
)


def test_below_the_ridge_memory_decides_and_above_it_arithmetic():
    peak, bandwidth = 100.0, 20.0  # the ridge is at 5 operations a byte
    assert attainable(0, peak, bandwidth) == 0
    assert attainable(0.5, peak, bandwidth) == 10
    assert attainable(5, peak, bandwidth) == 100
    assert attainable(64, peak, bandwidth) == 100


@pytest.mark.parametrize("wrong", [(-1, 1, 1), (1, -1, 1), (1, 1, -2), (math.nan, 1, 1)])
def test_impossible_machines_are_refused(wrong):
    with pytest.raises(UsageError, match="attainable"):
        attainable(*wrong)


@pytest.mark.parametrize("operations", [1, 2, 7, 64])
def test_many_small_steps_are_one_large_one(operations):
    image = np.tile(np.arange(256, dtype=np.uint8), 3)[:-5]
    for step in (0, 1, 3, 255):
        out = np.empty_like(image)
        repeated_kernel(operations)(out, image, step)
        np.testing.assert_array_equal(out, brighten_numpy(image, min(operations * step, 255)))


@pytest.mark.parametrize("operations", [0, 65])
def test_no_kernel_for_fewer_or_more(operations):
    with pytest.raises(UsageError, match="1 to 64 operations"):
        repeated_kernel(operations)


def test_the_additions_stay_vectors_up_to_the_most_there_are():
    kernel, image = repeated_kernel(64), np.arange(100, dtype=np.uint8)
    kernel(np.empty_like(image), image, 1)
    assert any("add" in line for line in vector_instructions(kernel))


def test_the_median_is_taken_after_a_warm_up():
    calls = []
    assert median_seconds(lambda: calls.append(1), repeats=3) > 0 and len(calls) == 4
    with pytest.raises(UsageError, match="repeats=0"):
        median_seconds(list, repeats=0)


def test_work_and_peer_take_turns():
    calls = []
    seconds, ratio = seconds_beside(lambda: calls.append("work"), lambda: calls.append("peer"), repeats=2)
    assert calls == ["work", "peer"] * 3 and seconds > 0 and ratio > 0
    assert seconds_beside(list)[1] == 1


def test_memcpy_copies():
    image = np.arange(1000, dtype=np.uint8)
    out = np.zeros_like(image)
    assert memcpy_seconds(image, out=out) > 0
    np.testing.assert_array_equal(out, image)
    assert memcpy_seconds(image, repeats=1) > 0
