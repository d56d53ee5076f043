"""Recorded runs in virtual time: small traces made by hand, then real ones from ranks."""

from __future__ import annotations

import cloudpickle
import pytest
import torch
import torch.distributed as dist

from course.ranks import Ranks
from course.trace import Message, Span, Trace
from course.trace.program import Collective, Compute, Recv, Send, Wait
from course.trace.replay import as_program, bubble, inflated, median_costs, replay
from course.trace.simulate import Connection


@pytest.fixture(scope="module", autouse=True)
def by_value(request):
    cloudpickle.register_pickle_by_value(request.module)
    yield
    cloudpickle.unregister_pickle_by_value(request.module)


def compute(rank, start, end, cpu, name="compute"):
    return Span(rank, "compute", name, start, end, cpu=cpu)


# Rank 0 computes 1 s of CPU (3 s on the wall: it shared a core), sends, computes on; rank 1 receives, then computes.
SEND = Trace(
    2,
    (
        compute(0, 0.0, 3.0, 1.0),
        Span(0, "send", "send", 3.0, 4.0, nbytes=100, peer=1, order=0),
        compute(0, 4.0, 6.0, 2.0),
        Span(1, "recv", "recv", 0.0, 4.0, nbytes=100, peer=0, order=0),
        compute(1, 4.0, 9.0, 2.0),
    ),
    (Message(0, 1, 100, 3.0, 4.0),),
)


def test_compute_takes_its_cpu_time_and_a_message_what_the_link_says():
    assert as_program(SEND) == [[Compute(1.0), Send(1, 100, 0), Compute(2.0)], [Recv(0, 0), Compute(2.0)]]
    trace = replay(SEND, lambda src, dst: Connection(0.5, 100.0))
    assert trace.origin == "replayed" and trace.seconds == 1.0 + 1.5 + 2.0
    assert replay(SEND).seconds == 3.0
    assert replay(SEND) == replay(SEND)


def test_named_spans_take_the_cost_that_is_given():
    trace = Trace(1, (compute(0, 0, 1, 1.0, "F0"), compute(0, 1, 2, 3.0, "F0"), compute(0, 2, 3, 0.5)))
    assert [op.seconds for op in as_program(trace, costs={(0, "F0"): 8.0})[0]] == [2.0, 6.0, 0.5]


def test_a_handle_is_waited_for_where_the_rank_waited():
    spans = (
        Span(0, "collective", "all_reduce", 1.0, 5.0, nbytes=8, group=(0,), call=0, is_async=True, order=4),
        compute(0, 1.0, 2.0, 1.0),
        Span(0, "wait", "all_reduce", 2.0, 5.0, order=4, is_async=True),
    )
    call = Collective("all_reduce", 8, (0,), None, 4)
    assert as_program(Trace(1, spans)) == [[call, Compute(1.0), Wait(4)]]


def test_a_wait_that_was_not_seen_comes_before_the_optimizers_step():
    spans = (
        Span(0, "collective", "all_reduce", 1.0, 5.0, nbytes=8, group=(0,), call=0, is_async=True, order=0),
        compute(0, 1.0, 2.0, 1.0),
        compute(0, 2.0, 3.0, 1.0, "Optimizer.step#SGD.step"),
    )
    kinds = [type(op) for op in as_program(Trace(1, spans))[0]]
    assert kinds == [Collective, Compute, Wait, Compute]


def test_costs_are_medians_over_steps():
    traces = [Trace(1, (compute(0, 0, 1, cpu, "F0"), compute(0, 1, 2, 9.0))) for cpu in (1.0, 50.0, 2.0)]
    assert median_costs(traces) == {(0, "F0"): 2.0}


def test_cpu_time_that_grows_beside_others_is_flagged():
    alone, together = {(0, "F0"): 1.0, (0, "B0"): 2.0}, {(0, "F0"): 2.9, (0, "B0"): 2.1}
    assert inflated(alone, together) == {(0, "F0"): 2.9}


def test_the_bubble_is_the_idle_share():
    trace = Trace(2, (compute(0, 0.0, 2.0, 2.0), compute(1, 2.0, 4.0, 2.0)))
    assert bubble(trace) == 0.5
    assert bubble(Trace(2)) == 0.0


# --- recorded on ranks ------------------------------------------------------------------------------------------------


def work(size=400, times=20):
    x = torch.ones(size, size)
    for _ in range(times):
        x @ x


def relay(rank, world_size):
    """Each rank computes, then hands on: nothing can overlap."""
    t = torch.zeros(1000)
    if rank:
        dist.recv(t, rank - 1)
    work()
    if rank + 1 < world_size:
        dist.send(t, rank + 1)


def side_by_side(rank):
    handle = dist.all_reduce(torch.ones(1000), async_op=True)
    work()
    handle.wait()
    work()
    dist.barrier()


def tagged(rank):
    """Two messages of one pair that arrive in the other order."""
    a, b = torch.zeros(10), torch.zeros(20)
    if rank == 0:
        works = [dist.isend(a, 1, tag=1), dist.isend(b, 1, tag=2)]
    else:
        works = [dist.irecv(b, 0, tag=2), dist.irecv(a, 0, tag=1)]
    for handle in works:
        handle.wait()


def test_a_real_run_replayed():
    with Ranks(3, threads=1, live=False) as ranks:
        chain = ranks.run(relay).trace
        cpu = sum(s.cpu for s in chain.spans if s.kind == "compute")
        assert 0.5 * cpu < replay(chain).seconds <= cpu
        slow = replay(chain, lambda src, dst: Connection(100.0, 1e9))
        assert slow.seconds > 200 and [m.nbytes for m in slow.messages] == [4000, 4000]
        beside = ranks.run(side_by_side).trace
        longest = max(sum(s.cpu for s in beside.of(rank=r, kind="compute")) for r in range(3))
        assert replay(beside).seconds < 1.5 * longest
        ranks.resize(2)
        crossed = replay(ranks.run(tagged).trace, lambda src, dst: Connection(1.0, 1e9))
        assert sorted(m.nbytes for m in crossed.messages) == [40, 80]
