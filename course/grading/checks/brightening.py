"""Checks of `brighten`: all values with all amounts, then images of every layout, and the image afterwards.

The images are made anew in the rank for each call, from their names; here they are made once more for the oracle.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from course.grading.bench import Bench, Seat, Trouble
from course.grading.check import Check, Finding
from course.grading.checks.alone import asked, raised
from course.grading.checks.hello import lazy
from course.grading.mistakes import Mistake
from course.grading.mistakes.lesson_01 import (
    CHANGES_IMAGE,
    EMPTY_REFUSED,
    LAYOUT_ASSUMED,
    NEGATIVE_AMOUNT,
    ONE_END_ONLY,
    OUT_OF_BOUNDS,
    RETURNS_IMAGE,
    SCALED,
    SHAPE_LOST,
    STOPS_AT_254,
    TAIL_FORGOTTEN,
    WIDE_RESULT,
    WRAPS_AROUND,
)
from course.grading.plain import ArrayData, type_in_words

BRIGHTER, DARKER = tuple(range(256)), tuple(range(-1, -256, -1))
SHOWN = ((200, 100), (250, 10), (10, -20), (255, -255))  # pixel and amount that a finding shows first

Picture = tuple[tuple[int, ...], Callable[[np.ndarray], np.ndarray]]


def _read_only(base: np.ndarray) -> np.ndarray:
    base.flags.writeable = False
    return base


# name -> shape of an array, and the image as a view of it
PICTURES: dict[str, Picture] = {
    "a grey image of all 256 values": ((16, 16), lambda base: base),
    "a grey image of shape (6, 8)": ((6, 8), lambda base: base),
    "an RGB image of shape (4, 8, 3)": ((4, 8, 3), lambda base: base),
    "a grey image of shape (3, 7)": ((3, 7), lambda base: base),
    "a grey image of shape (1, 1)": ((1, 1), lambda base: base),
    "an RGB image of shape (5, 3, 3)": ((5, 3, 3), lambda base: base),
    "a grey image of shape (0, 5)": ((0, 5), lambda base: base),
    "an RGB image of shape (4, 0, 3)": ((4, 0, 3), lambda base: base),
    "every second row and third column of an array": ((8, 24), lambda base: base[::2, ::3]),
    "an image turned upside down and mirrored": ((4, 8), lambda base: base[::-1, ::-1]),
    "a transposed image": ((5, 8), lambda base: base.T),
    "a crop of an RGB image": ((9, 10, 3), lambda base: base[2:6, 1:9]),
    "an image with its channels reversed": ((4, 6, 3), lambda base: base[..., ::-1]),
    "a read-only image": ((6, 8), _read_only),
}
ALL_VALUES, GREY, RGB, *_REST = PICTURES
ODD, EMPTY = _REST[:3], _REST[3:5]
VIEWS = _REST[5:10]
READ_ONLY = _REST[10]


def picture(name: str) -> tuple[np.ndarray, np.ndarray]:
    """(the array behind the image, the image), always the same for a name; but for ALL_VALUES of 100 to 155."""
    shape, view = PICTURES[name]
    if name == ALL_VALUES:
        base = np.arange(256, dtype=np.uint8).reshape(shape)
    else:
        base = np.random.default_rng(zlib.crc32(name.encode())).integers(100, 156, shape).astype(np.uint8)
    return base, view(base)


def brightened(image: np.ndarray, amount: int) -> np.ndarray:
    """The oracle, as int64."""
    return np.clip(image.astype(np.int64) + amount, 0, 255)


def _probe(learner: Any, case: tuple[str, tuple[int, ...]], seat: Seat) -> Any:
    """For each amount: what came back, the bytes behind the image afterwards, and whether the two share memory."""
    name, amounts = case
    answers = []
    for amount in amounts:
        base, image = picture(name)
        value = learner(image, amount)
        shared = type(value) is np.ndarray and bool(np.shares_memory(value, base))
        answers.append((value, base.tobytes(), shared))
    return answers


# --- what came back ---------------------------------------------------------------------------------------------------


def _complete(value: Any, image: np.ndarray) -> bool:
    """Whether it is an array with one number for each of the image."""
    return type(value) is ArrayData and len(value.numbers) == image.size


def _wrong(value: Any, image: np.ndarray, amount: int) -> str:
    """How the numbers differ from the right ones, in words; "" where they do not."""
    if not _complete(value, image):
        return f"{type_in_words(value)} came back"
    pixels, wanted = image.reshape(-1).tolist(), brightened(image, amount).reshape(-1).tolist()
    places = [k for k, number in enumerate(value.numbers) if number != wanted[k]]
    if not places:
        return ""
    k = next((k for k in places if (pixels[k], amount) in SHOWN), places[0])
    return f"a pixel of {pixels[k]} came back as {value.numbers[k]} instead of {wanted[k]}"


def _array(bench: Bench) -> Finding | None:
    for name in (GREY, RGB):
        image = picture(name)[1]
        value = bench.run(_probe, (name, AMOUNTS), n=1).values[0][0][0]
        if not _complete(value, image):
            got = f"for {name}, {type_in_words(value)} came back"
            expected = f"an array of shape {image.shape}"
            return Finding(got, expected, "Look at `type(...)` and `.shape` of what you return.", lazy(value))
    return None


def _type(bench: Bench) -> Finding | None:
    for name in (GREY, RGB):
        image = picture(name)[1]
        value = bench.run(_probe, (name, AMOUNTS), n=1).values[0][0][0]
        if mistake := _type_mistake(value, image):
            return Finding(f"for {name}, {type_in_words(value)} came back", f"uint8 of {image.shape}", "", mistake)
    return None


def _type_mistake(value: ArrayData, image: np.ndarray) -> Mistake | None:
    if value.dtype != "uint8":
        return WIDE_RESULT
    return SHAPE_LOST if value.shape != image.shape else None


# --- all values, all amounts ------------------------------------------------------------------------------------------


def _brighter(bench: Bench) -> Finding | None:
    return _all_values(bench, BRIGHTER, _brighter_guesses)


def _darker(bench: Bench) -> Finding | None:
    return _all_values(bench, DARKER, _darker_guesses)


Guesses = Callable[[np.ndarray, np.ndarray], "tuple[tuple[Mistake, np.ndarray], ...]"]


def _all_values(bench: Bench, amounts: tuple[int, ...], guesses: Guesses) -> Finding | None:
    values = asked(bench, _probe, (ALL_VALUES, amounts))
    if isinstance(values, Trouble):
        mistake = OUT_OF_BOUNDS if "OverflowError" in values.got else None
        return Finding(f"with an amount of {amounts[0]} to {amounts[-1]} {raised(values)}", "", values.advice, mistake)
    image = picture(ALL_VALUES)[1]
    wrong = {amount: _wrong(value, image, amount) for amount, (value, _, _) in zip(amounts, values, strict=True)}
    wrong = {amount: words for amount, words in wrong.items() if words}
    if not wrong:
        return None
    amount = next((amount for _, amount in SHOWN if amount in wrong), next(iter(wrong)))
    mistake = _values_mistake([value for value, _, _ in values], amounts, guesses)
    return Finding(f"with amount {amount}, {wrong[amount]}", "", "Try this pixel alone, step by step.", mistake)


def _values_mistake(values: list[Any], amounts: tuple[int, ...], guesses: Guesses) -> Mistake | None:
    image = picture(ALL_VALUES)[1]
    if not all(_complete(value, image) for value in values):
        return None
    found = np.array([value.numbers for value in values])  # (amounts, 256)
    table = guesses(np.arange(256), np.array(amounts)[:, None])
    return next((mistake for mistake, guess in table if np.array_equal(found, guess)), None)


def _brighter_guesses(pixel: np.ndarray, amount: np.ndarray) -> tuple[tuple[Mistake, np.ndarray], ...]:
    total = pixel + amount
    scaled = [pixel * (255 + amount) / 255, pixel * (1 + amount / 255), pixel * (1 + amount / 100)]
    kept = [np.clip(kind(guess), 0, 255) for guess in scaled for kind in (np.trunc, np.rint)]
    return (
        (WRAPS_AROUND, total % 256),
        (STOPS_AT_254, np.minimum(total, 254)),
        *((SCALED, guess) for guess in kept),
    )


def _darker_guesses(pixel: np.ndarray, amount: np.ndarray) -> tuple[tuple[Mistake, np.ndarray], ...]:
    total = pixel + amount
    return (
        (ONE_END_ONLY, total % 256),
        (ONE_END_ONLY, np.minimum(total % 256, 255)),
        (NEGATIVE_AMOUNT, pixel + 0 * amount),
        (NEGATIVE_AMOUNT, np.minimum(pixel - amount, 255)),
        (NEGATIVE_AMOUNT, np.minimum(pixel + amount % 256, 255)),
        (STOPS_AT_254, np.clip(total, 0, 254)),
    )


# --- layouts and memory -----------------------------------------------------------------------------------------------

AMOUNTS = (60, 0)  # none of these pixels leaves its range: whoever wraps around is told so above


def _layouts(bench: Bench) -> Finding | None:
    advice = "Make an image like this one by hand, and look at what comes back."
    for name in (*ODD, *EMPTY, *VIEWS):
        values = asked(bench, _probe, (name, AMOUNTS))
        if isinstance(values, Trouble):
            mistake = EMPTY_REFUSED if name in EMPTY else LAYOUT_ASSUMED if name in VIEWS else None
            return Finding(f"for {name} {raised(values)}", "", advice, mistake)
        image = picture(name)[1]
        for amount, (value, _, _) in zip(AMOUNTS, values, strict=True):
            if wrong := _wrong(value, image, amount):
                mistake = _layout_mistake(name, value, image, amount)
                return Finding(f"for {name}, with amount {amount}: {wrong}", "", advice, mistake)
            if (mistake := _type_mistake(value, image)) and _type(bench) is None:
                return Finding(f"for {name}, {type_in_words(value)} came back", "", advice, mistake)
    return None


def _layout_mistake(name: str, value: Any, image: np.ndarray, amount: int) -> Mistake | None:
    if name in ODD and _complete(value, image):
        wanted = brightened(image, amount).reshape(-1).tolist()
        wrong = [k for k, number in enumerate(value.numbers) if number != wanted[k]]
        return TAIL_FORGOTTEN if min(wrong) >= image.size - image.size % 8 else None
    return LAYOUT_ASSUMED if name in VIEWS else None


def _untouched(bench: Bench) -> Finding | None:
    for name in (GREY, RGB, READ_ONLY):
        values = asked(bench, _probe, (name, AMOUNTS))
        if isinstance(values, Trouble):
            mistake = CHANGES_IMAGE if "read-only" in values.got else None
            return Finding(f"for {name} {raised(values)}", "", values.advice, mistake)
        base, _ = picture(name)
        for amount, (_, after, shared) in zip(AMOUNTS, values, strict=True):
            what = f"for {name}, with amount {amount}"
            if after != base.tobytes():
                return Finding(f"{what}, the image is another one afterwards", "", "", CHANGES_IMAGE)
            if shared:
                return Finding(f"{what}, the result shares memory with the image", "", "", RETURNS_IMAGE)
    return None


_ARRAY = "an array with a value for each of the image's"

CHECKS = {
    "brighten": (
        Check(_ARRAY, 1, _array, "a NumPy array"),
        Check("of uint8, in the image's shape", 1, _type, "a uint8 array of the image's shape", needs=_ARRAY),
        Check("all values, amounts 0 to 255", 2, _brighter, "each pixel plus the amount, 255 at most", needs=_ARRAY),
        Check("all values, amounts −255 to −1", 2, _darker, "each pixel plus the amount, 0 at least", needs=_ARRAY),
        Check("odd sizes, empty images, views", 1, _layouts, "the same for any image", needs=_ARRAY),
        Check("a new array, and the image as it was", 1, _untouched, "memory of its own", needs=_ARRAY),
    )
}
