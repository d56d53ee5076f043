"""Checks of lesson 00: who am I, and how many are we?"""

from __future__ import annotations

from typing import Any

from course.grading.bench import Bench, Result, Seat, call
from course.grading.check import Check, Finding
from course.grading.mistakes import Mistake
from course.grading.mistakes.any_exercise import COROUTINE, GENERATOR, PRINTED
from course.grading.mistakes.lesson_00 import COUNTS_FROM_ONE, FIXED_WORLD_SIZE, LAST_RANK, SAME_RANK, SWAPPED_PAIR
from course.grading.plain import Foreign, Scalar, TensorData, type_in_words

SIZES = (4, 3, 2, 1)


def _probe(learner: Any, case: Any, seat: Seat) -> Any:
    return call(learner, seat)


def lazy(value: Any) -> Mistake | None:
    """The mistake behind something that has not run yet: a generator or a coroutine."""
    if type(value) is Foreign:
        return {"generator": GENERATOR, "coroutine": COROUTINE}.get(value.type_name)
    return None


def _pair(bench: Bench) -> Finding | None:
    for n in SIZES:
        result = bench.run(_probe, n=n)
        for rank, value in enumerate(result.values):
            if type(value) in (tuple, list) and len(value) == 2 and all(_is_int(item) for item in value):
                continue
            got = f"with {n} ranks, rank {rank} returned {type_in_words(value)}"
            if type(value) in (tuple, list) and len(value) == 2:
                got += f" with {type_in_words(value[0])} and {type_in_words(value[1])}"
            printed = value is None and any(result.output)
            return Finding(got, "", "Return both numbers with one `return`.", PRINTED if printed else lazy(value))
    return None


def _is_int(item: Any) -> bool:
    return type(item) is int or (type(item) is Scalar and type(item.value) is int)


def _numbers(value: Any) -> tuple[Any, Any]:
    """The pair, as far as there is one."""
    items = [_bare(item) for item in value] if type(value) in (tuple, list) else []
    return (items[0], items[1]) if len(items) == 2 else (None, None)


def _bare(item: Any) -> Any:
    if type(item) is Scalar:
        return item.value
    return item.numbers[0] if type(item) is TensorData and len(item.numbers) == 1 else item


def _rank(bench: Bench) -> Finding | None:
    for n in SIZES:
        result = bench.run(_probe, n=n)
        ranks = [_numbers(value)[0] for value in result.values]
        if ranks != list(range(n)) or any(type(rank) is bool for rank in ranks):
            got = f"with {n} ranks, the first numbers are {_listed(ranks)}"
            advice = "Which call tells a process its own number?"
            return Finding(got, f"{_listed(range(n))}, by rank", advice, _rank_mistake(bench))
    return None


def _rank_mistake(bench: Bench) -> Mistake | None:
    result = bench.run(_probe, n=4)
    ranks = [_numbers(value)[0] for value in result.values]
    if _swapped(result):
        return SWAPPED_PAIR
    if ranks == [1, 2, 3, 4]:
        return COUNTS_FROM_ONE
    return SAME_RANK if _one_number(ranks) else None


def _swapped(result: Result) -> bool:
    n = result.world_size
    return [_numbers(value) for value in result.values] == [(n, rank) for rank in range(n)]


def _world_size(bench: Bench) -> Finding | None:
    sizes = {n: [_numbers(value)[1] for value in bench.run(_probe, n=n).values] for n in SIZES}
    for n, found in sizes.items():
        if found != [n] * n or any(type(item) is bool for item in found):
            got = f"with {n} ranks, the second numbers are {_listed(found)}"
            advice = "Which call tells how large the group is?"
            return Finding(got, f"{n} on every rank", advice, _size_mistake(bench, sizes))
    return None


def _size_mistake(bench: Bench, sizes: dict[int, list[Any]]) -> Mistake | None:
    if _swapped(bench.run(_probe, n=4)):
        return SWAPPED_PAIR
    if all(found == [n - 1] * n for n, found in sizes.items()):
        return LAST_RANK
    return FIXED_WORLD_SIZE if _one_number([item for found in sizes.values() for item in found]) else None


def _one_number(items: list[Any]) -> bool:
    return all(type(item) is int and item == items[0] for item in items)


def _listed(items: Any) -> str:
    return ", ".join(_shown(item) for item in items)


def _shown(item: Any) -> str:
    if type(item) is int and item.bit_length() > 64:
        return "an int of many digits"
    return str(item) if type(item) in (int, float, str) else type_in_words(item)


CHECKS = {
    "hello_rank": (
        Check("returns a pair of ints on every rank", 1, _pair, "a pair of two ints"),
        Check("the first number is the rank", 1, _rank, "each rank's own number, counted from 0"),
        Check("the second number is how many ranks there are", 1, _world_size, "the number of ranks"),
    )
}
