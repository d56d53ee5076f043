"""Checks of `shard_indices`: who gets which sample, over ranks, epochs and seeds.

The function is pure, so each rank asks for its own share, and one rank also asks for the shares of a larger group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from course.grading.bench import Bench, Seat
from course.grading.check import Check, Finding
from course.grading.checks.hello import lazy
from course.grading.mistakes import Mistake
from course.grading.mistakes.lesson_05 import (
    ASKS_DIST,
    CEIL_CHUNKS,
    DROPS_LAST,
    EPOCH_IGNORED,
    EVERYONE_EVERYTHING,
    FIXED_SHARES,
    NOT_SHUFFLED,
    PADDING,
    REST_ON_ONE,
    SAMPLES_FROM_ONE,
    SEED_IGNORED,
    SEED_PER_RANK,
    UNSEEDED,
)
from course.grading.plain import type_in_words, whole_numbers

SIZES = (3, 4, 2, 1)
NUM_SAMPLES = (23, 10, 12)
FEW_SAMPLES = (2, 1)
MANY_RANKS = 5  # asked for from a single process
Shares = list[list[int]]


def _probe(learner: Any, case: tuple[tuple[int, int, int], ...], seat: Seat) -> Any:
    """For each (n, epoch, seed): the list, and the list that the same call gives once more."""
    answers = []
    for n, epoch, seed in case:
        twice = [learner(n, seat.rank, seat.world_size, epoch=epoch, seed=seed) for _ in range(2)]
        answers.append(twice)
    return answers


def _probe_alone(learner: Any, case: tuple[int, int], seat: Seat) -> Any:
    """All shares of a group of `case[1]` ranks, asked for by one process."""
    n, world_size = case
    return [learner(n, rank, world_size) for rank in range(world_size)]


def _case(ns: Sequence[int]) -> tuple[tuple[int, int, int], ...]:
    return tuple((n, epoch, seed) for n in ns for epoch, seed in ((0, 0), (1, 0), (0, 1)))


def _raw(bench: Bench, ranks: int, n: int, epoch: int = 0, seed: int = 0, time: int = 0) -> list[Any]:
    """What each rank returned for one call, as it came."""
    few = n in FEW_SAMPLES
    case = _case(FEW_SAMPLES if few else NUM_SAMPLES)
    place = case.index((n, epoch, seed))
    return [value[place][time] for value in bench.run(_probe, case, n=ranks).values]


def _shares(bench: Bench, ranks: int, n: int, epoch: int = 0, seed: int = 0, time: int = 0) -> Shares:
    """The same as lists of ints; what is no such list counts as empty (the first check says so)."""
    return [whole_numbers(value) or [] for value in _raw(bench, ranks, n, epoch, seed, time)]


def _type(bench: Bench) -> Finding | None:
    for ranks in SIZES:
        for n in NUM_SAMPLES:
            for rank, value in enumerate(_raw(bench, ranks, n)):
                if type(value) is list and whole_numbers(value) is not None:
                    continue
                inside = f" with {type_in_words(value[0])} in it" if type(value) in (list, tuple) and value else ""
                got = f"with {ranks} ranks, rank {rank} got {type_in_words(value)}{inside}"
                return Finding(got, "", "Turn it into a list of ints before returning it.", lazy(value))
    return None


def _once(bench: Bench) -> Finding | None:
    for ranks in SIZES:
        for n in NUM_SAMPLES:
            shares = _shares(bench, ranks, n)
            if wrong := _not_once(shares, n):
                got = f"with {n} samples on {ranks} ranks: {wrong}"
                mistake = _partition_mistake(bench, ranks, n, shares)
                return Finding(got, "", "List every rank's samples side by side.", mistake)
    return _asked_alone(bench)


def _asked_alone(bench: Bench) -> Finding | None:
    shares = [whole_numbers(value) or [] for value in bench.run(_probe_alone, (23, MANY_RANKS), n=1).values[0]]
    if wrong := _not_once(shares, 23):
        got = f"asked by one process for the shares of {MANY_RANKS} ranks (23 samples): {wrong}"
        return Finding(got, "", "Use the arguments `rank` and `world_size`.", ASKS_DIST)
    return None


def _not_once(shares: Shares, n: int) -> str:
    """What is wrong with a partition, in words; "" for a right one."""
    counts = Counter(index for share in shares for index in share)
    strange = sorted(index for index in counts if not 0 <= index < n)
    missing = [index for index in range(n) if index not in counts]
    twice = sorted(index for index, count in counts.items() if count > 1)
    parts = []
    if strange:
        parts.append(f"there is no sample {_some(strange)}")
    if twice:
        parts.append(f"{_samples(twice)} given more than once")
    if missing:
        parts.append(f"{_samples(missing)} missing")
    elif twice:
        parts.append("none missing")
    return ", ".join(parts)


def _samples(indices: list[int]) -> str:
    return f"sample{'' if len(indices) == 1 else 's'} {_some(indices)}"


def _some(indices: list[int]) -> str:
    shown = ", ".join(map(str, indices[:4]))
    return f"{shown} and others" if len(indices) > 4 else shown


def _partition_mistake(bench: Bench, ranks: int, n: int, shares: Shares) -> Mistake | None:
    counts = Counter(index for share in shares for index in share)
    everything = list(range(n))
    sizes = [len(share) for share in shares]
    if sorted(counts) == list(range(1, n + 1)):
        return SAMPLES_FROM_ONE
    if ranks > 1 and all(sorted(share) == everything for share in shares):
        return EVERYONE_EVERYTHING
    if sorted(counts) == everything and len(set(sizes)) == 1 and sum(sizes) > n:
        return PADDING
    if max(counts.values(), default=0) == 1 and len(set(sizes)) == 1 and sum(sizes) == n // ranks * ranks:
        return DROPS_LAST
    if sum(sizes) == n and all(len(set(share)) == len(share) for share in shares):
        again = _shares(bench, ranks, n, time=1)
        return SEED_PER_RANK if again == shares else UNSEEDED
    return None


def _balanced(bench: Bench) -> Finding | None:
    for ranks in reversed(SIZES):
        for n in (*NUM_SAMPLES, *FEW_SAMPLES):
            shares = _shares(bench, ranks, n)
            sizes = [len(share) for share in shares]
            if max(sizes) - min(sizes) > 1 or sum(sizes) != n:
                got = f"{n} samples on {ranks} ranks are cut {' + '.join(map(str, sizes))}"
                return Finding(got, "", "Write down the sizes you would give by hand.", _cut_mistake(sizes, n))
            if wrong := _not_once(shares, n):
                return Finding(f"with {n} samples on {ranks} ranks: {wrong}", "every sample once")
    return None


def _cut_mistake(sizes: list[int], n: int) -> Mistake | None:
    ranks = len(sizes)
    up = -(-n // ranks)
    if sizes == [max(0, min(up, n - rank * up)) for rank in range(ranks)]:
        return CEIL_CHUNKS
    down = n // ranks
    if sizes == [down] * (ranks - 1) + [n - down * (ranks - 1)] or sizes[1:] == [down] * (ranks - 1):
        return REST_ON_ONE
    return DROPS_LAST if sizes == [down] * ranks else None


def _epochs(bench: Bench) -> Finding | None:
    for epoch, seed in ((0, 0), (1, 0), (0, 1)):
        order = _shares(bench, 1, 23, epoch=epoch, seed=seed)[0]
        if len({(after - before) % 23 for before, after in pairwise(order)}) <= 2:  # in order, backwards, or rotated
            got = f"with 1 rank, epoch {epoch} and seed {seed}, the order is {_some(order)}, in even steps"
            return Finding(got, "a shuffled order", "", NOT_SHUFFLED)
    for ranks in SIZES:
        first, second = _shares(bench, ranks, 23), _shares(bench, ranks, 23, epoch=1)
        if _in_order(first) and first == second:
            got = f"with {ranks} ranks, rank 0 gets {_some(first[0])}, in order"
            return Finding(got, "", "", NOT_SHUFFLED)
        if first == second:
            return Finding(f"with {ranks} ranks, epochs 0 and 1 give the same lists", "", "", EPOCH_IGNORED)
        if ranks > 1 and all(sorted(a) == sorted(b) for a, b in zip(first, second, strict=True)):
            got = f"with {ranks} ranks, epoch 1 has another order, but each rank keeps its samples"
            return Finding(got, "", "", FIXED_SHARES)
    return None


def _in_order(shares: Shares) -> bool:
    return all(share == sorted(share) for share in shares)


def _seeds(bench: Bench) -> Finding | None:
    for ranks in SIZES:
        shares = _shares(bench, ranks, 23)
        if shares == _shares(bench, ranks, 23, seed=1):
            mistake = NOT_SHUFFLED if _in_order(shares) else SEED_IGNORED
            return Finding(f"with {ranks} ranks, seeds 0 and 1 give the same lists", "", "", mistake)
    return None


def _again(bench: Bench) -> Finding | None:
    for ranks in SIZES:
        for n in NUM_SAMPLES:
            if _shares(bench, ranks, n) != _shares(bench, ranks, n, time=1):
                return Finding(f"with {n} samples on {ranks} ranks, two calls gave two lists", "", "", UNSEEDED)
    return None


_ONCE = "every sample once over all ranks"

CHECKS = {
    "shard_indices": (
        Check("returns a list of ints", 1, _type, "a list of ints"),
        Check(_ONCE, 3, _once, "each of the samples 0 to n−1 on exactly one rank"),
        Check("shares differ by at most one", 1, _balanced, "sizes that differ by at most one", needs=_ONCE),
        Check("another epoch, another order", 1, _epochs, "other shares in epoch 1 than in epoch 0", needs=_ONCE),
        Check("another seed, another order", 1, _seeds, "other lists with seed 1 than with seed 0", needs=_ONCE),
        Check("the same arguments, the same list", 1, _again, "the same list both times", needs=_ONCE),
    )
}
