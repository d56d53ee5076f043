# ruff: noqa: F811
import statistics

import numpy as np
import torch

from course.errors import UsageError
from tests.grading.bank import right, wrong


def refuse(workers, seconds):
    if len(workers) != len(seconds):
        raise ValueError("two lists of one length")
    if len(set(workers)) < 2 or min(workers) < 1 or min(seconds) <= 0:
        raise ValueError(f"{workers}, {seconds}")


def held(share):
    return min(1.0, max(0.0, share))


@right("polyfit")
def serial_fraction(workers, seconds):
    refuse(workers, seconds)
    b, a = np.polyfit(1 / np.array(workers), seconds, 1)
    return held(a / (a + b))


@right("by hand, from the means")
def serial_fraction(workers, seconds):
    refuse(workers, seconds)
    x = [1 / n for n in workers]
    mx, my = sum(x) / len(x), sum(seconds) / len(seconds)
    b = sum((i - mx) * (j - my) for i, j in zip(x, seconds, strict=True)) / sum((i - mx) ** 2 for i in x)
    a = my - b * mx
    if b <= 0:
        return 1
    if a <= 0:
        return 0
    return a / (a + b)


@right("lstsq")
def serial_fraction(workers, seconds):
    refuse(workers, seconds)
    columns = np.array([[1, 1 / n] for n in workers])
    a, b = np.linalg.lstsq(columns, np.array(seconds), rcond=None)[0]
    return np.clip(a / (a + b), 0, 1)


@right("linear_regression")
def serial_fraction(workers, seconds):
    refuse(workers, seconds)
    line = statistics.linear_regression([1 / n for n in workers], seconds)
    return held(line.intercept / (line.intercept + line.slope))


@right("torch, in double precision")
def serial_fraction(workers, seconds):
    if len(workers) != len(seconds):
        raise UsageError("lengths")
    if any(n < 1 for n in workers) or any(t <= 0 for t in seconds) or len(set(workers)) < 2:
        raise UsageError("numbers")
    x = torch.tensor([[1.0, 1 / n] for n in workers], dtype=torch.float64)
    a, b = torch.linalg.lstsq(x, torch.tensor(seconds, dtype=torch.float64)[:, None]).solution.flatten()
    return (a / (a + b)).clamp(0, 1)


@right("shares of the longest time")
def serial_fraction(workers, seconds):
    refuse(workers, seconds)
    longest = max(seconds)
    b, a = np.polyfit([1 / n for n in workers], [t / longest for t in seconds], 1)
    return held(float(a / (a + b)))


@wrong("FRACTION_IN_SECONDS", points=2)
def serial_fraction(workers, seconds):
    refuse(workers, seconds)
    b, a = np.polyfit(1 / np.array(workers), seconds, 1)
    return a


@wrong("FRACTION_IN_SECONDS", points=2)
def serial_fraction(workers, seconds):
    refuse(workers, seconds)
    b, a = np.polyfit(1 / np.array(workers), seconds, 1)
    return b


@wrong("FRACTION_PARALLEL", points=2)
def serial_fraction(workers, seconds):
    refuse(workers, seconds)
    b, a = np.polyfit(1 / np.array(workers), seconds, 1)
    return held(b / (a + b))


@wrong("FRACTION_PARALLEL", points=2)
def serial_fraction(workers, seconds):
    refuse(workers, seconds)
    a, b = np.polyfit(1 / np.array(workers), seconds, 1)
    return held(a / (a + b))


@wrong("FRACTION_RATIO", points=2)
def serial_fraction(workers, seconds):
    refuse(workers, seconds)
    b, a = np.polyfit(1 / np.array(workers), seconds, 1)
    return a / b


@wrong("FRACTION_RATIO", points=2)
def serial_fraction(workers, seconds):
    refuse(workers, seconds)
    b, a = np.polyfit(1 / np.array(workers), seconds, 1)
    return b / a


@wrong("FRACTION_LINE_IN_N", points=2)
def serial_fraction(workers, seconds):
    refuse(workers, seconds)
    b, a = np.polyfit(workers, seconds, 1)
    return a / (a + b)


@wrong("FRACTION_LINE_IN_N", points=2)
def serial_fraction(workers, seconds):
    refuse(workers, seconds)
    b, a = np.polyfit(workers, seconds, 1)
    return held(a / (a + b))


@wrong("FRACTION_RELATIVE", points=5)
def serial_fraction(workers, seconds):
    refuse(workers, seconds)
    x = 1 / np.array(workers)
    b, a = np.polyfit(x, seconds, 1, w=1 / np.array(seconds))
    return held(a / (a + b))


@wrong("FRACTION_TWO_POINTS", points=5)
def serial_fraction(workers, seconds):
    refuse(workers, seconds)
    x, y = 1 / workers[0], 1 / workers[-1]
    b = (seconds[0] - seconds[-1]) / (x - y) if x != y else 0
    a = seconds[0] - b * x
    return held(a / (a + b))


@wrong("FRACTION_TWO_POINTS", points=5)
def serial_fraction(workers, seconds):
    refuse(workers, seconds)
    b = (seconds[0] - seconds[1]) / (1 / workers[0] - 1 / workers[1])
    a = seconds[0] - b / workers[0]
    return held(a / (a + b))


@wrong("FRACTION_TWO_POINTS", points=2)
def serial_fraction(workers, seconds):
    refuse(workers, seconds)
    return held(seconds[-1] / seconds[0])


@wrong("FRACTION_TWO_POINTS", points=2)
def serial_fraction(workers, seconds):
    refuse(workers, seconds)
    return min(seconds) / max(seconds)


@wrong("FRACTION_THROUGH_ONE_POINT")
def serial_fraction(workers, seconds):
    refuse(workers, seconds)
    first = seconds[0]
    x = np.array([1 - 1 / n for n in workers])
    y = np.array([t / first - 1 / n for n, t in zip(workers, seconds, strict=True)])
    return held(x @ y / (x @ x))


@wrong("FRACTION_THROUGH_ONE_POINT")
def serial_fraction(workers, seconds):
    refuse(workers, seconds)
    b, a = np.polyfit(1 / np.array(workers), seconds, 1)
    return held(a / seconds[0])


@wrong("FRACTION_AVERAGED")
def serial_fraction(workers, seconds):
    refuse(workers, seconds)
    first, single = seconds[0], []
    for n, t in zip(workers, seconds, strict=True):
        if n > 1:
            single.append((t / first - 1 / n) / (1 - 1 / n))
    return held(statistics.mean(single))


@wrong("FRACTION_NOT_HELD", points=7)
def serial_fraction(workers, seconds):
    refuse(workers, seconds)
    b, a = np.polyfit(1 / np.array(workers), seconds, 1)
    return a / (a + b)


@wrong("FRACTION_NOT_HELD", points=7)
def serial_fraction(workers, seconds):
    refuse(workers, seconds)
    b, a = np.polyfit(1 / np.array(workers), seconds, 1)
    return max(0, a / (a + b))


@wrong("PERCENT", points=2)
def serial_fraction(workers, seconds):
    refuse(workers, seconds)
    b, a = np.polyfit(1 / np.array(workers), seconds, 1)
    return 100 * a / (a + b)


@wrong("NOT_REFUSED", points=6)
def serial_fraction(workers, seconds):
    b, a = np.polyfit([1 / max(n, 1) for n in workers[: len(seconds)]] or [1, 2], seconds[: len(workers)] or [1, 2], 1)
    return held(a / (a + b))


@wrong("NOT_REFUSED", points=6)
def serial_fraction(workers, seconds):
    if len(workers) != len(seconds) or len(set(workers)) < 2:
        raise ValueError
    b, a = np.polyfit([1 / max(n, 1) for n in workers], seconds, 1)
    return held(a / (a + b))


@wrong("OTHER_ERROR", points=6)
def serial_fraction(workers, seconds):
    line = statistics.linear_regression([1 / n for n in workers], seconds)
    return held(line.intercept / (line.intercept + line.slope))


@wrong("GENERATOR", points=0)
def serial_fraction(workers, seconds):
    refuse(workers, seconds)
    b, a = np.polyfit(1 / np.array(workers), seconds, 1)
    yield held(a / (a + b))


@wrong(points=2, says="returned a tuple of 2")
def serial_fraction(workers, seconds):
    refuse(workers, seconds)
    b, a = np.polyfit(1 / np.array(workers), seconds, 1)
    return a, b


@wrong(points=2, says="returned None")
def serial_fraction(workers, seconds):
    refuse(workers, seconds)
    b, a = np.polyfit(1 / np.array(workers), seconds, 1)
    print(a / (a + b))


@wrong(points=7, says="without a time of one worker")
def serial_fraction(workers, seconds):
    refuse(workers, seconds)
    if workers[0] < 2:
        b, a = np.polyfit(1 / np.array(workers), seconds, 1)
        return held(a / (a + b))
    return serial_fraction(workers[1:], seconds[1:])


@wrong(points=7, says="without a time of one worker: the code raised ValueError")
def serial_fraction(workers, seconds):
    refuse(workers, seconds)
    one = seconds[workers.index(1)]
    b, a = np.polyfit(1 / np.array(workers), seconds, 1)
    return held(a / (a + b)) if one else 0


@wrong(points=7, says="times that fall faster than 1/n: returned")
def serial_fraction(workers, seconds):
    refuse(workers, seconds)
    b, a = np.polyfit(1 / np.array(workers), seconds, 1)
    return abs(held(abs(a / (a + b))))
