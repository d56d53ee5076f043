# ruff: noqa: F811
from fractions import Fraction

import numpy as np
import torch

from tests.grading.bank import right, wrong


def check(*numbers):
    if min(numbers) <= 0:
        raise ValueError("all above 0")


def share(value):
    if value > 1:
        raise ValueError("more than the peak")
    return value


@right("tokens times FLOPs over the peak")
def mfu(*, tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence):
    check(tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence)
    return share(
        tokens_per_second * (6 * parameters + 12 * layers * heads * head_width * sequence) / (gpus * peak_flops)
    )


@right("tokens a second over those at the peak, as PaLM has it")
def mfu(*, tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence):
    check(tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence)
    a_token = 6 * parameters + 12 * layers * heads * head_width * sequence
    at_peak = gpus * peak_flops / a_token
    if tokens_per_second > at_peak:
        raise ValueError("faster than the peak")
    return tokens_per_second / at_peak


@right("a fraction")
def mfu(*, tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence):
    check(tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence)
    a_token = 6 * Fraction(parameters) + 12 * layers * heads * head_width * sequence
    return share(Fraction(tokens_per_second) * a_token / (gpus * Fraction(peak_flops)))


@right("numpy in single precision")
def mfu(*, tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence):
    check(tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence)
    a_gpu = np.float32(tokens_per_second / gpus)
    return share(
        a_gpu * np.float32(6 * parameters + 12 * layers * heads * head_width * sequence) / np.float32(peak_flops)
    )


@right("a tensor of one number")
def mfu(*, tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence):
    check(tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence)
    shape = torch.tensor([12, layers, heads, head_width, sequence], dtype=torch.float64)
    return share(tokens_per_second * (6 * parameters + shape.prod()) / gpus / peak_flops)


@wrong("MFU_HARDWARE", points=0)
def mfu(*, tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence):
    check(tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence)
    return share(
        tokens_per_second * (8 * parameters + 16 * layers * heads * head_width * sequence) / (gpus * peak_flops)
    )


@wrong("MFU_HARDWARE", points=0)
def mfu(*, tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence):
    check(tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence)
    return share(
        tokens_per_second * (8 * parameters + 12 * layers * heads * head_width * sequence) / (gpus * peak_flops)
    )


@wrong("MFU_HARDWARE", points=0)
def mfu(*, tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence):
    check(tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence)
    return share(
        tokens_per_second
        * ((6 * parameters + 12 * layers * heads * head_width * sequence) * 4 / 3)
        / (gpus * peak_flops)
    )


@wrong("MFU_RECOMPUTATION_TAKEN_OFF", points=0)
def mfu(*, tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence):
    check(tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence)
    return share(
        tokens_per_second
        * ((6 * parameters + 12 * layers * heads * head_width * sequence) * 3 / 4)
        / (gpus * peak_flops)
    )


@wrong("MFU_NO_ATTENTION", points=0)
def mfu(*, tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence):
    check(tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence)
    return share(tokens_per_second * (6 * parameters) / (gpus * peak_flops))


@wrong("MFU_HALF_ATTENTION", points=0)
def mfu(*, tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence):
    check(tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence)
    return share(
        tokens_per_second * (6 * parameters + 6 * layers * heads * head_width * sequence) / (gpus * peak_flops)
    )


@wrong("MFU_FORWARD_ONLY", points=0)
def mfu(*, tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence):
    check(tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence)
    return share(
        tokens_per_second * (2 * parameters + 4 * layers * heads * head_width * sequence) / (gpus * peak_flops)
    )


@wrong("MFU_FORWARD_ONLY", points=0)
def mfu(*, tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence):
    check(tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence)
    return share(tokens_per_second * (2 * parameters) / (gpus * peak_flops))


@wrong("MFU_BACKWARD_AGAIN", points=0)
def mfu(*, tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence):
    check(tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence)
    return 3 * tokens_per_second * (6 * parameters + 12 * layers * heads * head_width * sequence) / (gpus * peak_flops)


@wrong("MFU_SEQUENCES", points=0)
def mfu(*, tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence):
    check(tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence)
    return (
        tokens_per_second
        * sequence
        * (6 * parameters + 12 * layers * heads * head_width * sequence)
        / (gpus * peak_flops)
    )


@wrong("MFU_UNITS", points=0)
def mfu(*, tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence):
    check(tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence)
    return share(
        tokens_per_second
        * ((6 * parameters + 12 * layers * heads * head_width * sequence) / 1e12)
        / (gpus * peak_flops)
    )


@wrong("MFU_ONE_GPU", points=0)
def mfu(*, tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence):
    check(tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence)
    return tokens_per_second * (6 * parameters + 12 * layers * heads * head_width * sequence) / peak_flops


@wrong("MFU_ALL_GPUS_TWICE", points=0)
def mfu(*, tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence):
    check(tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence)
    return tokens_per_second * gpus * (6 * parameters + 12 * layers * heads * head_width * sequence) / peak_flops


@wrong("MFU_PERCENT", points=0)
def mfu(*, tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence):
    check(tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence)
    return 100 * share(
        tokens_per_second * (6 * parameters + 12 * layers * heads * head_width * sequence) / gpus / peak_flops
    )


@wrong("MFU_UPSIDE_DOWN", points=0)
def mfu(*, tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence):
    check(tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence)
    return gpus * peak_flops / (tokens_per_second * (6 * parameters + 12 * layers * heads * head_width * sequence))


@wrong("MFU_FLOPS", points=0)
def mfu(*, tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence):
    check(tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence)
    return tokens_per_second * (6 * parameters + 12 * layers * heads * head_width * sequence)


@wrong("MFU_FLOPS", points=0)
def mfu(*, tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence):
    check(tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence)
    return tokens_per_second * (6 * parameters + 12 * layers * heads * head_width * sequence) / gpus


@wrong("MFU_SCORES_WRONG", points=0)
def mfu(*, tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence):
    check(tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence)
    return share(tokens_per_second * (6 * parameters + 12 * layers * head_width * sequence) / (gpus * peak_flops))


@wrong("MFU_SCORES_WRONG", points=0)
def mfu(*, tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence):
    check(tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence)
    return share(
        tokens_per_second * (6 * (parameters + 12 * layers * heads * head_width * sequence)) / (gpus * peak_flops)
    )


@wrong("NOT_REFUSED", points=5)
def mfu(*, tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence):
    a_token = 6 * parameters + 12 * layers * heads * head_width * sequence
    return min(1.0, tokens_per_second * a_token / max(1e-9, gpus * peak_flops))


@wrong("OTHER_ERROR", points=5)
def mfu(*, tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence):
    assert gpus > 0 and peak_flops > 0
    return share(tokens_per_second * (6 * parameters + 12 * layers * heads * head_width * sequence) / gpus / peak_flops)


@wrong("GENERATOR", points=0)
def mfu(*, tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence):
    yield tokens_per_second * (6 * parameters + 12 * layers * heads * head_width * sequence) / gpus / peak_flops


@wrong("PRINTED", points=0)
def mfu(*, tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence):
    print(tokens_per_second * (6 * parameters + 12 * layers * heads * head_width * sequence) / gpus / peak_flops)


@wrong(points=0, says="returned a str")
def mfu(*, tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence):
    return (
        f"{tokens_per_second * (6 * parameters + 12 * layers * heads * head_width * sequence) / gpus / peak_flops:.1%}"
    )


@wrong("ROUNDED", points=0)
def mfu(*, tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence):
    check(tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence)
    return round(
        share(tokens_per_second * (6 * parameters + 12 * layers * heads * head_width * sequence) / gpus / peak_flops), 2
    )


@wrong(points=0, says="raised ValueError")
def mfu(*, tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence):
    check(tokens_per_second, gpus, peak_flops, parameters, layers, heads, head_width, sequence)
    return share(
        3 * tokens_per_second * (6 * parameters + 12 * layers * heads * head_width * sequence) / gpus / peak_flops
    )
