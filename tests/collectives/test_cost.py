"""What is sent, counted from the trace: messages and bytes of each rank exactly, and the order of posting."""

from __future__ import annotations

import math

import pytest
import torch
import torch.distributed as dist

from course import collectives
from course.trace.statistics import bytes_sent, total_bytes, total_messages

LENGTHS = (0, 1, 12, 1003)
SEGMENTS = (1, 3)


def call(name, length, extra):
    t = torch.arange(length, dtype=torch.float64)
    if name == "ring_all_gather":
        t, extra = t.tensor_split(dist.get_world_size())[dist.get_rank()], {"numel": length}
    getattr(collectives, name)(t, **extra)


def sent(ranks, name, length, **extra):
    """(messages, bytes) that each rank sent."""
    trace = ranks.run(call, name, length, extra).trace
    assert not [span for span in trace.spans if span.kind == "collective"]
    traffic = bytes_sent(trace)
    return list(total_messages(traffic, ranks.world_size)), list(total_bytes(traffic, ranks.world_size))


def chunk_bytes(length, n):
    return [8 * len(part) for part in torch.arange(length).tensor_split(n)]


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_rings_send_what_they_say(ranks, n):
    ranks.resize(n)
    for length in LENGTHS:
        chunks, total = chunk_bytes(length, n), 8 * length
        mine = [total - chunks[r] for r in range(n)]
        nexts = [total - chunks[(r + 1) % n] for r in range(n)]
        both = [a + b for a, b in zip(mine, nexts, strict=True)]
        for segments in SEGMENTS:
            extra = {"segments": segments}
            steps = [(n - 1) * segments] * n
            assert sent(ranks, "ring_reduce_scatter", length, **extra) == (steps, mine)
            assert sent(ranks, "ring_all_reduce", length, **extra) == ([2 * s for s in steps], both)
        assert sent(ranks, "ring_all_gather", length) == ([n - 1] * n, nexts)
        assert sum(both) == 2 * (n - 1) * total
        assert sent(ranks, "ring_shift", length) == ([min(n - 1, 1)] * n, [total * min(n - 1, 1)] * n)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_trees_and_the_naive_way_send_what_they_say(ranks, n):
    ranks.resize(n)
    rounds, size = math.ceil(math.log2(n)), 8 * 12
    for src in {0, n - 1}:
        messages, nbytes = sent(ranks, "broadcast_tree", 12, src=src)
        assert sum(messages) == n - 1 and messages[src] == rounds == max(messages)
        assert all(m < rounds for r, m in enumerate(messages) if r != src)
        assert nbytes == [size * m for m in messages]
    down, _ = sent(ranks, "broadcast_tree", 12)
    messages, nbytes = sent(ranks, "tree_all_reduce", 12)
    assert messages == [down[0], *(m + 1 for m in down[1:])]
    assert nbytes == [size * m for m in messages]
    assert sent(ranks, "naive_all_reduce", 12) == ([n - 1] + [1] * (n - 1), [size * (n - 1)] + [size] * (n - 1))


def children(trace):
    return {(m.src, m.dst) for m in trace.messages}


def test_the_tree_doubles_the_ranks_that_have_it_each_round(ranks):
    ranks.resize(5)
    assert children(ranks.run(call, "broadcast_tree", 3, {"src": 3}).trace) == {(3, 4), (3, 0), (4, 1), (3, 2)}


@pytest.mark.parametrize("segments", SEGMENTS)
@pytest.mark.parametrize("name, steps", [("ring_reduce_scatter", 3), ("ring_all_gather", 3), ("ring_all_reduce", 6)])
def test_receives_are_posted_before_anything_is_sent(ranks, name, steps, segments):
    ranks.resize(4)
    extra = {} if name == "ring_all_gather" else {"segments": segments}
    trace = ranks.run(call, name, 12, extra).trace
    messages = steps * extra.get("segments", 1)
    for rank in range(4):
        spans = [s for s in trace.spans if s.rank == rank and s.kind in ("send", "recv")]
        kinds = [s.kind for s in sorted(spans, key=lambda s: s.order)]
        assert kinds == ["recv"] * messages + ["send"] * messages
        assert all(s.is_async for s in spans)


def test_pieces_go_on_while_others_are_still_to_come(ranks):
    """With 4 pieces, each is sent on as soon as it is added: 3 sends of a step are made before its last piece is."""
    ranks.resize(2)
    trace = ranks.run(call, "ring_all_reduce", 12, {"segments": 4}).trace
    spans = [s for s in trace.spans if s.rank == 0 and s.kind == "send"]
    first_wait = min(s.start for s in trace.of(rank=0, kind="wait"))
    assert sum(s.start < first_wait for s in spans) == 4


@pytest.mark.parametrize("name", collectives.__all__)
def test_every_handle_is_waited_for_and_nothing_sent_is_changed(ranks, name):
    ranks.resize(4)
    for extra in ({}, {"segments": 3}) if name in ("ring_all_reduce", "ring_reduce_scatter") else ({},):
        assert ranks.run(call, name, 1003, extra).notes == ()
