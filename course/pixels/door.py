"""What every way to brighten shares: arguments checked, images laid out flat, alpha put back.

How pixels are brightened is not decided here: a `fill(out, image, amount)` for flat arrays is passed in.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from course.errors import UsageError

Fill = Callable[[np.ndarray, np.ndarray, int], object]
LARGEST = 255


def brightened(fill: Fill, image: np.ndarray, amount: int, out: np.ndarray | None) -> np.ndarray:
    """`out` (or a new array) with each value of `image` plus `amount`, saturated at 0 and 255; alpha as it was.

    image: uint8, (W,) or (H, W) grey, (H, W, 3) RGB or (H, W, 4) RGBA; any layout, read-only or empty too.
    amount: an int of -255 to 255. out: uint8 of the same shape, contiguous, not overlapping `image`.
    fill: called with the flat, contiguous out and image (N,) and the amount; not at all where N is 0.
    Raises UsageError for anything else, and then changes nothing. A non-contiguous image is copied once.
    """
    check_image(image)
    amount = checked_amount(amount)
    out = np.empty(image.shape, np.uint8) if out is None else _checked_out(out, image)
    if image.size:
        fill(out.reshape(-1), np.ascontiguousarray(image).reshape(-1), amount)
    if image.ndim == 3 and image.shape[2] == 4:
        out[..., 3] = image[..., 3]
    return out


def check_image(image: np.ndarray) -> None:
    """Raises UsageError unless `image` is a uint8 array of a shape that `brightened` takes."""
    if not isinstance(image, np.ndarray):
        raise UsageError(f"the image is a {type(image).__name__}, not a NumPy array: pass np.asarray(image)")
    if image.dtype != np.uint8:
        raise UsageError(
            f"the image has dtype {image.dtype}, but brightening works on uint8, 0 to 255: convert it first"
        )
    if image.ndim not in (1, 2) and not (image.ndim == 3 and image.shape[2] in (3, 4)):
        raise UsageError(
            f"the image has shape {image.shape}: pass (H, W) for grey, (H, W, 3) for RGB or (H, W, 4) for RGBA"
        )


def checked_amount(amount: int) -> int:
    """`amount` as a Python int; raises UsageError unless it is a whole number of -255 to 255."""
    if isinstance(amount, (bool, np.bool_)) or not isinstance(amount, (int, np.integer)):
        raise UsageError(f"amount={amount!r} is a {type(amount).__name__}: pass an int of -255 to 255")
    if not -LARGEST <= amount <= LARGEST:
        raise UsageError(f"amount={amount} is out of range: pass an int of -255 to 255")
    return int(amount)


def _checked_out(out: np.ndarray, image: np.ndarray) -> np.ndarray:
    if not isinstance(out, np.ndarray) or out.dtype != np.uint8 or out.shape != image.shape:
        found = f"{out.dtype} of shape {out.shape}" if isinstance(out, np.ndarray) else type(out).__name__
        raise UsageError(f"out is {found}, but the image is uint8 of shape {image.shape}: pass np.empty_like(image)")
    if not (out.flags.writeable and out.flags.c_contiguous):
        raise UsageError("out is read-only or not contiguous: pass np.empty_like(image)")
    if np.may_share_memory(out, image):
        raise UsageError("out shares memory with the image, which must not change: pass np.empty_like(image)")
    return out
