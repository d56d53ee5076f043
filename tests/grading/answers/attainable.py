# ruff: noqa: F811
import math
from fractions import Fraction

import numpy as np
import torch

from course.errors import UsageError
from tests.grading.bank import right, wrong


@right("min")
def attainable(intensity, peak_flops, bandwidth):
    if intensity < 0 or peak_flops < 0 or bandwidth < 0:
        raise ValueError("nothing here is negative")
    return min(peak_flops, intensity * bandwidth)


@right("by cases, around the ridge")
def attainable(intensity, peak_flops, bandwidth):
    if min(intensity, peak_flops, bandwidth) < 0:
        raise UsageError("nothing here is negative")
    ridge = peak_flops / bandwidth
    if intensity >= ridge:
        return peak_flops
    return bandwidth * intensity


@right("the longer of two times")
def attainable(intensity, peak_flops, bandwidth):
    for number in (intensity, peak_flops, bandwidth):
        if number < 0:
            raise ValueError(number)
    if intensity == 0:
        return 0
    seconds = max(1 / bandwidth, intensity / peak_flops)
    return intensity / seconds


@right("a share of the peak, times the peak, in numpy")
def attainable(intensity, peak_flops, bandwidth):
    if np.any(np.array([intensity, peak_flops, bandwidth]) < 0):
        raise ValueError("negative")
    return np.clip(np.float64(intensity) * bandwidth / peak_flops, 0, 1) * peak_flops


@right("a tensor of one number, in float32")
def attainable(intensity, peak_flops, bandwidth):
    if any(math.copysign(1, number) < 0 for number in (intensity, peak_flops, bandwidth)):
        raise ValueError("negative")
    return torch.minimum(torch.tensor(float(peak_flops)), torch.tensor(float(intensity)) * bandwidth)


@right("fractions, then a float")
def attainable(intensity, peak_flops, bandwidth):
    numbers = [Fraction(number) for number in (intensity, peak_flops, bandwidth)]
    if min(numbers) < 0:
        raise ValueError("negative")
    return float(sorted([numbers[1], numbers[0] * numbers[2]])[0])


def refuse(*numbers):
    if min(numbers) < 0:
        raise ValueError("negative")


@wrong("ROOF_LARGER", points=1)
def attainable(intensity, peak_flops, bandwidth):
    refuse(intensity, peak_flops, bandwidth)
    return max(peak_flops, intensity * bandwidth)


@wrong("ROOF_DIVIDES", points=1)
def attainable(intensity, peak_flops, bandwidth):
    refuse(intensity, peak_flops, bandwidth)
    return min(peak_flops, bandwidth / intensity)


@wrong("ROOF_DIVIDES", points=1)
def attainable(intensity, peak_flops, bandwidth):
    refuse(intensity, peak_flops, bandwidth)
    return bandwidth / intensity


@wrong("ROOF_FLAT", points=1)
def attainable(intensity, peak_flops, bandwidth):
    refuse(intensity, peak_flops, bandwidth)
    return peak_flops


@wrong("ROOF_SLOPE_ONLY", points=1)
def attainable(intensity, peak_flops, bandwidth):
    refuse(intensity, peak_flops, bandwidth)
    return intensity * bandwidth


@wrong("ROOF_SUM", points=1)
def attainable(intensity, peak_flops, bandwidth):
    refuse(intensity, peak_flops, bandwidth)
    return peak_flops + intensity * bandwidth


@wrong("ROOF_NO_OVERLAP", points=1)
def attainable(intensity, peak_flops, bandwidth):
    refuse(intensity, peak_flops, bandwidth)
    return intensity / (intensity / peak_flops + 1 / bandwidth)


@wrong("ROOF_RIDGE", points=1)
def attainable(intensity, peak_flops, bandwidth):
    refuse(intensity, peak_flops, bandwidth)
    return peak_flops / bandwidth


@wrong("ROOF_RIDGE", points=1)
def attainable(intensity, peak_flops, bandwidth):
    refuse(intensity, peak_flops, bandwidth)
    return min(intensity, peak_flops / bandwidth)


@wrong("ROOF_FRACTION", points=1)
def attainable(intensity, peak_flops, bandwidth):
    refuse(intensity, peak_flops, bandwidth)
    return min(1.0, intensity * bandwidth / peak_flops)


@wrong("ROOF_BITS", points=1)
def attainable(intensity, peak_flops, bandwidth):
    refuse(intensity, peak_flops, bandwidth)
    return min(peak_flops, intensity * bandwidth / 8)


@wrong("ROOF_BITS", points=1)
def attainable(intensity, peak_flops, bandwidth):
    refuse(intensity, peak_flops, bandwidth)
    return min(peak_flops, intensity * 8 * bandwidth)


@wrong("NOT_REFUSED", points=5)
def attainable(intensity, peak_flops, bandwidth):
    return min(peak_flops, intensity * bandwidth)


@wrong("NOT_REFUSED", points=5)
def attainable(intensity, peak_flops, bandwidth):
    roof = min(peak_flops, intensity * bandwidth)
    if roof < 0:
        raise ValueError("negative")
    return roof


@wrong("OTHER_ERROR", points=5)
def attainable(intensity, peak_flops, bandwidth):
    assert intensity >= 0 and peak_flops >= 0 and bandwidth >= 0
    return min(peak_flops, intensity * bandwidth)


@wrong("GENERATOR", points=0)
def attainable(intensity, peak_flops, bandwidth):
    yield min(peak_flops, intensity * bandwidth)


@wrong(says="raised ZeroDivisionError", points=5)
def attainable(intensity, peak_flops, bandwidth):
    refuse(intensity, peak_flops, bandwidth)
    return intensity / max(1 / bandwidth, intensity / peak_flops) if 1 / intensity else 0


@wrong(says="attainable(0.5, 1e+11, 2e+10) returned 5e+09", points=1)
def attainable(intensity, peak_flops, bandwidth):
    refuse(intensity, peak_flops, bandwidth)
    return min(peak_flops, intensity * intensity * bandwidth)


@wrong(says="returned a tuple of 2", points=1)
def attainable(intensity, peak_flops, bandwidth):
    refuse(intensity, peak_flops, bandwidth)
    roof = min(peak_flops, intensity * bandwidth)
    return roof, "memory" if roof < peak_flops else "arithmetic"


@wrong(says="returned a str", points=1)
def attainable(intensity, peak_flops, bandwidth):
    refuse(intensity, peak_flops, bandwidth)
    return f"{min(peak_flops, intensity * bandwidth) / 1e9} GFLOP/s"


@wrong(says="returned 10 expected: 1e+10", points=1)
def attainable(intensity, peak_flops, bandwidth):
    refuse(intensity, peak_flops, bandwidth)
    return min(peak_flops, intensity * bandwidth) / 1e9


class Roof(float):
    def __eq__(self, other):
        return True

    __hash__ = float.__hash__


@wrong(says="returned a Roof", points=1)
def attainable(intensity, peak_flops, bandwidth):
    refuse(intensity, peak_flops, bandwidth)
    return Roof(1.0)


@wrong(says="returned nan", points=1)
def attainable(intensity, peak_flops, bandwidth):
    refuse(intensity, peak_flops, bandwidth)
    return math.nan
