"""Checks of `broadcast_tree`: who has whose numbers at the end, and in how many rounds they came.

Rounds are read off the trace from the order of each rank's calls, never from a clock: a message leaves one round after
the last one that its sender sent, or received before sending it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from course.grading.bench import Bench, Result, Seat, Trouble
from course.grading.check import Check, Finding
from course.grading.checks import messages as m
from course.grading.checks import traffic
from course.grading.mistakes import Mistake
from course.grading.mistakes.lesson_03 import (
    CHAIN,
    FORWARDS_EARLY,
    LATE_BRANCH,
    MESSAGES_TWICE,
    POWERS_OF_TWO,
    STAR,
    TREE_FROM_ZERO,
)
from course.grading.mistakes.lesson_05 import COPY_RECEIVED, SRC_IGNORED
from course.grading.plain import TensorData, plain
from course.trace import Span

Case = tuple[int | None, m.Case]  # src (None: left out), and the numbers
EVEN_SIZES = (2, 4, 1)
ODD_SIZES = (3, 5)


def _probe(learner: Any, case: Case, seat: Seat) -> Any:
    src, numbers = case
    t = m.tensor(m.given(numbers, seat.rank, seat.world_size))
    returned = plain(learner(t) if src is None else learner(t, src))
    return {"value": plain(t), "returned": returned}


def _compared(bench: Bench, case: Case, n: int) -> Finding | None:
    result = m.run(bench, _probe, case, n)
    if isinstance(result, Finding):
        return result
    src = case[0] or 0
    parts = [m.given(case[1], rank, n) for rank in range(n)]
    found = [value["value"] for value in result.values]

    def whose(rank: int) -> str:
        return next((f"that of rank {r}" for r, part in enumerate(parts) if found[rank] == part), "nobody's")

    what = f"with {n} rank{'s' if n > 1 else ''} and src={src}"
    asked = m.Question(result, found, [parts[src]] * n, what, "`t`", result.values[0]["returned"])
    return m.compare(asked, lambda: _mistake(result, found, parts, src), whose)


def _mistake(result: Result, found: Sequence[Any], parts: Sequence[TensorData], src: int) -> Mistake | None:
    if src and all(got == parts[0] for got in found):
        return SRC_IGNORED
    if list(found) == list(parts):
        return COPY_RECEIVED
    received = {span.rank for span in result.trace.of(kind="recv")}
    others = [rank for rank in range(len(parts)) if found[rank] != parts[src]]
    early = all(rank in received and found[rank] in parts for rank in others)
    return FORWARDS_EARLY if early and src not in others else None


def _powers(bench: Bench) -> Finding | None:
    return next((f for n in EVEN_SIZES if (f := _compared(bench, (None, m.EVEN), n))), None)


def _others(bench: Bench) -> Finding | None:
    for n in ODD_SIZES:
        try:
            finding = _compared(bench, (None, m.EVEN), n)
        except Trouble as trouble:
            if trouble.kind not in ("raised", "stalled"):
                raise
            finding = Finding(trouble.got, "")
        if finding:
            return Finding(finding.got, "", "", POWERS_OF_TWO)
    return None


def _sources(bench: Bench) -> Finding | None:
    for n in (4, 2):
        for src in range(1, n):
            try:
                finding = _compared(bench, (src, m.DIGITS), n)
            except Trouble as trouble:
                if trouble.kind not in ("raised", "stalled"):
                    raise
                finding = Finding(f"with {n} ranks and src={src}: {trouble.got}", "")
            if finding:
                return Finding(finding.got, "", "", finding.mistake or TREE_FROM_ZERO)
    return None


def _sources_of_odd(bench: Bench) -> Finding | None:
    return next((f for n, src in ((3, 2), (5, 3)) if (f := _compared(bench, (src, m.DIGITS), n))), None)


def _cost(bench: Bench) -> Finding | None:
    for n in (4, 3, 5):
        result = m.run(bench, _probe, (None, m.LARGE), n)
        if isinstance(result, Finding):
            return result
        if finding := traffic.called(result, "broadcast"):
            return finding
        messages, nbytes = traffic.sent(result)
        once = (n - 1) * 4 * m.LARGE[1][0]
        what = f"with {n} ranks, correct, but "
        if sum(messages) > n - 1 or sum(nbytes) > once:
            got = f"{what}{sum(messages)} messages and {sum(nbytes) / once:.2f} times the bytes travel"
            twice = max(messages) < n and nbytes[0] % (once // (n - 1)) == 0
            return Finding(got, f"{n - 1} messages", "Count the messages that each rank gets.",
                           MESSAGES_TWICE if twice else None)  # fmt: skip
        if sum(messages) < n - 1:
            return Finding(f"{what}{sum(messages)} messages were seen", f"{n - 1} messages",
                           "Build it from sends and receives: how it gets around is what is asked.")  # fmt: skip
    return None


def _rounds(bench: Bench) -> Finding | None:
    for n in (4, 5, 3):
        result = m.run(bench, _probe, (None, m.LARGE), n)
        if isinstance(result, Finding):
            return result
        need, taken = (n - 1).bit_length(), rounds(result)
        if taken > need:
            got = f"with {n} ranks, correct, but it takes {taken} rounds"
            return Finding(got, f"{need} rounds", "Draw who has the tensor after each round.", _shape(result))
    return None


def _shape(result: Result) -> Mistake:
    sends = [len(result.trace.of(rank=rank, kind="send")) for rank in range(result.world_size)]
    if sum(count > 0 for count in sends) == 1:
        return STAR
    return CHAIN if max(sends) == 1 else LATE_BRANCH


def rounds(result: Result) -> int:
    """In which round the last message leaves, when a rank sends one message a round, and only what it has received."""
    arrivals = _arrivals(result)
    left: dict[tuple[int, int], int] = {}  # (rank, order of a send) -> its round
    sends = [span for rank in range(result.world_size) for span in result.calls(rank) if span.kind == "send"]
    waiting = sorted(sends, key=lambda span: span.order)
    while waiting:
        later = []
        for span in waiting:
            before = [(s.rank, s.order) for s in sends if s.rank == span.rank and s.order < span.order]
            before += [sent for ready, sent in arrivals[span.rank] if ready <= span.order]
            if all(key in left for key in before):
                left[span.rank, span.order] = 1 + max((left[key] for key in before), default=0)
            else:
                later.append(span)
        if len(later) == len(waiting):
            break  # receives that no recorded send belongs to
        waiting = later
    return max(left.values(), default=0)


def _arrivals(result: Result) -> dict[int, list[tuple[int, tuple[int, int]]]]:
    """For each rank: from which of its calls on it has a message, and (rank, order) of the send that it came from."""
    ways: dict[tuple[int, int | None], tuple[list[Span], list[Span]]] = defaultdict(lambda: ([], []))
    for rank in range(result.world_size):
        for span in result.calls(rank):
            if span.kind == "send":
                ways[rank, span.peer][0].append(span)
            elif span.kind == "recv" and span.peer is not None:
                ways[span.peer, rank][1].append(span)
    arrivals: dict[int, list[tuple[int, tuple[int, int]]]] = defaultdict(list)
    for sends, receives in ways.values():
        for send, receive in zip(sends, receives, strict=False):
            if receive.done_order is not None:
                arrivals[receive.rank].append((receive.done_order, (send.rank, send.order)))
    return arrivals


def _waited(bench: Bench) -> Finding | None:
    return m.waited([bench.run(_probe, (None, m.EVEN), n=n) for n in (2, 4)])


COPIED = "`t` is that of rank 0, with 1, 2 and 4 ranks"
ODD = "3 and 5 ranks"

CHECKS = {
    "broadcast_tree": (
        Check(COPIED, 2, _powers, "rank 0's numbers in `t`, on every rank"),
        Check(ODD, 2, _others, "rank 0's numbers in `t`, on every rank", needs=COPIED),
        Check("from any rank `src`", 2, lambda bench: _sources(bench) or _sources_of_odd(bench),
              "rank `src`'s numbers in `t`, on every rank", needs=ODD),
        Check("each rank gets it once", 1, _cost, "n−1 messages", needs=ODD),
        Check("⌈log2 n⌉ rounds", 2, _rounds, "2 rounds for 3 and 4 ranks, 3 for 5", needs="each rank gets it once"),
        Check("every handle is waited for", 1, _waited, "nothing under way at the end", needs=COPIED),
    )
}  # fmt: skip
