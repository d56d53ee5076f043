"""Checks of `split_layers`: cuts that leave no stage empty, and none slower than it has to be."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from functools import cache
from typing import Any

from course.grading.bench import Bench, Seat, Trouble
from course.grading.check import Check, Finding
from course.grading.checks.alone import asked, raised
from course.grading.checks.hello import lazy
from course.grading.checks.splits import mistaken
from course.grading.mistakes import Mistake
from course.grading.mistakes.any_exercise import NOT_REFUSED, OTHER_ERROR
from course.grading.mistakes.lesson_07 import EMPTY_STAGE, MEMORY_IGNORED
from course.grading.plain import plain, type_in_words, whole_numbers
from course.spec.split import split_layers, stage_costs, stage_sizes

Cuts = tuple[int, ...]
Case = tuple[tuple[float, ...], int, tuple[int, ...] | None]  # costs, stages, memory

HEAD: tuple[float, ...] = (1.0,) * 30 + (4.0,)
BY_HAND: tuple[Case, ...] = (
    (HEAD, 3, None),
    ((3, 1, 4, 1, 5, 9, 2, 6), 3, None),
    ((2, 2, 2, 2, 2, 2, 2), 4, None),
    ((9, 1, 1, 1, 1), 4, None),
    ((1, 1, 1, 1, 1, 1, 8), 3, None),
    ((0.5, 0.5, 3, 0.5, 0.5, 0.5, 2.5), 4, None),
    ((5, 4, 3, 2, 1), 5, None),
    ((2, 1, 2, 3, 3, 5, 4), 3, None),
    ((5, 4, 2, 6, 4), 3, None),
    ((7, 1, 2), 1, None),
)
MEMORY: tuple[Case, ...] = (
    (HEAD, 3, (14, 11, 8)),
    (HEAD, 3, (9, 13, 21)),
    ((1, 1, 1, 1, 1, 1, 8), 3, (2, 2, 3)),
    ((4, 4, 1, 1, 1, 1, 1), 3, (5, 1, 4)),
    ((2, 2, 2, 2), 2, (1, 3)),
    ((3, 1, 4, 1, 5, 9, 2, 6), 3, (8, 8, 8)),
)
IMPOSSIBLE: tuple[Case, ...] = (
    ((1, 2, 3), 0, None),
    ((1, 2, 3), 4, None),
    ((1, 2, 3, 4, 5), 2, (2, 2)),
    ((1, 1, 1, 1), 3, (1, 1, 1)),
)


@cache
def _random(memory: bool) -> tuple[Case, ...]:
    """Thirty models, with costs that add up exactly in any order."""
    source = random.Random(f"layers {memory}")
    cases: list[Case] = []
    while len(cases) < 30:
        layers, stages = source.randint(4, 24), source.randint(2, 4)
        costs = tuple(source.choice((1, 1, 5)) * source.randint(4, 16) / 8 for _ in range(layers))
        limits = tuple(source.randint(1, layers) for _ in range(stages)) if memory else None
        if limits is None or sum(limits) >= layers:
            cases.append((costs, stages, limits))
    return tuple(cases)


def _probe(learner: Any, cases: tuple[Case, ...], seat: Seat) -> Any:
    return [_ask(learner, case) for case in cases]


def _ask(learner: Any, case: Case) -> Any:
    costs, stages, memory = case
    return plain(learner(list(costs), stages) if memory is None else learner(list(costs), stages, memory=list(memory)))


def _probe_refusals(learner: Any, cases: tuple[Case, ...], seat: Seat) -> Any:
    return [_outcome(learner, case) for case in cases]


def _outcome(learner: Any, case: Case) -> tuple[str, Any]:
    try:
        return "", _ask(learner, case)
    except NotImplementedError:
        raise
    except ValueError:
        return "ValueError", None
    except Exception as error:
        return type(error).__name__, None


def _values(bench: Bench, cases: tuple[Case, ...]) -> list[tuple[Case, Any]]:
    return list(zip(cases, bench.run(_probe, cases, n=1).values[0], strict=True))


def _call(case: Case) -> str:
    costs, stages, memory = case
    shown = "[1] * 30 + [4]" if costs == HEAD else f"[{', '.join(f'{cost:g}' for cost in costs)}]"
    return f"split_layers({shown}, {stages}" + (")" if memory is None else f", memory={list(memory)})")


def _by_guess(bench: Bench) -> Mistake | None:
    """The mistake that explains every split asked for by hand."""
    values = _values(bench, BY_HAND)
    return mistaken([(case[0], case[1], whole_numbers(value) or []) for case, value in values])


# --- what came back ---------------------------------------------------------------------------------------------------


def _type(bench: Bench) -> Finding | None:
    for case, value in _values(bench, BY_HAND):
        cuts = whole_numbers(value) if type(value) in (list, tuple) else None
        got = f"{_call(case)} returned {type_in_words(value)}"
        if cuts is None or any(abs(cut) > 10**9 for cut in cuts):
            inside = f" with {type_in_words(value[0])} in it" if type(value) in (list, tuple) and value else ""
            return Finding(got + inside, "a list or tuple of ints", "Return the cuts, one int each.", lazy(value))
        if len(cuts) != case[1] - 1:
            expected = f"{case[1] - 1} cuts for {case[1]} stages"
            return Finding(f"{got}: {cuts}", expected, "How many cuts make that many pieces?", _by_guess(bench))
    return None


def _filled(bench: Bench) -> Finding | None:
    return next((f for cases in (BY_HAND, _random(False)) for f in _emptied(bench, cases)), None)


def _emptied(bench: Bench, cases: tuple[Case, ...]) -> list[Finding]:
    for case, value in _values(bench, cases):
        cuts = whole_numbers(value) or []
        edges = [0, *cuts, len(case[0])]
        sizes = [end - start for start, end in itertools.pairwise(edges)]
        if min(sizes) < 1:
            wrong = "no layer" if 0 in sizes else "fewer layers than none"
            got = f"{_call(case)} returned {cuts}: stage {sizes.index(min(sizes))} has {wrong}"
            plain_zero = min(sizes) == 0 and cuts == sorted(cuts)
            mistake = _by_guess(bench) or (EMPTY_STAGE if plain_zero else None)
            return [Finding(got, "", "Write down the layers of each stage.", mistake)]
    return []


def _best(bench: Bench) -> Finding | None:
    return next((f for cases in (BY_HAND, _random(False)) if (f := _slower(bench, _values(bench, cases)))), None)


def _slower(bench: Bench, found: list[tuple[Case, Any]]) -> Finding | None:
    """The first split whose slowest stage costs more than it has to."""
    for case, value in found:
        costs, stages, memory = case
        cuts = whole_numbers(value) or []
        want, mine = max(stage_costs(costs, split_layers(costs, stages, memory=memory))), max(stage_costs(costs, cuts))
        if mine > want * (1 + 1e-6):
            sizes = " + ".join(map(str, stage_sizes(len(costs), cuts)))
            got = f"{_call(case)} returned {cuts}, layers {sizes}: the slowest stage costs {mine:.4g}"
            advice = "Look at the slowest stage. Which neighbour could take a layer from it?"
            return Finding(got, f"a split whose slowest stage costs {want:.4g}", advice, _by_guess(bench))
    return None


def _fits(bench: Bench) -> Finding | None:
    for cases in (MEMORY, _random(True)):
        values = asked(bench, _probe, cases)
        if isinstance(values, Trouble):
            return Finding(f"with `memory` {raised(values)}", "", values.advice)
        found = list(zip(cases, values, strict=True))
        if finding := _overfull(found) or _slower_within(found):
            return finding
    return None


def _overfull(found: list[tuple[Case, Any]]) -> Finding | None:
    for case, value in found:
        costs, stages, memory = case
        cuts = whole_numbers(value) or []
        got = f"{_call(case)} returned "
        if len(cuts) != stages - 1 or not _in_order(cuts, len(costs)):
            return Finding(got + (f"{cuts}" if cuts else type_in_words(value)), f"{stages - 1} cuts, no stage empty")
        sizes = stage_sizes(len(costs), cuts)
        for stage, (size, limit) in enumerate(zip(sizes, memory or (), strict=True)):
            if size > limit:
                got += f"{cuts}: stage {stage} holds {size} layers, and has room for {limit}"
                unaware = all(_as_good_without(case, value) for case, value in found)
                return Finding(got, "", "Count the layers of each stage.", MEMORY_IGNORED if unaware else None)
    return None


def _in_order(cuts: Sequence[int], layers: int) -> bool:
    return all(a < b for a, b in itertools.pairwise([0, *cuts, layers]))


def _as_good_without(case: Case, value: Any) -> bool:
    """Whether these are the cuts one would make without looking at `memory`."""
    costs, stages, _ = case
    cuts = whole_numbers(value) or []
    if len(cuts) != stages - 1 or not _in_order(cuts, len(costs)):
        return False
    return max(stage_costs(costs, cuts)) <= max(stage_costs(costs, split_layers(costs, stages))) * (1 + 1e-6)


def _slower_within(found: list[tuple[Case, Any]]) -> Finding | None:
    for case, value in found:
        costs, stages, memory = case
        cuts = whole_numbers(value) or []
        want, mine = max(stage_costs(costs, split_layers(costs, stages, memory=memory))), max(stage_costs(costs, cuts))
        if mine > want * (1 + 1e-6):
            got = f"{_call(case)} returned {cuts}: the slowest stage costs {mine:.4g}"
            advice = "Each stage has a limit of its own. Which splits within all of them did you compare?"
            return Finding(got, f"a split within `memory` whose slowest stage costs {want:.4g}", advice)
    return None


def _impossible(bench: Bench) -> Finding | None:
    found = bench.run(_probe_refusals, IMPOSSIBLE, n=1).values[0]
    for case, (error, value) in zip(IMPOSSIBLE, found, strict=True):
        if not error:
            return Finding(f"{_call(case)} returned {type_in_words(value)}", "", "", NOT_REFUSED)
        if error != "ValueError":
            return Finding(f"{_call(case)} raised {error}", "", "", OTHER_ERROR)
    return None


_TYPE = "as many ints as there are cuts"
_FILLED = "cuts that rise, no stage empty"
_SLOWEST = "the slowest stage costs as little as can be"

CHECKS = {
    "split_layers": (
        Check(_TYPE, 1, _type, "a list or tuple of `stages`−1 ints"),
        Check(_FILLED, 2, _filled, "at least one layer in each stage", needs=_TYPE),
        Check(_SLOWEST, 4, _best, "a split whose slowest stage is as cheap as in the best", needs=_FILLED),
        Check("no stage holds more than its memory", 2, _fits, "the best split within `memory`", needs=_SLOWEST),
        Check("the impossible is refused", 1, _impossible, "a ValueError"),
    )
}
