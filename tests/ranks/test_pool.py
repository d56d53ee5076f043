"""Calls go out, plain copies come back; bad calls are refused before a rank hears of them."""

from __future__ import annotations

import enum
import functools
import io
import os
import stat
import threading
import time
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import nn

from course.errors import RankError, UsageError
from course.ranks import Ranks, calls_made, usable_cores

SCALE = 10
BIG = torch.zeros(6_000_000)  # 24 MB
LOCK = threading.Lock()
LOG: list[int] = []


def helper(rank):
    return rank * SCALE


def hello(rank, world_size):
    return helper(rank), world_size


def test_a_function_brings_its_helpers_and_constants(ranks):
    assert ranks.run(hello).values == [(0, 3), (10, 3), (20, 3)]


@functools.lru_cache(maxsize=7)
def cached(n):
    return helper(n)


def test_a_cached_helper_goes_along(ranks):
    def twice(rank):
        return cached(rank), cached(rank), cached.cache_info().hits, cached.cache_parameters()["maxsize"]

    assert ranks.run(twice).values == [(10 * r, 10 * r, 1, 7) for r in range(3)]


def test_rank_world_size_and_device_are_filled_in_only_where_they_are_missing(ranks):
    def both(a, rank, *, world_size=7, device):
        return a, rank, world_size, str(device)

    assert ranks.run(both, "x").values == [("x", r, 7, "cpu") for r in range(3)]
    assert ranks.run(both, "x", rank=5).values == [("x", 5, 7, "cpu")] * 3


def test_positional_arguments_go_to_the_parameters_that_are_not_the_ranks(ranks):
    def spawn_style(rank, world_size, path, lr=0.1):
        return rank, world_size, path, lr

    assert ranks.run(spawn_style, "x").values == [(r, 3, "x", 0.1) for r in range(3)]
    assert ranks.run(spawn_style, "x", 0.5).values[2] == (2, 3, "x", 0.5)
    assert ranks.run(spawn_style, 9, 9, "x").values == [(9, 9, "x", 0.1)] * 3


def test_a_new_version_of_a_function_takes_effect_at_once(ranks):
    for answer in (1, 2):

        def fn(answer=answer):
            return answer

        assert ranks.run(fn).values == [answer] * 3


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)


class Mode(enum.Enum):
    TRAIN = 1


def test_lambdas_closures_partials_and_bound_methods_run(ranks):
    import functools

    def adder(k):
        def add(rank):
            return rank + k

        return add

    class Counter:
        def __init__(self, start):
            self.start = start

        def count(self, rank):
            return self.start + rank

    assert ranks.run(lambda rank: rank * 2).values == [0, 2, 4]
    assert ranks.run(adder(100)).values == [100, 101, 102]
    assert ranks.run(functools.partial(hello, world_size=1)).values == [(0, 1), (10, 1), (20, 1)]
    assert ranks.run(Counter(5).count).values == [5, 6, 7]


def test_instances_come_back_as_instances_of_the_class_here(ranks):
    def make(rank):
        return {"mode": Mode.TRAIN, "net": Net(), "rank": rank}

    value = ranks.run(make).values[1]
    assert type(value["net"]) is Net
    assert value["mode"] is Mode.TRAIN
    assert isinstance(value["net"].fc.weight, nn.Parameter)
    assert value["net"].fc.weight.requires_grad


def test_tensors_come_back_as_plain_copies(ranks):
    def tensors():
        w = torch.ones(3, requires_grad=True)
        big = torch.arange(5_000_000.0)
        return {
            "loss": (w * 2).sum(),
            "view": big[:3],
            "step": big[:10:3],
            "half": torch.ones(2, dtype=torch.bfloat16),
            "empty": torch.ones(0, 4),
            "scalar": torch.tensor(3),
            "flag": torch.tensor([True, False]),
            "complex": torch.tensor([1 + 2j]).conj(),
            "many": [torch.tensor([float(i)]) for i in range(5000)],
        }

    start = time.perf_counter()
    value = ranks.run(tensors).values[2]
    assert time.perf_counter() - start < 20
    assert value["loss"].item() == 6 and not value["loss"].requires_grad and value["loss"].grad_fn is None
    assert value["view"].tolist() == [0, 1, 2] and value["view"].untyped_storage().nbytes() == 12
    assert value["step"].tolist() == [0, 3, 6, 9]
    assert value["half"].dtype is torch.bfloat16 and value["half"].tolist() == [1, 1]
    assert value["empty"].shape == (0, 4) and value["scalar"].item() == 3 and value["flag"].tolist() == [True, False]
    assert value["complex"].item() == 1 - 2j
    assert len(value["many"]) == 5000 and value["many"][4999].item() == 4999


def test_results_outlive_the_ranks():
    with Ranks(2) as gang:
        value = gang.run(lambda rank: torch.full((2, 2), float(rank))).values[1]
    assert value.sum().item() == 4


def test_a_generator_is_refused_with_advice(ranks):
    with pytest.raises(RankError, match=r"generator.*return list"):
        ranks.run(lambda: (i for i in range(3)))


def test_edits_of_a_global_stay_on_the_ranks(ranks):
    def append(rank):
        LOG.append(rank)
        return len(LOG)

    assert ranks.run(append).values == [1, 1, 1]
    assert LOG == []


def test_a_big_global_is_named_with_its_size_once(capsys):
    def use():
        return BIG[0].item()

    with Ranks(2) as gang:
        gang.run(use)
        said = capsys.readouterr().out
        assert "`BIG` (24 MB)" in said and "ranks.put(BIG=BIG)" in said and "2 ranks" in said
        gang.run(use)
        assert "BIG" not in capsys.readouterr().out


def test_put_copies_once_and_get_brings_back(ranks):
    ranks.put(data=[1, 2], BIG=BIG)
    assert ranks.get("data") == [[1, 2]] * 3
    with pytest.raises(RankError, match="`nothing` is not on this rank; there are .*data"):
        ranks.get("nothing")


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda r: r.run(lambda: LOCK), "`LOCK` is a lock and cannot be copied to the ranks"),
        (lambda r: r.run(lambda: open_file), "`open_file` is a TextIOWrapper"),
        (lambda r: r.run(hello, 1, 2, 3), "was called with other arguments: too many positional"),
        (lambda r: r.run(lambda a: a), "needs `a`"),
        (lambda r: r.run(3), "run takes a function"),
        (lambda r: r.run(helper, nonsense=1), "unexpected keyword argument 'nonsense'"),
        (lambda r: r.run(hello, timeout=-1), "timeout=-1"),
        (lambda r: r.run(hello, timeout="x"), "timeout='x'"),
        (lambda r: r.put(f=LOCK), "`f` is a lock"),
        (lambda r: r.get(3), "name of a variable"),
        (lambda r: r.resize(0), "from 1 to"),
        (lambda r: Ranks(0), "Ranks(0) was asked for"),
        (lambda r: Ranks(-2), "Ranks(-2)"),
        (lambda r: Ranks("4"), "a str: give a whole number"),
        (lambda r: Ranks(True), "a bool"),
        (lambda r: Ranks(2.0), "a float"),
        (lambda r: Ranks(1000), "from 1 to 64"),
        (lambda r: Ranks(2, device="tpu"), "device='tpu'"),
        (lambda r: Ranks(2, threads=0), "threads=0"),
        (lambda r: Ranks(2, stall=0), "stall=0"),
    ],
)
def test_a_wrong_call_gets_one_sentence(ranks, call, says):
    with pytest.raises(UsageError) as caught:
        call(ranks)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


open_file = open(os.devnull)  # noqa: SIM115


def test_threads_are_cores_over_ranks():
    with Ranks(2) as gang:
        threads = gang.run(torch.get_num_threads).values
        assert threads == [max(1, usable_cores() // 2)] * 2 == [gang.threads] * 2
    with Ranks(1, threads=2) as gang:
        assert gang.run(torch.get_num_threads).values == [2]


def test_what_earlier_cells_did_to_this_process_does_not_matter():
    torch.randn(500, 500) @ torch.randn(500, 500)  # starts OpenMP here
    with Ranks(2) as gang:

        def work():
            x = torch.randn(1000, 1000)
            return bool(torch.sigmoid(x @ x).isfinite().all())

        assert gang.run(work).values == [True, True]


def test_random_numbers_differ_between_ranks_where_nobody_set_a_seed(ranks):
    def draw():
        import random

        import numpy as np

        return random.random(), float(np.random.rand())

    values = ranks.run(draw).values
    assert len({v[0] for v in values}) == 3 and len({v[1] for v in values}) == 3


def test_two_gangs_live_side_by_side_with_nothing_in_common(ranks):
    with Ranks(2) as other:
        assert other.run(hello).values == [(0, 2), (10, 2)]
        assert ranks.run(hello).values == [(0, 3), (10, 3), (20, 3)]
        assert not set(other.pids) & set(ranks.pids)


def test_ranks_follow_the_notebook_to_its_folder(ranks, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "beside_the_notebook.py").write_text("VALUE = 7\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    def use():
        import beside_the_notebook

        return os.getcwd(), beside_the_notebook.VALUE

    assert ranks.run(use).values == [(str(tmp_path), 7)] * 3


def test_an_edited_module_beside_the_notebook_is_read_again(ranks, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))

    def use():
        import edited_meanwhile

        return edited_meanwhile.VALUE

    for value in (1, 2):
        (tmp_path / "edited_meanwhile.py").write_text(f"VALUE = {value}  {'#' * value}\n")
        os.utime(tmp_path / "edited_meanwhile.py", ns=(value * 10**9, value * 10**9))
        assert ranks.run(use).values == [value] * 3


def test_a_process_forked_from_the_notebook_leaves_the_ranks_alone(ranks):
    pid = os.fork()
    if pid == 0:
        ranks._gang.close()
        os._exit(0)
    os.waitpid(pid, 0)
    assert ranks.run(hello).values == [(0, 3), (10, 3), (20, 3)]


def test_scratch_files_land_in_a_private_folder(ranks):
    def scratch():
        import tempfile

        return tempfile.gettempdir()

    folder = Path(ranks.run(scratch).values[0])
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700


def test_resize_changes_the_world_and_keeps_variables():
    with Ranks(3) as gang:
        gang.put(x=5)
        for n in (1, 2, 4, 3):
            gang.resize(n)
            assert gang.run(hello).values == [(10 * r, n) for r in range(n)]
        assert gang.get("x")[:3] == [5, 5, 5]
        gang.restart()
        with pytest.raises(RankError, match="not on this rank"):
            gang.get("x")


def test_close_twice_and_use_after():
    gang = Ranks(2)
    pids = gang.pids
    gang.close()
    gang.close()
    assert gang.closed and repr(gang) == "<Ranks: closed>"
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    with pytest.raises(UsageError, match="closed: make new ones"):
        gang.run(hello)


def test_a_gang_nobody_holds_is_ended():
    pids = Ranks(2).pids
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_one_use_at_a_time(ranks):
    refused = []

    def second():
        try:
            ranks.run(hello)
        except UsageError as error:
            refused.append(str(error))

    def started(rank, flag):
        if rank == 0:
            Path(flag).touch()
            while Path(flag).exists():
                time.sleep(0.01)

    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        flag = Path(folder) / "flag"
        first = threading.Thread(target=ranks.run, args=(started, str(flag)))
        first.start()
        while not flag.exists():
            time.sleep(0.01)
        second()
        flag.unlink()
        first.join()
    assert refused and "busy with another run" in refused[0]


def test_spawned_ranks_do_the_same_as_forked_ones():
    with Ranks(2, start="spawn") as gang:
        assert gang.run(hello).values == [(0, 2), (10, 2)]
        with pytest.raises(RankError, match="ZeroDivisionError"):
            gang.run(lambda rank: 1 // rank)
        assert gang.run(hello).values == [(0, 2), (10, 2)]
        pids = gang.pids
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_status_names_ranks_backend_device_and_memory(ranks):
    assert ranks.status().startswith("3 ranks, gloo on cpu, 1 thread each, ")
    assert ranks.status().endswith(" MB in all")
    assert repr(ranks) == "<Ranks: 3 ranks, gloo on cpu, 1 thread each>"


def test_calls_made_counts_inside_a_run(ranks):
    def count():
        before = calls_made()
        dist.barrier()
        return before, calls_made()

    assert ranks.run(count).values == [(0, 1)] * 3
    assert calls_made() == 0


def test_dataloader_workers_run_inside_ranks(ranks):
    def load():
        from torch.utils.data import DataLoader

        return [batch.tolist() for batch in DataLoader(list(range(6)), batch_size=3, num_workers=2)]

    assert ranks.run(load, timeout=60).values == [[[0, 1, 2], [3, 4, 5]]] * 3


def test_input_is_refused_with_a_reason(ranks):
    with pytest.raises(RankError, match=r"input\('name'\) was called inside a rank"):
        ranks.run(lambda: input("name"))


def test_bytes_io_is_no_open_file(ranks):
    buffer = io.BytesIO(b"abc")
    assert ranks.run(lambda: buffer.read()).values == [b"abc"] * 3
