"""What sending costs: alpha seconds a message plus its bytes over the bandwidth, for one message and for an all-reduce.

This is Hockney's model (1994). Numbers of real links stand in `spec.cluster`; nothing is measured here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from course.errors import UsageError

ALGORITHMS = ("ring", "tree", "naive")


def all_reduce_seconds(nbytes: float, n: int, *, alpha: float, bandwidth: float, algorithm: str = "ring") -> float:
    """Seconds of one all-reduce of `nbytes` on each of `n` ranks; each message costs alpha seconds before its bytes.

    alpha: seconds a message. bandwidth: bytes a second, one way, on every link. The sums themselves cost nothing here.
    "ring": 2(n-1) rounds of nbytes/n, the bandwidth optimum (Patarasuk and Yuan 2009). "tree": whole tensors, log2 n
    rounds up to rank 0 and as many down. "naive": rank 0 receives n-1 whole tensors and sends n-1, one at a time.
    With one rank nothing is sent. Raises UsageError for the impossible.
    """
    _check(nbytes, n, alpha, bandwidth)
    if algorithm == "ring":
        return 2 * (n - 1) * alpha + 2 * (n - 1) / n * nbytes / bandwidth
    if algorithm == "tree":
        return 2 * math.ceil(math.log2(n)) * (alpha + nbytes / bandwidth)
    if algorithm == "naive":
        return 2 * (n - 1) * (alpha + nbytes / bandwidth)
    raise UsageError(f"all_reduce_seconds(algorithm={algorithm!r}): try one of {', '.join(map(repr, ALGORITHMS))}")


def fit_alpha_beta(points: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """(alpha seconds, bandwidth bytes/s) of the line seconds = alpha + nbytes / bandwidth through measured points.

    points: (nbytes, seconds) of one message each. Minimises the sum of (predicted / measured - 1)^2: sizes from
    kilobytes to megabytes count alike. In closed form that is a straight line with weights 1 / seconds^2. Noisy points
    may give an alpha below 0. Raises UsageError without two different sizes, and where larger messages take no longer.
    """
    points = _checked(points)
    weights = [seconds**-2 for _, seconds in points]
    mean_size = _mean((nbytes for nbytes, _ in points), weights)
    mean_seconds = _mean((seconds for _, seconds in points), weights)
    spread = _mean(((nbytes - mean_size) ** 2 for nbytes, _ in points), weights)
    slope = _mean(((nbytes - mean_size) * (seconds - mean_seconds) for nbytes, seconds in points), weights) / spread
    if slope <= 0:
        raise UsageError(
            f"the fit through {len(points)} points gives no positive bandwidth: larger messages took no longer; "
            "measure larger ones, and each several times"
        )
    return mean_seconds - slope * mean_size, 1 / slope


def _mean(values: Iterable[float], weights: list[float]) -> float:
    return sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)


def _check(nbytes: float, n: int, alpha: float, bandwidth: float) -> None:
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise UsageError(f"all_reduce_seconds(n={n!r}): n is a whole number of ranks, at least 1")
    if not 0 <= nbytes < math.inf:
        raise UsageError(f"all_reduce_seconds(nbytes={nbytes!r}): a tensor has a number of bytes, at least 0")
    if not 0 <= alpha < math.inf:
        raise UsageError(f"all_reduce_seconds(alpha={alpha!r}): alpha is in seconds, at least 0")
    if not 0 < bandwidth < math.inf:
        raise UsageError(f"all_reduce_seconds(bandwidth={bandwidth!r}): bandwidth is in bytes a second, above 0")


def _checked(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points as a list. Raises UsageError for one that cannot be, and for fewer than two different sizes."""
    points = list(points)
    for nbytes, seconds in points:
        if not (0 <= nbytes < math.inf and 0 < seconds < math.inf):
            raise UsageError(f"fit_alpha_beta got the point ({nbytes!r}, {seconds!r}): bytes from 0, seconds above 0")
    sizes = {nbytes for nbytes, _ in points}
    if len(sizes) < 2:
        raise UsageError(f"fit_alpha_beta needs two different sizes, but got {len(sizes)}: measure another size")
    return points
