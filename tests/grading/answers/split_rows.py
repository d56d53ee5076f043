# ruff: noqa: F811
from itertools import accumulate, pairwise

import numpy as np
import torch

from course.errors import UsageError
from tests.grading.bank import right, wrong


@right("divmod")
def split_rows(rows, parts):
    if rows < 0 or parts < 1:
        raise ValueError("rows must be at least 0, parts at least 1")
    size, more = divmod(rows, parts)
    return [(k * size + min(k, more), (k + 1) * size + min(k + 1, more)) for k in range(parts)]


@right("running sums, lists for pairs, an error of the course")
def split_rows(rows, parts):
    if rows < 0 or parts < 1:
        raise UsageError("impossible")
    sizes = [rows // parts + (k < rows % parts) for k in range(parts)]
    return [list(pair) for pair in pairwise(accumulate(sizes, initial=0))]


@right("asks torch")
def split_rows(rows, parts):
    if rows < 0 or parts < 1:
        raise ValueError(f"{rows} rows in {parts} parts")
    result, start = [], 0
    for piece in torch.arange(rows).tensor_split(parts):
        result.append((start, start + len(piece)))
        start += len(piece)
    return result


@right("numpy, ints of numpy; the rest first")
def split_rows(rows, parts):
    if parts <= 0:
        raise ValueError
    sizes = [len(piece) for piece in np.array_split(np.empty(rows), parts)]
    stops = np.cumsum(sizes)
    return list(zip(stops - sizes, stops, strict=True))


@right("one part after the other, what is left shared among those left")
def split_rows(rows, parts):
    if min(rows, parts - 1) < 0:
        raise ValueError("no")
    pairs, start = [], 0
    while parts:
        stop = start - (start - rows) // parts
        pairs.append((start, stop))
        start, parts = stop, parts - 1
    return pairs


@right("ceilings")
def split_rows(rows, parts):
    if not (parts >= 1 and rows >= 0):
        raise ValueError("no")
    bounds = [sum(-((i - rows) // parts) for i in range(k)) for k in range(parts + 1)]
    return [(bounds[k], bounds[k + 1]) for k in range(parts)]


@wrong("ROWS_DROPPED", points=2)
def split_rows(rows, parts):
    if rows < 0 or parts < 1:
        raise ValueError
    size = rows // parts
    return [(k * size, (k + 1) * size) for k in range(parts)]


@wrong("ROWS_REST_ON_ONE", points=4)
def split_rows(rows, parts):
    if rows < 0 or parts < 1:
        raise ValueError
    size = rows // parts
    return [(k * size, (k + 1) * size if k < parts - 1 else rows) for k in range(parts)]


@wrong("ROWS_REST_ON_ONE", points=4)
def split_rows(rows, parts):
    if rows < 0 or parts < 1:
        raise ValueError
    size, rest = divmod(rows, parts)
    return [(0, size + rest)] + [(rest + k * size, rest + (k + 1) * size) for k in range(1, parts)]


@wrong("ROWS_ROUNDED_UP", points=5)
def split_rows(rows, parts):
    if rows < 0 or parts < 1:
        raise ValueError
    size = -(-rows // parts)
    return [(min(k * size, rows), min((k + 1) * size, rows)) for k in range(parts)]


@wrong("ROWS_BEYOND", points=2)
def split_rows(rows, parts):
    if rows < 0 or parts < 1:
        raise ValueError
    size = -(-rows // parts)
    return [(k * size, (k + 1) * size) for k in range(parts)]


@wrong("ROWS_BIGGER_ELSEWHERE", points=4)
def split_rows(rows, parts):
    if rows < 0 or parts < 1:
        raise ValueError
    return [(rows * k // parts, rows * (k + 1) // parts) for k in range(parts)]


@wrong("ROWS_BIGGER_ELSEWHERE", points=5)
def split_rows(rows, parts):
    if rows < 0 or parts < 1:
        raise ValueError
    if rows < parts:
        return [(min(k, rows), min(k + 1, rows)) for k in range(parts)]
    bounds = [round(rows * k / parts) for k in range(parts + 1)]
    return list(pairwise(bounds))


@wrong("STOP_INCLUSIVE", points=2)
def split_rows(rows, parts):
    if rows < 0 or parts < 1:
        raise ValueError
    size, more = divmod(rows, parts)
    return [(k * size + min(k, more), (k + 1) * size + min(k + 1, more) - 1) for k in range(parts)]


@wrong("STOP_IS_LENGTH", points=2)
def split_rows(rows, parts):
    if rows < 0 or parts < 1:
        raise ValueError
    size, more = divmod(rows, parts)
    return [(k * size + min(k, more), size + (k < more)) for k in range(parts)]


@wrong("ROWS_FROM_ONE", points=2)
def split_rows(rows, parts):
    if rows < 0 or parts < 1:
        raise ValueError
    size, more = divmod(rows, parts)
    return [(k * size + min(k, more) + 1, (k + 1) * size + min(k + 1, more)) for k in range(parts)]


@wrong("ROWS_SHARED", points=2)
def split_rows(rows, parts):
    if rows < 0 or parts < 1:
        raise ValueError
    size, more = divmod(rows, parts)
    bounds = [k * size + min(k, more) for k in range(parts + 1)]
    return [(max(0, start - 1), stop) for start, stop in pairwise(bounds)]


@wrong("EMPTY_PART_SKIPPED", points=6)
def split_rows(rows, parts):
    if rows < 0 or parts < 1:
        raise ValueError
    size, more = divmod(rows, parts)
    bounds = [k * size + min(k, more) for k in range(parts + 1)]
    return [(start, stop) for start, stop in pairwise(bounds) if start < stop]


@wrong("EMPTY_PART_SKIPPED", points=6)
def split_rows(rows, parts):
    if rows < 0 or parts < 1:
        raise ValueError
    return split(rows, max(min(rows, parts), 1)) if rows else []


def split(rows, parts):
    size, more = divmod(rows, parts)
    return [(k * size + min(k, more), (k + 1) * size + min(k + 1, more)) for k in range(parts)]


@wrong("ROW_NUMBERS", points=1)
def split_rows(rows, parts):
    if rows < 0 or parts < 1:
        raise ValueError
    return [range(start, stop) for start, stop in split(rows, parts)]


@wrong("ROW_NUMBERS", points=1)
def split_rows(rows, parts):
    if rows < 0 or parts < 1:
        raise ValueError
    return [list(range(start, stop)) for start, stop in split(rows, parts)]


@wrong("NOT_REFUSED", points=6)
def split_rows(rows, parts):
    return split(max(rows, 0), max(parts, 1))


@wrong("OTHER_ERROR", points=6)
def split_rows(rows, parts):
    return split(rows, parts)


@wrong("OTHER_ERROR", points=6)
def split_rows(rows, parts):
    assert rows >= 0 and parts > 0
    return split(rows, parts)


@wrong("GENERATOR", points=0)
def split_rows(rows, parts):
    if rows < 0 or parts < 1:
        raise ValueError
    yield from split(rows, parts)


@wrong(says="starts at 6, after 5", points=2)
def split_rows(rows, parts):
    if rows < 0 or parts < 1:
        raise ValueError
    size = rows // parts
    return [(k * (size + 1), k * (size + 1) + size) for k in range(parts)]


@wrong(says="returned a list of 5 with an int in it", points=1)
def split_rows(rows, parts):
    if rows < 0 or parts < 1:
        raise ValueError
    return [0, *(stop for _, stop in split(rows, parts))]


@wrong(says="a zip")
def split_rows(rows, parts):
    if rows < 0 or parts < 1:
        raise ValueError
    starts = [start for start, _ in split(rows, parts)]
    return zip(starts, [*starts[1:], rows], strict=True)


@wrong(says="a int64 array of shape (4, 2)", points=1)
def split_rows(rows, parts):
    if rows < 0 or parts < 1:
        raise ValueError
    return np.array(split(rows, parts))


@wrong(says="with a slice in it", points=1)
def split_rows(rows, parts):
    if rows < 0 or parts < 1:
        raise ValueError
    return [slice(start, stop) for start, stop in split(rows, parts)]


@wrong(says="with more parts than rows the code raised ValueError", points=6)
def split_rows(rows, parts):
    if rows < parts or parts < 1:
        raise ValueError("more parts than rows")
    return split(rows, parts)


@wrong(says="with a pair of a float and a float in it", points=1)
def split_rows(rows, parts):
    if rows < 0 or parts < 1:
        raise ValueError
    return [(float(start), float(stop)) for start, stop in split(rows, parts)]


class Anything(int):
    def __eq__(self, other):
        return True

    __hash__ = int.__hash__


@wrong(says="with a pair of a Anything and a Anything in it", points=0)
def split_rows(rows, parts):
    return [(Anything(), Anything())] * parts


@wrong(says="returned a list of 3", points=1)
def split_rows(rows, parts):
    if rows < 0 or parts < 1:
        raise ValueError
    return split(rows, min(parts, 3))
