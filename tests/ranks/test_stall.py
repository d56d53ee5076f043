"""Ranks that wait for each other are told so, with rank, call and line, and get their variables back."""

from __future__ import annotations

import time

import pytest
import torch
import torch.distributed as dist

from course.errors import RankError, StallError
from course.ranks.stall import Wait, explain, name_ranks


def stalls(gang, fn, *says, within=8.0, **kwargs):
    gang.put(kept=torch.arange(3))
    start = time.monotonic()
    with pytest.raises(StallError) as caught:
        gang.run(fn, **kwargs)
    assert time.monotonic() - start < within
    for text in says:
        assert text in str(caught.value), str(caught.value)
    assert "rank  state" in str(caught.value)
    return caught.value


def kept(gang):
    return [value.tolist() for value in gang.get("kept")]


def test_a_rank_that_never_comes(ranks):
    def missing(rank):
        if rank != 1:
            dist.all_reduce(torch.ones(2))

    error = stalls(ranks, missing, "ranks 0 and 2 wait in all_reduce", "rank 1 has finished and never called it")
    assert [w.state for w in error.waits] == ["waiting", "finished", "waiting"]
    assert error.waits[0].for_whom == (1,) and "test_stall.py, line" in error.waits[0].line
    assert kept(ranks) == [[0, 1, 2]] * 3


@pytest.mark.parametrize("numbers", [4, 2_000_000])
def test_everybody_sends_first(pair, numbers):
    def exchange(rank, n):
        out, inp = torch.ones(n), torch.empty(n)
        dist.send(out, 1 - rank)
        dist.recv(inp, 1 - rank)

    stalls(
        pair,
        exchange,
        "rank 0 waits in send to 1",
        "rank 1 waits in send to 0",
        "all send first and nobody receives",
        n=numbers,
    )
    assert kept(pair) == [[0, 1, 2]] * 2


def test_many_groups_whose_threads_poll_do_not_hide_a_stall(pair):
    def one_waits(rank):
        groups = [dist.new_group([0, 1]) for _ in range(60)]
        if rank == 0:
            dist.barrier(group=groups[-1])
        else:
            dist.send(torch.ones(1), 0)

    stalls(pair, one_waits, "rank 0 called barrier, rank 1 called send to 0", within=12.0)


def test_a_ring_of_sends_and_a_ring_of_receives(ranks):
    def ring(rank, world_size, send_first):
        x = torch.ones(1)
        if send_first:
            dist.send(x, (rank + 1) % world_size)
        dist.recv(x, (rank - 1) % world_size)

    stalls(ranks, ring, "rank 2 waits in send to 0", "all send first", send_first=True)
    stalls(ranks, ring, "all receive first and nobody sends", send_first=False)


def test_the_right_exchange_is_not_a_stall(pair):
    def exchange(rank):
        out, inp = torch.full((2_000_000,), float(rank)), torch.empty(2_000_000)
        ops = [dist.P2POp(dist.isend, out, 1 - rank), dist.P2POp(dist.irecv, inp, 1 - rank)]
        for request in dist.batch_isend_irecv(ops):
            request.wait()
        return inp[0].item()

    run = pair.run(exchange)
    assert run.values == [1.0, 0.0] and run.notes == ()


def test_one_receives_while_the_others_reduce(ranks):
    def wrong(rank):
        if rank == 2:
            dist.recv(torch.ones(1), 0)
        else:
            dist.all_reduce(torch.ones(1))

    says = "rank 2 called recv from 0"
    stalls(ranks, wrong, says, "ranks 0 and 1 called all_reduce", "in the same order")


def test_a_receive_from_the_wrong_peer(ranks):
    def wrong(rank):
        x = torch.ones(1)
        if rank == 0:
            dist.send(x, 1)
        elif rank == 1:
            dist.recv(x, 2)

    stalls(
        ranks,
        wrong,
        "rank 0 waits in send to 1",
        "rank 1 waits in recv from 2",
        "rank 2 has finished and never called it",
    )


def test_a_receive_from_anyone_costs_that_rank_its_variables(pair):
    def wait_for_anyone(rank):
        if rank == 0:
            dist.recv(torch.ones(1))

    stalls(pair, wait_for_anyone, "rank 0 waits in recv from anyone", "rank 0 was started anew")


def test_a_rank_asleep_is_named_with_its_line(ranks):
    def doze(rank):
        if rank == 1:
            time.sleep(300)
        dist.barrier()

    stalls(ranks, doze, "ranks 0 and 2 wait in barrier", "rank 1 is asleep", "test_stall.py, line")
    assert kept(ranks) == [[0, 1, 2]] * 3


def test_an_error_swallowed_by_a_rank_that_then_sleeps(ranks):
    def swallow(rank):
        x = torch.ones(4)
        try:
            if rank == 1:
                x = x.reshape(3, 3)
            dist.all_reduce(x)
        except Exception:
            time.sleep(300)

    stalls(ranks, swallow, "rank 1 is asleep")


def test_a_wait_inside_backward_is_seen(pair):
    def ddp(rank):
        from torch.nn.parallel import DistributedDataParallel

        model = DistributedDataParallel(torch.nn.Linear(2, 2))
        if rank == 0:
            model(torch.ones(1, 2)).sum().backward()

    stalls(pair, ddp, "rank 0 waits in all_reduce", "rank 1 has finished")


def test_a_barrier_with_a_limit_of_its_own(pair):
    def monitored(rank):
        import datetime

        if rank == 0:
            dist.monitored_barrier(timeout=datetime.timedelta(seconds=300))

    stalls(pair, monitored, "rank 0 waits in monitored_barrier", "rank 1 has finished")


def test_a_group_that_not_every_rank_makes(pair):
    def make(rank):
        if rank == 0:
            dist.new_group([0, 1])

    stalls(pair, make, "rank 0 waits in new_group", "rank 1 has finished")


def test_a_thread_that_waits_while_the_main_thread_joins_it(pair):
    def threaded(rank):
        import threading

        if rank == 0:
            thread = threading.Thread(target=lambda: dist.all_reduce(torch.ones(1)))
            thread.start()
            thread.join()

    stalls(pair, threaded, "rank 0 waits in all_reduce", "rank 1 has finished")


def test_a_thread_left_blocked_does_not_spoil_the_next_run(pair):
    def leave():
        import threading

        thread = threading.Thread(target=lambda: dist.recv(torch.ones(1), 1 - dist.get_rank()), daemon=True)
        thread.start()
        thread.join(0.3)

    pair.run(leave)
    assert pair.run(lambda rank: rank).values == [0, 1]


def test_a_rank_that_computes_is_never_a_stall(ranks):
    def compute(rank, seconds):
        if rank == 1:
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                pass
        dist.barrier()
        return rank

    assert ranks.run(compute, seconds=7).values == [0, 1, 2]


def test_a_rank_whose_child_computes_is_no_stall(ranks):
    def compute(rank, seconds):
        import subprocess
        import sys

        if rank == 1:
            code = f"import time; end = time.time() + {seconds}\nwhile time.time() < end: pass"
            subprocess.run([sys.executable, "-c", code], check=True)
        dist.barrier()
        return rank

    assert ranks.run(compute, seconds=6).values == [0, 1, 2]


def test_a_rank_that_polls_or_downloads_slowly_is_no_stall(ranks):
    def poll(rank):
        if rank == 1:
            for _ in range(40):
                time.sleep(0.1)
        dist.barrier()
        return rank

    assert ranks.run(poll).values == [0, 1, 2]


def test_sleeping_without_anyone_waiting_is_no_stall(ranks):
    def nap(rank):
        time.sleep(4)
        return rank

    assert ranks.run(nap).values == [0, 1, 2]


def test_a_stray_collective_on_one_rank_is_caught_at_the_meeting(ranks):
    def logging(rank):
        loss = torch.tensor(1.0)
        if rank == 0:
            dist.all_reduce(loss)
        grad = torch.tensor([10.0])
        dist.all_reduce(grad)

    with pytest.raises(RankError, match="all_reduce: rank .* has .*float32"):
        ranks.run(logging)


def test_ranks_in_words():
    assert name_ranks([2]) == "rank 2" and name_ranks([3, 0, 1]) == "ranks 0, 1 and 3"


def test_a_circle_of_three_mixed_calls():
    waits = [
        Wait(0, "waiting", "send to 1", "a.py, line 1", (1,)),
        Wait(1, "waiting", "recv from 2", "a.py, line 2", (2,)),
        Wait(2, "waiting", "recv from 0", "a.py, line 3", (0,)),
    ]
    assert explain(waits).endswith("each waits for the next, in a circle")


def test_ranks_that_burn_a_core_while_they_wait_are_judged_by_unfinished_calls(tmp_path):
    import os

    from course.ranks.board import RUNNING, Board, Call
    from course.ranks.frames import Places
    from course.ranks.stall import Watch

    board = Board(tmp_path / "board", 2, 0, create=True)
    call = Call(7, 0, "all_reduce", "", "a.py", 3, (0, 1), -1)
    board.announce(call)
    board.set_state(RUNNING, 1)

    def verdict(pending):
        where = {"file": "a.py", "line": 4, "inner": "synchronize", "pending": pending}
        watch = Watch(board, {0: os.getpid()}, Places(), lambda rank: where, limit=1.5, spins=True)
        until = time.monotonic() + 2.5
        while time.monotonic() < until:
            if stall := watch.look([0], {1: "finished"}):
                return stall
        return None

    assert "rank 0 waits in all_reduce (a.py, line 3) for rank 1" in verdict(call.key()).reason
    assert verdict(None) is None
