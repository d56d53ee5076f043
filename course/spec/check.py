"""What is wrong with a schedule, before it reaches a rank: five faults, five sentences.

No times here (the simulator knows those) and no messages: a message may wait, its reader may not run ahead of it.
Standard library only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from course.errors import DeadlockError, UsageError
from course.spec.schedule import Action, Schedule, as_schedule, peak_activations

Key = tuple[str, int, int]  # kind, microbatch, piece of the model


def check_schedule(
    schedule: Sequence[Sequence[object]], *, microbatches: int | None = None, limits: Sequence[int] | None = None
) -> Schedule:
    """The schedule, if it can run. Otherwise the error says which stage is at fault, and in what.

    Each F and B (and, where there are any, each W) of all microbatches comes once; a backward behind its forward, a W
    behind its B; ranks do not wait for each other in a circle. microbatches: how many; None takes the highest number.
    limits: the most microbatches each stage may hold.
    Raises DeadlockError, whose `cycle` has the ranks that wait for each other, and UsageError for all else.
    """
    lists = as_schedule(schedule)
    if not lists or not all(lists):
        raise UsageError("a schedule holds a list of actions for each stage, none empty")
    _each_once(lists, microbatches)
    _in_order(lists)
    _runs(lists)
    for stage, (actions, limit) in enumerate(zip(lists, limits or (), strict=False)):
        if (held := peak_activations(actions)) > limit:
            raise UsageError(f"stage {stage} holds the activations of {held} microbatches at once, {limit} are allowed")
    return lists


def _each_once(lists: Schedule, asked: int | None) -> None:
    everything = [action for actions in lists for action in actions]
    microbatches = asked or 1 + max(action.microbatch for action in everything)
    chunks = 1 + max(action.chunk for action in everything)
    kinds: list[Literal["F", "B", "W"]] = ["F", "B"]
    if any(action.kind == "W" for action in everything):
        kinds.append("W")
    wanted = [Action(kind, k, c) for c in range(chunks) for kind in kinds for k in range(microbatches)]
    known = set(wanted)
    for stage, actions in enumerate(lists):
        counts = Counter(actions)
        if twice := [action for action in wanted if counts[action] > 1]:
            raise UsageError(f"stage {stage} has {twice[0]} {counts[twice[0]]} times: each action comes once")
        if missing := [action for action in wanted if not counts[action]]:
            what = {"F": "forward", "B": "backward", "W": "weights' backward"}[missing[0].kind]
            raise UsageError(
                f"stage {stage} lacks {missing[0]}: the {what} of microbatch {missing[0].microbatch} is missing"
            )
        if strange := [action for action in counts if action not in known]:
            raise UsageError(f"stage {stage} has {strange[0]}, which is none of microbatches 0 to {microbatches - 1}")


def _in_order(lists: Schedule) -> None:
    for stage, actions in enumerate(lists):
        place = {action: i for i, action in enumerate(actions)}
        for action, at in place.items():
            before = {"B": "F", "W": "B"}.get(action.kind)
            if before and place[Action(before, action.microbatch, action.chunk)] > at:  # type: ignore[arg-type]
                raise UsageError(f"stage {stage} does {action} before its {before}{action.microbatch}: turn them round")


def _needs(action: Action, rank: int, ranks: int, pieces: int) -> tuple[int, Key] | None:
    """(rank, what) an action waits for from another piece of the model; None where it waits for none."""
    piece = action.chunk * ranks + rank
    source = {"F": piece - 1, "B": piece + 1}.get(action.kind, -1)
    if not 0 <= source < pieces:
        return None
    return source % ranks, (action.kind, action.microbatch, source)


def _runs(lists: Schedule) -> None:
    """Let every rank go as far as it can, until all are done or none can move."""
    ranks = len(lists)
    pieces = ranks * (1 + max(action.chunk for actions in lists for action in actions))
    done: set[Key] = set()
    place = [0] * ranks
    moved = True
    while moved:
        moved = False
        for rank, actions in enumerate(lists):
            while place[rank] < len(actions):
                action = actions[place[rank]]
                need = _needs(action, rank, ranks, pieces)
                if need is not None and need[1] not in done:
                    break
                done.add((action.kind, action.microbatch, action.chunk * ranks + rank))
                place[rank] += 1
                moved = True
    stuck = {rank: actions[place[rank]] for rank, actions in enumerate(lists) if place[rank] < len(actions)}
    if stuck:
        raise _circle(stuck, ranks, pieces)


def _circle(stuck: dict[int, Action], ranks: int, pieces: int) -> DeadlockError:
    links = {rank: (action, _needs(action, rank, ranks, pieces)) for rank, action in stuck.items()}
    rank, seen = min(links), []
    while rank not in seen:
        seen.append(rank)
        need = links[rank][1]
        rank = need[0] if need is not None else rank
    cycle = seen[seen.index(rank) :]
    chain = tuple((r, repr(links[r][0]), need[0]) for r in cycle if (need := links[r][1]) is not None)
    told = "; ".join(f"stage {r} waits at {words} for stage {other}" for r, words, other in chain)
    return DeadlockError(f"this schedule waits for ever: {told}", chain)
