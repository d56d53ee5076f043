"""What ranks do is written down, whoever makes the call: the learner, DDP, FSDP2, DTensor or a pipeline."""

from __future__ import annotations

import torch
import torch.distributed as dist

from course.ranks import Ranks


def names(run, rank=0, kind="collective"):
    return [span.name for span in run.trace.of(rank=rank, kind=kind)]


def test_a_sync_collective_a_send_and_a_receive(ranks):
    def talk(rank):
        x = torch.ones(6)
        dist.all_reduce(x)
        if rank == 0:
            dist.send(x, 2)
        if rank == 2:
            dist.recv(x, 0)

    trace = ranks.run(talk).trace
    (reduce,) = trace.of(rank=1, kind="collective")
    assert (reduce.name, reduce.nbytes, reduce.dtype, reduce.group, reduce.call) == (
        "all_reduce",
        24,
        "float32",
        (0, 1, 2),
        0,
    )
    assert not reduce.is_async and reduce.line.startswith("test_recorder.py, line ") and reduce.end >= reduce.start
    (message,) = trace.messages
    assert (message.src, message.dst, message.nbytes) == (0, 2, 24) and message.end > message.start
    assert trace.world_size == 3 and trace.origin == "measured" and trace.seconds > 0


def test_main_thread_spans_do_not_overlap_and_compute_has_cpu_time(ranks):
    def work():
        x = torch.randn(300, 300)
        for _ in range(3):
            for _ in range(10):
                x = torch.tanh(x @ x)
            dist.all_reduce(x)

    trace = ranks.run(work).trace
    for rank in range(3):
        mine = [s for s in trace.of(rank=rank) if s.kind in ("compute", "wait") or not s.is_async]
        assert all(a.end <= b.start + 1e-9 for a, b in zip(mine, mine[1:], strict=False))
        compute = trace.of(rank=rank, kind="compute")
        assert all(s.cpu is not None for s in compute) and sum(s.cpu for s in compute) > 0


def test_an_async_collective_overlaps_and_has_an_end_of_its_own(ranks):
    def work():
        x, y = torch.ones(1000), torch.randn(400, 400)
        handle = dist.all_reduce(x, async_op=True)
        for _ in range(20):
            y = torch.tanh(y @ y)
        handle.wait()

    trace = ranks.run(work).trace
    (reduce,) = trace.of(rank=0, kind="collective")
    (wait,) = trace.of(rank=0, kind="wait")
    assert reduce.is_async and reduce.start < wait.start and wait.name == "all_reduce"
    assert reduce.end <= wait.end


def test_ddp_is_seen_and_its_buckets_start_before_backward_ends(pair):
    def ddp():
        torch.manual_seed(0)
        model = torch.nn.Sequential(*[torch.nn.Linear(200, 200) for _ in range(6)])
        ddp = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.2)
        for _ in range(2):
            ddp(torch.randn(8, 200)).sum().backward()

    run = pair.run(ddp)
    assert names(run).count("all_reduce") >= 4 and run.notes == ()


def test_fsdp2_and_dtensor_are_seen(pair):
    def sharded():
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

        model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))
        fully_shard(model)
        model(torch.ones(2, 8)).sum().backward()
        mesh = init_device_mesh("cpu", (2,))
        mlp = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Linear(16, 8))
        parallelize_module(mlp, mesh, {"0": ColwiseParallel(), "1": RowwiseParallel()})
        y = mlp(torch.ones(2, 8))
        y.sum().backward()

    seen = set(names(pair.run(sharded)))
    assert {"all_gather_into_tensor", "all_reduce"} <= seen
    assert "reduce_scatter_tensor" in seen


def test_a_pipeline_of_torch_is_seen(pair):
    def pipeline(rank, world_size):
        from torch.distributed.pipelining import PipelineStage, Schedule1F1B

        stage = PipelineStage(torch.nn.Linear(4, 4), rank, world_size, torch.device("cpu"))
        schedule = Schedule1F1B(stage, n_microbatches=4, loss_fn=lambda out, target: (out - target).pow(2).mean())
        if rank == 0:
            schedule.step(torch.ones(8, 4))
        else:
            schedule.step(target=torch.zeros(8, 4))

    trace = pair.run(pipeline).trace
    assert len([m for m in trace.messages if m.src == 0 and m.nbytes == 32]) >= 4
    assert len([m for m in trace.messages if m.src == 1 and m.nbytes == 32]) >= 4


def test_objects_functional_collectives_and_inference_mode_are_seen(pair):
    def others(rank, world_size):
        import torch.distributed._functional_collectives as funcol

        dist.all_gather_object([None] * world_size, rank)
        with torch.inference_mode():
            dist.all_reduce(torch.ones(2))
        return funcol.all_reduce(torch.ones(2), "sum", dist.group.WORLD).sum().item()

    run = pair.run(others)
    assert run.values == [4.0, 4.0]
    assert names(run).count("all_reduce") >= 2 and "all_gather" in names(run)


def test_a_call_in_a_subgroup_names_its_ranks(ranks):
    def sub(rank):
        group = dist.new_group([0, 2])
        if rank != 1:
            dist.broadcast(torch.ones(2), 2, group=group)

    (span,) = [s for s in ranks.run(sub).trace.of(rank=0, kind="collective") if s.name == "broadcast"]
    assert span.group == (0, 2) and span.peer == 2


def test_tracing_can_be_turned_off():
    with Ranks(2, trace=False) as gang:
        assert gang.run(lambda: dist.barrier()).trace.spans == ()


def test_operators_that_torch_dispatches_in_python_work_inside_ranks(pair):
    def flex():
        from torch.nn.attention.flex_attention import flex_attention

        q = torch.ones(1, 1, 8, 4)
        return flex_attention(q, q, q).sum().item()

    assert pair.run(flex, timeout=120).values == [32.0, 32.0]


def test_many_small_operations_whose_tensors_are_dropped_at_once_do_not_lock_up(ranks):
    def many():
        for i in range(300):
            dist.broadcast(torch.ones(1000) * i, 0)
            dist.all_reduce(torch.ones(100), async_op=True).wait()
        return "through"

    assert ranks.run(many).values == ["through"] * 3


def test_what_runs_under_a_name_is_a_span_of_that_name(pair):
    def named(rank):
        with torch.profiler.record_function("F0"):
            torch.ones(400, 400) @ torch.ones(400, 400)
            dist.barrier()
            torch.ones(400, 400) @ torch.ones(400, 400)
        torch.ones(400, 400) @ torch.ones(400, 400)
        dist.barrier()

    trace = pair.run(named).trace
    for rank in range(2):
        first, second = trace.of(rank=rank, kind="compute", name="F0")
        barriers = trace.of(rank=rank, kind="collective")
        assert first.end <= barriers[0].start and barriers[0].end <= second.start < second.end <= barriers[1].start


def test_an_asynchronous_reduce_scatter_works_though_gloo_has_no_future_for_it(ranks):
    def scatter(rank):
        part = torch.empty(2)
        dist.reduce_scatter_tensor(part, torch.arange(6.0) * (rank + 1), async_op=True).wait()
        return part.tolist()

    run = ranks.run(scatter)
    assert run.values == [[0.0, 6.0], [12.0, 18.0], [24.0, 30.0]]
    assert [s.name for s in run.trace.of(rank=0, kind="collective")] == ["reduce_scatter_tensor"]
