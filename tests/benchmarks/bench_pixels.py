"""What brightening 100 million pixels costs beside copying them: ratios of interleaved calls, wherever it runs.

Run by `make bench`, which prints the figures; the bounds are those the project promises on 2 idle cores.
"""

from __future__ import annotations

import statistics
import time

import numpy as np
import pytest

from course.pixels import METHODS, large_photograph, repeated_kernel, seconds_beside

ROUNDS = 15
AMOUNT = 60


def seconds(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


@pytest.fixture(scope="module")
def times():
    """Seconds of each way, one call a round, so that they share whatever else the machine does."""
    image = large_photograph(100_000_000)
    out = np.empty_like(image)
    ways = {"memcpy": lambda: np.copyto(out, image)}
    for name in ("NumPy", "lanes in a word", "numba", "numba, threads"):
        ways[name] = lambda brighten=METHODS[name]: brighten(image, AMOUNT, out=out)
    for work in ways.values():
        work()
    rounds = [{name: seconds(work) for name, work in ways.items()} for _ in range(ROUNDS)]
    return {name: [taken[name] for taken in rounds] for name in ways}


def ratio(times, name, peer):
    return statistics.median(a / b for a, b in zip(times[name], times[peer], strict=True))


def test_every_way_beside_memcpy(times, capsys):
    with capsys.disabled():
        for name, taken in times.items():
            text = f"{name}: {statistics.median(taken) * 1e3:.1f} ms, {ratio(times, name, 'memcpy'):.2f} times memcpy"
            print(f"\n  {text}", end="")
    assert ratio(times, "numba", "memcpy") <= 1.5


def test_threads_beside_one(times):
    assert ratio(times, "numba, threads", "numba") <= 1.0


def test_more_operations_a_pixel_cost_nothing_until_arithmetic_is_the_limit(capsys):
    image = large_photograph(50_000_000).reshape(-1)
    out = np.empty_like(image)
    found = {}
    for operations in (1, 8, 64):
        kernel = repeated_kernel(operations)
        found[operations] = seconds_beside(
            lambda kernel=kernel: kernel(out, image, 1), lambda: np.copyto(out, image), repeats=ROUNDS
        )[1]
    with capsys.disabled():
        print("\n  times memcpy:", ", ".join(f"{k} additions {ratio:.2f}" for k, ratio in found.items()), end="")
    assert found[8] < 2 * found[1]
    assert found[64] < 64 * found[1] / 4  # far less if the additions are still vector instructions
