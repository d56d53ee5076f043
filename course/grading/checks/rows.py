"""Checks of `split_rows`: pairs that cover the rows once, in order, the first ones bigger."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from course.grading.bench import Bench, Seat, Trouble
from course.grading.check import Check, Finding
from course.grading.checks.alone import asked, raised, refusals
from course.grading.checks.hello import lazy
from course.grading.mistakes import Mistake
from course.grading.mistakes.lesson_01 import (
    EMPTY_PART_SKIPPED,
    ROW_NUMBERS,
    ROWS_BEYOND,
    ROWS_BIGGER_ELSEWHERE,
    ROWS_DROPPED,
    ROWS_FROM_ONE,
    ROWS_REST_ON_ONE,
    ROWS_ROUNDED_UP,
    ROWS_SHARED,
    STOP_INCLUSIVE,
    STOP_IS_LENGTH,
)
from course.grading.plain import Foreign, type_in_words, whole_numbers

Pairs = list[tuple[int, int]]
Case = tuple[int, int]
CASES: tuple[Case, ...] = ((23, 4), (10, 3), (12, 4), (7, 7), (101, 8), (11, 4), (9, 1))
FEW: tuple[Case, ...] = ((3, 5), (1, 4), (0, 3), (0, 1))
IMPOSSIBLE: tuple[Case, ...] = ((10, 0), (10, -2), (-1, 3))


def bounds(rows: int, parts: int) -> Pairs:
    """The oracle: part k starts after k small parts, and one row more for each bigger one before it."""
    size, more = divmod(rows, parts)
    return [(k * size + min(k, more), (k + 1) * size + min(k + 1, more)) for k in range(parts)]


def _probe(learner: Any, cases: tuple[Case, ...], seat: Seat) -> Any:
    return [learner(rows, parts) for rows, parts in cases]


def _values(bench: Bench, cases: tuple[Case, ...]) -> list[tuple[Case, Any]]:
    return list(zip(cases, bench.run(_probe, cases, n=1).values[0], strict=True))


def _pairs(value: Any) -> Pairs | None:
    """The pairs in a list of pairs of ints; None for anything else."""
    if type(value) is not list:
        return None
    numbers = [whole_numbers(item) if type(item) in (list, tuple) else None for item in value]
    pairs = [(pair[0], pair[1]) for pair in numbers if pair is not None and len(pair) == 2]
    return pairs if len(pairs) == len(value) else None


def _type(bench: Bench) -> Finding | None:
    for (rows, parts), value in _values(bench, CASES):
        pairs = _pairs(value)
        if pairs is not None and len(pairs) == parts:
            continue
        got = f"split_rows({rows}, {parts}) returned {type_in_words(value)}"
        if pairs is not None:
            return Finding(got, f"{parts} pairs", "Count the pairs: one for each part.")
        got += f" with {_first(value)} in it" if type(value) in (list, tuple) and value else ""
        mistake = ROW_NUMBERS if type(value) in (list, tuple) and _holds_rows(value, rows) else lazy(value)
        return Finding(got, f"a list of {parts} pairs of ints", "Look at one pair: what are its types?", mistake)
    return None


def _first(value: Any) -> str:
    """The first item in words; a pair with what is in it."""
    item = value[0]
    if type(item) in (list, tuple) and len(item) == 2:
        return f"a pair of {type_in_words(item[0])} and {type_in_words(item[1])}"
    return type_in_words(item)


def _holds_rows(value: Any, rows: int) -> bool:
    """Whether the items are ranges, or together list all rows."""
    lists = [whole_numbers(item) or [] for item in value if type(item) in (list, tuple)]
    return any(item == Foreign("range") for item in value) or sum(lists, []) == list(range(rows))


def _once(bench: Bench) -> Finding | None:
    for (rows, parts), value in _values(bench, CASES):
        pairs = _pairs(value) or []
        if wrong := _not_once(pairs, rows):
            return _finding(bench, rows, parts, pairs, wrong)
    return None


def _not_once(pairs: Pairs, rows: int) -> str:
    """The first place where the parts do not follow one another from row 0 to the last; "" where they do."""
    end = 0
    for k, (start, stop) in enumerate(pairs):
        if start != end:
            return f"part {k} starts at {start}, " + (f"after {end}" if k else "not at 0")
        if stop < start:
            return f"part {k} stops at {stop}, before it starts"
        end = stop
    return "" if end == rows else f"the last part stops at {end}, and there are {rows} rows"


def _sizes(bench: Bench) -> Finding | None:
    for (rows, parts), value in _values(bench, CASES):
        pairs = _pairs(value) or []
        if pairs != bounds(rows, parts):
            sizes = " + ".join(str(stop - start) for start, stop in pairs)
            return _finding(bench, rows, parts, pairs, f"sizes {sizes}")
    return None


def _few(bench: Bench) -> Finding | None:
    values = asked(bench, _probe, FEW)
    if isinstance(values, Trouble):
        return Finding(f"with more parts than rows {raised(values)}", "", values.advice)
    for (rows, parts), value in zip(FEW, values, strict=True):
        pairs = _pairs(value)
        if pairs == bounds(rows, parts):
            continue
        skipped = pairs is not None and pairs == [pair for pair in bounds(rows, parts) if pair[0] < pair[1]]
        got = f"split_rows({rows}, {parts}) returned {_shown(pairs) if pairs is not None else type_in_words(value)}"
        advice = "Where would an empty part start, and where stop?"
        return Finding(got, _shown(bounds(rows, parts)), advice, EMPTY_PART_SKIPPED if skipped else None)
    return None


def _finding(bench: Bench, rows: int, parts: int, pairs: Pairs, wrong: str) -> Finding:
    got = f"split_rows({rows}, {parts}) returned {_shown(pairs)}: {wrong}"
    return Finding(got, "", "Go through this case by hand, part after part.", _mistake(bench))


def _shown(pairs: Pairs) -> str:
    text = ", ".join(f"({start}, {stop})" for start, stop in pairs[:4])
    return f"[{text}, ...]" if len(pairs) > 4 else f"[{text}]"


# --- which mistake ----------------------------------------------------------------------------------------------------


def _rounded_up(rows: int, parts: int) -> Pairs:
    size = -(-rows // parts)
    return [(min(rows, k * size), min(rows, (k + 1) * size)) for k in range(parts)]


def _dropped(rows: int, parts: int) -> Pairs:
    size = rows // parts
    return [(k * size, (k + 1) * size) for k in range(parts)]


def _rest_last(rows: int, parts: int) -> Pairs:
    return [*_dropped(rows, parts)[:-1], (rows // parts * (parts - 1), rows)]


def _rest_first(rows: int, parts: int) -> Pairs:
    rest = rows % parts
    return [(start + rest if k else 0, stop + rest) for k, (start, stop) in enumerate(_dropped(rows, parts))]


_GUESSES: tuple[tuple[Mistake, Callable[[int, int], Pairs]], ...] = (
    (ROWS_DROPPED, _dropped),
    (ROWS_REST_ON_ONE, _rest_last),
    (ROWS_REST_ON_ONE, _rest_first),
    (ROWS_ROUNDED_UP, _rounded_up),
    (STOP_INCLUSIVE, lambda rows, parts: [(start, stop - 1) for start, stop in bounds(rows, parts)]),
    (STOP_IS_LENGTH, lambda rows, parts: [(start, stop - start) for start, stop in bounds(rows, parts)]),
    (ROWS_FROM_ONE, lambda rows, parts: [(start + 1, stop + 1) for start, stop in bounds(rows, parts)]),
    (ROWS_FROM_ONE, lambda rows, parts: [(start + 1, stop) for start, stop in bounds(rows, parts)]),
)


def _mistake(bench: Bench) -> Mistake | None:
    """The mistake that explains all cases; else what is plain from them."""
    found = [(case, _pairs(value) or []) for case, value in _values(bench, CASES)]
    for mistake, guess in _GUESSES:
        if all(pairs == guess(*case) for case, pairs in found):
            return mistake
    if all(not _not_once(pairs, rows) for (rows, _), pairs in found):
        even = all(max(sizes) - min(sizes) <= 1 for sizes in ([b - a for a, b in pairs] for _, pairs in found))
        return ROWS_BIGGER_ELSEWHERE if even else None
    if any(stop > rows for (rows, _), pairs in found for _, stop in pairs):
        return ROWS_BEYOND
    overlap = any(pairs[k][1] > pairs[k + 1][0] for _, pairs in found for k in range(len(pairs) - 1))
    return ROWS_SHARED if overlap else None


def _impossible(bench: Bench) -> Finding | None:
    return refusals(bench, "split_rows", IMPOSSIBLE)


_TYPE = "a list of as many pairs as parts"
_ONCE = "every row in exactly one part, in order"

CHECKS = {
    "split_rows": (
        Check(_TYPE, 1, _type, "a list of pairs of ints, one a part"),
        Check(_ONCE, 2, _once, "parts that follow one another from row 0 to the last row", needs=_TYPE),
        Check("the first parts are bigger by one", 2, _sizes, "sizes as `torch.tensor_split` has them", needs=_ONCE),
        Check("more parts than rows", 1, _few, "the rows one by one, then empty parts", needs=_ONCE),
        Check("the impossible is refused", 1, _impossible, "ValueError"),
    )
}
