# ruff: noqa: F811
from fractions import Fraction

import numpy as np

from course.errors import UsageError
from tests.grading.bank import right, wrong


@right("the closed form")
def bubble_fraction(stages, microbatches, chunks=1):
    if min(stages, microbatches, chunks) < 1:
        raise ValueError("at least 1 of each")
    return (stages - 1) / (chunks * microbatches + stages - 1)


@right("counted on a grid, in fractions")
def bubble_fraction(stages, microbatches, chunks=1):
    if stages < 1 or microbatches < 1 or chunks < 1:
        raise UsageError("nothing to do")
    busy = Fraction(microbatches)
    idle = Fraction(stages - 1, chunks)
    return idle / (idle + busy)


@right("one minus the busy share, a number of numpy")
def bubble_fraction(stages, microbatches, chunks=1):
    if not all(x >= 1 for x in (stages, microbatches, chunks)):
        raise ValueError
    return np.float64(1) - np.float64(microbatches * chunks) / (microbatches * chunks + stages - 1)


@right("from the bubble of the papers")
def bubble_fraction(stages, microbatches, chunks=1):
    for number in (stages, microbatches, chunks):
        if number <= 0:
            raise ValueError(number)
    ideal = (stages - 1) / microbatches / chunks
    return ideal / (1 + ideal)


@wrong("OF_IDEAL_TIME", points=1)
def bubble_fraction(stages, microbatches, chunks=1):
    if min(stages, microbatches, chunks) < 1:
        raise ValueError
    return (stages - 1) / (chunks * microbatches)


@wrong("OF_IDEAL_TIME", points=5)
def bubble_fraction(stages, microbatches, chunks=1):
    if min(stages, microbatches, chunks) < 1:
        raise ValueError
    return (stages - 1) / (microbatches + stages - 1) / chunks


@wrong("ONE_STEP_LONGER", points=1)
def bubble_fraction(stages, microbatches, chunks=1):
    if min(stages, microbatches, chunks) < 1:
        raise ValueError
    return (stages - 1) / (chunks * microbatches + stages)


@wrong("ONE_STEP_LONGER", points=0)
def bubble_fraction(stages, microbatches, chunks=1):
    return (stages - 1) / (microbatches + stages)


@wrong("STAGES_NOT_STEPS", points=1)
def bubble_fraction(stages, microbatches, chunks=1):
    if min(stages, microbatches, chunks) < 1:
        raise ValueError
    return stages / (chunks * microbatches + stages)


@wrong("BUSY_SHARE", points=1)
def bubble_fraction(stages, microbatches, chunks=1):
    if min(stages, microbatches, chunks) < 1:
        raise ValueError
    return microbatches / (microbatches + stages - 1)


@wrong("IN_PERCENT", points=1)
def bubble_fraction(stages, microbatches, chunks=1):
    if min(stages, microbatches, chunks) < 1:
        raise ValueError
    return 100 * (stages - 1) / (chunks * microbatches + stages - 1)


@wrong("CHUNKS_IGNORED", points=5)
def bubble_fraction(stages, microbatches, chunks=1):
    if min(stages, microbatches, chunks) < 1:
        raise ValueError
    return (stages - 1) / (microbatches + stages - 1)


@wrong("CHUNKS_LENGTHEN", points=5)
def bubble_fraction(stages, microbatches, chunks=1):
    if min(stages, microbatches, chunks) < 1:
        raise ValueError
    return (stages * chunks - 1) / (microbatches + stages * chunks - 1)


@wrong("CHUNKS_LENGTHEN", points=5)
def bubble_fraction(stages, microbatches, chunks=1):
    if min(stages, microbatches, chunks) < 1:
        raise ValueError
    return chunks * (stages - 1) / (microbatches + chunks * (stages - 1))


@wrong("NOT_REFUSED", points=5)
def bubble_fraction(stages, microbatches, chunks=1):
    return (stages - 1) / (chunks * microbatches + stages - 1) if microbatches else 0.0


@wrong("OTHER_ERROR", points=5)
def bubble_fraction(stages, microbatches, chunks=1):
    if min(stages, microbatches, chunks) < 1:
        raise ZeroDivisionError
    return (stages - 1) / (chunks * microbatches + stages - 1)


@wrong("GENERATOR", points=0)
def bubble_fraction(stages, microbatches, chunks=1):
    yield (stages - 1) / (chunks * microbatches + stages - 1)


@wrong(says="returned 0 expected", points=0)
def bubble_fraction(stages, microbatches, chunks=1):
    return (stages - 1) // (chunks * microbatches + stages - 1)


@wrong(says="returned a str", points=0)
def bubble_fraction(stages, microbatches, chunks=1):
    return f"{(stages - 1) / (chunks * microbatches + stages - 1):.3f}"


@wrong(says="returned 0.27", points=1)
def bubble_fraction(stages, microbatches, chunks=1):
    if min(stages, microbatches, chunks) < 1:
        raise ValueError
    return round((stages - 1) / (chunks * microbatches + stages - 1), 2)


@wrong(says="raised TypeError", points=4)
def bubble_fraction(stages, microbatches):
    if min(stages, microbatches) < 1:
        raise ValueError
    return (stages - 1) / (microbatches + stages - 1)
