"""Checks of `brighten_kernel`: grids that fit the image, grids that reach beyond it, and who touched which pixel."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from course.grading.bench import Bench, Seat, Trouble
from course.grading.check import Check, Finding
from course.grading.checks.alone import asked, raised
from course.grading.checks.simulated import Grid, Launch, launched
from course.grading.mistakes import Mistake
from course.grading.mistakes.lesson_01 import (
    KERNEL_BLOCK_ONLY,
    KERNEL_EVERYTHING,
    KERNEL_GUARD_OFF,
    KERNEL_NO_BLOCK_DIM,
    KERNEL_NO_GUARD,
    KERNEL_NOT_HELD,
    KERNEL_NOTHING_WRITTEN,
    KERNEL_SPARE_THREADS,
    KERNEL_THREAD_ONLY,
    KERNEL_WRAPS,
    KERNEL_WRITES_IMAGE,
)


def _rising(n: int, blocks: int, threads: int, amount: int) -> Grid:
    """Pixels 60, 61, ...: no two alike, none that the amount takes out of its range."""
    return Grid(tuple(range(60, 60 + n)), blocks, threads, amount)


EXACT = (_rising(64, 2, 32, 40), _rising(60, 5, 12, 15), _rising(48, 1, 48, 40))
BEYOND = (_rising(45, 2, 32, 40), _rising(33, 5, 8, 40), _rising(20, 4, 8, 15), _rising(1, 1, 16, 40))
EDGES = (0, 1, 2, 49, 50, 51, 99, 100, 101, 126, 127, 128, 129, 154, 155, 156, 157, 200, 205, 206, 245, 253, 254, 255)
ENDS = tuple(Grid(EDGES, 3, 8, amount) for amount in (0, 1, 100, 128, 255, -1, -50, -100, -255))


def _probe(learner: Any, grids: tuple[Grid, ...], seat: Seat) -> Any:
    return launched(learner, grids)


# --- in the grader's process ------------------------------------------------------------------------------------------


def _launches(bench: Bench, grids: tuple[Grid, ...]) -> Iterator[tuple[Grid, Launch]]:
    for grid, launch in zip(grids, bench.run(_probe, grids, n=1).values[0], strict=True):
        yield grid, Launch(*launch)


def _wanted(grid: Grid) -> list[int]:
    return [min(max(pixel + grid.amount, 0), 255) for pixel in grid.pixels]


def _wrong(grid: Grid, launch: Launch) -> str:
    """The first wrong pixel, in words."""
    written = {i for pixels in launch.written for i in pixels}
    for i, (number, wanted) in enumerate(zip(launch.out, _wanted(grid), strict=True)):
        if i not in written:
            return f"pixel {i} ({grid.pixels[i]}, amount {grid.amount}) was not written"
        if number != wanted:
            return f"pixel {i} ({grid.pixels[i]}, amount {grid.amount}) is {number} instead of {wanted}"
    return ""


def _exact(bench: Bench) -> Finding | None:
    grids = asked(bench, _probe, EXACT)
    if isinstance(grids, Trouble):
        return _raised(grids)
    for grid, launch in _launches(bench, EXACT):
        if wrong := _wrong(grid, launch):
            advice = "Write down which pixel each thread of the second block takes, and what it makes of it."
            return Finding(f"with {grid}: {wrong}", "", advice, _place_mistake(bench))
    return None


def _raised(trouble: Trouble) -> Finding:
    got = re.sub(r"tid=\[[\d, ]+\] ctaid=\[[\d, ]+\]:? ?", "", raised(trouble))  # whichever thread was first
    return Finding(got, "", trouble.advice, KERNEL_WRAPS if "OverflowError" in got else None)


_Rule = Callable[[Grid, int, int], int]
_PLACES: tuple[tuple[Mistake, _Rule], ...] = (
    (KERNEL_THREAD_ONLY, lambda grid, block, thread: thread),
    (KERNEL_BLOCK_ONLY, lambda grid, block, thread: block),
    (KERNEL_NO_BLOCK_DIM, lambda grid, block, thread: block + thread),
    (KERNEL_NO_BLOCK_DIM, lambda grid, block, thread: block * grid.blocks + thread),
)


def _place_mistake(bench: Bench) -> Mistake | None:
    launches = list(_launches(bench, EXACT))
    if not any(any(launch.written) for _, launch in launches):
        return KERNEL_WRITES_IMAGE if any(launch.spoiled for _, launch in launches) else KERNEL_NOTHING_WRITTEN
    for mistake, rule in _PLACES:
        if all(launch.written == _by(rule, grid) for grid, launch in launches):
            return mistake
    if all(launch.written == [[i] if i < grid.n - 1 else [] for i in range(grid.n)] for grid, launch in launches):
        return KERNEL_GUARD_OFF
    if any(len(pixels) > 1 for _, launch in launches for pixels in launch.written):
        return KERNEL_EVERYTHING
    return None


def _by(rule: _Rule, grid: Grid) -> list[list[int]]:
    places = [rule(grid, block, thread) for block, thread in grid.places]
    return [[place] if place < grid.n else [] for place in places]


def _ends(bench: Bench) -> Finding | None:
    values = asked(bench, _probe, ENDS)
    if isinstance(values, Trouble):
        return _raised(values)
    launches = list(_launches(bench, ENDS))
    for grid, launch in launches:
        if wrong := _wrong(grid, launch):
            mistake = None
            if any(launch.unfit for _, launch in launches):
                mistake = KERNEL_NOT_HELD
            elif all(launch.out == [(pixel + grid.amount) % 256 for pixel in grid.pixels] for grid, launch in launches):
                mistake = KERNEL_WRAPS
            return Finding(wrong, "", "Try this pixel alone, step by step.", mistake)
    return None


def _beyond(bench: Bench) -> Finding | None:
    values = asked(bench, _probe, BEYOND)
    if isinstance(values, Trouble):
        return _raised(values)
    for grid, launch in _launches(bench, BEYOND):
        if launch.outside:
            off = all(launch.outside == [grid.n] for grid, launch in _launches(bench, BEYOND))
            got = f"with {grid}: there is no pixel {launch.outside[0]}, and a thread reads or writes it"
            return Finding(got, "", "", KERNEL_GUARD_OFF if off else KERNEL_NO_GUARD)
        if wrong := _wrong(grid, launch):
            return Finding(f"with {grid}: {wrong}", "", "Which threads have a pixel here?")
        counts = Counter(i for pixels in launch.written for i in pixels)
        if len(counts) < counts.total() and _one_each(bench) is None:
            i, count = counts.most_common(1)[0]
            return Finding(f"with {grid}: {count} threads write pixel {i}", "", "", KERNEL_SPARE_THREADS)
    return None


def _one_each(bench: Bench) -> Finding | None:
    for grid, launch in _launches(bench, EXACT):
        for (block, thread), pixels in zip(grid.places, launch.written, strict=True):
            if len(pixels) > 1:
                got = f"with {grid}: thread {thread} of block {block} writes {len(pixels)} pixels"
                return Finding(got, "", "", KERNEL_EVERYTHING)
    return None


def _image(bench: Bench) -> Finding | None:
    for grid, launch in _launches(bench, EXACT):
        if launch.spoiled or launch.image != list(grid.pixels):
            return Finding(f"with {grid}: `image` was written", "", "", KERNEL_WRITES_IMAGE)
    return None


_EXACT = "every pixel, as many threads as pixels"

CHECKS = {
    "brighten_kernel": (
        Check(_EXACT, 2, _exact, "each pixel of `out` set by its thread"),
        Check("held within 0 and 255", 2, _ends, "each pixel plus the amount, within 0 and 255", needs=_EXACT),
        Check("threads beyond the last pixel do nothing", 2, _beyond, "no touch outside of the image", needs=_EXACT),
        Check("a pixel a thread", 1, _one_each, "one pixel a thread at most", needs=_EXACT),
        Check("the image stays as it was", 1, _image, "an image that is only read", needs=_EXACT),
    )
}
