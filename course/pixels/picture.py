"""The photograph: Grace Hopper's portrait, which matplotlib ships, and a large one tiled from it."""

from __future__ import annotations

import math
from pathlib import Path

import matplotlib
import numpy as np
from PIL import Image

from course.errors import UsageError


def photograph(*, colour: bool = False) -> np.ndarray:
    """matplotlib's sample photograph as uint8: grey (600, 512), or with `colour` RGB (600, 512, 3)."""
    path = Path(matplotlib.get_data_path(), "sample_data", "grace_hopper.jpg")
    try:
        with Image.open(path) as picture:
            return np.array(picture.convert("RGB" if colour else "L"))
    except FileNotFoundError:
        raise UsageError(
            f"matplotlib's sample photograph is not at {path}: install matplotlib from PyPI, which brings it"
        ) from None


def large_photograph(pixels: int = 100_000_000) -> np.ndarray:
    """A square grey photograph tiled from the small one: uint8 (side, side), side the root of `pixels`, rounded down.

    100 million pixels are 100 MB; making them needs little more. Raises UsageError for less than one pixel.
    """
    if pixels < 1:
        raise UsageError(f"large_photograph(pixels={pixels}): one pixel is the least there is")
    small, side = photograph(), math.isqrt(pixels)
    height, width = small.shape
    band = np.tile(small, (1, -(-side // width)))[:, :side]
    large = np.empty((side, side), np.uint8)
    for start in range(0, side, height):
        large[start : start + height] = band[: side - start]
    return large
