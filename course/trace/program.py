"""What ranks are going to do: for each rank a list of compute, send, recv, collective and wait, in order.

A program says what and how much, never when: `simulate` finds out when. Made from a recorded trace (`replay`) or from
a pipeline schedule and the costs of its stages (`pipeline_program`, here). Standard library only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from course.errors import UsageError
from course.spec.schedule import Actions, Schedule


class Compute(NamedTuple):
    """The rank's device is busy for `seconds`."""

    seconds: float
    name: str = "compute"


class Send(NamedTuple):
    """`nbytes` go to rank `dst`. Blocking, the message starts when its receive is there too, and the rank goes on when
    it has arrived; otherwise it starts at once and the rank goes on (`Wait(handle)` waits for its arrival)."""

    dst: int
    nbytes: int
    tag: int = 0
    blocking: bool = True
    handle: int = -1
    name: str = "send"


class Recv(NamedTuple):
    """The next message from rank `src` with this tag. With a `handle` the rank goes on and `Wait(handle)` waits."""

    src: int
    tag: int = 0
    handle: int = -1
    name: str = "recv"


class Collective(NamedTuple):
    """A call of all ranks of `group`; it starts when the last has come and the group's call before it is done.

    nbytes: of the tensors this rank hands in (see `statistics.collective_traffic`). With a `handle` the rank goes on.
    """

    name: str
    nbytes: int
    group: tuple[int, ...]
    root: int | None = None
    handle: int = -1


class Wait(NamedTuple):
    """The rank waits until its operation with this handle is done."""

    handle: int


Op: TypeAlias = Compute | Send | Recv | Collective | Wait
Program: TypeAlias = Sequence[Sequence[Op]]  # one list a rank


def pipeline_program(
    schedule: Schedule,
    *,
    forward: Sequence[float],
    backward: Sequence[float],
    weights: Sequence[float] | None = None,
    nbytes: int | Sequence[int] = 0,
    blocking: bool = False,
) -> Program:
    """The program of a pipeline schedule, one rank a stage (or a rank with several chunks).

    forward, backward: seconds of each piece of the model, in the order of the model (stages times chunks of them).
    weights: seconds of the backward of the weights alone, where the schedule has W's; `backward` is then that of the
    input alone. nbytes: of the activation that crosses each boundary (one number for all, or one a boundary); the
    gradient that comes back is as large. With `blocking` sends wait for their receive, as `dist.send` does; else they
    go at once, as an executor's isend does.
    Raises UsageError where lists are too short.
    """
    ranks = len(schedule)
    chunks = 1 + max((action.chunk for actions in schedule for action in actions), default=0)
    pieces = ranks * chunks
    costs = {"F": forward, "B": backward, "W": weights if weights is not None else [0.0] * pieces}
    for kind, numbers in costs.items():
        if len(numbers) != pieces:
            raise UsageError(
                f"pipeline_program: {ranks} stages with {chunks} chunk(s) need {pieces} costs for {kind}, "
                f"but got {len(numbers)}"
            )
    sizes = [nbytes] * (pieces - 1) if isinstance(nbytes, int) else list(nbytes)
    if len(sizes) != pieces - 1:
        raise UsageError(f"pipeline_program: {pieces} pieces have {pieces - 1} boundaries, but got {len(sizes)} sizes")
    return [_of_rank(rank, actions, ranks, pieces, costs, sizes, blocking) for rank, actions in enumerate(schedule)]


def _of_rank(
    rank: int,
    actions: Actions,
    ranks: int,
    pieces: int,
    costs: dict[str, Sequence[float]],
    sizes: Sequence[int],
    blocking: bool,
) -> list[Op]:
    ops: list[Op] = []
    for action in actions:
        piece = action.chunk * ranks + rank
        # Of the piece that sends; a forward goes over boundary `piece`, a backward over the one before it.
        # The tag tells apart what crosses: which boundary, which way, which microbatch.
        if action.kind == "F":
            source, target, boundary = piece - 1, piece + 1, piece
        else:
            source, target, boundary = piece + 1, piece - 1, piece - 1
        word = repr(action)
        moves = action.kind != "W"
        if moves and 0 <= source < pieces and source % ranks != rank:
            ops.append(Recv(source % ranks, _tag(action.kind, source, action.microbatch), name=f"recv {word}"))
        ops.append(Compute(costs[action.kind][piece], word))
        if moves and 0 <= target < pieces and target % ranks != rank:
            tag = _tag(action.kind, piece, action.microbatch)
            ops.append(Send(target % ranks, sizes[boundary], tag, blocking, name=f"send {word}"))
    return ops


def _tag(kind: str, piece: int, microbatch: int) -> int:
    return (microbatch << 12 | piece) << 1 | (kind == "B")
