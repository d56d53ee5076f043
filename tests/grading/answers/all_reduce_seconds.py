# ruff: noqa: F811
import math
from fractions import Fraction

import numpy as np
import torch

from tests.grading.bank import right, wrong


def impossible(nbytes, n, alpha, bandwidth):
    return n < 1 or nbytes < 0 or alpha < 0 or bandwidth <= 0


@right("steps times one message")
def all_reduce_seconds(nbytes, n, *, alpha, bandwidth):
    if n < 1 or nbytes < 0 or alpha < 0 or not bandwidth > 0:
        raise ValueError("no such all-reduce")
    return 2 * (n - 1) * (alpha + nbytes / n / bandwidth)


@right("latency and bytes apart")
def all_reduce_seconds(nbytes, n, *, alpha, bandwidth):
    if impossible(nbytes, n, alpha, bandwidth):
        raise ValueError
    latency = 2 * (n - 1) * alpha
    return latency + 2 * nbytes * (n - 1) / (n * bandwidth)


@right("step by step")
def all_reduce_seconds(nbytes, n, *, alpha, bandwidth):
    if min(nbytes, alpha, n - 1) < 0 or bandwidth <= 0:
        raise ValueError(f"impossible: {nbytes}, {n}")
    seconds = 0.0
    for _half in ("add", "hand out"):
        for _step in range(1, n):
            seconds += alpha + (nbytes / n) / bandwidth
    return seconds


@right("in numpy")
def all_reduce_seconds(nbytes, n, *, alpha, bandwidth):
    if impossible(nbytes, n, alpha, bandwidth):
        raise ValueError
    return np.full(2 * (n - 1), alpha + np.float64(nbytes) / n / bandwidth).sum()


@right("exact fractions")
def all_reduce_seconds(nbytes, n, *, alpha, bandwidth):
    if impossible(nbytes, n, alpha, bandwidth):
        raise ValueError
    return 2 * (n - 1) * (Fraction(alpha) + Fraction(nbytes) / n / Fraction(bandwidth))


@right("a tensor of one number, and an early return for one rank")
def all_reduce_seconds(nbytes, n, *, alpha, bandwidth):
    if impossible(nbytes, n, alpha, bandwidth):
        raise ValueError
    if n == 1:
        return 0
    return torch.tensor(2 * (n - 1) * (alpha + nbytes / (n * bandwidth)), dtype=torch.float64)


@wrong("ALPHA_ONCE", points=0)
def all_reduce_seconds(nbytes, n, *, alpha, bandwidth):
    return alpha + 2 * (n - 1) / n * nbytes / bandwidth


@wrong("ALPHA_ONCE", points=0)
def all_reduce_seconds(nbytes, n, *, alpha, bandwidth):
    return 2 * (alpha + (n - 1) / n * nbytes / bandwidth)


@wrong("ONE_HALF_ONLY", points=0)
def all_reduce_seconds(nbytes, n, *, alpha, bandwidth):
    return (n - 1) * (alpha + nbytes / n / bandwidth)


@wrong("WHOLE_MESSAGES")
def all_reduce_seconds(nbytes, n, *, alpha, bandwidth):
    return 2 * (n - 1) * (alpha + nbytes / bandwidth)


@wrong("TREE_COST")
def all_reduce_seconds(nbytes, n, *, alpha, bandwidth):
    return 2 * math.ceil(math.log2(n)) * (alpha + nbytes / bandwidth)


@wrong("TREE_COST")
def all_reduce_seconds(nbytes, n, *, alpha, bandwidth):
    return 2 * math.log2(n) * alpha + 2 * (n - 1) / n * nbytes / bandwidth


@wrong("SENT_AT_ONCE", points=0)
def all_reduce_seconds(nbytes, n, *, alpha, bandwidth):
    return 2 * n * (alpha + nbytes / n / bandwidth)


@wrong("SENT_AT_ONCE")
def all_reduce_seconds(nbytes, n, *, alpha, bandwidth):
    return 2 * (n - 1) * alpha + 2 * nbytes / bandwidth


@wrong("BITS")
def all_reduce_seconds(nbytes, n, *, alpha, bandwidth):
    return 2 * (n - 1) * (alpha + 8 * nbytes / n / bandwidth)


@wrong("TIMES_BANDWIDTH")
def all_reduce_seconds(nbytes, n, *, alpha, bandwidth):
    return 2 * (n - 1) * (alpha + nbytes / n * bandwidth)


@wrong("NOT_REFUSED", points=5)
def all_reduce_seconds(nbytes, n, *, alpha, bandwidth):
    if n < 1 or nbytes < 0 or bandwidth <= 0:
        raise ValueError
    return 2 * (n - 1) * (alpha + nbytes / n / bandwidth)


@wrong("OTHER_ERROR", says="raised ZeroDivisionError", points=5)
def all_reduce_seconds(nbytes, n, *, alpha, bandwidth):
    return 2 * (n - 1) * (alpha + nbytes / n / bandwidth)


@wrong("OTHER_ERROR", says="raised AssertionError", points=5)
def all_reduce_seconds(nbytes, n, *, alpha, bandwidth):
    assert not impossible(nbytes, n, alpha, bandwidth)
    return 2 * (n - 1) * (alpha + nbytes / n / bandwidth)


@wrong(says="alpha=5e-05, bandwidth=1e+09) returned 5e-05", points=5)
def all_reduce_seconds(nbytes, n, *, alpha, bandwidth):
    if impossible(nbytes, n, alpha, bandwidth):
        raise ValueError
    return max(alpha, 2 * (n - 1) * (alpha + nbytes / n / bandwidth))


@wrong(says="returned", points=0)
def all_reduce_seconds(nbytes, n, *, alpha, bandwidth):
    if impossible(nbytes, n, alpha, bandwidth):
        raise ValueError
    return 2 * (n - 1) * (alpha + nbytes // n / bandwidth)


@wrong(says="returned a tuple of 2", points=0)
def all_reduce_seconds(nbytes, n, *, alpha, bandwidth):
    if impossible(nbytes, n, alpha, bandwidth):
        raise ValueError
    return 2 * (n - 1) * alpha, 2 * (n - 1) / n * nbytes / bandwidth


@wrong("GENERATOR", points=0)
def all_reduce_seconds(nbytes, n, *, alpha, bandwidth):
    yield 2 * (n - 1) * (alpha + nbytes / n / bandwidth)


@wrong(says="unexpected keyword argument", points=0)
def all_reduce_seconds(nbytes, n, latency, speed):
    return 2 * (n - 1) * (latency + nbytes / n / speed)
