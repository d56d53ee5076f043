"""How fast it could be: the roofline, and the measurements it is drawn from.

Roofline: Williams, Waterman, Patterson, CACM 52(4), 2009. The picture is `figures.roofline`.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

from course.errors import UsageError

MOST_OPERATIONS = 64


def attainable(intensity: float, peak_flops: float, bandwidth: float) -> float:
    """The most operations a second that a program of this intensity can reach, in FLOP/s: the roofline.

    intensity: operations for each byte moved to or from memory; peak_flops: operations a second with all data in
    registers; bandwidth: bytes a second. Raises UsageError for a negative number.
    """
    if not (intensity >= 0 and peak_flops >= 0 and bandwidth >= 0):
        raise UsageError(
            f"attainable(intensity={intensity}, peak_flops={peak_flops}, bandwidth={bandwidth}): "
            "none of the three may be negative"
        )
    return min(peak_flops, intensity * bandwidth)


def median_seconds(work: Callable[[], object], *, repeats: int = 5) -> float:
    """Seconds that `work()` takes: the median of `repeats` calls, after one to warm up (and to compile)."""
    return seconds_beside(work, repeats=repeats)[0]


def seconds_beside(
    work: Callable[[], object], peer: Callable[[], object] | None = None, *, repeats: int = 5
) -> tuple[float, float]:
    """(seconds, ratio) of `work()`: the median of its calls, and of its time over that of a call of `peer` beside it.

    Both are called in turn, once to warm up and then `repeats` times, so that other programs slow them alike.
    Without a peer the ratio is 1.
    """
    if repeats < 1:
        raise UsageError(f"repeats={repeats}: one measurement is the least there is")
    seconds, ratios = [], []
    for _ in range(repeats + 1):
        seconds.append(_seconds(work))
        ratios.append(seconds[-1] / _seconds(peer) if peer else 1.0)
    return statistics.median(seconds[1:]), statistics.median(ratios[1:])


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def memcpy_seconds(image: np.ndarray, *, out: np.ndarray | None = None, repeats: int = 5) -> float:
    """Seconds to copy `image` on one thread, the least that reading and writing it once can take.

    out: where to, of the same shape and dtype; without it a second image is allocated. Moves 2 * image.nbytes a copy.
    """
    target = np.empty_like(image) if out is None else out
    return median_seconds(lambda: np.copyto(target, image), repeats=repeats)


def repeated_kernel(operations: int) -> Callable[[np.ndarray, np.ndarray, int], None]:
    """A compiled kernel(out, image, step) that brightens each pixel `operations` times by `step` (0 to 255).

    out, image: uint8 (N,). Each pixel is read once and written once, with `operations` saturating additions between:
    operations / 2 a byte. Compiled at its first call, for this number alone. Raises UsageError outside 1 to 64:
    beyond, the compiler stops writing the additions out one after another, and with that uses no vectors.
    """
    if not 1 <= operations <= MOST_OPERATIONS:
        raise UsageError(f"repeated_kernel({operations}): it does 1 to {MOST_OPERATIONS} operations a pixel")
    from numba import njit

    @njit(nogil=True)
    def kernel(out, image, step):
        step = np.uint8(step)
        for i in range(image.size):
            value = image[i]
            for _ in range(operations):
                total = np.uint8(value + step)
                value = total if total >= step else np.uint8(255)  # less than was added: it wrapped around
            out[i] = value

    return kernel
