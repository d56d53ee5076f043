"""The simulator against closed forms, small programs worked out by hand, and programs that cannot end."""

from __future__ import annotations

import pytest

from course.errors import DeadlockError, UsageError
from course.spec.schedule import gpipe_schedule, interleaved_1f1b, one_f_one_b, parse_actions, zero_bubble_h1
from course.trace.program import Collective, Compute, Recv, Send, Wait, pipeline_program
from course.trace.simulate import Connection, simulate

SIZES = [(stages, microbatches) for stages in range(1, 9) for microbatches in range(1, 17)]


def seconds(schedule, forward, backward, weights=None, **settings):
    program = pipeline_program(schedule, forward=forward, backward=backward, weights=weights, **settings)
    return simulate(program).seconds


@pytest.mark.parametrize(("p", "m"), SIZES)
def test_equal_stages_take_what_the_closed_forms_say(p, m):
    assert seconds(gpipe_schedule(p, m), [1] * p, [2] * p) == 3 * (m + p - 1)
    assert seconds(one_f_one_b(p, m), [1] * p, [2] * p) == 3 * (m + p - 1)
    if m >= 2 * p - 1:  # enough microbatches to fill the bubble: idle (p-1)(F+B-W), Qi et al. 2023
        assert seconds(zero_bubble_h1(p, m), [3] * p, [2] * p, [1] * p) == 6 * m + (p - 1) * (3 + 2 - 1)
    for v in (2, 3):
        if m % p == 0:
            pieces = p * v
            assert seconds(interleaved_1f1b(p, m, v), [1] * pieces, [2] * pieces) == 3 * (v * m + p - 1)


@pytest.mark.parametrize(("p", "m"), SIZES)
def test_gpipes_speed_up_is_amdahls_law_with_a_serial_share_of_one_over_m(p, m):
    alone = 3 * m * p  # every microbatch through every stage on one device
    speed_up = alone / seconds(gpipe_schedule(p, m), [1] * p, [2] * p)
    serial = 1 / m
    assert speed_up == pytest.approx(1 / (serial + (1 - serial) / p))


@pytest.mark.parametrize(("split", "expected"), [((10, 10, 10), 396), ((12, 11, 7), 348), ((9, 13, 8), 372)])
def test_thirty_layers_and_a_head_that_costs_four(split, expected):
    forward = [split[0], split[1], split[2] + 4]
    assert seconds(one_f_one_b(3, 8), forward, [2 * cost for cost in forward]) == expected


def test_a_message_costs_alpha_and_its_bytes():
    program = [[Compute(1.0), Send(1, 100, blocking=False)], [Recv(0), Compute(2.0)]]
    trace = simulate(program, lambda src, dst: Connection(0.5, 100.0))
    assert trace.seconds == 1 + 0.5 + 1 + 2
    (message,) = trace.messages
    assert (message.start, message.end, message.nbytes) == (1.0, 2.5, 100)


def test_a_blocking_send_waits_for_its_receive():
    program = [[Send(1, 10), Compute(1.0)], [Compute(5.0), Recv(0)]]
    trace = simulate(program, lambda src, dst: Connection(0.0, 10.0))
    assert trace.of(rank=0, kind="send")[0].end == 6.0
    assert trace.seconds == 7.0


def test_messages_on_one_wire_queue_and_on_two_do_not():
    program = [[Send(2, 10, blocking=False)], [Send(2, 10, blocking=False)], [Recv(0), Recv(1)]]
    assert simulate(program, lambda src, dst: Connection(0.0, 10.0)).seconds == 1.0
    assert simulate(program, lambda src, dst: Connection(0.0, 10.0, "shared")).seconds == 2.0


def test_a_shared_wire_serves_whoever_is_ready_first():
    late_first = [
        [Compute(3.0), Send(2, 10, blocking=False)],
        [Compute(1.0), Send(2, 10, blocking=False), Compute(1.0), Send(2, 10, blocking=False)],
        [Recv(0), Recv(1), Recv(1)],
    ]
    trace = simulate(late_first, lambda src, dst: Connection(0.0, 10.0, "shared"))
    assert sorted((m.src, m.start, m.end) for m in trace.messages) == [(0, 3.0, 4.0), (1, 1.0, 2.0), (1, 2.0, 3.0)]


def test_receives_posted_early_and_waited_for_late_cost_nothing():
    program = [
        [Send(1, 100, blocking=False)],
        [Recv(0, handle=7), Compute(2.0), Wait(7), Compute(1.0)],
    ]
    trace = simulate(program, lambda src, dst: Connection(0.0, 100.0))
    assert trace.seconds == 3.0 and not trace.of(kind="wait")
    trace = simulate(program, lambda src, dst: Connection(0.0, 25.0))
    (wait,) = trace.of(kind="wait")
    assert (wait.start, wait.end, trace.seconds) == (2.0, 4.0, 5.0)


def test_a_collective_starts_when_the_last_rank_comes_and_runs_beside_what_follows():
    group = (0, 1)
    program = [
        [Collective("all_reduce", 100, group, handle=1), Compute(1.0), Wait(1)],
        [Compute(2.0), Collective("all_reduce", 100, group)],
    ]
    trace = simulate(program, lambda src, dst: Connection(0.25, 100.0))
    assert trace.seconds == 2.0 + 2 * 0.25 + 1.0  # ring: 2(n-1) messages, 2(n-1)/n S bytes
    assert trace.of(rank=0, kind="wait")[0].start == 1.0


def test_collectives_of_one_group_run_one_after_another():
    calls = [Collective("all_reduce", 100, (0, 1), handle=h) for h in (1, 2)]
    trace = simulate([[*calls, Wait(1), Wait(2)]] * 2, lambda src, dst: Connection(0.0, 100.0))
    assert trace.seconds == 2.0


def test_the_same_program_gives_the_same_trace():
    program = pipeline_program(one_f_one_b(4, 8), forward=[1, 2, 3, 1], backward=[2, 4, 6, 2], nbytes=10)
    first, second = (simulate(program, lambda src, dst: Connection(0.1, 100.0, "bus")) for _ in range(2))
    assert first == second and first.origin == "simulated"


def test_a_circle_of_blocking_sends_is_named():
    program = [[Send(1, 1), Recv(2)], [Send(2, 1), Recv(0)], [Send(0, 1), Recv(1)]]
    with pytest.raises(DeadlockError, match="circle: rank 0 waits in send for rank 1; rank 1") as caught:
        simulate(program)
    assert [(rank, other) for rank, _, other in caught.value.cycle] == [(0, 1), (1, 2), (2, 0)]


def test_a_schedule_whose_sends_block_waits_in_a_circle():
    program = pipeline_program(one_f_one_b(2, 3), forward=[1, 1], backward=[1, 1], blocking=True)
    with pytest.raises(DeadlockError, match="send F1 for rank 1; rank 1 waits in send B0 for rank 0"):
        simulate(program)


def test_a_schedule_in_a_wrong_order_is_refused_with_its_circle():
    schedule = (parse_actions("F0 B0 F1 B1"), parse_actions("F0 F1 B0 B1"))
    program = pipeline_program(schedule, forward=[1, 1], backward=[1, 1])
    with pytest.raises(DeadlockError, match="rank 0 waits in recv B0 for rank 1; rank 1 waits in recv F1 for rank 0"):
        simulate(program)


def test_a_rank_that_is_done_does_not_come():
    with pytest.raises(DeadlockError, match="rank 0 waits in recv for rank 1, which is done"):
        simulate([[Recv(1)], [Compute(1.0)]])
    with pytest.raises(DeadlockError, match="rank 0 waits in all_reduce for rank 1, which is done"):
        simulate([[Collective("all_reduce", 4, (0, 1), handle=3), Wait(3)], []])
    with pytest.raises(DeadlockError, match="rank 1 calls barrier where rank 0 calls all_reduce"):
        simulate([[Collective("all_reduce", 4, (0, 1))], [Collective("barrier", 0, (0, 1))]])


def test_what_is_no_program_is_refused():
    with pytest.raises(UsageError, match="sends to rank 5, but the ranks are 0 to 0"):
        simulate([[Send(5, 1)]])
    with pytest.raises(UsageError, match="need 2 costs for F, but got 1"):
        pipeline_program(one_f_one_b(2, 2), forward=[1], backward=[1, 1])
    with pytest.raises(UsageError, match="2 pieces have 1 boundaries, but got 3 sizes"):
        pipeline_program(one_f_one_b(2, 2), forward=[1, 1], backward=[1, 1], nbytes=[1, 2, 3])
    with pytest.raises(UsageError, match="has 'F0'"):
        simulate([["F0"]])
