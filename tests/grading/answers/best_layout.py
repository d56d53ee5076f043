# ruff: noqa: F811
import heapq
import itertools
import math
from functools import cache

import numpy as np

from course.errors import UsageError
from tests.grading.bank import right, wrong


def divisors(n):
    return [k for k in range(1, n + 1) if n % k == 0]


def candidates(gpus, layers, heads, batch):
    """All layouts on all GPUs that divide."""
    found = [(gpus // (tp * pp), tp, pp) for tp in divisors(gpus) for pp in divisors(gpus // tp)]
    return [(dp, tp, pp) for dp, tp, pp in found if not (batch % dp or heads % tp or layers % pp)]


def fitting(gpus, layers, heads, batch, memory, nbytes):
    """Those of them that fit. Raises ValueError where there is none."""
    found = [layout for layout in candidates(gpus, layers, heads, batch) if nbytes(*layout) <= memory]
    if not found:
        raise ValueError("nothing fits")
    return found


def search(layouts, bound, seconds):
    """The fastest, by rising bound."""
    best, least = None, math.inf
    for layout in sorted(layouts, key=lambda layout: bound(*layout)):
        if bound(*layout) >= least:
            break
        if (time := seconds(*layout)) < least:
            best, least = layout, time
    return best


@right("by rising bound, until no bound is below the best")
def best_layout(*, gpus, layers, heads, batch, memory, nbytes, bound, seconds):
    layouts = [layout for layout in candidates(gpus, layers, heads, batch) if nbytes(*layout) <= memory]
    if not layouts:
        raise ValueError(f"no layout on {gpus} GPUs divides and fits")
    best, least = None, math.inf
    for layout in sorted(layouts, key=lambda layout: bound(*layout)):
        if bound(*layout) >= least:
            break
        time = seconds(*layout)
        if time < least:
            best, least = layout, time
    return best


@right("a heap of bounds and times: what comes out with its time is the best")
def best_layout(*, gpus, layers, heads, batch, memory, nbytes, bound, seconds):
    if gpus < 1:
        raise UsageError("no GPUs")
    heap = []
    for tp, pp in itertools.product(divisors(gpus), divisors(gpus)):
        dp, left = divmod(gpus, tp * pp)
        if left or dp == 0 or batch % dp or heads % tp or layers % pp or nbytes(dp=dp, tp=tp, pp=pp) > memory:
            continue
        heapq.heappush(heap, (bound(dp=dp, tp=tp, pp=pp), 0, dp, tp, pp))
    while heap:
        _, priced, dp, tp, pp = heapq.heappop(heap)
        if priced:
            return dp, tp, pp
        heapq.heappush(heap, (seconds(dp, tp, pp), 1, dp, tp, pp))
    raise ValueError("nothing fits")


@right("three plain loops, a cache, a list")
def best_layout(*, gpus, layers, heads, batch, memory, nbytes, bound, seconds):
    price = cache(seconds)
    layouts = [
        (dp, tp, pp)
        for dp in range(1, gpus + 1)
        for tp in range(1, gpus + 1)
        for pp in range(1, gpus + 1)
        if dp * tp * pp == gpus and batch % dp == heads % tp == layers % pp == 0 and nbytes(dp, tp, pp) <= memory
    ]
    layouts.sort(key=lambda layout: bound(*layout))
    if len(layouts) == 0:
        raise ValueError
    best = layouts[0]
    for layout in layouts[1:]:
        if bound(*layout) > price(*best):
            break
        best = min(best, layout, key=lambda layout: price(*layout))
    return list(best)


@right("sizes as numpy has them")
def best_layout(*, gpus, layers, heads, batch, memory, nbytes, bound, seconds):
    tp, pp = np.meshgrid(np.arange(1, max(1, gpus) + 1), np.arange(1, max(1, gpus) + 1))
    dp = gpus // (tp * pp)
    good = (dp * tp * pp == gpus) & (dp > 0) & (heads % tp == 0) & (layers % pp == 0)
    good[good] = batch % dp[good] == 0
    layouts = [layout for layout in zip(dp[good], tp[good], pp[good], strict=True) if nbytes(*layout) <= memory]
    if not layouts:
        raise ValueError("no room")
    best, least = None, np.inf
    for k in np.argsort([bound(*layout) for layout in layouts]):
        if bound(*layouts[k]) > least:
            continue
        if (time := seconds(*layouts[k])) < least:
            best, least = layouts[k], time
    return np.array(best)


@right("the smallest bound that is left, time after time")
def best_layout(*, gpus, layers, heads, batch, memory, nbytes, bound, seconds):
    left = {layout: bound(*layout) for layout in fitting(gpus, layers, heads, batch, memory, nbytes)}
    times = {}
    while left:
        layout = min(left, key=left.get)
        if times and left.pop(layout) >= min(times.values()):
            break
        left.pop(layout, None)
        times[layout] = seconds(*layout)
    return min(times, key=times.get)


@wrong("LAYOUT_MEMORY_IGNORED", points=0)
def best_layout(*, gpus, layers, heads, batch, memory, nbytes, bound, seconds):
    return search(candidates(gpus, layers, heads, batch), bound, seconds)


@wrong("LAYOUT_MEMORY_IGNORED", points=0)
def best_layout(*, gpus, layers, heads, batch, memory, nbytes, bound, seconds):
    return min(candidates(gpus, layers, heads, batch), key=lambda layout: seconds(*layout))


@wrong("LAYOUT_NOT_DIVIDED", points=0)
def best_layout(*, gpus, layers, heads, batch, memory, nbytes, bound, seconds):
    return search(fitting(gpus, gpus, gpus, gpus, memory, nbytes), bound, seconds)


@wrong("LAYOUT_NOT_DIVIDED", points=0)
def best_layout(*, gpus, layers, heads, batch, memory, nbytes, bound, seconds):
    return search(fitting(gpus, layers, heads, gpus, memory, nbytes), bound, seconds)


@wrong("LAYOUT_NOT_DIVIDED", points=0)
def best_layout(*, gpus, layers, heads, batch, memory, nbytes, bound, seconds):
    return search(fitting(gpus, gpus, heads, batch, memory, nbytes), bound, seconds)


@wrong("LAYOUT_NOT_DIVIDED", points=0)
def best_layout(*, gpus, layers, heads, batch, memory, nbytes, bound, seconds):
    return search(fitting(gpus, heads, layers, batch, memory, nbytes), bound, seconds)


@wrong("LAYOUT_BY_BOUND", points=3)
def best_layout(*, gpus, layers, heads, batch, memory, nbytes, bound, seconds):
    return min(fitting(gpus, layers, heads, batch, memory, nbytes), key=lambda layout: bound(*layout))


@wrong("LAYOUT_STOPS_EARLY")
def best_layout(*, gpus, layers, heads, batch, memory, nbytes, bound, seconds):
    first, *others = sorted(fitting(gpus, layers, heads, batch, memory, nbytes), key=lambda layout: bound(*layout))
    best, least = first, seconds(*first)
    for layout in others:
        if (time := seconds(*layout)) > least:
            break
        best, least = layout, time
    return best


@wrong("LAYOUT_LEAST_MEMORY", points=3)
def best_layout(*, gpus, layers, heads, batch, memory, nbytes, bound, seconds):
    return min(fitting(gpus, layers, heads, batch, memory, nbytes), key=lambda layout: nbytes(*layout))


@wrong("LAYOUT_SLOWEST", points=3)
def best_layout(*, gpus, layers, heads, batch, memory, nbytes, bound, seconds):
    return max(fitting(gpus, layers, heads, batch, memory, nbytes), key=lambda layout: seconds(*layout))


@wrong("LAYOUT_POWERS_OF_TWO")
def best_layout(*, gpus, layers, heads, batch, memory, nbytes, bound, seconds):
    layouts = fitting(gpus, layers, heads, batch, memory, nbytes)
    return search([(dp, tp, pp) for dp, tp, pp in layouts if not (tp & (tp - 1) or pp & (pp - 1))], bound, seconds)


@wrong("LAYOUT_STOPS_AT_EIGHT")
def best_layout(*, gpus, layers, heads, batch, memory, nbytes, bound, seconds):
    layouts = fitting(gpus, layers, heads, batch, memory, nbytes)
    return search([layout for layout in layouts if layout[1] <= 8], bound, seconds)


@wrong("LAYOUT_FIRST_THAT_FITS", points=0)
def best_layout(*, gpus, layers, heads, batch, memory, nbytes, bound, seconds):
    return gpus, 1, 1


@wrong("LAYOUT_NOT_DIVIDED", points=0)
def best_layout(*, gpus, layers, heads, batch, memory, nbytes, bound, seconds):
    return search(fitting(gpus, batch, heads, layers, memory, nbytes), bound, seconds)


@wrong("LAYOUT_NO_ONES")
def best_layout(*, gpus, layers, heads, batch, memory, nbytes, bound, seconds):
    layouts = [layout for layout in fitting(gpus, layers, heads, batch, memory, nbytes) if min(layout) > 1]
    return search(layouts, bound, seconds)


@wrong("LAYOUT_NO_ONES")
def best_layout(*, gpus, layers, heads, batch, memory, nbytes, bound, seconds):
    layouts = [layout for layout in fitting(gpus, layers, heads, batch, memory, nbytes) if min(layout[1:]) > 1]
    return search(layouts, bound, seconds)


@wrong("LAYOUT_FULL_NOT_TAKEN")
def best_layout(*, gpus, layers, heads, batch, memory, nbytes, bound, seconds):
    layouts = [layout for layout in candidates(gpus, layers, heads, batch) if nbytes(*layout) < memory]
    if not layouts:
        raise ValueError
    return search(layouts, bound, seconds)


@wrong("LAYOUT_FIRST_THAT_FITS", points=3)
def best_layout(*, gpus, layers, heads, batch, memory, nbytes, bound, seconds):
    return fitting(gpus, layers, heads, batch, memory, nbytes)[0]


@wrong("LAYOUT_FIRST_THAT_FITS", points=3)
def best_layout(*, gpus, layers, heads, batch, memory, nbytes, bound, seconds):
    return max(fitting(gpus, layers, heads, batch, memory, nbytes))


@wrong("LAYOUT_OTHER_ORDER", points=0)
def best_layout(*, gpus, layers, heads, batch, memory, nbytes, bound, seconds):
    dp, tp, pp = search(fitting(gpus, layers, heads, batch, memory, nbytes), bound, seconds)
    return pp, dp, tp


@wrong("LAYOUT_FEWER_GPUS", points=0)
def best_layout(*, gpus, layers, heads, batch, memory, nbytes, bound, seconds):
    sizes = [divisors(n) for n in (batch, heads, layers)]
    layouts = [x for x in itertools.product(*sizes) if math.prod(x) <= gpus and nbytes(*x) <= memory]
    return max(layouts, key=lambda layout: math.prod(layout) if math.prod(layout) < gpus else 0)


@wrong("LAYOUT_ASKED_ALL", points=9)
def best_layout(*, gpus, layers, heads, batch, memory, nbytes, bound, seconds):
    return min(fitting(gpus, layers, heads, batch, memory, nbytes), key=lambda layout: seconds(*layout))


@wrong("LAYOUT_ASKED_ALL", points=9)
def best_layout(*, gpus, layers, heads, batch, memory, nbytes, bound, seconds):
    times = {layout: seconds(*layout) for layout in fitting(gpus, layers, heads, batch, memory, nbytes)}
    return min(times, key=times.get)


@wrong("LAYOUT_ASKED_UNFIT", points=9)
def best_layout(*, gpus, layers, heads, batch, memory, nbytes, bound, seconds):
    times = {x: seconds(*x) for x in candidates(gpus, layers, heads, batch)}
    fits = {layout: time for layout, time in times.items() if nbytes(*layout) <= memory}
    if not fits:
        raise ValueError
    return min(fits, key=fits.get)


@wrong("LAYOUT_ASKED_TWICE", points=9)
def best_layout(*, gpus, layers, heads, batch, memory, nbytes, bound, seconds):
    layouts = sorted(fitting(gpus, layers, heads, batch, memory, nbytes), key=lambda layout: bound(*layout))
    best = layouts[0]
    for layout in layouts:
        if bound(*layout) <= seconds(*best):
            best = min(best, layout, key=lambda layout: seconds(*layout))
    return best


@wrong("LAYOUT_ASKED_OUT_OF_ORDER", points=9)
def best_layout(*, gpus, layers, heads, batch, memory, nbytes, bound, seconds):
    best, least = None, math.inf
    for layout in fitting(gpus, layers, heads, batch, memory, nbytes):
        if bound(*layout) < least and (time := seconds(*layout)) < least:
            best, least = layout, time
    return best


@wrong("LAYOUT_ASKED_OUT_OF_ORDER", points=9)
def best_layout(*, gpus, layers, heads, batch, memory, nbytes, bound, seconds):
    best, least = None, math.inf
    for layout in sorted(fitting(gpus, layers, heads, batch, memory, nbytes), key=lambda layout: nbytes(*layout)):
        if bound(*layout) < least and (time := seconds(*layout)) < least:
            best, least = layout, time
    return best


@wrong("NOT_REFUSED", points=11)
def best_layout(*, gpus, layers, heads, batch, memory, nbytes, bound, seconds):
    layouts = [x for x in candidates(max(gpus, 1), layers, heads, batch) if nbytes(*x) <= memory]
    return search(layouts, bound, seconds)


@wrong("OTHER_ERROR", points=11)
def best_layout(*, gpus, layers, heads, batch, memory, nbytes, bound, seconds):
    layouts = [x for x in candidates(gpus, layers, heads, batch) if nbytes(*x) <= memory]
    return search([layouts[0], *layouts[1:]], bound, seconds)


@wrong("GENERATOR", points=0)
def best_layout(*, gpus, layers, heads, batch, memory, nbytes, bound, seconds):
    yield from search(fitting(gpus, layers, heads, batch, memory, nbytes), bound, seconds)


@wrong("PRINTED", points=0)
def best_layout(*, gpus, layers, heads, batch, memory, nbytes, bound, seconds):
    print(search(fitting(gpus, layers, heads, batch, memory, nbytes), bound, seconds))


@wrong(points=0, says="returned a dict of 3")
def best_layout(*, gpus, layers, heads, batch, memory, nbytes, bound, seconds):
    dp, tp, pp = search(fitting(gpus, layers, heads, batch, memory, nbytes), bound, seconds)
    return {"dp": dp, "tp": tp, "pp": pp}


@wrong(points=3, says="seconds expected:")
def best_layout(*, gpus, layers, heads, batch, memory, nbytes, bound, seconds):
    layouts = sorted(fitting(gpus, layers, heads, batch, memory, nbytes), key=lambda layout: bound(*layout))
    return min(layouts[:2], key=lambda layout: seconds(*layout))
