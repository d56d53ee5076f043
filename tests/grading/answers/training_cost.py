# ruff: noqa: F811
import math
from fractions import Fraction

import numpy as np
import torch

from tests.grading.bank import right, wrong


def check(tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus):
    if min(tokens, flops_per_token, peak_flops) <= 0 or gpus < 1 or min(price, spare_gpus) < 0:
        raise ValueError("sizes")
    if not (0 < mfu <= 1 and 0 < goodput <= 1):
        raise ValueError("shares")


@right("seconds, hours, money")
def training_cost(*, tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus=0):
    check(tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus)
    hours = tokens * flops_per_token / (gpus * peak_flops * mfu * goodput) / 3600
    return hours, hours * (gpus + spare_gpus) * price


@right("as a list, from the hours of progress")
def training_cost(*, tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus=0):
    check(tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus)
    a_second = gpus * peak_flops * mfu
    useful = tokens / (a_second / flops_per_token) / 60 / 60
    hours = useful / goodput
    return [hours, hours * gpus * price + hours * spare_gpus * price]


@right("fractions")
def training_cost(*, tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus=0):
    check(tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus)
    work = Fraction(tokens) * Fraction(flops_per_token)
    hours = work / gpus / Fraction(peak_flops) / Fraction(mfu) / Fraction(goodput) / 3600
    return hours, hours * (gpus + spare_gpus) * Fraction(price)


@right("an array of numpy")
def training_cost(*, tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus=0):
    check(tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus)
    hours = tokens * flops_per_token / (gpus * peak_flops * mfu * goodput) / 3600
    return np.array([hours, (gpus + spare_gpus) * price * hours])


@right("a tensor")
def training_cost(*, tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus=0):
    check(tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus)
    hours = tokens * flops_per_token / (gpus * peak_flops * mfu * goodput) / 3600
    return hours * torch.tensor([1.0, (gpus + spare_gpus) * price], dtype=torch.float64)


@wrong("COST_SWAPPED", points=0)
def training_cost(*, tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus=0):
    check(tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus)
    hours = tokens * flops_per_token / (gpus * peak_flops * mfu * goodput) / 3600
    return hours * (gpus + spare_gpus) * price, hours


@wrong("COST_GPU_HOURS", points=0)
def training_cost(*, tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus=0):
    check(tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus)
    hours = tokens * flops_per_token / (gpus * peak_flops * mfu * goodput) / 3600
    return hours * gpus, hours * (gpus + spare_gpus) * price


@wrong("COST_GPUS_TWICE", points=0)
def training_cost(*, tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus=0):
    check(tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus)
    hours = tokens * flops_per_token / (peak_flops * mfu * goodput) / 3600
    return hours, hours * (gpus + spare_gpus) * price


@wrong("COST_ONE_GPU", points=0)
def training_cost(*, tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus=0):
    check(tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus)
    hours = tokens * flops_per_token / (gpus * peak_flops * mfu * goodput) / 3600
    return hours, hours * price


@wrong("COST_SECONDS", points=0)
def training_cost(*, tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus=0):
    check(tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus)
    hours = tokens * flops_per_token / (gpus * peak_flops * mfu * goodput)
    return hours, hours * (gpus + spare_gpus) * price


@wrong("COST_SECONDS", points=0)
def training_cost(*, tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus=0):
    check(tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus)
    hours = tokens * flops_per_token / (gpus * peak_flops * mfu * goodput)
    return hours, hours / 3600 * (gpus + spare_gpus) * price


@wrong("COST_DAYS", points=0)
def training_cost(*, tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus=0):
    check(tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus)
    hours = tokens * flops_per_token / (gpus * peak_flops * mfu * goodput) / 3600
    return hours / 24, hours * (gpus + spare_gpus) * price


@wrong("COST_LOST_TIME_FREE", points=0)
def training_cost(*, tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus=0):
    check(tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus)
    hours = tokens * flops_per_token / (gpus * peak_flops * mfu * goodput) / 3600
    return hours, hours * goodput * (gpus + spare_gpus) * price


@wrong("COST_GOODPUT_IGNORED", points=0)
def training_cost(*, tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus=0):
    check(tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus)
    hours = tokens * flops_per_token / (gpus * peak_flops * mfu) / 3600
    return hours, hours * (gpus + spare_gpus) * price


@wrong("COST_GOODPUT_UPSIDE_DOWN", points=0)
def training_cost(*, tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus=0):
    check(tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus)
    hours = tokens * flops_per_token / (gpus * peak_flops * mfu) / 3600 * goodput
    return hours, hours * (gpus + spare_gpus) * price


@wrong("COST_GOODPUT_ADDED", points=0)
def training_cost(*, tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus=0):
    check(tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus)
    hours = tokens * flops_per_token / (gpus * peak_flops * mfu) / 3600 * (2 - goodput)
    return hours, hours * (gpus + spare_gpus) * price


@wrong("COST_MFU_IGNORED", points=0)
def training_cost(*, tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus=0):
    check(tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus)
    hours = tokens * flops_per_token / (gpus * peak_flops * goodput) / 3600
    return hours, hours * (gpus + spare_gpus) * price


@wrong("COST_MFU_UPSIDE_DOWN", points=0)
def training_cost(*, tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus=0):
    check(tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus)
    hours = tokens * flops_per_token / (gpus * peak_flops * goodput) / 3600 * mfu
    return hours, hours * (gpus + spare_gpus) * price


@wrong("COST_FLOPS_AGAIN", points=0)
def training_cost(*, tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus=0):
    check(tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus)
    hours = 3 * tokens * flops_per_token / (gpus * peak_flops * mfu * goodput) / 3600
    return hours, hours * (gpus + spare_gpus) * price


@wrong("COST_FLOPS_AGAIN", points=0)
def training_cost(*, tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus=0):
    check(tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus)
    hours = 6 * tokens * flops_per_token / (gpus * peak_flops * mfu * goodput) / 3600
    return hours, hours * (gpus + spare_gpus) * price


@wrong("COST_SECONDS", points=0)
def training_cost(*, tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus=0):
    check(tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus)
    hours = tokens * flops_per_token / (gpus * peak_flops * mfu)
    return hours, hours * gpus * price


@wrong("ROUNDED", points=0)
def training_cost(*, tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus=0):
    check(tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus)
    hours = round(tokens * flops_per_token / (gpus * peak_flops * mfu * goodput) / 3600)
    return hours, hours * (gpus + spare_gpus) * price


@wrong("ROUNDED", points=0)
def training_cost(*, tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus=0):
    check(tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus)
    hours = tokens * flops_per_token / (gpus * peak_flops * mfu * goodput) / 3600
    return math.ceil(hours), math.ceil(hours) * (gpus + spare_gpus) * price


@wrong("COST_SPARES_FREE", points=4)
def training_cost(*, tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus=0):
    check(tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus)
    hours = tokens * flops_per_token / (gpus * peak_flops * mfu * goodput) / 3600
    return hours, hours * gpus * price


@wrong("COST_SPARES_WORK", points=4)
def training_cost(*, tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus=0):
    check(tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus)
    hours = tokens * flops_per_token / ((gpus + spare_gpus) * peak_flops * mfu * goodput) / 3600
    return hours, hours * (gpus + spare_gpus) * price


@wrong("NOT_REFUSED", points=6)
def training_cost(*, tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus=0):
    hours = tokens * flops_per_token / max(1, gpus) / peak_flops / max(mfu, 1e-9) / max(goodput, 1e-9) / 3600
    return hours, hours * (gpus + spare_gpus) * price


@wrong("OTHER_ERROR", points=6)
def training_cost(*, tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus=0):
    assert gpus > 0 < mfu <= 1 and 0 < goodput <= 1 and price >= 0 <= spare_gpus
    hours = tokens * flops_per_token / (gpus * peak_flops * mfu * goodput) / 3600
    return hours, hours * (gpus + spare_gpus) * price


@wrong("GENERATOR", points=0)
def training_cost(*, tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus=0):
    hours = tokens * flops_per_token / (gpus * peak_flops * mfu * goodput) / 3600
    yield hours
    yield hours * (gpus + spare_gpus) * price


@wrong("PRINTED", points=0)
def training_cost(*, tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus=0):
    hours = tokens * flops_per_token / (gpus * peak_flops * mfu * goodput) / 3600
    print(hours, hours * (gpus + spare_gpus) * price)


@wrong(points=0, says="returned a dict of 2")
def training_cost(*, tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus=0):
    check(tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus)
    hours = tokens * flops_per_token / (gpus * peak_flops * mfu * goodput) / 3600
    return {"hours": hours, "cost": hours * (gpus + spare_gpus) * price}


@wrong(points=0, says="expected: the pair (hours, cost)")
def training_cost(*, tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus=0):
    check(tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus)
    hours = tokens * flops_per_token / (gpus * peak_flops * mfu * goodput) / 3600
    return hours * (gpus + spare_gpus) * price
