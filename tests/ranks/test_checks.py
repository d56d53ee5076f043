"""Mismatches are refused before the call with both lines; what gloo does silently wrong is right or refused."""

from __future__ import annotations

import time

import pytest
import torch
import torch.distributed as dist

from course.errors import RankError


def refused(gang, fn, *says):
    start = time.monotonic()
    with pytest.raises(RankError) as caught:
        gang.run(fn)
    assert time.monotonic() - start < 8
    for text in says:
        assert text in str(caught.value).splitlines()[0], str(caught.value)


def test_shapes_that_differ(ranks):
    def batch(rank):
        dist.all_reduce(torch.ones(60 if rank == 2 else 100, 1000))

    refused(ranks, batch, "all_reduce: rank", "(100, 1000) float32 (test_checks.py, line", "(60, 1000) float32")


def test_a_small_mismatch_and_one_of_dtype_and_of_reduce_op(pair):
    refused(pair, lambda rank: dist.all_reduce(torch.ones(4 - rank)), "(4,) float32", "(3,) float32")
    dtypes = (torch.float32, torch.int32)
    refused(pair, lambda rank: dist.all_reduce(torch.ones(4, dtype=dtypes[rank])), "(4,) float32", "(4,) int32")

    def ops(rank):
        dist.all_reduce(torch.ones(4), op=(dist.ReduceOp.SUM, dist.ReduceOp.MAX)[rank])

    refused(pair, ops, "SUM", "MAX")


def test_roots_and_lists_that_differ(pair):
    refused(pair, lambda rank: dist.broadcast(torch.ones(2), src=rank), "broadcast", "root 0", "root 1")

    def gather(rank, world_size):
        dist.all_gather([torch.zeros(2) for _ in range(world_size)], torch.arange(2.0 + rank))

    refused(pair, gather, "all_gather", "(2,) float32", "(3,) float32")


def test_calls_in_another_order(ranks):
    def order(rank):
        x = torch.ones(2)
        first, second = (dist.all_reduce, dist.barrier) if rank else (dist.barrier, dist.all_reduce)
        for call in (first, second):
            call(x) if call is dist.all_reduce else call()

    refused(ranks, order, "called barrier", "called all_reduce", "in the same order", "test_checks.py, line")


def test_two_ends_of_a_message(pair):
    def sizes(rank):
        dist.send(torch.ones(4), 1) if rank == 0 else dist.recv(torch.ones(5), 0)

    def dtypes(rank):
        dist.send(torch.ones(4), 1) if rank == 0 else dist.recv(torch.ones(4, dtype=torch.int32), 0)

    refused(pair, sizes, "(4,) float32", "(5,) float32")
    refused(pair, dtypes, "float32", "int32")


def test_messages_with_tags_and_from_anyone_are_matched_rightly(ranks):
    def tags(rank):
        out = []
        if rank == 0:
            handles = [dist.isend(torch.full((n,), float(n)), 1, tag=n) for n in (2, 3)]
            [h.wait() for h in handles]
        if rank == 1:
            for n in (3, 2):
                x = torch.empty(n)
                dist.recv(x, 0, tag=n)
                out.append(x[0].item())
        return out

    def anyone(rank, world_size):
        x, got = torch.empty(1), []
        if rank == 0:
            for _ in range(world_size - 1):
                dist.recv(x)
                got.append(x.item())
            dist.recv(x2 := torch.empty(2), 1, tag=5)
            got.append(x2[0].item())
        else:
            dist.send(torch.full((1,), float(rank)), 0)
            if rank == 1:
                dist.send(torch.full((2,), 9.0), 0, tag=5)
        return sorted(got)

    assert ranks.run(tags).values[1] == [3.0, 2.0]
    assert ranks.run(anyone).values[0] == [1.0, 2.0, 9.0]


def test_right_programs_pass_the_checks(ranks):
    def proper(rank, world_size):
        lines = []
        x = torch.ones(3)
        if rank == 0:
            dist.broadcast(x, 0)
        else:
            dist.broadcast(x, 0)  # another line on other ranks: nothing wrong with that
        dist.all_to_all_single(torch.empty(3), torch.arange(3.0))
        sizes = [r + 1 for r in range(world_size)]
        dist.all_to_all_single(torch.empty(3 * (rank + 1)), torch.ones(6), [rank + 1] * 3, sizes)
        objects = [None] * world_size
        dist.all_gather_object(objects, {"rank": rank, "text": "x" * rank})
        out = torch.empty(2)
        dist.scatter(out, [torch.ones(2)] * world_size if rank == 1 else None, src=1)
        dist.gather(out, [torch.empty(2) for _ in range(world_size)] if rank == 2 else None, dst=2)
        received = [None]
        dist.scatter_object_list(received, [1, "two", [3]] if rank == 0 else None, src=0)
        lines.append(objects[2]["text"])
        return lines, received[0]

    assert [v[1] for v in ranks.run(proper).values] == [1, "two", [3]]


def test_average_means_average(pair):
    def average(rank):
        x = torch.tensor([float(rank + 1)])
        dist.all_reduce(x, op=dist.ReduceOp.AVG)
        whole = torch.tensor([1.0, 2.0, 3.0, 4.0]) * (rank + 1)
        out, out2 = torch.zeros(2), torch.zeros(2)
        dist.reduce_scatter_tensor(out, whole, op=dist.ReduceOp.AVG)
        dist.reduce_scatter(out2, list(whole.chunk(2)), op=dist.ReduceOp.AVG)
        return x.item(), out.tolist(), out2.tolist()

    assert pair.run(average).values == [(1.5, [1.5, 3.0], [1.5, 3.0]), (1.5, [4.5, 6.0], [4.5, 6.0])]


def test_an_average_of_integers_is_refused_with_the_reason(pair):
    with pytest.raises(RankError, match="reduce with AVG of int64.*use SUM and divide"):
        pair.run(lambda rank: dist.all_reduce(torch.tensor([rank]), op=dist.ReduceOp.AVG))


def test_reduce_leaves_the_input_of_other_ranks_alone(ranks):
    def reduce(rank):
        x = torch.arange(1.0, 5.0) * (10**rank)
        dist.reduce(x, dst=1)
        return x.tolist()

    assert ranks.run(reduce).values == [[1, 2, 3, 4], [111, 222, 333, 444], [100, 200, 300, 400]]


def test_bfloat16_and_bool(pair):
    def odd(rank):
        x, y = torch.ones(4, dtype=torch.bfloat16), torch.tensor([True, rank == 0])
        dist.all_reduce(x)
        dist.all_reduce(y, op=dist.ReduceOp.BAND)
        return x.float().tolist(), y.tolist()

    assert pair.run(odd).values == [([2.0] * 4, [True, False])] * 2


def test_strided_tensors_are_right_or_refused(pair):
    def reduced(rank):
        x = (torch.arange(6.0).reshape(2, 3) * (rank + 1)).t()
        dist.all_reduce(x)
        return x.tolist()

    expected = (torch.arange(6.0).reshape(2, 3) * 3).t().tolist()
    assert pair.run(reduced).values == [expected] * 2
    for call in ("broadcast", "reduce"):

        def strided(rank, call=call):
            getattr(dist, call)(torch.arange(6.0).reshape(2, 3).t(), 0)

        with pytest.raises(RankError, match="contiguous"):
            pair.run(strided)


@pytest.mark.parametrize("kind", ["isend", "irecv", "all_reduce"])
def test_a_handle_nobody_waits_for_is_named_with_its_line(pair, kind):
    def forget(rank, kind):
        x = torch.ones(4)
        if kind == "all_reduce":
            dist.all_reduce(x, async_op=True)
        elif rank == 0:
            dist.isend(x, 1) if kind == "isend" else dist.send(x, 1)
        else:
            dist.recv(x, 0) if kind == "isend" else dist.irecv(x, 0)

    (note,) = pair.run(forget, kind).notes
    assert note.startswith(f"the handle from {kind}") and "test_checks.py, line" in note and "wait()" in note


def test_handles_that_are_waited_for_are_not_named(pair):
    def proper(rank):
        x, y = torch.ones(4), torch.ones(4)
        work = dist.all_reduce(x, async_op=True)
        other = dist.isend(y, 1) if rank == 0 else dist.irecv(y, 0)
        other.wait()
        work.wait()
        return x.tolist()

    run = pair.run(proper)
    assert run.notes == () and run.values == [[2.0] * 4] * 2


def test_a_send_buffer_changed_too_early_is_named(pair):
    def overwrite(rank):
        buffer = torch.ones(1000)
        if rank == 0:
            request = dist.isend(buffer, 1)
            buffer.zero_()
            request.wait()
        else:
            dist.recv(buffer, 0)

    (note,) = pair.run(overwrite).notes
    assert "isend" in note and "was changed before its wait()" in note


def test_changing_another_part_of_a_tensor_while_one_is_sent_is_fine(pair):
    def ring_step(rank):
        parts = torch.ones(10).tensor_split(2)
        arrived = torch.empty(5)
        receive, send = dist.irecv(arrived, 1 - rank), dist.isend(parts[rank], 1 - rank)
        receive.wait()
        parts[1 - rank].add_(arrived)
        send.wait()

    assert pair.run(ring_step).notes == ()


def test_tensors_of_inference_mode_can_be_sent(pair):
    def swap(rank):
        with torch.inference_mode():
            arrived, mine = torch.empty(4), torch.full((4,), float(rank))
            receive, send = dist.irecv(arrived, 1 - rank), dist.isend(mine, 1 - rank)
            receive.wait(), send.wait()
        return arrived.tolist()

    assert pair.run(swap).values == [[1.0] * 4, [0.0] * 4]


def test_checks_can_be_turned_off():
    from course.ranks import Ranks

    with Ranks(2, check=False, stall=2.0) as gang, pytest.raises(Exception, match="."):
        gang.run(lambda rank: dist.all_reduce(torch.ones(4)) if rank else dist.broadcast(torch.ones(4), 0), timeout=4)
