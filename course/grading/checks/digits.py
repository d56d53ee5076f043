"""Whose part is in a sum: read off the digits of a test in which rank r brings x·1000^r, with x from 1 to 9.

Counts say how often each rank's part is in an element. What patterns of counts are called stands here too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from course.grading.checks.messages import BASE, digit
from course.grading.mistakes import Mistake
from course.grading.mistakes.lesson_03 import ADDS_THE_SENT, KEEPS_OWN, OVERWRITES, RUNNING_SUM, STEP_SHORT
from course.grading.plain import TensorData

Counts = tuple[int, ...]
Matrix = list[list[Counts]]  # of each rank and chunk
Found = Sequence[Sequence[Counts | None]]  # of each rank, the counts of each element it holds


def around(n: int, way: int, start: int, adds: int, moves: int, begin: int, *, alone: bool = False) -> Matrix:
    """What a ring leaves: after `adds` steps that add and `moves` that hand out.

    Rank r sends chunk r + start in the first step that adds, r + begin in the first that hands out. `way`: 1 to the
    next rank, -1 to the one before; chunks are then counted the other way too. `alone`: at first each rank has its
    own chunk only.
    """
    held: Matrix = [[tuple(int(part == rank) for part in range(n)) for _ in range(n)] for rank in range(n)]
    if alone:
        held = [[row[chunk] if chunk == rank else () for chunk in range(n)] for rank, row in enumerate(held)]
    for step in range(adds + moves):
        offset = start - step if step < adds else begin - (step - adds)
        before = [list(row) for row in held]
        for rank in range(n):
            source = (rank - way) % n
            chunk = (source + way * offset) % n
            own, comes = before[rank][chunk], before[source][chunk]
            held[rank][chunk] = tuple(a + b for a, b in zip(own, comes, strict=True)) if step < adds else comes
    return held


def counts(number: Any, place: int, n: int) -> Counts | None:
    """How often each of n ranks is in the element at `place`; None where it is no such sum."""
    if type(number) is not int or not 0 <= number < BASE**n:
        return None
    times = [divmod(number // BASE**rank % BASE, digit(place)) for rank in range(n)]
    return None if any(rest for _, rest in times) else tuple(count for count, _ in times)


def counts_of(data: Any, start: int, n: int) -> list[Counts | None]:
    """The counts of each element of a flat or shaped tensor whose first element is at place `start`."""
    numbers = data.numbers if type(data) is TensorData else ()
    return [counts(number, start + k, n) for k, number in enumerate(numbers)]


def in_words(found: Found, starts: Sequence[int]) -> str:
    """What is wrong with the first wrong element, for a sentence; "" where all is right or nothing can be said.

    `found`: the counts on each rank; `starts`: the place of its first element.
    """
    for rank, (row, start) in enumerate(zip(found, starts, strict=True)):
        for k, times in enumerate(row):
            if times is None:
                return ""
            for part, count in enumerate(times):
                if count != 1:
                    how = "missing from" if count == 0 else f"counted {count} times in"
                    return f"rank {part}'s part is {how} element {start + k} on rank {rank}"
    return ""


def pattern(found: Found, steps: int) -> Mistake | None:
    """The mistake that the counts of all ranks show, if they show one. `steps`: the most messages that a rank sent."""
    wrong = [
        (rank, times) for rank, row in enumerate(found) for times in row if times is None or set(times) != {1}
    ]  # fmt: skip
    if not wrong or any(times is None for _, times in wrong):
        return None
    known = [(rank, times) for rank, times in wrong if times is not None]
    n = len(found)
    if all(times[rank] > 1 and 0 in times for rank, times in known):
        return ADDS_THE_SENT
    if all(sum(times) == 1 and times[rank] == 1 for rank, times in known):
        return STEP_SHORT if 0 < steps < n - 1 else KEEPS_OWN
    if n > 2 and all(sum(times) == 1 for _, times in known):
        return OVERWRITES
    if all(max(times) == 1 and times.count(0) == 1 for _, times in known):
        return STEP_SHORT
    return RUNNING_SUM if any(max(times) > 1 for _, times in known) and all(min(t) > 0 for _, t in known) else None
