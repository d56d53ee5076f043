"""Who sends what to whom, round by round: ring, tree and naive all-reduce as plain lists.

A schedule, not a program: `collectives` sends real tensors, `planner.network` prices them. Standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass

from course.errors import UsageError


@dataclass(frozen=True, slots=True)
class Send:
    """One message of one round: `src` sends some of the n chunks to `dst`, which adds them, or takes them as they are.

    chunks: their numbers, from 0. A whole tensor is all n of them.
    """

    src: int
    dst: int
    chunks: tuple[int, ...]
    adds: bool


Round = tuple[Send, ...]  # messages that travel at the same time
Holdings = tuple[tuple[frozenset[int], ...], ...]  # [rank][chunk]: the ranks whose part is in the sum it holds


def all_reduce_rounds(n: int, algorithm: str = "ring") -> tuple[Round, ...]:
    """The rounds of an all-reduce on n ranks, "ring", "tree" or "naive"; the tensor is cut into n chunks.

    ring: 2(n-1) rounds of n messages of one chunk (Patarasuk and Yuan 2009); after n-1 rounds rank r holds the sum of
    chunk r + 1. tree: log2 n rounds of whole tensors up to rank 0, and the same down. naive: 2(n-1) rounds of one whole
    tensor, first to rank 0, then from it. Raises UsageError.
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise UsageError(f"all_reduce_rounds(n={n!r}): n is a whole number of ranks, at least 1")
    if algorithm not in _ROUNDS:
        raise UsageError(f"all_reduce_rounds(algorithm={algorithm!r}): try one of {', '.join(map(repr, _ROUNDS))}")
    return _ROUNDS[algorithm](n)


def start_holdings(n: int) -> Holdings:
    """Before the first round: each rank holds its own part of each chunk."""
    return tuple(tuple(frozenset({rank}) for _ in range(n)) for rank in range(n))


def after_round(holdings: Holdings, sends: Round) -> Holdings:
    """What each rank holds when all messages of a round have come; each carries what was held before the round."""
    after = [list(chunks) for chunks in holdings]
    for send in sends:
        for chunk in send.chunks:
            here = after[send.dst][chunk] if send.adds else frozenset()
            after[send.dst][chunk] = here | holdings[send.src][chunk]
    return tuple(tuple(chunks) for chunks in after)


def _ring(n: int) -> tuple[Round, ...]:
    def rounds(first: int, adds: bool) -> tuple[Round, ...]:
        """n-1 rounds; in the first, rank r sends chunk r + first to its right, then always what it just received."""
        return tuple(
            tuple(Send(rank, (rank + 1) % n, ((rank + first - step) % n,), adds) for rank in range(n))
            for step in range(n - 1)
        )

    return rounds(0, adds=True) + rounds(1, adds=False)


def _tree(n: int) -> tuple[Round, ...]:
    whole = tuple(range(n))
    distances = [2**k for k in range((n - 1).bit_length())]
    pairs = [[(rank, rank - d) for rank in range(d, n, 2 * d)] for d in distances]  # (child, parent), leaves first
    up = tuple(tuple(Send(child, parent, whole, adds=True) for child, parent in level) for level in pairs)
    down = tuple(tuple(Send(parent, child, whole, adds=False) for child, parent in level) for level in reversed(pairs))
    return up + down


def _naive(n: int) -> tuple[Round, ...]:
    whole = tuple(range(n))
    to_zero = tuple((Send(rank, 0, whole, adds=True),) for rank in range(1, n))
    from_zero = tuple((Send(0, rank, whole, adds=False),) for rank in range(1, n))
    return to_zero + from_zero


_ROUNDS = {"ring": _ring, "tree": _tree, "naive": _naive}
