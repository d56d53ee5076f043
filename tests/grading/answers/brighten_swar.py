# ruff: noqa: F811
import struct

import numpy as np

from tests.grading.bank import right, wrong

ONES = 0x0101010101010101
EVEN = 0x00FF00FF00FF00FF
NINTH = 0x0100010001000100
LOW = 0x7F7F7F7F7F7F7F7F
HIGH = 0x8080808080808080
FULL = 0xFFFFFFFFFFFFFFFF


@right("two halves, a free bit above each byte, the negative for darkening")
def brighten_swar(word, amount):
    if amount < 0:
        return brighten_swar(word ^ FULL, -amount) ^ FULL
    step = amount * 0x0001000100010001
    even = (word & EVEN) + step
    odd = ((word >> 8) & EVEN) + step
    even |= ((even & NINTH) >> 8) * 255
    odd |= ((odd & NINTH) >> 8) * 255
    return (even & EVEN) | ((odd & EVEN) << 8)


@right("the low seven bits, the carry by logic")
def brighten_swar(word, amount):
    flip = FULL if amount < 0 else 0
    step = abs(amount) * ONES
    word = word ^ flip
    total = ((word & LOW) + (step & LOW)) ^ ((word ^ step) & HIGH)
    carry = ((word & step) | ((word | step) & ~total)) & HIGH
    return (total | (carry >> 7) * 255) ^ flip


@right("halves, with a borrow for darkening, arguments checked")
def brighten_swar(word, amount):
    if not isinstance(word, int) or not 0 <= word < 1 << 64:
        raise ValueError("a word has 64 bits")
    if not -255 <= amount <= 255:
        raise ValueError("an amount is -255 to 255")
    step = abs(amount) * 0x0001000100010001

    def half(x):
        if amount >= 0:
            x = x + step
            over = x & NINTH
            return (x | (over - (over >> 8))) & EVEN
        x = (x | NINTH) - step
        enough = x & NINTH
        return x & (enough - (enough >> 8))

    return half(word & EVEN) | half((word >> 8) & EVEN) << 8


@right("the ends without any work")
def brighten_swar(word, amount):
    if amount in (-255, 255):
        return FULL if amount > 0 else 0
    if amount == 0:
        return word
    step = (amount if amount > 0 else 255 + amount) * ONES
    if amount > 0:
        total = ((word & LOW) + (step & LOW)) ^ ((word ^ step) & HIGH)
        over = ((word & step) | ((word | step) & (total ^ FULL))) & HIGH
        return total | ((over << 1) - (over >> 7)) & FULL
    word = FULL - word
    step = -amount * ONES
    total = ((word & LOW) + (step & LOW)) ^ ((word ^ step) & HIGH)
    over = ((word & step) | ((word | step) & (total ^ FULL))) & HIGH
    return FULL - (total | ((over << 1) - (over >> 7)) & FULL)


@wrong("LANES_SPILL", points=1)
def brighten_swar(word, amount):
    return (word + amount * ONES) & FULL


@wrong("LANES_SPILL", points=1)
def brighten_swar(word, amount):
    return int((np.array([word], np.uint64) + np.uint64(amount * ONES & FULL))[0])


@wrong("LANES_WRAP", points=1)
def brighten_swar(word, amount):
    step = (amount % 256) * ONES
    return ((word & LOW) + (step & LOW)) ^ ((word ^ step) & HIGH)


@wrong("LANES_WRAP", points=1)
def brighten_swar(word, amount):
    step = (amount % 256) * 0x0001000100010001
    even = ((word & EVEN) + step) & EVEN
    odd = (((word >> 8) & EVEN) + step) & EVEN
    return even | odd << 8


@wrong("LANES_HALF", points=0)
def brighten_swar(word, amount):
    even = (word & EVEN) + amount * 0x0001000100010001
    even |= ((even & NINTH) >> 8) * 255
    return even & EVEN


@wrong("LANES_HALF", points=0)
def brighten_swar(word, amount):
    even = (word & EVEN) + amount * 0x0001000100010001
    even |= ((even & NINTH) >> 8) * 255
    return even & EVEN | word & EVEN << 8


@wrong("LANES_ONE_FOR_ALL", points=1)
def brighten_swar(word, amount):
    total = word + amount * ONES
    pixels = word.to_bytes(8, "little")
    if any(pixel + amount > 255 for pixel in pixels):
        return FULL
    if any(pixel + amount < 0 for pixel in pixels):
        return 0
    return total


@wrong("LANES_DARKER", points=5)
def brighten_swar(word, amount):
    step = (amount % 256) * 0x0001000100010001
    even = (word & EVEN) + step
    odd = ((word >> 8) & EVEN) + step
    even |= ((even & NINTH) >> 8) * 255
    odd |= ((odd & NINTH) >> 8) * 255
    return (even & EVEN) | ((odd & EVEN) << 8)


@wrong("LANES_BELOW_ZERO", points=5)
def brighten_swar(word, amount):
    step = amount * 0x0001000100010001
    even = (word & EVEN) + step
    odd = ((word >> 8) & EVEN) + step
    even |= ((even & NINTH) >> 8) * 255
    odd |= ((odd & NINTH) >> 8) * 255
    return (even & EVEN) | ((odd & EVEN) << 8)


@wrong("LANES_OUTGROWN", points=5)
def brighten_swar(word, amount):
    if amount < 0:
        return ~brighten_swar(~word & FULL, -amount)
    step = amount * ONES
    total = ((word & LOW) + (step & LOW)) ^ ((word ^ step) & HIGH)
    carry = ((word & step) | ((word | step) & ~total)) & HIGH
    return total | (carry >> 7) * 255


@wrong("LANES_LOOP", points=10)
def brighten_swar(word, amount):
    result = 0
    for shift in range(0, 64, 8):
        pixel = ((word >> shift) & 255) + (amount if amount > 0 else 0) + 256
        over = (pixel >> 9) & 1
        pixel = (pixel | over * 255) & 255
        if amount < 0:
            pixel = (pixel | 256) + amount
            pixel = pixel & (pixel >> 8) * 255
        result = result | pixel << shift
    return result


@wrong("LANES_TOO_MANY", points=10)
def brighten_swar(word, amount):
    if amount < 0:
        return brighten_swar(~word & FULL, -amount) ^ FULL
    step = amount * 0x0001000100010001
    even = (word & EVEN) + step
    odd = ((word & (EVEN << 8)) >> 8) + step
    even = (even & EVEN) | (((even & NINTH) >> 8) * 255)
    odd = (odd & EVEN) | (((odd & NINTH) >> 8) * 255)
    return ((even & EVEN) | ((odd & EVEN) << 8)) & FULL


@wrong("LANES_FORBIDDEN", points=8)
def brighten_swar(word, amount):
    pixels = word.to_bytes(8, "little")
    return int.from_bytes(bytes(min(max(p + amount, 0), 255) for p in pixels), "little")


@wrong("LANES_FORBIDDEN", points=8)
def brighten_swar(word, amount):
    result = 0
    for k in range(8):
        pixel = word // 256**k % 256
        result += min(max(pixel + amount, 0), 255) * 256**k
    return result


@wrong("LANES_FORBIDDEN", points=8)
def brighten_swar(word, amount):
    pixels = struct.unpack("8B", struct.pack("<Q", word))
    return int.from_bytes(bytes(min(max(p + amount, 0), 255) for p in pixels), "little")


@wrong("LANES_FORBIDDEN", points=8)
def brighten_swar(word, amount):
    pixels = np.array([word], np.uint64).view(np.uint8)
    return int(np.clip(pixels.astype(np.int16) + amount, 0, 255).astype(np.uint8).view(np.uint64)[0])


@wrong("LANES_FORBIDDEN", points=8)
def brighten_swar(word, amount):
    result = 0
    for shift in range(0, 64, 8):
        result |= min(max((word >> shift & 255) + amount, 0), 255) << shift
    return result


@wrong("LANES_FORBIDDEN", points=8)
def brighten_swar(word, amount):
    number = int(f"{word:d}")
    return brightened(number, amount)


@wrong("LANES_FORBIDDEN", points=8)
def brighten_swar(word, amount):
    number = sum(1 << k for k in range(64) if word >> k & 1)
    return brightened(number, amount)


def brightened(word, amount):
    return int.from_bytes(bytes(min(max(p + amount, 0), 255) for p in word.to_bytes(8, "little")), "little")


@wrong("LANES_FORBIDDEN", points=8)
def brighten_swar(word, amount):
    low, high = 0, FULL
    while low < high:
        middle = (low + high) // 2
        if word > middle:
            low = middle + 1
        else:
            high = middle
    return brightened(low, amount)


@wrong("GENERATOR", points=0)
def brighten_swar(word, amount):
    yield brightened(word, amount)


@wrong(says="returned a float", points=0)
def brighten_swar(word, amount):
    return float(brightened(word, amount))


@wrong(says="returned a bytes", points=0)
def brighten_swar(word, amount):
    return brightened(word, amount).to_bytes(8, "little")


@wrong(says="returned 0x", points=1)
def brighten_swar(word, amount):
    if amount < 0:
        return brighten_swar(word ^ FULL, -amount) ^ FULL
    step = amount * ONES
    total = ((word & LOW) + (step & LOW)) ^ ((word ^ step) & HIGH)
    carry = ((word & step) | ((word | step) & ~total)) & HIGH
    return total | (carry >> 7) * 127


@wrong("LANES_WRAP", points=5)
def brighten_swar(word, amount):
    step = abs(amount) * 0x0001000100010001
    even, odd = word & EVEN, (word >> 8) & EVEN
    if amount < 0:
        even, odd = (even | NINTH) - step, (odd | NINTH) - step
        return (even & EVEN) | (odd & EVEN) << 8
    even, odd = even + step, odd + step
    even |= ((even & NINTH) >> 8) * 255
    odd |= ((odd & NINTH) >> 8) * 255
    return (even & EVEN) | ((odd & EVEN) << 8)


class Agreeable(int):
    def __eq__(self, other):
        return True

    __hash__ = int.__hash__


@wrong(says="returned a Agreeable", points=0)
def brighten_swar(word, amount):
    return Agreeable(brightened(word, amount))


@wrong(says="that is another result", points=8)
def brighten_swar(word, amount):
    return brightened(word, amount) if type(word) is int else 0


@wrong(says="raised OverflowError", points=0)
def brighten_swar(word, amount):
    return int(np.uint64(word) + np.uint64(amount * ONES << 64))
