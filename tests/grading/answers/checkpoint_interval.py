# ruff: noqa: F811
import math
from fractions import Fraction

import numpy as np
import torch

from tests.grading.bank import right, wrong


def check(*numbers):
    if min(numbers) <= 0:
        raise ValueError("all above 0")


def best_of_two(steps, save, step, mean):
    """The better one of two whole numbers around `steps`."""
    below = max(1, math.floor(steps))
    return min((below, below + 1), key=lambda k: save / k / step + k * step / 2 / mean)


@right("Young's interval, then the better neighbour")
def checkpoint_interval(*, save_seconds, step_seconds, gpu_mtbf_seconds, gpus):
    check(save_seconds, step_seconds, gpu_mtbf_seconds, gpus)
    mean = gpu_mtbf_seconds / gpus
    steps = math.sqrt(2 * save_seconds * mean) / step_seconds
    return best_of_two(steps, save_seconds, step_seconds, mean)


@right("up while the next one loses less")
def checkpoint_interval(*, save_seconds, step_seconds, gpu_mtbf_seconds, gpus):
    check(save_seconds, step_seconds, gpu_mtbf_seconds, gpus)
    mean, k = gpu_mtbf_seconds / gpus, 1

    def lost(k):
        return save_seconds / (k * step_seconds) + k * step_seconds / 2 / mean

    while lost(k + 1) < lost(k):
        k += 1
    return k


@right("in whole numbers: the first k with k (k + 1) at least the square")
def checkpoint_interval(*, save_seconds, step_seconds, gpu_mtbf_seconds, gpus):
    check(save_seconds, step_seconds, gpu_mtbf_seconds, gpus)
    square = 2 * Fraction(save_seconds) * Fraction(gpu_mtbf_seconds) / gpus / Fraction(step_seconds) ** 2
    k = max(1, math.isqrt(math.ceil(square)) - 1)
    while k * (k + 1) < square:
        k += 1
    return np.int64(k)


@right("all of them in numpy, a whole float")
def checkpoint_interval(*, save_seconds, step_seconds, gpu_mtbf_seconds, gpus):
    check(save_seconds, step_seconds, gpu_mtbf_seconds, gpus)
    t = step_seconds * np.arange(1, 60000)
    return float(np.argmin(save_seconds / t + t * gpus / (2 * gpu_mtbf_seconds)) + 1)


@right("ternary search, an int tensor")
def checkpoint_interval(*, save_seconds, step_seconds, gpu_mtbf_seconds, gpus):
    check(save_seconds, step_seconds, gpu_mtbf_seconds, gpus)

    def lost(k):
        t = k * step_seconds
        return save_seconds / t + gpus * t / 2 / gpu_mtbf_seconds

    low, high = 1, 2 + int(math.sqrt(2 * save_seconds * gpu_mtbf_seconds) / step_seconds)
    while high - low > 2:
        a, b = low + (high - low) // 3, high - (high - low) // 3
        if lost(a) <= lost(b):
            high = b
        else:
            low = a
    return torch.tensor(min(range(low, high + 1), key=lost))


@wrong("INTERVAL_ONE_GPU", points=0)
def checkpoint_interval(*, save_seconds, step_seconds, gpu_mtbf_seconds, gpus):
    check(save_seconds, step_seconds, gpu_mtbf_seconds, gpus)
    return max(1, round(math.sqrt(2 * save_seconds * gpu_mtbf_seconds) / step_seconds))


@wrong("INTERVAL_TIMES_GPUS", points=0)
def checkpoint_interval(*, save_seconds, step_seconds, gpu_mtbf_seconds, gpus):
    check(save_seconds, step_seconds, gpu_mtbf_seconds, gpus)
    return max(1, round(math.sqrt(2 * save_seconds * gpu_mtbf_seconds * gpus) / step_seconds))


@wrong("INTERVAL_NO_TWO", points=0)
def checkpoint_interval(*, save_seconds, step_seconds, gpu_mtbf_seconds, gpus):
    check(save_seconds, step_seconds, gpu_mtbf_seconds, gpus)
    return max(1, round(math.sqrt(save_seconds * gpu_mtbf_seconds / gpus) / step_seconds))


@wrong("INTERVAL_NO_TWO", points=0)
def checkpoint_interval(*, save_seconds, step_seconds, gpu_mtbf_seconds, gpus):
    check(save_seconds, step_seconds, gpu_mtbf_seconds, gpus)
    return max(1, round(math.sqrt(save_seconds * gpu_mtbf_seconds / gpus / 2) / step_seconds))


@wrong("INTERVAL_NO_ROOT", points=0)
def checkpoint_interval(*, save_seconds, step_seconds, gpu_mtbf_seconds, gpus):
    check(save_seconds, step_seconds, gpu_mtbf_seconds, gpus)
    return max(1, round(2 * save_seconds * gpu_mtbf_seconds / gpus / step_seconds))


@wrong("INTERVAL_IN_SECONDS", points=0)
def checkpoint_interval(*, save_seconds, step_seconds, gpu_mtbf_seconds, gpus):
    check(save_seconds, step_seconds, gpu_mtbf_seconds, gpus)
    return math.sqrt(2 * save_seconds * gpu_mtbf_seconds / gpus)


@wrong("INTERVAL_IN_SECONDS", points=0)
def checkpoint_interval(*, save_seconds, step_seconds, gpu_mtbf_seconds, gpus):
    check(save_seconds, step_seconds, gpu_mtbf_seconds, gpus)
    return max(1, round(math.sqrt(2 * save_seconds * gpu_mtbf_seconds / gpus)))


@wrong("INTERVAL_STEP_IN_ROOT", points=0)
def checkpoint_interval(*, save_seconds, step_seconds, gpu_mtbf_seconds, gpus):
    check(save_seconds, step_seconds, gpu_mtbf_seconds, gpus)
    return max(1, round(math.sqrt(2 * save_seconds * gpu_mtbf_seconds / gpus / step_seconds)))


@wrong("INTERVAL_STEP_IN_ROOT", points=0)
def checkpoint_interval(*, save_seconds, step_seconds, gpu_mtbf_seconds, gpus):
    check(save_seconds, step_seconds, gpu_mtbf_seconds, gpus)
    return max(1, round(math.sqrt(2 * save_seconds * gpu_mtbf_seconds / gpus) * step_seconds))


@wrong("INTERVAL_GPUS_OUTSIDE", points=0)
def checkpoint_interval(*, save_seconds, step_seconds, gpu_mtbf_seconds, gpus):
    check(save_seconds, step_seconds, gpu_mtbf_seconds, gpus)
    return max(1, round(math.sqrt(2 * save_seconds * gpu_mtbf_seconds) / gpus / step_seconds))


@wrong("INTERVAL_MTBF", points=0)
def checkpoint_interval(*, save_seconds, step_seconds, gpu_mtbf_seconds, gpus):
    check(save_seconds, step_seconds, gpu_mtbf_seconds, gpus)
    return max(1, round(gpu_mtbf_seconds / gpus / step_seconds))


@wrong("INTERVAL_IN_SECONDS", points=0)
def checkpoint_interval(*, save_seconds, step_seconds, gpu_mtbf_seconds, gpus):
    check(save_seconds, step_seconds, gpu_mtbf_seconds, gpus)
    return max(1, round(math.sqrt(2 * save_seconds * gpu_mtbf_seconds / gpus) / 60))


@wrong("INTERVAL_ONE_GPU", points=0)
def checkpoint_interval(*, save_seconds, step_seconds, gpu_mtbf_seconds, gpus):
    check(save_seconds, step_seconds, gpu_mtbf_seconds, gpus)
    return max(1, round(math.sqrt(save_seconds * gpu_mtbf_seconds) / step_seconds))


@wrong("INTERVAL_DALY", points=0)
def checkpoint_interval(*, save_seconds, step_seconds, gpu_mtbf_seconds, gpus):
    check(save_seconds, step_seconds, gpu_mtbf_seconds, gpus)
    mean = gpu_mtbf_seconds / gpus
    ratio = save_seconds / (2 * mean)
    t = math.sqrt(2 * save_seconds * mean) * (1 + math.sqrt(ratio) / 3 + ratio / 9) - save_seconds
    return max(1, round(t / step_seconds))


@wrong("INTERVAL_DALY", points=0)
def checkpoint_interval(*, save_seconds, step_seconds, gpu_mtbf_seconds, gpus):
    check(save_seconds, step_seconds, gpu_mtbf_seconds, gpus)
    return max(1, round((math.sqrt(2 * save_seconds * gpu_mtbf_seconds / gpus) - save_seconds) / step_seconds))


@wrong("INTERVAL_ROUNDED", points=0)
def checkpoint_interval(*, save_seconds, step_seconds, gpu_mtbf_seconds, gpus):
    check(save_seconds, step_seconds, gpu_mtbf_seconds, gpus)
    return max(1, round(math.sqrt(2 * save_seconds * gpu_mtbf_seconds / gpus) // step_seconds))


@wrong("INTERVAL_ROUNDED", points=0)
def checkpoint_interval(*, save_seconds, step_seconds, gpu_mtbf_seconds, gpus):
    check(save_seconds, step_seconds, gpu_mtbf_seconds, gpus)
    return math.ceil(math.sqrt(2 * save_seconds * gpu_mtbf_seconds / gpus) / step_seconds)


@wrong("INTERVAL_ROUNDED", points=6)
def checkpoint_interval(*, save_seconds, step_seconds, gpu_mtbf_seconds, gpus):
    check(save_seconds, step_seconds, gpu_mtbf_seconds, gpus)
    return max(1, round(math.sqrt(2 * save_seconds * gpu_mtbf_seconds / gpus) / step_seconds))


@wrong("INTERVAL_NOT_WHOLE", points=0)
def checkpoint_interval(*, save_seconds, step_seconds, gpu_mtbf_seconds, gpus):
    check(save_seconds, step_seconds, gpu_mtbf_seconds, gpus)
    return math.sqrt(2 * save_seconds * gpu_mtbf_seconds / gpus) / step_seconds


@wrong("INTERVAL_NOT_WHOLE", points=0)
def checkpoint_interval(*, save_seconds, step_seconds, gpu_mtbf_seconds, gpus):
    check(save_seconds, step_seconds, gpu_mtbf_seconds, gpus)
    return max(1.0, math.sqrt(2 * save_seconds * gpu_mtbf_seconds / gpus) / step_seconds)


@wrong("INTERVAL_ZERO", points=6)
def checkpoint_interval(*, save_seconds, step_seconds, gpu_mtbf_seconds, gpus):
    check(save_seconds, step_seconds, gpu_mtbf_seconds, gpus)
    mean = gpu_mtbf_seconds / gpus

    def lost(k):
        return (
            save_seconds / (k * step_seconds) + k * step_seconds / 2 / mean
            if k
            else 0 * k + save_seconds / step_seconds
        )

    below = int(math.sqrt(2 * save_seconds * mean) / step_seconds)
    return below if below < 1 else min((below, below + 1), key=lost)


@wrong("NOT_REFUSED", points=7)
def checkpoint_interval(*, save_seconds, step_seconds, gpu_mtbf_seconds, gpus):
    mean = gpu_mtbf_seconds / max(gpus, 1)
    steps = math.sqrt(abs(2 * save_seconds * mean)) / max(step_seconds, 1)
    if step_seconds > 0 < save_seconds and mean > 0:
        return best_of_two(math.sqrt(2 * save_seconds * mean) / step_seconds, save_seconds, step_seconds, mean)
    return round(steps)


@wrong("OTHER_ERROR", points=7)
def checkpoint_interval(*, save_seconds, step_seconds, gpu_mtbf_seconds, gpus):
    assert min(save_seconds, step_seconds, gpu_mtbf_seconds, gpus) > 0
    mean = gpu_mtbf_seconds / gpus
    steps = math.sqrt(2 * save_seconds * mean) / step_seconds
    return best_of_two(steps, save_seconds, step_seconds, mean)


@wrong("GENERATOR", points=0)
def checkpoint_interval(*, save_seconds, step_seconds, gpu_mtbf_seconds, gpus):
    yield math.sqrt(2 * save_seconds * gpu_mtbf_seconds / gpus) / step_seconds


@wrong("PRINTED", points=0)
def checkpoint_interval(*, save_seconds, step_seconds, gpu_mtbf_seconds, gpus):
    print(math.sqrt(2 * save_seconds * gpu_mtbf_seconds / gpus) / step_seconds)


@wrong(points=0, says="which lose")
def checkpoint_interval(*, save_seconds, step_seconds, gpu_mtbf_seconds, gpus):
    check(save_seconds, step_seconds, gpu_mtbf_seconds, gpus)
    return 1000


@wrong(points=0, says="returned inf")
def checkpoint_interval(*, save_seconds, step_seconds, gpu_mtbf_seconds, gpus):
    check(save_seconds, step_seconds, gpu_mtbf_seconds, gpus)
    return math.inf
