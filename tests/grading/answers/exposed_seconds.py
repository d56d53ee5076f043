# ruff: noqa: F811
from fractions import Fraction
from itertools import accumulate

import numpy as np
import torch

from tests.grading.bank import right, wrong


@right("one pass")
def exposed_seconds(backward, all_reduces):
    free = 0.0
    for ready, seconds in all_reduces:
        free = max(free, ready) + seconds
    return max(free - backward, 0)


@right("accumulate, from the left")
def exposed_seconds(backward, all_reduces):
    ends = accumulate(all_reduces, lambda end, ar: max(end, ar[0]) + ar[1], initial=0.0)
    return max(0.0, list(ends)[-1] - backward)


@right("the longest chain that ends last, in numpy")
def exposed_seconds(backward, all_reduces):
    if not all_reduces:
        return 0
    ready, seconds = np.array(all_reduces).T
    ends = ready + np.cumsum(seconds[::-1])[::-1]
    return np.maximum(ends.max() - backward, 0)


@right("recursive, a tensor of one number")
def exposed_seconds(backward, all_reduces):
    def end(k):
        return 0.0 if k < 0 else max(all_reduces[k][0], end(k - 1)) + all_reduces[k][1]

    return torch.tensor(max(0.0, end(len(all_reduces) - 1) - backward), dtype=torch.float64)


@wrong("NO_OVERLAP", points=0)
def exposed_seconds(backward, all_reduces):
    return sum(seconds for _, seconds in all_reduces)


@wrong("ONE_BLOCK", points=0)
def exposed_seconds(backward, all_reduces):
    return max(0.0, sum(seconds for _, seconds in all_reduces) - backward)


@wrong("ONE_BLOCK", points=0)
def exposed_seconds(backward, all_reduces):
    first = all_reduces[0][0] if all_reduces else 0.0
    return max(0.0, first + sum(seconds for _, seconds in all_reduces) - backward)


@wrong("NO_QUEUE", points=0)
def exposed_seconds(backward, all_reduces):
    return max(0.0, max((ready + seconds for ready, seconds in all_reduces), default=0.0) - backward)


@wrong("NOT_CLAMPED", points=2)
def exposed_seconds(backward, all_reduces):
    free = 0.0
    for ready, seconds in all_reduces:
        free = max(free, ready) + seconds
    return free - backward


@wrong("LAST_ONLY", points=0)
def exposed_seconds(backward, all_reduces):
    return all_reduces[-1][1] if all_reduces else 0.0


@wrong("LAST_ONLY", points=0)
def exposed_seconds(backward, all_reduces):
    ready, seconds = all_reduces[-1]
    return max(0.0, ready + seconds - backward)


@wrong("WHOLE_STEP", points=0)
def exposed_seconds(backward, all_reduces):
    free = 0.0
    for ready, seconds in all_reduces:
        free = max(free, ready) + seconds
    return free


@wrong("WHOLE_STEP", points=0)
def exposed_seconds(backward, all_reduces):
    free = 0.0
    for ready, seconds in all_reduces:
        free = max(free, ready) + seconds
    return max(free, backward)


@wrong("SUM_OF_OVERHANGS", points=0)
def exposed_seconds(backward, all_reduces):
    return sum(max(0.0, ready + seconds - backward) for ready, seconds in all_reduces)


@wrong("GENERATOR", points=0)
def exposed_seconds(backward, all_reduces):
    free = 0.0
    for ready, seconds in all_reduces:
        free = max(free, ready) + seconds
        yield max(0.0, free - backward)


@wrong(says="exposed_seconds(1, []) returned None", points=5)
def exposed_seconds(backward, all_reduces):
    free = 0.0
    for ready, seconds in all_reduces:
        free = max(free, ready) + seconds
    if all_reduces:
        return max(0.0, free - backward)


@wrong(says="raised IndexError", points=5)
def exposed_seconds(backward, all_reduces):
    free = all_reduces[0][0]
    for ready, seconds in all_reduces:
        free = max(free, ready) + seconds
    return max(0.0, free - backward)


@wrong(says="returned a str", points=0)
def exposed_seconds(backward, all_reduces):
    return "0.2 s"


@wrong(says="returned 0", points=0)
def exposed_seconds(backward, all_reduces):
    return 0


@wrong(says="returned a list of 3", points=0)
def exposed_seconds(backward, all_reduces):
    return [max(0.0, ready + seconds - backward) for ready, seconds in all_reduces]


@wrong(says="returned", points=0)
def exposed_seconds(backward, all_reduces):
    free = 0.0
    for ready, seconds in sorted(all_reduces, key=lambda pair: -pair[1]):
        free = max(free, ready) + seconds
    return max(0.0, free - backward)


@right("in float32")
def exposed_seconds(backward, all_reduces):
    free = torch.zeros(1)
    for ready, seconds in all_reduces:
        free = torch.maximum(free, torch.tensor(ready)) + seconds
    return torch.relu(free - backward).item()


@wrong(says="returned inf", points=0)
def exposed_seconds(backward, all_reduces):
    return 10**400


@right("in fractions")
def exposed_seconds(backward, all_reduces):
    end = Fraction(0)
    for ready, seconds in all_reduces:
        end = max(end, Fraction(ready)) + Fraction(seconds)
    return max(Fraction(0), end - Fraction(backward))
