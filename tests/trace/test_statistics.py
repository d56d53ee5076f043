"""Bytes, messages, busy and waiting time, overlap: on traces made by hand, against figures worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course.errors import UsageError
from course.trace import Message, Span, Trace
from course.trace.statistics import (
    COMPUTED,
    MEASURED,
    busy_seconds,
    bytes_sent,
    calls,
    collective_traffic,
    cpu_seconds,
    lanes,
    meetings,
    overlap,
    total_bytes,
    total_messages,
    waiting_seconds,
)


def collective(rank: int, name: str = "all_reduce", *, nbytes: int = 1200, n: int = 4, **more) -> Span:
    fields = {"start": 0.0, "end": 1.0, "group": tuple(range(n)), **more}
    return Span(rank, "collective", name, nbytes=nbytes, **fields)


def everyone(name: str, n: int, nbytes: int, **more) -> Trace:
    return Trace(n, tuple(collective(rank, name, nbytes=nbytes, n=n, **more) for rank in range(n)))


# bytes all ranks together put on the wire, for S bytes a call and 4 ranks, worked out by hand
@pytest.mark.parametrize(
    ("name", "backend", "total"),
    [
        ("all_reduce", "gloo", 6 * 1200),
        ("reduce_scatter", "nccl", 3 * 1200),
        ("reduce_scatter", "gloo", 6 * 1200),
        ("reduce_scatter_tensor", "gloo", 6 * 1200),
        ("all_gather", "gloo", 4 * 3 * 1200),
        ("all_to_all", "gloo", 3 * 1200),
        ("broadcast", "gloo", 3 * 1200),
        ("reduce", "gloo", 3 * 1200),
        ("gather", "gloo", 3 * 1200),
        ("scatter", "gloo", 900),
        ("barrier", "gloo", 0),
    ],
)
def test_the_wire_of_four_ranks(name, backend, total):
    traffic = bytes_sent(everyone(name, 4, 1200), backend=backend)
    assert sum(total_bytes(traffic, 4)) == total
    assert all(entry.source == COMPUTED and entry.formula for entry in traffic)


@given(n=st.integers(1, 9), nbytes=st.integers(0, 10**9))
def test_all_reduce_sends_less_than_twice_the_tensor_however_many_ranks(n, nbytes):
    traffic = bytes_sent(everyone("all_reduce", n, nbytes))
    assert all(entry.nbytes <= 2 * nbytes for entry in traffic)
    assert sum(entry.nbytes for entry in traffic) == pytest.approx(2 * (n - 1) * nbytes, abs=n)
    assert total_messages(traffic, n) == (2 * (n - 1),) * n


@given(n=st.integers(2, 8), data=st.data())
def test_a_broadcast_delivers_each_rank_but_the_root_once(n, data):
    root = data.draw(st.integers(0, n - 1))
    trace = everyone("broadcast", n, 100, peer=root)
    sent = total_bytes(bytes_sent(trace), n)
    assert sum(sent) == (n - 1) * 100
    assert sent[root] == 100  # the root sends
    assert sent[(root - 1) % n] == 0  # its neighbour is the last to hear


def test_group_order_and_subgroups_decide_not_the_world():
    trace = Trace(5, tuple(collective(rank, "reduce", group=(4, 2, 0), peer=2, nbytes=10) for rank in (0, 2, 4)))
    assert total_bytes(bytes_sent(trace), 5) == (10, 0, 0, 0, 10)


def test_own_sends_are_measured_and_collectives_computed_side_by_side():
    trace = Trace(
        2,
        (collective(0, n=2, nbytes=8), collective(1, n=2, nbytes=8), Span(0, "send", "send", 0.0, 1.0, nbytes=99)),
        (Message(0, 1, 40, 0.0, 1.0), Message(0, 1, 2, 0.0, 1.0)),
    )
    found = {(t.rank, t.name): (t.source, t.calls, t.messages, t.nbytes) for t in bytes_sent(trace)}
    assert found == {
        (0, "all_reduce"): (COMPUTED, 1, 2, 8),
        (0, "send"): (MEASURED, 2, 2, 42),  # from the messages, not from the span
        (1, "all_reduce"): (COMPUTED, 1, 2, 8),
    }


def test_a_collective_without_a_formula_says_so_and_adds_nothing():
    (entry,) = bytes_sent(Trace(1, (collective(0, "all_to_the_moon"),)))
    assert not entry.known
    assert (entry.calls, entry.nbytes, entry.messages) == (1, 0, 0)
    assert collective_traffic("all_to_the_moon", 10, (0, 1), 0) is None


def test_a_rank_outside_the_group_has_no_figure():
    assert collective_traffic("all_reduce", 10, (0, 1), 7) is None


def main_thread(rank: int, pieces: list[tuple[str, float]]) -> list[Span]:
    now, spans = 0.0, []
    for kind, length in pieces:
        spans.append(Span(rank, kind, kind, now, now + length, cpu=length / 2))
        now += length
    return spans


@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from(["compute", "wait", "recv", "collective"]), st.floats(0, 5)), max_size=8),
        min_size=1,
        max_size=4,
    )
)
def test_busy_and_waiting_share_out_the_main_thread(ranks):
    spans = [span for rank, pieces in enumerate(ranks) for span in main_thread(rank, pieces)]
    trace = Trace(len(ranks), tuple(spans))
    for rank, pieces in enumerate(ranks):
        whole = sum(length for _, length in pieces)
        assert busy_seconds(trace)[rank] + waiting_seconds(trace)[rank] == pytest.approx(whole)
        assert cpu_seconds(trace)[rank] == pytest.approx(busy_seconds(trace)[rank] / 2)


def test_an_operation_in_flight_is_not_waiting():
    flying = Span(0, "collective", "all_reduce", 0.0, 10.0, is_async=True)
    assert waiting_seconds(Trace(1, (flying,))) == (0.0,)


def flight(order: int, done: int | None = None, **more) -> Span:
    """An asynchronous call; all have the same length and end, so that no clock could tell them apart."""
    fields = {"start": float(order), "end": 100.0, "is_async": True, "nbytes": 10, **more}
    return collective(0, order=order, done_order=done, **fields)


def test_overlap_counts_the_calls_made_before_the_wait():
    wait = [Span(0, "wait", "all_reduce", start, start + 0.1, order=order) for order, start in ((0, 0.5), (1, 3.5))]
    (found,) = overlap(Trace(1, (*(flight(order) for order in range(4)), *wait)))
    # 0: waited for at once. 1: calls 2 and 3 came first. 2 and 3: nobody waits; 3 is the last call
    assert (found.asynchronous, found.overlapped, found.deepest) == (4, 2, 2)
    assert (found.nbytes, found.overlapped_nbytes) == (40, 20)


def test_overlap_without_a_wait_lasts_until_the_rank_next_blocks():
    spans = (flight(0), flight(1), collective(0, order=2, start=2.0), flight(3), collective(0, order=4, start=50.0))
    (found,) = overlap(Trace(1, spans))
    assert (found.asynchronous, found.overlapped, found.deepest) == (3, 3, 2)  # a blocking call is a later call too
    (alone,) = overlap(Trace(1, (flight(0), Span(0, "wait", "all_reduce", 1.0, 2.0, order=9), flight(2))))
    assert alone.overlapped == 0  # it waited, for something else, before its next call


def test_a_bucket_that_is_waited_for_only_at_the_end_overlaps_however_fast_it_was():
    quick = tuple(flight(order, done=order + 1, end=order + 0.01) for order in range(3))
    waits = tuple(Span(0, "wait", "all_reduce", 10.0 + i, 10.0 + i, order=i) for i in range(3))
    assert overlap(Trace(1, (*quick, *waits)))[0].overlapped == 2


def test_blocking_calls_never_overlap():
    spans = tuple(collective(0, order=i, done_order=i + 1) for i in range(3))
    assert overlap(Trace(1, spans))[0].asynchronous == 0


def test_calls_counts_by_rank_and_name():
    spans = (collective(0), collective(0), Span(1, "recv", "recv", 0, 1), Span(1, "compute", "compute", 0, 1))
    assert calls(Trace(2, spans)) == ({"all_reduce": 2}, {"recv": 1})


@given(st.lists(st.tuples(st.floats(0, 10), st.floats(0, 3)), max_size=20))
def test_lanes_keep_every_span_and_let_none_overlap(pairs):
    spans = [Span(0, "collective", str(i), start, start + length) for i, (start, length) in enumerate(pairs)]
    rows = lanes(spans)
    assert sorted(s.name for row in rows for s in row) == sorted(s.name for s in spans)
    for row in rows:
        assert all(a.end <= b.start for a, b in zip(row, row[1:], strict=False))
    busiest = max((sum(o.start <= s.start < o.end for o in spans) for s in spans), default=0)
    assert len(rows) <= max(busiest, sum(s.start == s.end for s in spans) + busiest)


def test_meetings_bring_the_ranks_of_one_call_together():
    spans = tuple(collective(rank, n=2, call=call) for call in (1, 0) for rank in (1, 0))
    found = meetings(Trace(2, spans))
    assert [[(s.rank, s.call) for s in meeting] for meeting in found] == [[(0, 0), (1, 0)], [(0, 1), (1, 1)]]


def test_a_meeting_with_one_rank_twice_is_refused_in_words():
    with pytest.raises(UsageError, match="rank 0 made call 3"):
        meetings(Trace(1, (collective(0, call=3), collective(0, call=3))))
