"""Checks of `interleaved_1f1b`: chunks in rounds, no wait for ever, little memory, a shorter bubble."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from course.grading.bench import Bench
from course.grading.check import Check, Finding
from course.grading.checks import schedules as s
from course.grading.checks.alone import refusals
from course.grading.mistakes import Mistake
from course.grading.mistakes.lesson_07 import (
    BACKWARD_FIRST,
    CHUNK_BY_CHUNK,
    CHUNKS_UPWARD,
    ONE_CHUNK_ONLY,
    PIECE_NOT_CHUNK,
    PLAIN_WARM_UP,
    SAME_WARM_UP,
    THROUGH_ALL_CHUNKS,
    WARM_UP_TOO_LONG,
    WARM_UP_TOO_SHORT,
)
from course.spec.schedule import Action

NAME = "interleaved_1f1b"
SIZES: tuple[s.Size, ...] = ((2, 4, 2), (3, 6, 2), (2, 6, 3), (4, 8, 2), (4, 4, 3), (3, 3, 2))
SMALL: tuple[s.Size, ...] = ((4, 8, 1), (1, 3, 2), (2, 2, 1), (1, 1, 1), (8, 16, 2))
IMPOSSIBLE = ((2, 3, 2), (4, 6, 2), (4, 2, 2), (0, 4, 2), (2, 0, 2), (2, 4, 0))


def order(plan: s.Plan, kind: str) -> list[Action]:
    """The actions of a kind as the statement has them: rounds of p, chunk after chunk."""
    p, m, v = plan.stages, plan.microbatches, plan.chunks
    chunks = range(v) if kind == "F" else range(v)[::-1]
    return [Action("F" if kind == "F" else "B", k, c) for r in range(0, m, p) for c in chunks for k in range(r, r + p)]


def warm_ups(plan: s.Plan) -> list[int]:
    """How many forwards each rank of p is to begin with."""
    p, m, v = plan.stages, plan.microbatches, plan.chunks
    return [min(m * v, (v - 1) * p + 2 * (p - 1 - rank)) for rank in range(p)]


def _plans(bench: Bench) -> list[s.Plan]:
    return s.asked(bench, NAME, SIZES)


def _type(bench: Bench) -> Finding | None:
    return s.unreadable(NAME, SIZES, bench.run(s.probe, SIZES, n=1).values[0])


def _once(bench: Bench) -> Finding | None:
    return next((finding for plan in _plans(bench) if (finding := _not_once(plan))), None)


def _not_once(plan: s.Plan) -> Finding | None:
    finding = s.not_once(plan)
    if finding is None or plan.chunks == 1:
        return finding
    p = plan.stages
    by_piece = [[Action(a.kind, a.microbatch, a.chunk * p + rank) for a in plan.wanted] for rank in range(p)]
    if [sorted(actions) for actions in plan.lists] == [sorted(actions) for actions in by_piece]:
        return replace(finding, mistake=PIECE_NOT_CHUNK)
    alone = all(action.chunk == 0 for actions in plan.lists for action in actions)
    return replace(finding, mistake=ONE_CHUNK_ONLY) if alone else finding


def _order(bench: Bench) -> Finding | None:
    return next((finding for plan in _plans(bench) if (finding := _out_of_order(plan, _by_warm_up(bench)))), None)


def _out_of_order(plan: s.Plan, behind: Mistake | None = None) -> Finding | None:
    """A finding where the order is another one; `behind`: the mistake behind a backward that comes too early."""
    for kind in "FB":
        wanted = order(plan, kind)
        for rank, actions in enumerate(plan.lists):
            found = [action for action in actions if action.kind == kind]
            if found != wanted:
                at = next(place for place, pair in enumerate(zip(found, wanted, strict=True)) if pair[0] != pair[1])
                words = "forward" if kind == "F" else "backward"
                got = f"in {plan}, {words} number {at} of rank {rank}, counted from 0, is {_full(found[at])}"
                advice = "Which round, which chunk and which microbatch is that number?"
                return Finding(got, _full(wanted[at]), advice, _other_order(plan, kind, found))
    if turned := s.turned_round(plan):
        mistake = behind if behind in (PLAIN_WARM_UP, SAME_WARM_UP) else BACKWARD_FIRST
        return Finding(turned[0], "", "What has to be done before that backward?", mistake)
    return None


def _full(action: Action) -> str:
    return f"{action.kind}{action.microbatch} through chunk {action.chunk}"


def _other_order(plan: s.Plan, kind: str, found: list[Action]) -> Mistake | None:
    m, v = range(plan.microbatches), range(plan.chunks)
    if kind == "B" and found == [Action("B", a.microbatch, a.chunk) for a in order(plan, "F")]:
        return CHUNKS_UPWARD
    bare = [(action.microbatch, action.chunk) for action in found]
    if bare in ([(k, c) for c in v for k in m], [(k, c) for c in v[::-1] for k in m]):
        return CHUNK_BY_CHUNK
    return (
        THROUGH_ALL_CHUNKS if bare in ([(k, c) for k in m for c in v], [(k, c) for k in m for c in v[::-1]]) else None
    )


def _runs(bench: Bench) -> Finding | None:
    return _first(bench, s.waits_for_ever)


def _memory(bench: Bench) -> Finding | None:
    return _first(bench, _holds_too_much)


def _holds_too_much(plan: s.Plan) -> Finding | None:
    most = plan.microbatches * plan.chunks
    return s.holds_too_much(plan, [min(most, warm_up + 1) for warm_up in warm_ups(plan)])


def _time(bench: Bench) -> Finding | None:
    return _first(bench, s.takes_too_long)


def _warm_up(bench: Bench) -> Finding | None:
    return _first(bench, _other_warm_up)


def _other_warm_up(plan: s.Plan) -> Finding | None:
    """A finding where a rank has another number of forwards before its first turn."""
    most = plan.microbatches * plan.chunks
    for rank, (actions, warm_up) in enumerate(zip(plan.lists, warm_ups(plan), strict=True)):
        first = next(place for place, action in enumerate(actions) if action.kind == "B")
        if first != (wanted := min(most, warm_up + 1)):
            got = f"in {plan}, rank {rank} does {first} forwards before its first backward"
            return Finding(got, f"{wanted}", "Put this rank into the formula of the statement.")
    return None


def _first(bench: Bench, check: Callable[[s.Plan], Finding | None]) -> Finding | None:
    for plan in _plans(bench):
        if finding := check(plan):
            return replace(finding, mistake=_by_warm_up(bench))
    return None


def _by_warm_up(bench: Bench) -> Mistake | None:
    """The mistake that the forwards before the first backward give away, with 4 ranks, 8 microbatches, 2 chunks."""
    plan = next(plan for plan in _plans(bench) if plan.size == (4, 8, 2))
    firsts = [next(place for place, a in enumerate(actions) if a.kind == "B") for actions in plan.lists]
    wanted = [warm_up + 1 for warm_up in warm_ups(plan)]
    plain = [plan.stages - 1 - rank for rank in range(plan.stages)]
    extra = (plan.chunks - 1) * plan.stages
    if len(set(firsts)) == 1:
        return SAME_WARM_UP
    if firsts in ([2 * w + 1 for w in plain], [w + 1 for w in plain], [extra + w + 1 for w in plain]):
        return PLAIN_WARM_UP
    if all(mine >= want for mine, want in zip(firsts, wanted, strict=True)) and firsts != wanted:
        return WARM_UP_TOO_LONG
    return WARM_UP_TOO_SHORT if firsts != wanted and max(map(int.__sub__, firsts, wanted)) <= 0 else None


def _small(bench: Bench) -> Finding | None:
    values = bench.run(s.probe, SMALL, n=1).values[0]
    if finding := s.unreadable(NAME, SMALL, values):
        return finding
    checks = (_not_once, _out_of_order, s.waits_for_ever, _holds_too_much, s.takes_too_long, _other_warm_up)
    found = (check(plan) for plan in s.plans(NAME, SMALL, values) for check in checks)
    return next((finding for finding in found if finding), None)


def _impossible(bench: Bench) -> Finding | None:
    return refusals(bench, NAME, IMPOSSIBLE)


_TYPE = "a list of actions for each rank"
_ONCE = "each microbatch once through each chunk"
_ORDER = "rounds of p, chunk after chunk"
_RUNS = "no rank waits for ever"

CHECKS = {
    NAME: (
        Check(_TYPE, 1, _type, "a list of lists of actions"),
        Check(_ONCE, 2, _once, "F and B of every microbatch and chunk, once on every rank", needs=_TYPE),
        Check(_ORDER, 2, _order, "the order of the statement", needs=_ONCE),
        Check(_RUNS, 2, _runs, "a schedule that comes to its end", needs=_ORDER),
        Check("no more is held than needed", 2, _memory, "at most the warm-up and one more", needs=_RUNS),
        Check("no time is lost", 1, _time, "(m·v+p−1) forwards and backwards of a piece", needs=_RUNS),
        Check("the warm-up of each rank", 1, _warm_up, "as many forwards as in the statement", needs=_RUNS),
        Check("one chunk, one rank, sixteen microbatches", 1, _small, "the same", needs=_RUNS),
        Check("the impossible is refused", 1, _impossible, "a ValueError"),
    )
}
