"""What may travel, and what did: messages and bytes, read off the trace.

The learner's own sends as measured, torch's collectives by their formula. What each exercise allows stands with its
checks.
"""

from __future__ import annotations

from dataclasses import dataclass

from course.grading.bench import Result
from course.grading.check import Finding
from course.grading.mistakes import Mistake
from course.grading.mistakes.lesson_03 import BUILT_IN, BY_OTHER_WAYS, ONE_MASTER, WHOLE_TENSORS
from course.trace.statistics import MEASURED, bytes_sent, total_bytes

SLACK = 64  # bytes that a message may carry besides: padding, a size


def called(result: Result, name: str) -> Finding | None:
    """A finding where the collective that is to be built was called on more than a kilobyte: that is no agreement."""
    spans = [span for span in result.trace.of(rank=0, kind="collective") if span.name.startswith(name)]
    if sum(span.nbytes for span in spans) > 1024:
        return Finding(f"with {result.world_size} ranks, correct, but {name} of torch did it", "", "", BUILT_IN)
    return None


@dataclass(frozen=True, slots=True)
class Budget:
    """What may travel: messages a rank, bytes of the group, bytes a rank."""

    messages: int
    total: float
    share: float


def sent(result: Result) -> tuple[list[int], tuple[int, ...]]:
    """(own messages, bytes) that each rank sent. A reduce-scatter of torch's counts as one, also where gloo does more.

    The messages of torch's collectives are not counted: they cannot be seen.
    """
    n = result.world_size
    traffic = bytes_sent(result.trace, backend="any")
    own = [sum(t.messages for t in traffic if t.rank == rank and t.source == MEASURED) for rank in range(n)]
    return own, total_bytes(traffic, n)


def overspent(result: Result, budget: Budget, wasteful: Mistake = WHOLE_TENSORS) -> Finding | None:
    """A finding where more travelled than the budget, or less than is possible.

    Every message may carry SLACK bytes besides: padding, a size. With a number of ranks that is no power of two,
    halving and doubling sends a little more than a ring and not evenly: so there a quarter more may travel, and
    each rank's share is looked at with 2 and 4 ranks.
    """
    n = result.world_size
    messages, nbytes = sent(result)
    slack = SLACK * budget.messages
    even = n & (n - 1) == 0
    what = f"with {n} ranks, correct, but "
    expected = f"{budget.total:,.0f} bytes over all ranks, {budget.share:,.0f} a rank"
    advice = "Add up what one rank sends in each step."
    largest = max((message.nbytes for message in result.trace.messages), default=0)
    mistake = wasteful if largest > 1.5 * budget.share / budget.messages + SLACK else None
    if sum(nbytes) > budget.total * (1.0 if even else 1.25) + slack * n:
        return Finding(f"{what}{sum(nbytes) / budget.total:.2f} times the bytes travel", expected, advice, mistake)
    if even and max(nbytes) > budget.share + slack:
        rank = max(range(n), key=lambda r: nbytes[r])
        got = f"{what}rank {rank} sends {nbytes[rank] / budget.share:.2f} times its share"
        return Finding(got, expected, advice, ONE_MASTER)
    if max(messages) > budget.messages:
        rank = max(range(n), key=lambda r: messages[r])
        got = f"{what}rank {rank} sends {messages[rank]} messages"
        return Finding(got, f"at most {budget.messages} a rank", "Each message costs its latency, however small.")
    unseen = any(span.nbytes > SLACK for span in result.trace.of(kind="collective"))
    if sum(nbytes) < 0.99 * budget.total and not unseen:
        got = f"{what}{sum(nbytes):,} bytes were sent where {budget.total:,.0f} are needed"
        return Finding(got, expected, "", BY_OTHER_WAYS)
    return None
