# ruff: noqa: F811
from fractions import Fraction

import numpy as np

from course.errors import UsageError
from tests.grading.bank import right, wrong


def refuse(serial, workers):
    if not 0 <= serial <= 1 or workers < 1:
        raise ValueError(f"serial={serial}, workers={workers}")


@right("one line")
def gustafson_speedup(*, serial, workers):
    refuse(serial, workers)
    return serial + (1 - serial) * workers


@right("Gustafson's own form")
def gustafson_speedup(*, serial, workers):
    refuse(serial, workers)
    return workers + (1 - workers) * serial


@right("what is lost")
def gustafson_speedup(*, serial, workers):
    refuse(serial, workers)
    lost = serial * (workers - 1)
    return workers - lost


@right("by way of Amdahl")
def gustafson_speedup(*, serial, workers):
    if not (0 <= serial <= 1 and workers >= 1):
        raise UsageError("no")
    alone = serial + (1 - serial) * workers
    of_one = serial / alone
    return 1 / (of_one + (1 - of_one) / workers)


@right("fractions")
def gustafson_speedup(*, serial, workers):
    refuse(serial, workers)
    share = Fraction(serial)
    return share + (1 - share) * Fraction(workers)


@right("numpy")
def gustafson_speedup(*, serial, workers):
    refuse(serial, workers)
    return np.dot([serial, 1 - serial], [1, workers])


@wrong("GUSTAFSON_SWAPPED", points=1)
def gustafson_speedup(*, serial, workers):
    refuse(serial, workers)
    return (1 - serial) + serial * workers


@wrong("GUSTAFSON_IS_AMDAHL", points=1)
def gustafson_speedup(*, serial, workers):
    refuse(serial, workers)
    return 1 / (serial + (1 - serial) / workers)


@wrong("GUSTAFSON_SERIAL_IGNORED", points=1)
def gustafson_speedup(*, serial, workers):
    refuse(serial, workers)
    return (1 - serial) * workers


@wrong("GUSTAFSON_SERIAL_IGNORED", points=1)
def gustafson_speedup(*, serial, workers):
    refuse(serial, workers)
    return workers - serial * workers


@wrong("GUSTAFSON_ALL_BUSY", points=1)
def gustafson_speedup(*, serial, workers):
    refuse(serial, workers)
    return workers


@wrong("GUSTAFSON_MORE_THAN_ALL", points=1)
def gustafson_speedup(*, serial, workers):
    refuse(serial, workers)
    return workers + serial * (workers - 1)


@wrong("GUSTAFSON_MORE_THAN_ALL", points=1)
def gustafson_speedup(*, serial, workers):
    refuse(serial, workers)
    return serial + (1 + serial) * workers


@wrong("GUSTAFSON_MORE_THAN_ALL", points=1)
def gustafson_speedup(*, serial, workers):
    refuse(serial, workers)
    return workers + serial * workers


@wrong("GUSTAFSON_EFFICIENCY", points=1)
def gustafson_speedup(*, serial, workers):
    refuse(serial, workers)
    return (serial + (1 - serial) * workers) / workers


@wrong("PERCENT", points=1)
def gustafson_speedup(*, serial, workers):
    refuse(serial, workers)
    serial = serial / 100
    return serial + (1 - serial) * workers


@wrong("NOT_REFUSED", points=5)
def gustafson_speedup(*, serial, workers):
    return serial + (1 - serial) * workers


@wrong("NOT_REFUSED", points=5)
def gustafson_speedup(*, serial, workers):
    if serial < 0 or workers < 1:
        raise ValueError
    return serial + (1 - serial) * workers


@wrong("OTHER_ERROR", points=5)
def gustafson_speedup(*, serial, workers):
    if not 0 <= serial <= 1 or workers < 1:
        raise TypeError
    return serial + (1 - serial) * workers


@wrong("GENERATOR", points=0)
def gustafson_speedup(*, serial, workers):
    yield serial + (1 - serial) * workers


@wrong(points=1, says="returned None")
def gustafson_speedup(*, serial, workers):
    refuse(serial, workers)
    print(serial + (1 - serial) * workers)


@wrong(points=1, says="returned a tuple of 2")
def gustafson_speedup(*, serial, workers):
    refuse(serial, workers)
    return serial, (1 - serial) * workers


@wrong(points=1, says="gustafson_speedup(serial=0.1, workers=2) returned 1 ")
def gustafson_speedup(*, serial, workers):
    refuse(serial, workers)
    return int(serial + (1 - serial) * workers)


@wrong(points=5, says="gustafson_speedup(serial=0.1, workers=1) returned 0.9")
def gustafson_speedup(*, serial, workers):
    refuse(serial, workers)
    return serial * (workers > 1) + (1 - serial) * workers
