"""One rank fails: its own error comes home, short, and everyone else is freed at once."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time

import pytest
import torch
import torch.distributed as dist

from course.errors import RankDied, RankError, RunTimeout, StallError
from course.ranks import Ranks


def before_the_collective(rank):
    x = torch.ones(4) / (rank + 1)
    if rank == 1:
        x = x.reshape(3, 3)
    dist.all_reduce(x)
    return x.tolist()


def test_the_failing_rank_is_named_with_its_line_and_the_others_are_freed(ranks):
    start = time.monotonic()
    with pytest.raises(RankError) as caught:
        ranks.run(before_the_collective)
    assert time.monotonic() - start < 8
    text = str(caught.value)
    first = text.splitlines()[0]
    assert first == "rank 1 raised RuntimeError: shape '[3, 3]' is invalid for input of size 4"
    assert "test_failures.py, line " in text and "x = x.reshape(3, 3)" in text
    assert "ranks 0 and 2 waited in all_reduce" in text and "were freed" in text
    assert "onnection" not in text and "site-packages" not in text
    (failure,) = caught.value.failures
    assert (failure.rank, failure.type_name) == (1, "RuntimeError")


def test_ranks_that_fail_alike_are_told_once(ranks):
    def all_fail():
        return 1 / 0

    with pytest.raises(RankError) as caught:
        ranks.run(all_fail)
    assert str(caught.value).startswith("ranks 0, 1 and 2 raised ZeroDivisionError: division by zero\n")
    assert str(caught.value).count("1 / 0") == 1


def test_what_a_library_wrapped_is_told_too(ranks):
    def wrapped():
        try:
            [].pop()
        except IndexError as error:
            raise RuntimeError("stage 0 failed to run forward") from error

    with pytest.raises(RankError) as caught:
        ranks.run(wrapped)
    assert str(caught.value).splitlines()[:2] == [
        "ranks 0, 1 and 2 raised RuntimeError: stage 0 failed to run forward",
        "because of IndexError: pop from empty list",
    ]


def test_at_most_two_tracebacks(ranks):
    def differ(rank):
        raise ValueError(f"mine is {rank}")

    with pytest.raises(RankError) as caught:
        ranks.run(differ)
    text = str(caught.value)
    assert text.count("mine is") - text.count('f"mine is {rank}"') <= 2 and "failed too" in text


def test_variables_of_all_ranks_survive_a_failure(ranks):
    ranks.put(kept=[1])
    with pytest.raises(RankError):
        ranks.run(before_the_collective)
    assert ranks.get("kept") == [[1]] * 3


def test_an_assert_a_lambda_and_a_syntax_of_errors(ranks):
    def check(rank):
        assert rank < 2, "too high"

    with pytest.raises(RankError, match="rank 2 raised AssertionError: too high"):
        ranks.run(check)
    with pytest.raises(RankError, match="ranks 0, 1 and 2 raised KeyError: 'x'"):
        ranks.run(lambda: {}["x"])


def test_an_exception_class_of_the_notebook_and_one_that_cannot_be_pickled(ranks):
    class Odd(Exception):
        def __init__(self):
            super().__init__("odd")
            self.lock = threading.Lock()

    def fail():
        raise Odd

    with pytest.raises(RankError, match="Odd: odd"):
        ranks.run(fail)


def test_exit_is_an_error_with_its_code(ranks):
    with pytest.raises(RankError, match=r"ranks 0, 1 and 2 raised SystemExit: the code called exit\(3\)"):
        ranks.run(lambda: sys.exit(3))


@pytest.mark.parametrize(
    ("end", "says", "name"),
    [
        (
            lambda: os.kill(os.getpid(), signal.SIGKILL),
            "was killed by SIGKILL .often: the machine ran out of memory; it used up to [0-9,]+ MB",
            "SIGKILL",
        ),
        (lambda: ctypes.string_at(0), "was ended by SIGSEGV", "SIGSEGV"),
        (lambda: os.abort(), "was ended by SIGABRT", "SIGABRT"),
        (lambda: os._exit(7), "ended its own process with exit code 7", None),
        (lambda: os._exit(0), "ended its own process with exit code 0", None),
    ],
)
def test_a_rank_that_dies_is_named_and_replaced(end, says, name):
    def die(rank):
        if rank == 1:
            end()
        x = torch.ones(1)
        dist.all_reduce(x)

    with Ranks(3) as gang:
        before = gang.pids
        gang.put(x=1)
        start = time.monotonic()
        with pytest.raises(RankDied, match=f"rank 1 {says}") as caught:
            gang.run(die)
        assert time.monotonic() - start < 8
        assert caught.value.rank == 1 and caught.value.signal == name
        assert "rank 1 was started anew: its variables are gone" in str(caught.value)
        after = gang.pids
        assert [after[0], after[2]] == [before[0], before[2]] and after[1] != before[1]

        def all_there():
            dist.barrier()
            return "x" in globals()

        gang.run(all_there)


def test_a_rank_killed_between_runs_is_replaced_before_the_next():
    with Ranks(2) as gang:
        victim = gang.pids[0]
        os.kill(victim, signal.SIGKILL)
        while os.path.exists(f"/proc/{victim}"):
            time.sleep(0.01)
        for _ in range(3):
            assert gang.run(lambda rank: rank).values == [0, 1]


def test_memory_that_cannot_be_had_is_an_ordinary_error(ranks):
    def ask(rank):
        x = torch.zeros(10**14) if rank == 1 else torch.ones(1)
        dist.all_reduce(x[:1])

    with pytest.raises(RankError, match="rank 1 raised RuntimeError.*allocate"):
        ranks.run(ask)


def test_pasted_boilerplate_is_harmless(ranks, capsys):
    def pasted(rank, world_size):
        dist.init_process_group("gloo", rank=rank, world_size=world_size)
        x = torch.ones(1)
        dist.all_reduce(x)
        dist.destroy_process_group()
        dist.all_reduce(x)
        return x.item()

    run = ranks.run(pasted)
    assert run.values == [9.0] * 3
    assert [note.split(" did nothing")[0] for note in run.notes] == ["init_process_group", "destroy_process_group"]
    assert capsys.readouterr().out.count("init_process_group did nothing") == 1


def test_only_rank_0_destroys(ranks):
    def only_zero(rank):
        if rank == 0:
            dist.destroy_process_group()
            return "done"
        dist.barrier(group=pair)
        return "met"

    def make():
        global pair
        pair = dist.new_group([1, 2])

    def both(rank):
        make()
        return only_zero(rank)

    assert ranks.run(both).values == ["done", "met", "met"]


def test_a_group_of_ones_own_can_be_made_and_destroyed(ranks):
    def groups(rank):
        group = dist.new_group([0, 2])
        x = torch.ones(1)
        if rank != 1:
            dist.all_reduce(x, group=group)
            dist.destroy_process_group(group)
        dist.barrier()
        return x.item()

    assert ranks.run(groups).values == [2.0, 1.0, 2.0]


def test_what_one_run_left_unreceived_does_not_reach_the_next(ranks):
    def leave(rank):
        if rank == 0:
            dist.isend(torch.full((2,), 99.0), 1)

    def proper(rank):
        x = torch.zeros(2)
        if rank == 0:
            dist.send(torch.ones(2), 1)
        if rank == 1:
            dist.recv(x, 0)
        return x[0].item()

    run = ranks.run(leave)
    assert any("isend" in note and "never waited for" in note for note in run.notes)
    assert ranks.run(proper).values == [0.0, 1.0, 0.0]


def test_prepared_by_rank_0_while_the_others_wait(ranks, tmp_path):
    def prepare(rank, path):
        problem = [None]
        if rank == 0:
            try:
                with open(path + ".part", "w") as f:
                    f.write("ready")
                os.replace(path + ".part", path)
            except OSError as error:
                problem = [repr(error)]
        dist.broadcast_object_list(problem, src=0)
        if problem[0]:
            raise RuntimeError("rank 0 could not prepare the data: " + problem[0])
        with open(path) as f:
            return f.read()

    assert ranks.run(prepare, str(tmp_path / "data")).values == ["ready"] * 3
    with pytest.raises(RankError, match="ranks 0, 1 and 2 raised RuntimeError: rank 0 could not prepare the data"):
        ranks.run(prepare, str(tmp_path / "no such folder" / "data"))


def test_a_killed_fork_server_is_replaced_with_its_ranks():
    with Ranks(2) as gang:
        with pytest.raises(RankDied):
            gang.run(lambda rank: os.kill(os.getppid(), signal.SIGKILL) if rank == 0 else time.sleep(60))
        for _ in range(2):
            assert gang.run(lambda rank: rank).values == [0, 1]


def test_a_value_that_cannot_be_rebuilt_here_is_an_error_of_ours(ranks):
    def wrapped():
        return torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))

    class Leaves:
        def __reduce__(self):
            return sys.exit, (3,)

    for fn in (wrapped, lambda: Leaves()):
        with pytest.raises(RankError, match="cannot be rebuilt in the notebook"):
            ranks.run(fn)


def test_an_exception_whose_text_cannot_be_made(ranks):
    class Broken(Exception):
        def __str__(self):
            raise ValueError

    def fail():
        raise Broken

    with pytest.raises(RankError, match="Broken: .its text cannot be made"):
        ranks.run(fail)


def test_a_deep_recursion_is_shown_short(ranks):
    def dive(n):
        return dive(n + 1)

    with pytest.raises(RankError, match="RecursionError") as caught:
        ranks.run(dive, 0)
    assert len(str(caught.value).splitlines()) < 24 and "more lines like these" in str(caught.value)


def test_a_send_to_a_rank_that_is_not_there(ranks):
    with pytest.raises(RankError, match="rank"):
        ranks.run(lambda: dist.send(torch.ones(1), 9))


def test_a_refused_call_that_was_caught_is_still_told(ranks):
    def catch_it(rank):
        try:
            dist.all_reduce(torch.ones(3 if rank else 4))
        except Exception:
            return

    with pytest.raises((StallError, RankError)) as caught:
        ranks.run(catch_it)
    assert "(4,) float32" in str(caught.value) and "(3,) float32" in str(caught.value)


def test_a_child_that_the_code_forked_is_no_rank(ranks):
    def fork():
        return "child" if os.fork() == 0 else "parent"

    def fork_and_raise():
        if os.fork() == 0:
            raise ValueError

    assert ranks.run(fork).values == ["parent"] * 3
    ranks.run(fork_and_raise)
    assert ranks.run(lambda rank: rank).values == [0, 1, 2]


def test_an_alarm_left_behind_does_not_ring_in_the_next_run(ranks):
    ranks.run(lambda: signal.setitimer(signal.ITIMER_REAL, 0.2))
    assert ranks.run(lambda rank: time.sleep(0.5) or rank).values == [0, 1, 2]


def test_a_rank_that_becomes_another_program(ranks):
    with pytest.raises(RunTimeout, match="ranks 0, 1 and 2 were started anew"):
        ranks.run(lambda: os.execv("/bin/sleep", ["sleep", "100"]), timeout=1)


def test_a_removed_folder_is_made_again():
    import shutil

    with Ranks(2) as gang:
        shutil.rmtree(gang._gang.folder)
        with pytest.raises(RankError):
            gang.run(lambda rank: 1 // rank)
        assert gang.run(lambda rank: rank).values == [0, 1]


def test_groups_that_end_with_a_failure_are_told(ranks):
    def fail(rank):
        pair = dist.new_group([0, 1])
        if rank == 0:
            raise ValueError("no")
        dist.barrier(pair)

    with pytest.raises(RankError, match="groups made with new_group ended"):
        ranks.run(fail)

    def plain_failure(rank):
        raise ValueError("no")

    with pytest.raises(RankError) as caught:
        ranks.run(plain_failure)
    assert "new_group" not in str(caught.value)
