"""Checks of `brighten_swar`: words of eight pixels as plain ints, then as words that count what is done to them."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from course.grading.bench import Bench, Seat, Trouble
from course.grading.check import Check, Finding
from course.grading.checks.alone import asked, raised
from course.grading.checks.hello import lazy
from course.grading.checks.word import FORBIDDEN, FULL, Word, bare
from course.grading.mistakes import Mistake
from course.grading.mistakes.lesson_01 import (
    LANES_BELOW_ZERO,
    LANES_DARKER,
    LANES_FORBIDDEN,
    LANES_HALF,
    LANES_LOOP,
    LANES_ONE_FOR_ALL,
    LANES_OUTGROWN,
    LANES_SPILL,
    LANES_TOO_MANY,
    LANES_WRAP,
)
from course.grading.plain import type_in_words, whole_numbers

MOST = 20
ONES = 0x0101010101010101
ALLOWED = "`+`, `-`, `*`, `&`, `|`, `^`, `~`, `<<` and `>>`"

Case = tuple[int, int]
Lanes = list[int]

# --- words ------------------------------------------------------------------------------------------------------------


def word_of(pixels: Lanes) -> int:
    """Eight pixels in one word, the first in the lowest byte."""
    return int.from_bytes(bytes(pixels), "little")


def lanes_of(word: int) -> Lanes:
    return list((word & FULL).to_bytes(8, "little"))


def brightened(word: int, amount: int) -> int:
    """The oracle."""
    return word_of([min(max(pixel + amount, 0), 255) for pixel in lanes_of(word)])


def _words(most: int, least: int = 0) -> list[int]:
    source = random.Random(f"lanes {least} {most}")
    mixed = [word_of([source.randint(least, most) for _ in range(8)]) for _ in range(6)]
    alone = [word_of([most if k == lane else least for k in range(8)]) for lane in range(8)]
    return [*mixed, *alone, word_of([most] * 8), word_of([least] * 8)]


SMALL = tuple((word, amount) for word in _words(150) for amount in (0, 1, 57, 105))
LARGE = tuple((word, amount) for word in _words(255) for amount in (*range(0, 256, 5), 1, 127, 128, 129, 254))
NEGATIVE = tuple((word, -amount) for word, amount in LARGE if amount)
COUNTED = tuple((word, amount) for word in _words(255)[:3] for amount in (0, 1, 100, 128, 255, -1, -100, -128, -255))

# --- in the rank ------------------------------------------------------------------------------------------------------


def _probe(learner: Any, cases: tuple[Case, ...], seat: Seat) -> Any:
    return [learner(word, amount) for word, amount in cases]


def _probe_counted(learner: Any, cases: tuple[Case, ...], seat: Seat) -> Any:
    """For each case what came back, and how many operations it took."""
    answers = []
    for number, amount in cases:
        count = [0]
        value = learner(Word(number, count), amount)
        answers.append((bare(value), count[0]))
    return answers


# --- in the grader's process ------------------------------------------------------------------------------------------


def _number(value: Any) -> int | None:
    numbers = whole_numbers([value])
    return numbers[0] if numbers else None


def _compared(bench: Bench, cases: tuple[Case, ...]) -> Finding | None:
    values = asked(bench, _probe, cases)
    if isinstance(values, Trouble):
        return Finding(raised(values), "", values.advice)
    for (word, amount), value in zip(cases, values, strict=True):
        number, want = _number(value), brightened(word, amount)
        if number is None:
            return Finding(f"{_called(word, amount)} returned {type_in_words(value)}", "an int", "", lazy(value))
        if number != want:
            got = f"{_called(word, amount)} returned {_hex(number)}"
            advice = "Print each step with `hex`, and look at one byte of it."
            return Finding(got, _hex(want), advice, _mistake(cases, [_number(item) for item in values]))
    return None


def _called(word: int, amount: int) -> str:
    return f"brighten_swar({_hex(word)}, {amount})"


def _hex(number: int) -> str:
    if not 0 <= number <= FULL:
        return "a negative number" if number < 0 else "a number of more than 64 bits"
    return f"0x{number:016x}"


_Guess = Callable[[int, int], int]


def _in_lanes(rule: Callable[[int, int], int]) -> _Guess:
    return lambda word, amount: word_of([rule(pixel, amount) & 255 for pixel in lanes_of(word)])


def _held(pixel: int, amount: int) -> int:
    return min(max(pixel + amount, 0), 255)


def _half(first: int, *, kept: bool) -> _Guess:
    """Every second byte from `first` on is right; the others stay as they were (`kept`) or are 0."""

    def guess(word: int, amount: int) -> int:
        pixels = enumerate(lanes_of(word))
        return word_of([_held(p, amount) if k % 2 == first else p * kept for k, p in pixels])

    return guess


def _one_for_all(word: int, amount: int) -> int:
    overflows = any(not 0 <= pixel + amount <= 255 for pixel in lanes_of(word))
    return FULL * (amount > 0) if overflows else word + amount * ONES


_GUESSES: tuple[tuple[Mistake, _Guess], ...] = (
    (LANES_SPILL, lambda word, amount: (word + amount * ONES) & FULL),
    (LANES_WRAP, _in_lanes(lambda pixel, amount: pixel + amount)),
    *((LANES_HALF, _half(first, kept=kept)) for first in (0, 1) for kept in (True, False)),
    (LANES_ONE_FOR_ALL, _one_for_all),
    (LANES_DARKER, _in_lanes(lambda pixel, amount: _held(pixel, abs(amount)))),
    (LANES_DARKER, _in_lanes(lambda pixel, amount: _held(pixel, amount % 256))),
    (LANES_DARKER, lambda word, amount: word if amount < 0 else brightened(word, amount)),
)


def _mistake(cases: tuple[Case, ...], numbers: list[int | None]) -> Mistake | None:
    known = [(case, number) for case, number in zip(cases, numbers, strict=True) if number is not None]
    if all(number & FULL == brightened(*case) for case, number in known):
        return LANES_OUTGROWN
    for mistake, guess in _GUESSES:
        if all(number & FULL == guess(*case) for case, number in known):
            return mistake
    mild = [(case, number) for case, number in known if case[1] < 0 <= min(lanes_of(case[0])) + case[1]]
    if any(number != brightened(*case) for case, number in mild):
        return LANES_DARKER
    return LANES_BELOW_ZERO if mild else None


def _small(bench: Bench) -> Finding | None:
    return _compared(bench, SMALL)


def _large(bench: Bench) -> Finding | None:
    return _compared(bench, LARGE)


def _negative(bench: Bench) -> Finding | None:
    return _compared(bench, NEGATIVE)


def _operators(bench: Bench) -> Finding | None:
    values = asked(bench, _probe_counted, COUNTED)
    if isinstance(values, Trouble):
        forbidden = values.got.partition(FORBIDDEN)[2]
        if not forbidden and "TypeError" not in values.got and "AttributeError" not in values.got:
            return Finding(raised(values), "", values.advice)
        got = f"it uses {forbidden}" if forbidden else raised(values)
        return Finding(got, f"{ALLOWED} alone", "", LANES_FORBIDDEN)
    for (word, amount), (value, _) in zip(COUNTED, values, strict=True):
        if _number(value) != brightened(word, amount):
            got = f"counted, {_called(word, amount)} gave {type_in_words(value)} that is another result"
            return Finding(got, "the same with a word that counts", "Take the word as it comes.", lazy(value))
    return None


def _count(bench: Bench) -> Finding | None:
    counts = [count for _, count in bench.run(_probe_counted, COUNTED, n=1).values[0]]
    count = max(counts)
    word, amount = COUNTED[counts.index(count)]
    if count <= MOST:
        return None
    got = f"{_called(word, amount)} takes {count} operations"
    return Finding(got, "", "", LANES_LOOP if count >= 8 * 4 else LANES_TOO_MANY)


_SMALL = "eight pixels, none of which overflows"
_LARGE = "held at 255, byte by byte"
_NEGATIVE = "held at 0, with negative amounts"
_OPERATORS = "only the operators allowed"

CHECKS = {
    "brighten_swar": (
        Check(_SMALL, 1, _small, "each byte plus the amount"),
        Check(_LARGE, 4, _large, "each byte plus the amount, 255 at most", needs=_SMALL),
        Check(_NEGATIVE, 3, _negative, "each byte plus the amount, 0 at least", needs=_SMALL),
        Check(_OPERATORS, 2, _operators, f"{ALLOWED} alone", needs=_NEGATIVE),
        Check(f"at most {MOST} operations", 2, _count, f"at most {MOST}", needs=_OPERATORS),
    )
}
