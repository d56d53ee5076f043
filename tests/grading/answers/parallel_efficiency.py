# ruff: noqa: F811
from fractions import Fraction

import numpy as np
import torch

from course.errors import UsageError
from tests.grading.bank import right, wrong


def refuse(seconds_1, seconds_n, n):
    if seconds_1 <= 0 or seconds_n <= 0 or n < 1:
        raise ValueError(f"{seconds_1}, {seconds_n}, {n}")


@right("one line")
def parallel_efficiency(seconds_1, seconds_n, n):
    refuse(seconds_1, seconds_n, n)
    return seconds_1 / (n * seconds_n)


@right("the speed-up, over n")
def parallel_efficiency(seconds_1, seconds_n, n):
    if min(seconds_1, seconds_n) <= 0 or n < 1:
        raise UsageError("no")
    speedup = seconds_1 / seconds_n
    return speedup / n


@right("what was needed over what was paid for")
def parallel_efficiency(seconds_1, seconds_n, n):
    refuse(seconds_1, seconds_n, n)
    paid = sum([seconds_n] * int(n))
    return seconds_1 / paid


@right("numpy")
def parallel_efficiency(seconds_1, seconds_n, n):
    refuse(seconds_1, seconds_n, n)
    return np.true_divide(seconds_1, np.multiply(seconds_n, n))


@right("fractions")
def parallel_efficiency(seconds_1, seconds_n, n):
    refuse(seconds_1, seconds_n, n)
    return Fraction(seconds_1) / Fraction(seconds_n) / n


@right("one less what was lost")
def parallel_efficiency(seconds_1, seconds_n, n):
    refuse(seconds_1, seconds_n, n)
    lost = n * seconds_n - seconds_1
    return torch.tensor(1 - lost / (n * seconds_n), dtype=torch.float64)


@wrong("EFFICIENCY_IS_SPEEDUP", points=1)
def parallel_efficiency(seconds_1, seconds_n, n):
    refuse(seconds_1, seconds_n, n)
    return seconds_1 / seconds_n


@wrong("EFFICIENCY_INVERTED", points=1)
def parallel_efficiency(seconds_1, seconds_n, n):
    refuse(seconds_1, seconds_n, n)
    return n * seconds_n / seconds_1


@wrong("EFFICIENCY_INVERTED", points=1)
def parallel_efficiency(seconds_1, seconds_n, n):
    refuse(seconds_1, seconds_n, n)
    return seconds_n / seconds_1


@wrong("EFFICIENCY_INVERTED", points=1)
def parallel_efficiency(seconds_1, seconds_n, n):
    refuse(seconds_1, seconds_n, n)
    return seconds_n / (n * seconds_1)


@wrong("EFFICIENCY_TIMES_N", points=1)
def parallel_efficiency(seconds_1, seconds_n, n):
    refuse(seconds_1, seconds_n, n)
    return seconds_1 / seconds_n * n


@wrong("EFFICIENCY_TIMES_N", points=1)
def parallel_efficiency(seconds_1, seconds_n, n):
    refuse(seconds_1, seconds_n, n)
    return seconds_1 / (seconds_n / n)


@wrong("EFFICIENCY_HELD", points=4)
def parallel_efficiency(seconds_1, seconds_n, n):
    refuse(seconds_1, seconds_n, n)
    return min(1.0, seconds_1 / (n * seconds_n))


@wrong("EFFICIENCY_LOSS", points=1)
def parallel_efficiency(seconds_1, seconds_n, n):
    refuse(seconds_1, seconds_n, n)
    return 1 - seconds_1 / (n * seconds_n)


@wrong("EFFICIENCY_SERIAL", points=1)
def parallel_efficiency(seconds_1, seconds_n, n):
    refuse(seconds_1, seconds_n, n)
    if n == 1:
        return 1
    return (seconds_n / seconds_1 - 1 / n) / (1 - 1 / n)


@wrong("EFFICIENCY_OTHERS_ONLY", points=1)
def parallel_efficiency(seconds_1, seconds_n, n):
    refuse(seconds_1, seconds_n, n)
    return seconds_1 / (seconds_n * max(n - 1, 1))


@wrong("PERCENT", points=1)
def parallel_efficiency(seconds_1, seconds_n, n):
    refuse(seconds_1, seconds_n, n)
    return 100 * seconds_1 / (n * seconds_n)


@wrong("NOT_REFUSED", points=4)
def parallel_efficiency(seconds_1, seconds_n, n):
    return seconds_1 / (n * seconds_n) if n * seconds_n else 0


@wrong("NOT_REFUSED", points=4)
def parallel_efficiency(seconds_1, seconds_n, n):
    efficiency = seconds_1 / (n * seconds_n) if n * seconds_n else 0
    if efficiency <= 0:
        raise ValueError
    return efficiency


@wrong("OTHER_ERROR", points=4)
def parallel_efficiency(seconds_1, seconds_n, n):
    assert seconds_1 > 0 and seconds_n > 0 and n >= 1
    return seconds_1 / (n * seconds_n)


@wrong("GENERATOR", points=0)
def parallel_efficiency(seconds_1, seconds_n, n):
    yield seconds_1 / (n * seconds_n)


@wrong(points=1, says="returned 0")
def parallel_efficiency(seconds_1, seconds_n, n):
    refuse(seconds_1, seconds_n, n)
    return seconds_1 // (n * seconds_n)


@wrong(points=1, says="returned a str")
def parallel_efficiency(seconds_1, seconds_n, n):
    refuse(seconds_1, seconds_n, n)
    return f"{seconds_1 / (n * seconds_n):.0%}"


@wrong(points=1, says="parallel_efficiency(12, 4, 4) returned 0.5")
def parallel_efficiency(seconds_1, seconds_n, n):
    refuse(seconds_1, seconds_n, n)
    return seconds_1 / (n * seconds_n + seconds_1 * 2 / 3)


@wrong(points=4, says="parallel_efficiency(3, 3, 1) returned 0")
def parallel_efficiency(seconds_1, seconds_n, n):
    refuse(seconds_1, seconds_n, n)
    return seconds_1 / (n * seconds_n) if n > 1 else 0
