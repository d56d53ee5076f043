# ruff: noqa: F811
import itertools
import math

import torch

from tests.grading.bank import right, wrong


def refuse(nbytes, sizes, per_node):
    if nbytes.keys() != sizes.keys() or per_node < 1:
        raise ValueError("other axes, or no ranks on a node")


def crossing(order, nbytes, sizes, per_node, wrap=True, rings="all"):
    """Bytes across, with switches for wrong answers."""
    total, stride = 0, 1
    for axis in order:
        size = sizes[axis]
        for rank in range(math.prod(sizes.values())):
            index = rank // stride % size
            if index == size - 1 and not wrap or rings == "first" and rank != index * stride:
                continue
            to = rank + stride if index < size - 1 else rank - stride * (size - 1)
            if rank // per_node != to // per_node:
                total += nbytes[axis]
        stride *= size
    return total


@right("all orders")
def place_axes(nbytes, sizes, per_node):
    refuse(nbytes, sizes, per_node)
    return min(itertools.permutations(sizes), key=lambda order: crossing(order, nbytes, sizes, per_node))


@right("all orders, the last of the best, as a list")
def place_axes(nbytes, sizes, per_node):
    refuse(nbytes, sizes, per_node)
    best, fewest = None, math.inf
    for order in itertools.permutations(sizes):
        bytes_across = crossing(order, nbytes, sizes, per_node)
        if bytes_across <= fewest:
            best, fewest = order, bytes_across
    return list(best)


@right("rolled tensors of node numbers")
def place_axes(nbytes, sizes, per_node):
    refuse(nbytes, sizes, per_node)

    def across(order):
        shape = [sizes[axis] for axis in reversed(order)]
        node = (torch.arange(math.prod(shape)) // per_node).view(shape)
        dims = {axis: dim for dim, axis in enumerate(reversed(order))}
        return sum(nbytes[axis] * (node != node.roll(-1, dims[axis])).sum().item() for axis in order)

    return sorted(itertools.permutations(sorted(sizes)), key=across)[0]


@wrong("PLACE_SLOWEST_FIRST", points=1)
def place_axes(nbytes, sizes, per_node):
    refuse(nbytes, sizes, per_node)
    return min(itertools.permutations(sizes), key=lambda order: crossing(order, nbytes, sizes, per_node))[::-1]


@wrong("PLACE_MOST_ACROSS", points=1)
def place_axes(nbytes, sizes, per_node):
    refuse(nbytes, sizes, per_node)
    return max(itertools.permutations(sizes), key=lambda order: crossing(order, nbytes, sizes, per_node))


@wrong("PLACE_NO_WRAP", points=6)
def place_axes(nbytes, sizes, per_node):
    refuse(nbytes, sizes, per_node)
    return min(itertools.permutations(sizes), key=lambda order: crossing(order, nbytes, sizes, per_node, wrap=False))


@wrong("PLACE_FIRST_RING", points=1)
def place_axes(nbytes, sizes, per_node):
    refuse(nbytes, sizes, per_node)
    return min(itertools.permutations(sizes), key=lambda order: crossing(order, nbytes, sizes, per_node, rings="first"))


@wrong("PLACE_OUT_OF_RING", points=1)
def place_axes(nbytes, sizes, per_node):
    refuse(nbytes, sizes, per_node)
    n = math.prod(sizes.values())

    def across(order):
        total, stride = 0, 1
        for axis in order:
            total += nbytes[axis] * sum(r // per_node != (r + stride) % n // per_node for r in range(n))
            stride *= sizes[axis]
        return total

    return min(itertools.permutations(sizes), key=across)


@wrong("PLACE_BUSIEST_FIRST", points=1)
def place_axes(nbytes, sizes, per_node):
    refuse(nbytes, sizes, per_node)
    return sorted(sizes, key=lambda axis: nbytes[axis], reverse=True)


@wrong("PLACE_BUSIEST_FIRST", points=1)
def place_axes(nbytes, sizes, per_node):
    refuse(nbytes, sizes, per_node)
    return tuple(sorted(sizes, key=nbytes.get))


@wrong("PLACE_TOTALS_SORTED", points=1)
def place_axes(nbytes, sizes, per_node):
    refuse(nbytes, sizes, per_node)
    return sorted(sizes, key=lambda axis: -nbytes[axis] * sizes[axis])


@wrong("PLACE_BY_SIZE", points=1)
def place_axes(nbytes, sizes, per_node):
    refuse(nbytes, sizes, per_node)
    return sorted(sizes, key=sizes.get)


@wrong("PLACE_FIXED", points=1)
def place_axes(nbytes, sizes, per_node):
    refuse(nbytes, sizes, per_node)
    return tuple(sizes)


@wrong("PLACE_FIXED", points=1)
def place_axes(nbytes, sizes, per_node):
    refuse(nbytes, sizes, per_node)
    return sorted(sizes, reverse=True)


@wrong("PLACE_NODE_IGNORED", points=6)
def place_axes(nbytes, sizes, per_node):
    refuse(nbytes, sizes, per_node)

    def far(order):
        total, stride = 0, 1
        for axis in order:
            total += nbytes[axis] * stride * (sizes[axis] > 1)
            stride *= sizes[axis]
        return total

    return min(itertools.permutations(sizes), key=far)


@wrong("NOT_REFUSED", points=9)
def place_axes(nbytes, sizes, per_node):
    per_node = max(1, per_node)
    nbytes = {axis: nbytes.get(axis, 0) for axis in sizes}
    return min(itertools.permutations(sizes), key=lambda order: crossing(order, nbytes, sizes, per_node))


@wrong("OTHER_ERROR", points=9)
def place_axes(nbytes, sizes, per_node):
    return min(itertools.permutations(sizes), key=lambda order: crossing(order, nbytes, sizes, per_node))


@wrong("GENERATOR", points=0)
def place_axes(nbytes, sizes, per_node):
    yield from min(itertools.permutations(sizes), key=lambda order: crossing(order, nbytes, sizes, per_node))


@wrong(points=1, says="returned a list of 3: 2, 0, 1")
def place_axes(nbytes, sizes, per_node):
    refuse(nbytes, sizes, per_node)
    orders = itertools.permutations(sizes)
    return [[*sizes].index(a) for a in min(orders, key=lambda order: crossing(order, nbytes, sizes, per_node))]


@wrong(points=1, says="returned a float")
def place_axes(nbytes, sizes, per_node):
    refuse(nbytes, sizes, per_node)
    return min(crossing(order, nbytes, sizes, per_node) for order in itertools.permutations(sizes))


@wrong("PLACE_FIXED", points=1)
def place_axes(nbytes, sizes, per_node):
    refuse(nbytes, sizes, per_node)
    return "tp", "dp", "pp"


@wrong("PLACE_UNWEIGHTED", points=1)
def place_axes(nbytes, sizes, per_node):
    refuse(nbytes, sizes, per_node)
    ones = dict.fromkeys(sizes, 1)
    return min(itertools.permutations(sizes), key=lambda order: crossing(order, ones, sizes, per_node))


@wrong("PLACE_NOT_THE_NODE", points=1)
def place_axes(nbytes, sizes, per_node):
    refuse(nbytes, sizes, per_node)

    def across(order):
        total, stride = 0, 1
        for axis in order:
            size = sizes[axis]
            for rank in range(math.prod(sizes.values())):
                index = rank // stride % size
                to = rank + ((index + 1) % size - index) * stride
                total += nbytes[axis] * (rank % per_node != to % per_node)
            stride *= size
        return total

    return min(itertools.permutations(sizes), key=across)


@wrong(points=1, says="320 bytes cross expected: 120 bytes")
def place_axes(nbytes, sizes, per_node):
    refuse(nbytes, sizes, per_node)
    order, left, stride = [], set(sizes), 1
    while left:  # the busiest that still fits into a node
        axis = max(sorted(left), key=lambda a: nbytes[a] * (sizes[a] > 1) * (stride * sizes[a] <= per_node))
        order.append(axis)
        left.remove(axis)
        stride *= sizes[axis]
    return order
