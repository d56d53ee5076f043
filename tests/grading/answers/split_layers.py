# ruff: noqa: F811
from functools import cache
from itertools import accumulate, combinations, pairwise

import numpy as np

from course.errors import UsageError
from course.spec.split import split_layers as library
from tests.grading.bank import right, wrong


def check(costs, stages, memory=None):
    if stages < 1 or stages > len(costs):
        raise ValueError("stages")
    if memory is not None and sum(memory) < len(costs):
        raise ValueError("memory")


def cost_of(costs, cuts):
    return max(sum(costs[a:b]) for a, b in pairwise((0, *cuts, len(costs))))


@right("dynamic programming over stages and layers")
def split_layers(costs, stages, *, memory=None):
    n = len(costs)
    check(costs, stages, memory)
    limits = memory or [n] * stages
    before = [0, *accumulate(costs)]
    best, cuts = {0: (0, ())}, None
    for limit in limits:
        row = {}
        for i, (slowest, cuts) in best.items():
            for j in range(i + 1, min(n, i + limit) + 1):
                value = max(slowest, before[j] - before[i])
                if j not in row or value < row[j][0]:
                    row[j] = (value, (*cuts, j))
        best = row
    if n not in best:
        raise ValueError("does not fit")
    return list(best[n][1][:-1])


@right("recursive, remembered; a tuple")
def split_layers(costs, stages, *, memory=None):
    n = len(costs)
    if not 1 <= stages <= n:
        raise ValueError(f"{stages} stages for {n} layers")

    @cache
    def best(start, stage):
        limit = n if memory is None else memory[stage]
        if stage == stages - 1:
            return (sum(costs[start:]), ()) if 0 < n - start <= limit else (float("inf"), ())
        options = [(float("inf"), ())]
        for end in range(start + 1, min(n - 1, start + limit) + 1):
            rest, cuts = best(end, stage + 1)
            options.append((max(sum(costs[start:end]), rest), (end, *cuts)))
        return min(options)

    cost, cuts = best(0, 0)
    if cost == float("inf"):
        raise ValueError("memory")
    return cuts


@right("tries all cuts")
def split_layers(costs, stages, *, memory=None):
    n = len(costs)
    if stages < 1:
        raise ValueError("stages")

    def fits(cuts):
        return memory is None or all(b - a <= m for (a, b), m in zip(pairwise((0, *cuts, n)), memory, strict=True))

    found = [cuts for cuts in combinations(range(1, n), stages - 1) if fits(cuts)]
    return list(min(found, key=lambda cuts: cost_of(costs, cuts)))  # min of nothing raises ValueError


@right("the smallest limit that a walk can keep, by bisection; stages filled from the back")
def split_layers(costs, stages, *, memory=None):
    n = len(costs)
    if stages < 1 or stages > n:
        raise ValueError("stages")
    limits = [n] * stages if memory is None else memory

    def walk(most):
        """Fills stages from the last one back, as full as can be, a layer at least for each before it."""
        end, cuts = n, []
        for stage in range(stages - 1, -1, -1):
            start, cost = end, 0
            while start > stage and cost + costs[start - 1] <= most and end - start < limits[stage]:
                start -= 1
                cost += costs[start]
            if start == end:
                return None
            end = start
            cuts.append(start)
        return cuts[-2::-1] if end == 0 else None

    sums = sorted({sum(costs[i:j]) for i in range(n) for j in range(i + 1, n + 1)})
    if walk(sums[-1]) is None:
        raise ValueError("memory")
    low, high = 0, len(sums) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if walk(sums[middle]) else (middle + 1, high)
    found = walk(sums[low])
    return found if stages > 1 else []


@right("a table in numpy, ints of numpy")
def split_layers(costs, stages, *, memory=None):
    n = len(costs)
    if not 0 < stages <= n:
        raise UsageError("stages")
    before = np.concatenate([[0.0], np.cumsum(costs)])
    best = np.full((stages + 1, n + 1), np.inf)
    best[0, 0] = 0
    choice = np.zeros((stages + 1, n + 1), dtype=int)
    for s in range(1, stages + 1):
        for j in range(s, n + 1):
            low = s - 1 if memory is None else max(s - 1, j - memory[s - 1])
            if low < j:
                values = np.maximum(best[s - 1, low:j], before[j] - before[low:j])
                choice[s, j] = low + values.argmin()
                best[s, j] = values.min()
    if np.isinf(best[stages, n]):
        raise ValueError("no split fits")
    cuts, j = [], n
    for s in range(stages, 1, -1):
        j = choice[s, j]
        cuts.append(j)
    return tuple(reversed(cuts))


@wrong("EQUAL_LAYERS", points=4)
def split_layers(costs, stages, *, memory=None):
    check(costs, stages, memory)
    size, more = divmod(len(costs), stages)
    return [s * size + min(s, more) for s in range(1, stages)]


@wrong("EQUAL_LAYERS", points=4)
def split_layers(costs, stages, *, memory=None):
    check(costs, stages, memory)
    return [round(s * len(costs) / stages) for s in range(1, stages)]


@wrong("GREEDY_AVERAGE", points=2)
def split_layers(costs, stages, *, memory=None):
    check(costs, stages, memory)
    total, cuts, done = sum(costs), [], 0
    for k, cost in enumerate(costs):
        done += cost
        if len(cuts) < stages - 1 and done >= total * (len(cuts) + 1) / stages:
            cuts.append(k + 1)
    return cuts


@wrong("GREEDY_AVERAGE")
def split_layers(costs, stages, *, memory=None):
    check(costs, stages, memory)
    average, cuts, held = sum(costs) / stages, [], 0
    for k, cost in enumerate(costs):
        held += cost
        if held >= average and len(cuts) < stages - 1:
            cuts.append(k + 1)
            held = 0
    return cuts


@wrong("GREEDY_AVERAGE")
def split_layers(costs, stages, *, memory=None):
    check(costs, stages, memory)
    before = [0, *accumulate(costs)]
    return [min(range(len(before)), key=lambda k: abs(before[k] - before[-1] * s / stages)) for s in range(1, stages)]


@wrong("LAST_TAKES_REST", points=4)
def split_layers(costs, stages, *, memory=None):
    check(costs, stages, memory)
    return [s * (len(costs) // stages) for s in range(1, stages)]


@wrong("LAST_TAKES_REST")
def split_layers(costs, stages, *, memory=None):
    check(costs, stages, memory)
    average, cuts, held = sum(costs) / stages, [], 0
    for k, cost in enumerate(costs):
        if held and held + cost > average and len(cuts) < stages - 1:
            cuts.append(k)
            held = 0
        held += cost
    return cuts


@wrong("EMPTY_STAGE", points=2)
def split_layers(costs, stages, *, memory=None):
    check(costs, stages, memory)
    low, high = max(costs), sum(costs)
    while high - low > 1e-6:
        middle = (low + high) / 2
        groups, held = 1, 0
        for cost in costs:
            if held + cost > middle:
                groups, held = groups + 1, 0
            held += cost
        low, high = (low, middle) if groups <= stages else (middle, high)
    cuts, held = [], 0
    for k, cost in enumerate(costs):
        if held + cost > high:
            cuts.append(k)
            held = 0
        held += cost
    return cuts + [len(costs)] * (stages - 1 - len(cuts))


@wrong("EMPTY_STAGE", points=2)
def split_layers(costs, stages, *, memory=None):
    check(costs, stages, memory)
    n = len(costs)
    best = [[float("inf")] * (n + 1) for _ in range(stages + 1)]
    best[0][0], choice = 0, {}
    for s in range(1, stages + 1):
        for j in range(n + 1):
            for i in range(j + 1):
                value = max(best[s - 1][i], sum(costs[i:j]))
                if value < best[s][j]:
                    best[s][j], choice[s, j] = value, i
    cuts, j = [], n
    for s in range(stages, 1, -1):
        j = choice[s, j]
        cuts.append(j)
    return cuts[::-1]


@wrong("EVEN_COSTS", points=4)
def split_layers(costs, stages, *, memory=None):
    check(costs, stages, memory)
    n = len(costs)

    def spread(cuts):
        return sum(sum(costs[a:b]) ** 2 for a, b in pairwise((0, *cuts, n)))

    return list(min(combinations(range(1, n), stages - 1), key=spread))


@wrong("EVEN_COSTS", points=4)
def split_layers(costs, stages, *, memory=None):
    check(costs, stages, memory)
    n = len(costs)
    return list(
        min(
            combinations(range(1, n), stages - 1),
            key=lambda cuts: np.var([sum(costs[a:b]) for a, b in pairwise((0, *cuts, n))]),
        )
    )


@wrong("SIZES_NOT_CUTS", points=1)
def split_layers(costs, stages, *, memory=None):
    cuts = library(costs, stages, memory=memory)
    return [b - a for a, b in pairwise((0, *cuts, len(costs)))]


@wrong("SIZES_NOT_CUTS")
def split_layers(costs, stages, *, memory=None):
    cuts = library(costs, stages, memory=memory)
    return [b - a for a, b in pairwise((0, *cuts))]


@wrong("CUTS_WITH_ENDS", points=1)
def split_layers(costs, stages, *, memory=None):
    return [0, *library(costs, stages, memory=memory), len(costs)]


@wrong("CUTS_WITH_ENDS", points=1)
def split_layers(costs, stages, *, memory=None):
    return [*library(costs, stages, memory=memory), len(costs)]


@wrong("LAST_LAYERS")
def split_layers(costs, stages, *, memory=None):
    return [cut - 1 for cut in library(costs, stages, memory=memory)]


@wrong("LAST_LAYERS", points=1)
def split_layers(costs, stages, *, memory=None):
    return [cut - 1 for cut in (*library(costs, stages, memory=memory), len(costs))]


@wrong("MEMORY_IGNORED", points=8)
def split_layers(costs, stages, *, memory=None):
    check(costs, stages, memory)
    return library(costs, stages)


@wrong("MEMORY_IGNORED", points=7)
def split_layers(costs, stages, *, memory=None):
    return list(library(costs, stages))


@wrong(says="with `memory` the code raised", points=8)
def split_layers(costs, stages, *, memory=None):
    cuts = library(costs, stages)
    sizes = [b - a for a, b in pairwise((0, *cuts, len(costs)))]
    if memory is not None and any(size > limit for size, limit in zip(sizes, memory, strict=True)):
        raise ValueError("does not fit")
    return cuts


@wrong(says="a split within `memory` whose slowest stage costs", points=8)
def split_layers(costs, stages, *, memory=None):
    cuts = list(library(costs, stages))
    library(costs, stages, memory=memory)  # refuses
    for s in range(len(cuts)):  # what is too much moves on to the next
        start = cuts[s - 1] if s else 0
        if memory is not None:
            cuts[s] = min(cuts[s], start + memory[s])
    for s in range(len(cuts) - 1, -1, -1):
        end = cuts[s + 1] if s + 1 < len(cuts) else len(costs)
        if memory is not None:
            cuts[s] = max(cuts[s], end - memory[s + 1])
    return cuts


@wrong("NOT_REFUSED", points=9)
def split_layers(costs, stages, *, memory=None):
    try:
        return library(costs, stages, memory=memory)
    except ValueError:
        return []


@wrong("OTHER_ERROR", points=9)
def split_layers(costs, stages, *, memory=None):
    try:
        return library(costs, stages, memory=memory)
    except ValueError:
        raise IndexError("no") from None


@wrong("GENERATOR", points=0)
def split_layers(costs, stages, *, memory=None):
    yield from library(costs, stages, memory=memory)


@wrong(says="returned None", points=1)
def split_layers(costs, stages, *, memory=None):
    print(library(costs, stages, memory=memory))


@wrong(says="with a tuple of 2 in it", points=1)
def split_layers(costs, stages, *, memory=None):
    cuts = library(costs, stages, memory=memory)
    return list(pairwise((0, *cuts, len(costs))))


@wrong(says="layers 1 + 1 + 29: the slowest stage costs 32", points=4)
def split_layers(costs, stages, *, memory=None):
    check(costs, stages, memory)
    library(costs, stages, memory=memory)
    return list(range(1, stages))
