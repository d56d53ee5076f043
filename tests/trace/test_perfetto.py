"""The written file, read back as a viewer reads it."""

from __future__ import annotations

import json
from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from course.trace import Message, Span, Trace
from course.trace.perfetto import perfetto_events, write_perfetto


def test_the_file_holds_spans_tracks_and_arrows(tmp_path):
    trace = Trace(
        2,
        (
            Span(0, "send", "send", 0.001, 0.003, nbytes=64, dtype="float32", peer=1, line="In [5], line 6"),
            Span(1, "recv", "recv", 0.0, 0.004, nbytes=64, peer=0),
        ),
        (Message(0, 1, 64, 0.001, 0.004),),
    )
    path = write_perfetto(trace, tmp_path / "run.json")
    document = json.loads(path.read_text())
    events = document["traceEvents"]
    tracks = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert tracks == {0: "rank 0", 1: "rank 1"}
    (sent,) = [e for e in events if e["ph"] == "X" and e["pid"] == 0]
    assert (sent["ts"], sent["dur"]) == (1000.0, 2000.0)
    assert sent["args"] == {
        "kind": "send",
        "order": 0,
        "bytes": 64,
        "dtype": "float32",
        "peer": 1,
        "line": "In [5], line 6",
    }
    start, finish = (next(e for e in events if e["ph"] == phase) for phase in "sf")
    assert (start["pid"], start["ts"], finish["pid"], finish["ts"]) == (0, 1000.0, 1, 4000.0)
    assert start["id"] == finish["id"] and finish["bp"] == "e"
    assert document["otherData"] == {"origin": "measured", "ranks": 2, "dropped": 0}


@given(
    st.lists(st.tuples(st.integers(0, 2), st.booleans(), st.floats(0, 5), st.floats(0, 2)), max_size=25),
)
def test_slices_of_one_thread_never_overlap(rows):
    now = [0.0, 0.0, 0.0]
    spans = []
    for rank, is_async, start, length in rows:
        if not is_async:  # the main thread does one thing at a time
            start, now[rank] = now[rank], now[rank] + length
        spans.append(Span(rank, "collective", "all_reduce", start, start + length, is_async=is_async))
    slices = [e for e in perfetto_events(Trace(3, tuple(spans))) if e["ph"] == "X"]
    assert len(slices) == len(spans)
    threads = defaultdict(list)
    for e in slices:
        threads[e["pid"], e["tid"]].append((e["ts"], e["ts"] + e["dur"]))
    for pieces in threads.values():
        pieces.sort()
        assert all(a[1] <= b[0] + 1e-6 for a, b in zip(pieces, pieces[1:], strict=False))
