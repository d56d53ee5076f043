"""Lesson 01: the course's own versions under its checks, a kernel that never ends, words and pixels that take notes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from course import pixels
from course.grading.bench import Limits
from course.grading.checks.simulated import DeviceArray
from course.grading.checks.word import FORBIDDEN, FULL, Word, bare
from course.grading.exercises import EXERCISES
from course.grading.judge import judge
from course.pixels import gpu
from course.pixels.gpu import cuda

LIBRARY = [
    ("brighten", pixels.brighten_python),
    ("brighten", pixels.brighten_numpy),
    ("brighten", pixels.brighten_swar),
    ("brighten", pixels.brighten_numba),
    ("split_rows", pixels.split_rows),
    ("brighten_kernel", gpu.brighten_kernel),
    ("attainable", pixels.attainable),
    ("brighten_swar", pixels.brighten_swar_word),
]


@pytest.mark.parametrize(("exercise", "function"), LIBRARY, ids=lambda item: getattr(item, "__name__", item))
def test_the_library_passes_the_checks_of_the_exercise(exercise: str, function: Callable[..., Any]) -> None:
    report = judge(EXERCISES[exercise], function)
    assert report.passed, str(report)


def test_a_kernel_that_never_ends_is_stopped() -> None:
    def brighten_kernel(out: Any, image: Any, amount: int) -> None:
        while cuda.grid(1) == 3:
            pass

    report = judge(EXERCISES["brighten_kernel"], brighten_kernel, limits=Limits(timeout=2.0))
    assert "still computing" in report.lines[0].got and report.points == 0


def test_a_kernel_is_a_plain_function() -> None:
    class Kernel:
        def __call__(self, out: Any, image: Any, amount: int) -> None:
            out[0] = amount

    assert "not a Kernel" in judge(EXERCISES["brighten_kernel"], Kernel()).lines[0].got


def test_a_word_counts_what_is_done_to_it_and_to_what_comes_of_it() -> None:
    count = [0]
    word = Word(0xFF00, count)
    other = (~word & FULL) ^ ((3 * word - word) >> 1) | 1
    assert bare(other) == (~0xFF00 & FULL) ^ 0xFF00 | 1 and count == [7]
    assert isinstance(word, int) and 0 <= word < 1 << 64
    assert count == [7]


@pytest.mark.parametrize(
    "use",
    [
        lambda word: word // 2,
        lambda word: 7 % word,
        lambda word: word**2,
        lambda word: word > 3,
        lambda word: word == 0xFF00,
        lambda word: int(word),
        lambda word: bytes([word]),
        lambda word: f"{word:x}",
        lambda word: hex(word),
        lambda word: [0] * word,
        lambda word: np.uint64(word),
        lambda word: 1 if word else 0,
    ],
)
def test_a_word_gives_away_nothing_else(use: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match=FORBIDDEN.strip()):
        use(Word(0xFF00, [0]))


def test_a_device_array_forgives_and_remembers() -> None:
    array = DeviceArray([1, 2, 3])
    assert array[2] == 3 and type(array[2]) is np.uint8 and array[-1] == 3
    assert array[3] == 0
    array[7] = 300
    assert array.outside == [3, 7] and array.unfit == [300]
    with pytest.raises(TypeError, match="one number"):
        array[:]
    with pytest.raises(TypeError, match="not iterable"):
        iter(array)
