"""What more workers can gain: Amdahl's and Gustafson's laws, the serial share fitted to measured times, efficiency.

Pure arithmetic, standard library only. The curves are drawn in `figures.amdahl`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from course.errors import UsageError


def amdahl_speedup(*, serial: float, workers: float) -> float:
    """How many times as fast `workers` do a given piece of work as one worker does, by Amdahl's law.

    serial: the share of one worker's time, 0 to 1, in which the others cannot help. Never above 1 / serial.
    Amdahl, AFIPS Spring Joint Computer Conference, 1967. Raises UsageError for the impossible.
    """
    _check("amdahl_speedup", serial, workers)
    return 1 / (serial + (1 - serial) / workers)


def gustafson_speedup(*, serial: float, workers: float) -> float:
    """How many times as long one worker would need for what `workers` have done, by Gustafson's law.

    serial: the share of the time *of the parallel run*, 0 to 1, in which one worker was busy and the others could not
    help. The work grows with the workers, and nothing bounds the gain.
    Gustafson, Communications of the ACM 31(5), 1988. Raises UsageError for the impossible.
    """
    _check("gustafson_speedup", serial, workers)
    return serial + (1 - serial) * workers


def serial_fraction(workers: Sequence[float], seconds: Sequence[float]) -> float:
    """The serial share, 0 to 1, that makes Amdahl's law fit measured times best: a / (a + b) of seconds = a + b / n.

    workers, seconds: one measurement a place, of the same work. a and b are those of least squares. Where the line
    says that more workers do not help at all (b not above 0) the share is 1; where a is negative it is 0.
    A good fit does not say that a serial part is the cause. Raises UsageError without two different numbers of workers,
    and for numbers that cannot be.
    """
    if len(workers) != len(seconds):
        raise UsageError(f"serial_fraction got {len(workers)} numbers of workers and {len(seconds)} times: pair them")
    if len(set(workers)) < 2:
        raise UsageError("serial_fraction needs times of two different numbers of workers: measure another number")
    for n, taken in zip(workers, seconds, strict=True):
        if not (1 <= n < math.inf and 0 < taken < math.inf):
            raise UsageError(f"serial_fraction got {n!r} workers and {taken!r} s: workers from 1 on, seconds above 0")
    inverse = [1 / n for n in workers]
    mean_inverse, mean_seconds = sum(inverse) / len(inverse), sum(seconds) / len(seconds)
    slope = sum((x - mean_inverse) * (y - mean_seconds) for x, y in zip(inverse, seconds, strict=True))
    slope /= sum((x - mean_inverse) ** 2 for x in inverse)
    start = mean_seconds - slope * mean_inverse
    if slope <= 0:
        return 1.0
    return start / (start + slope) if start > 0 else 0.0


def parallel_efficiency(seconds_1: float, seconds_n: float, n: float) -> float:
    """The share of `n` workers that is put to use, from the times of one and of all.

    1 where n workers take one n-th of the time. Above 1 where they do better, as when the parts fit into caches that
    the whole did not. Raises UsageError for times that are not above 0 and for fewer than one worker.
    """
    if not (0 < seconds_1 < math.inf and 0 < seconds_n < math.inf):
        raise UsageError(f"parallel_efficiency({seconds_1!r}, {seconds_n!r}, {n!r}): both times must be above 0 s")
    if not 1 <= n < math.inf:
        raise UsageError(f"parallel_efficiency(..., n={n!r}): there is at least one worker")
    return seconds_1 / (n * seconds_n)


def _check(name: str, serial: float, workers: float) -> None:
    if not 0 <= serial <= 1:
        raise UsageError(f"{name}(serial={serial!r}): the serial share goes from 0 to 1; write 5 % as 0.05")
    if not 1 <= workers < math.inf:
        raise UsageError(f"{name}(workers={workers!r}): there is at least one worker")
