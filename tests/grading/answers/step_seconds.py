# ruff: noqa: F811
import itertools
from decimal import Decimal
from fractions import Fraction

import numpy as np

from tests.grading.bank import right, wrong


def check(forward, backward, layers, stages, microbatches, chunks, tp_seconds, dp_seconds):
    if min(layers, stages, microbatches, chunks) < 1 or min(forward, backward, tp_seconds, dp_seconds) < 0:
        raise ValueError("counts from 1, seconds from 0")


@right("the parts, added up")
def step_seconds(*, forward, backward, layers, stages, microbatches, chunks=1, tp_seconds=0.0, dp_seconds=0.0):
    check(forward, backward, layers, stages, microbatches, chunks, tp_seconds, dp_seconds)
    one = forward + backward + 4 * layers * tp_seconds
    return (microbatches + (stages - 1) / chunks) * one + max(0, dp_seconds - backward)


@right("busy, idle and exposed in fractions")
def step_seconds(*, forward, backward, layers, stages, microbatches, chunks=1, tp_seconds=0.0, dp_seconds=0.0):
    check(forward, backward, layers, stages, microbatches, chunks, tp_seconds, dp_seconds)
    passes = [Fraction(seconds) + 2 * layers * Fraction(tp_seconds) for seconds in (forward, backward)]
    busy, idle = microbatches * sum(passes), Fraction(stages - 1, chunks) * sum(passes)
    exposed = Fraction(dp_seconds) - min(Fraction(dp_seconds), Fraction(backward))
    return busy + idle + exposed


@right("played microbatch by microbatch where there are no chunks")
def step_seconds(*, forward, backward, layers, stages, microbatches, chunks=1, tp_seconds=0.0, dp_seconds=0.0):
    check(forward, backward, layers, stages, microbatches, chunks, tp_seconds, dp_seconds)
    one = forward + backward + 4 * layers * tp_seconds
    done = [0.0] * stages  # when each stage has finished with the microbatch before
    for _microbatch in range(microbatches):
        there = 0.0
        for stage in range(stages):
            done[stage] = max(done[stage], there) + one
            there = done[stage]
    saved = (stages - 1) * one * (1 - 1 / chunks)
    hidden = min(dp_seconds, backward)
    return done[-1] - saved + dp_seconds - hidden


@right("in numpy, arguments rounded to single precision")
def step_seconds(*, forward, backward, layers, stages, microbatches, chunks=1, tp_seconds=0.0, dp_seconds=0.0):
    check(forward, backward, layers, stages, microbatches, chunks, tp_seconds, dp_seconds)
    f, b, t, d = np.float32([forward, backward, tp_seconds, dp_seconds])
    one = np.sum([f, b, *itertools.repeat(t, 4 * layers)])
    return np.float64(one * microbatches + one * (stages - 1) / chunks) + np.clip(d - b, 0, None)


@right("a decimal")
def step_seconds(*, forward, backward, layers, stages, microbatches, chunks=1, tp_seconds=0.0, dp_seconds=0.0):
    check(forward, backward, layers, stages, microbatches, chunks, tp_seconds, dp_seconds)
    f, b, t, d = (Decimal(str(seconds)) for seconds in (forward, backward, tp_seconds, dp_seconds))
    one = f + b + 4 * layers * t
    return microbatches * one + (stages - 1) * one / chunks + max(Decimal(0), d - b)


@wrong("STEP_NO_BUBBLE", points=0)
def step_seconds(*, forward, backward, layers, stages, microbatches, chunks=1, tp_seconds=0.0, dp_seconds=0.0):
    check(forward, backward, layers, stages, microbatches, chunks, tp_seconds, dp_seconds)
    one = forward + backward + 4 * layers * tp_seconds
    return microbatches * one + max(0, dp_seconds - backward)


@wrong("STEP_BUBBLE_OF_ONE_PASS", points=0)
def step_seconds(*, forward, backward, layers, stages, microbatches, chunks=1, tp_seconds=0.0, dp_seconds=0.0):
    check(forward, backward, layers, stages, microbatches, chunks, tp_seconds, dp_seconds)
    one = forward + backward + 4 * layers * tp_seconds
    return microbatches * one + (stages - 1) / chunks * forward + max(0, dp_seconds - backward)


@wrong("STEP_ONE_STAGE_MORE", points=0)
def step_seconds(*, forward, backward, layers, stages, microbatches, chunks=1, tp_seconds=0.0, dp_seconds=0.0):
    check(forward, backward, layers, stages, microbatches, chunks, tp_seconds, dp_seconds)
    one = forward + backward + 4 * layers * tp_seconds
    return (microbatches + stages / chunks) * one + max(0, dp_seconds - backward)


@wrong("STEP_ONE_STAGE_MORE", points=0)
def step_seconds(*, forward, backward, layers, stages, microbatches, chunks=1, tp_seconds=0.0, dp_seconds=0.0):
    check(forward, backward, layers, stages, microbatches, chunks, tp_seconds, dp_seconds)
    one = forward + backward + 4 * layers * tp_seconds
    return (microbatches + 2 * (stages - 1) / chunks) * one + max(0, dp_seconds - backward)


@wrong("STEP_STAGES_IN_TURN", points=0)
def step_seconds(*, forward, backward, layers, stages, microbatches, chunks=1, tp_seconds=0.0, dp_seconds=0.0):
    check(forward, backward, layers, stages, microbatches, chunks, tp_seconds, dp_seconds)
    one = forward + backward + 4 * layers * tp_seconds
    return microbatches * stages * one + max(0, dp_seconds - backward)


@wrong("STEP_SPLIT_AGAIN", points=0)
def step_seconds(*, forward, backward, layers, stages, microbatches, chunks=1, tp_seconds=0.0, dp_seconds=0.0):
    check(forward, backward, layers, stages, microbatches, chunks, tp_seconds, dp_seconds)
    one = forward + backward + 4 * layers * tp_seconds
    return (microbatches + (stages - 1) / chunks) * one / stages + max(0, dp_seconds - backward)


@wrong("STEP_SHARE_OF_WHOLE", points=0)
def step_seconds(*, forward, backward, layers, stages, microbatches, chunks=1, tp_seconds=0.0, dp_seconds=0.0):
    check(forward, backward, layers, stages, microbatches, chunks, tp_seconds, dp_seconds)
    one = forward + backward + 4 * layers * tp_seconds
    bubble = (stages - 1) / (chunks * microbatches + stages - 1)
    return microbatches * one * (1 + bubble) + max(0, dp_seconds - backward)


@wrong("STEP_ONE_MICROBATCH", points=0)
def step_seconds(*, forward, backward, layers, stages, microbatches, chunks=1, tp_seconds=0.0, dp_seconds=0.0):
    check(forward, backward, layers, stages, microbatches, chunks, tp_seconds, dp_seconds)
    one = forward + backward + 4 * layers * tp_seconds
    return stages * one + max(0, dp_seconds - backward)


@wrong("STEP_CHUNKS_IGNORED", points=3)
def step_seconds(*, forward, backward, layers, stages, microbatches, chunks=1, tp_seconds=0.0, dp_seconds=0.0):
    check(forward, backward, layers, stages, microbatches, chunks, tp_seconds, dp_seconds)
    one = forward + backward + 4 * layers * tp_seconds
    return (microbatches + stages - 1) * one + max(0, dp_seconds - backward)


@wrong("STEP_CHUNKS_SHORTEN_ALL", points=3)
def step_seconds(*, forward, backward, layers, stages, microbatches, chunks=1, tp_seconds=0.0, dp_seconds=0.0):
    check(forward, backward, layers, stages, microbatches, chunks, tp_seconds, dp_seconds)
    one = forward + backward + 4 * layers * tp_seconds
    return (microbatches + stages - 1) * one / chunks + max(0, dp_seconds - backward)


@wrong("STEP_CHUNKS_LENGTHEN", points=3)
def step_seconds(*, forward, backward, layers, stages, microbatches, chunks=1, tp_seconds=0.0, dp_seconds=0.0):
    check(forward, backward, layers, stages, microbatches, chunks, tp_seconds, dp_seconds)
    one = forward + backward + 4 * layers * tp_seconds
    return (microbatches + (stages - 1) * chunks) * one + max(0, dp_seconds - backward)


@wrong("STEP_CHUNKS_LENGTHEN", points=3)
def step_seconds(*, forward, backward, layers, stages, microbatches, chunks=1, tp_seconds=0.0, dp_seconds=0.0):
    check(forward, backward, layers, stages, microbatches, chunks, tp_seconds, dp_seconds)
    one = forward + backward + 4 * layers * tp_seconds
    return (chunks * microbatches + stages - 1) * one + max(0, dp_seconds - backward)


@wrong("STEP_TENSOR_LEFT_OUT", points=4)
def step_seconds(*, forward, backward, layers, stages, microbatches, chunks=1, tp_seconds=0.0, dp_seconds=0.0):
    check(forward, backward, layers, stages, microbatches, chunks, tp_seconds, dp_seconds)
    one = forward + backward
    return (microbatches + (stages - 1) / chunks) * one + max(0, dp_seconds - backward)


@wrong("STEP_TENSOR_NOT_IN_BUBBLE", points=4)
def step_seconds(*, forward, backward, layers, stages, microbatches, chunks=1, tp_seconds=0.0, dp_seconds=0.0):
    check(forward, backward, layers, stages, microbatches, chunks, tp_seconds, dp_seconds)
    one = forward + backward + 4 * layers * tp_seconds
    return microbatches * one + (stages - 1) / chunks * (forward + backward) + max(0, dp_seconds - backward)


@wrong("STEP_TENSOR_ONCE_A_STEP", points=4)
def step_seconds(*, forward, backward, layers, stages, microbatches, chunks=1, tp_seconds=0.0, dp_seconds=0.0):
    check(forward, backward, layers, stages, microbatches, chunks, tp_seconds, dp_seconds)
    one = forward + backward
    return (microbatches + (stages - 1) / chunks) * one + 4 * layers * tp_seconds + max(0, dp_seconds - backward)


@wrong("STEP_TENSOR_ONE_DIRECTION", points=4)
def step_seconds(*, forward, backward, layers, stages, microbatches, chunks=1, tp_seconds=0.0, dp_seconds=0.0):
    check(forward, backward, layers, stages, microbatches, chunks, tp_seconds, dp_seconds)
    one = forward + backward + 2 * layers * tp_seconds
    return (microbatches + (stages - 1) / chunks) * one + max(0, dp_seconds - backward)


@wrong("STEP_TENSOR_TOO_MANY", points=4)
def step_seconds(*, forward, backward, layers, stages, microbatches, chunks=1, tp_seconds=0.0, dp_seconds=0.0):
    check(forward, backward, layers, stages, microbatches, chunks, tp_seconds, dp_seconds)
    one = forward + backward + 8 * layers * tp_seconds
    return (microbatches + (stages - 1) / chunks) * one + max(0, dp_seconds - backward)


@wrong("STEP_STAGES_IN_TURN", points=0)
def step_seconds(*, forward, backward, layers, stages, microbatches, chunks=1, tp_seconds=0.0, dp_seconds=0.0):
    check(forward, backward, layers, stages, microbatches, chunks, tp_seconds, dp_seconds)
    one = forward + backward + 4 * layers * tp_seconds
    return (microbatches + (stages - 1) / chunks) * one * stages + max(0, dp_seconds - backward)


@wrong("STEP_NO_BUBBLE", points=0)
def step_seconds(*, forward, backward, layers, stages, microbatches, chunks=1, tp_seconds=0.0, dp_seconds=0.0):
    check(forward, backward, layers, stages, microbatches, chunks, tp_seconds, dp_seconds)
    one = forward + backward + 4 * layers * tp_seconds
    return microbatches * one + dp_seconds


@wrong("STEP_TENSOR_ONE_LAYER", points=4)
def step_seconds(*, forward, backward, layers, stages, microbatches, chunks=1, tp_seconds=0.0, dp_seconds=0.0):
    check(forward, backward, layers, stages, microbatches, chunks, tp_seconds, dp_seconds)
    one = forward + backward + 4 * tp_seconds
    return (microbatches + (stages - 1) / chunks) * one + max(0, dp_seconds - backward)


@wrong("STEP_TENSOR_ALL_STAGES", points=4)
def step_seconds(*, forward, backward, layers, stages, microbatches, chunks=1, tp_seconds=0.0, dp_seconds=0.0):
    check(forward, backward, layers, stages, microbatches, chunks, tp_seconds, dp_seconds)
    one = forward + backward + 4 * layers * stages * tp_seconds
    return (microbatches + (stages - 1) / chunks) * one + max(0, dp_seconds - backward)


@wrong("STEP_DATA_LEFT_OUT", points=6)
def step_seconds(*, forward, backward, layers, stages, microbatches, chunks=1, tp_seconds=0.0, dp_seconds=0.0):
    check(forward, backward, layers, stages, microbatches, chunks, tp_seconds, dp_seconds)
    one = forward + backward + 4 * layers * tp_seconds
    return (microbatches + (stages - 1) / chunks) * one


@wrong("STEP_DATA_ALL_EXPOSED", points=6)
def step_seconds(*, forward, backward, layers, stages, microbatches, chunks=1, tp_seconds=0.0, dp_seconds=0.0):
    check(forward, backward, layers, stages, microbatches, chunks, tp_seconds, dp_seconds)
    one = forward + backward + 4 * layers * tp_seconds
    return (microbatches + (stages - 1) / chunks) * one + dp_seconds


@wrong("STEP_DATA_BELOW_ZERO")
def step_seconds(*, forward, backward, layers, stages, microbatches, chunks=1, tp_seconds=0.0, dp_seconds=0.0):
    check(forward, backward, layers, stages, microbatches, chunks, tp_seconds, dp_seconds)
    one = forward + backward + 4 * layers * tp_seconds
    return (microbatches + (stages - 1) / chunks) * one + dp_seconds - backward


@wrong("STEP_DATA_HIDDEN_PART", points=6)
def step_seconds(*, forward, backward, layers, stages, microbatches, chunks=1, tp_seconds=0.0, dp_seconds=0.0):
    check(forward, backward, layers, stages, microbatches, chunks, tp_seconds, dp_seconds)
    one = forward + backward + 4 * layers * tp_seconds
    return (microbatches + (stages - 1) / chunks) * one + min(dp_seconds, backward)


@wrong("STEP_DATA_BESIDE_ALL", points=6)
def step_seconds(*, forward, backward, layers, stages, microbatches, chunks=1, tp_seconds=0.0, dp_seconds=0.0):
    check(forward, backward, layers, stages, microbatches, chunks, tp_seconds, dp_seconds)
    one = forward + backward + 4 * layers * tp_seconds
    return (microbatches + (stages - 1) / chunks) * one + max(0, dp_seconds - microbatches * backward)


@wrong("STEP_DATA_BESIDE_ALL", points=6)
def step_seconds(*, forward, backward, layers, stages, microbatches, chunks=1, tp_seconds=0.0, dp_seconds=0.0):
    check(forward, backward, layers, stages, microbatches, chunks, tp_seconds, dp_seconds)
    one = forward + backward + 4 * layers * tp_seconds
    return max((microbatches + (stages - 1) / chunks) * one, dp_seconds)


@wrong("STEP_DATA_BESIDE_MORE", points=6)
def step_seconds(*, forward, backward, layers, stages, microbatches, chunks=1, tp_seconds=0.0, dp_seconds=0.0):
    check(forward, backward, layers, stages, microbatches, chunks, tp_seconds, dp_seconds)
    one = forward + backward + 4 * layers * tp_seconds
    last = backward + 2 * layers * tp_seconds
    return (microbatches + (stages - 1) / chunks) * one + max(0, dp_seconds - last)


@wrong("STEP_DATA_EACH_MICROBATCH", points=6)
def step_seconds(*, forward, backward, layers, stages, microbatches, chunks=1, tp_seconds=0.0, dp_seconds=0.0):
    check(forward, backward, layers, stages, microbatches, chunks, tp_seconds, dp_seconds)
    one = forward + backward + 4 * layers * tp_seconds
    return (microbatches + (stages - 1) / chunks) * one + microbatches * max(0, dp_seconds - backward)


@wrong("NOT_REFUSED", points=9)
def step_seconds(*, forward, backward, layers, stages, microbatches, chunks=1, tp_seconds=0.0, dp_seconds=0.0):
    one = forward + backward + 4 * layers * tp_seconds
    return (microbatches + (stages - 1) / max(chunks, 1)) * one + max(0, dp_seconds - backward)


@wrong("OTHER_ERROR", points=9)
def step_seconds(*, forward, backward, layers, stages, microbatches, chunks=1, tp_seconds=0.0, dp_seconds=0.0):
    one = forward + backward + 4 * layers * tp_seconds
    if min(layers, stages, microbatches, chunks) < 1 or min(forward, backward, tp_seconds, dp_seconds) < 0:
        raise IndexError("no")
    return (microbatches + (stages - 1) / chunks) * one + max(0, dp_seconds - backward)


@wrong("GENERATOR", points=0)
def step_seconds(*, forward, backward, layers, stages, microbatches, chunks=1, tp_seconds=0.0, dp_seconds=0.0):
    one = forward + backward + 4 * layers * tp_seconds
    yield (microbatches + (stages - 1) / chunks) * one + max(0, dp_seconds - backward)


@wrong("PRINTED", points=0)
def step_seconds(*, forward, backward, layers, stages, microbatches, chunks=1, tp_seconds=0.0, dp_seconds=0.0):
    one = forward + backward + 4 * layers * tp_seconds
    print((microbatches + (stages - 1) / chunks) * one + max(0, dp_seconds - backward))


@wrong(points=0, says="returned a tuple of 3")
def step_seconds(*, forward, backward, layers, stages, microbatches, chunks=1, tp_seconds=0.0, dp_seconds=0.0):
    check(forward, backward, layers, stages, microbatches, chunks, tp_seconds, dp_seconds)
    one = forward + backward + 4 * layers * tp_seconds
    return microbatches * one, (stages - 1) / chunks * one, max(0, dp_seconds - backward)
