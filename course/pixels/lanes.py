"""SIMD by hand: eight pixels in one 64-bit word, added at once without a carry leaving its lane.

SIMD within a register, SWAR: Lamport, "Multiple byte processing with full-word instructions", CACM 18(8), 1975.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from course.pixels.door import brightened, checked_amount

ONES = 0x0101010101010101  # a 1 in each of eight lanes
LOW = 0x7F7F7F7F7F7F7F7F  # the low seven bits of each lane
HIGH = 0x8080808080808080  # the high bit of each lane
TILE = 1 << 14  # words at a time: 128 kB, so that the intermediate arrays stay in the cache

Word = TypeVar("Word", int, np.ndarray)


def brighten_swar_word(word: Word, amount: int) -> Word:
    """Eight brightened pixels from eight pixels packed in a 64-bit word, in about 15 operations on whole words.

    word: an int of 0 to 2**64 - 1, or a uint64 array (N,) of such words; the same kind comes back.
    amount: an int of -255 to 255; else UsageError. Darkening is brightening of the negative.
    """
    amount = checked_amount(amount)
    if amount < 0:
        return _add(word ^ (255 * ONES), -amount * ONES) ^ (255 * ONES)
    return _add(word, amount * ONES)


def _add(x: Word, a: int) -> Word:
    """Lane by lane min(x + a, 255)."""
    total = ((x & LOW) + (a & LOW)) ^ ((x ^ a) & HIGH)  # x + a modulo 256: the high bits are added without a carry
    over = ((x & a) | ((x | a) & ~total)) & HIGH  # the carry that each lane would have sent to the next
    return total | (over >> 7) * 255


def brighten_swar(image: np.ndarray, amount: int, *, out: np.ndarray | None = None) -> np.ndarray:
    """The brightened image, eight pixels a word, with NumPy doing each operation on a tile of words.

    Arguments and errors as `door.brightened` says. Slower than `brighten_numpy`: each operation is a pass of its own.
    """
    return brightened(_words, image, amount, out)


def _words(out: np.ndarray, image: np.ndarray, amount: int) -> None:
    whole = image.size - image.size % 8
    words, results = image[:whole].view(np.uint64), out[:whole].view(np.uint64)
    for start in range(0, words.size, TILE):
        results[start : start + TILE] = brighten_swar_word(words[start : start + TILE], amount)
    if rest := image.size - whole:
        last = np.zeros(8, np.uint8)
        last[:rest] = image[whole:]
        out[whole:] = brighten_swar_word(last.view(np.uint64), amount).view(np.uint8)[:rest]
