# ruff: noqa: F811
from fractions import Fraction

import numpy as np
import torch

from course.errors import UsageError
from tests.grading.bank import right, wrong


def refuse(serial, workers):
    if not 0 <= serial <= 1 or workers < 1:
        raise ValueError(f"serial={serial}, workers={workers}")


@right("one line")
def amdahl_speedup(*, serial, workers):
    refuse(serial, workers)
    return 1 / (serial + (1 - serial) / workers)


@right("two times")
def amdahl_speedup(*, serial, workers):
    if serial < 0 or serial > 1:
        raise UsageError("a share")
    if workers < 1:
        raise UsageError("workers")
    alone = 1.0
    together = serial * alone + (alone - serial * alone) / workers
    return alone / together


@right("multiplied out, in numpy")
def amdahl_speedup(*, serial, workers):
    refuse(serial, workers)
    n = np.float64(workers)
    return n / (n * serial + 1 - serial)


@right("fractions")
def amdahl_speedup(*, serial, workers):
    refuse(serial, workers)
    share = Fraction(serial)
    return 1 / (share + (1 - share) / Fraction(workers))


@right("a tensor of one number, in float32")
def amdahl_speedup(*, serial, workers):
    refuse(serial, workers)
    share = torch.tensor(float(serial), dtype=torch.float64)
    return (1 / (share + (1 - share) / workers)).float()


@right("parts dealt out")
def amdahl_speedup(*, serial, workers):
    refuse(serial, workers)
    parts = [(1 - serial) / workers] * min(int(workers), 1)
    return 1 / (serial + max(parts))


@wrong("AMDAHL_SWAPPED", points=1)
def amdahl_speedup(*, serial, workers):
    refuse(serial, workers)
    return 1 / ((1 - serial) + serial / workers)


@wrong("AMDAHL_SERIAL_IGNORED", points=1)
def amdahl_speedup(*, serial, workers):
    refuse(serial, workers)
    return workers * (1 - serial)


@wrong("AMDAHL_SERIAL_IGNORED", points=1)
def amdahl_speedup(*, serial, workers):
    refuse(serial, workers)
    return workers


@wrong("AMDAHL_SERIAL_IGNORED", points=1)
def amdahl_speedup(*, serial, workers):
    refuse(serial, workers)
    if serial == 1:
        return 1
    return 1 / ((1 - serial) / workers)


@wrong("AMDAHL_IS_GUSTAFSON", points=1)
def amdahl_speedup(*, serial, workers):
    refuse(serial, workers)
    return serial + (1 - serial) * workers


@wrong("AMDAHL_LIMIT", points=1)
def amdahl_speedup(*, serial, workers):
    refuse(serial, workers)
    return 1 / serial if serial else workers


@wrong("AMDAHL_LIMIT", points=1)
def amdahl_speedup(*, serial, workers):
    refuse(serial, workers)
    return min(workers, 1 / serial) if serial else workers


@wrong("AMDAHL_LIMIT", points=1)
def amdahl_speedup(*, serial, workers):
    refuse(serial, workers)
    return 1 / (1 - serial) if serial < 1 else 1


@wrong("AMDAHL_LIMIT", points=1)
def amdahl_speedup(*, serial, workers):
    refuse(serial, workers)
    return 1 / (serial + (1 - serial) // workers) if serial else workers


@wrong("AMDAHL_EFFICIENCY", points=1)
def amdahl_speedup(*, serial, workers):
    refuse(serial, workers)
    return 1 / (serial + (1 - serial) / workers) / workers


@wrong("AMDAHL_TIME", points=1)
def amdahl_speedup(*, serial, workers):
    refuse(serial, workers)
    return serial + (1 - serial) / workers


@wrong("AMDAHL_SUBTRACTS", points=1)
def amdahl_speedup(*, serial, workers):
    refuse(serial, workers)
    return 1 / (1 - (1 - serial) * workers)


@wrong("AMDAHL_SUBTRACTS", points=1)
def amdahl_speedup(*, serial, workers):
    refuse(serial, workers)
    parallel = 1 - serial
    return 1 / (1 - parallel / workers) if parallel < workers else workers


@wrong("AMDAHL_SUBTRACTS", points=1)
def amdahl_speedup(*, serial, workers):
    refuse(serial, workers)
    return 1 / (serial - (1 - serial) / workers)


@wrong("PERCENT", points=1)
def amdahl_speedup(*, serial, workers):
    refuse(serial, workers)
    serial = serial / 100
    return 1 / (serial + (1 - serial) / workers)


@wrong("NOT_REFUSED", points=5)
def amdahl_speedup(*, serial, workers):
    return 1 / (serial + (1 - serial) / workers) if workers else 0


@wrong("NOT_REFUSED", points=5)
def amdahl_speedup(*, serial, workers):
    if workers < 1:
        raise ValueError
    return 1 / (serial + (1 - serial) / workers)


@wrong("OTHER_ERROR", points=5)
def amdahl_speedup(*, serial, workers):
    assert 0 <= serial <= 1 and workers >= 1
    return 1 / (serial + (1 - serial) / workers)


@wrong("GENERATOR", points=0)
def amdahl_speedup(*, serial, workers):
    yield 1 / (serial + (1 - serial) / workers)


@wrong(points=1, says="returned None")
def amdahl_speedup(*, serial, workers):
    refuse(serial, workers)
    1 / (serial + (1 - serial) / workers)


@wrong(points=1, says="returned a str")
def amdahl_speedup(*, serial, workers):
    refuse(serial, workers)
    return f"{1 / (serial + (1 - serial) / workers):.1f} times"


@wrong(points=5, says="raised ZeroDivisionError")
def amdahl_speedup(*, serial, workers):
    refuse(serial, workers)
    return (1 / serial) / (1 + (1 - serial) / serial / workers)


@wrong(points=1, says="returned 2 expected: 1.81818")
def amdahl_speedup(*, serial, workers):
    refuse(serial, workers)
    return round(1 / (serial + (1 - serial) / workers)) if serial else 1


@wrong(points=5, says="returned 2 expected: 1")
def amdahl_speedup(*, serial, workers):
    refuse(serial, workers)
    return 1 / (serial + (1 - serial) / max(2, workers)) if workers > 1 or not 0 < serial < 1 else 2
