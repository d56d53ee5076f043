"""What the learner's code may do to a rank: each accident has its own sentence, and costs one gang."""

from __future__ import annotations

import os
import threading
from typing import Any

import psutil
import pytest

from course.grading.bench import Limits
from course.grading.exercises import EXERCISES
from course.grading.judge import judge
from course.grading.report import Report

PRELUDE = "import os, signal, sys, time\nimport torch\nimport torch.distributed as dist\n"


def graded(body: str, exercise: str = "hello_rank", arguments: str = "", **limits: Any) -> Report:
    """The report on a function with this body."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    exec(f"{PRELUDE}def {exercise}({arguments}):\n{lines}", namespace)
    return judge(EXERCISES[exercise], namespace[exercise], limits=Limits(**limits) if limits else None)


def first(report: Report) -> str:
    """What the first check that failed got."""
    return next(line.got for line in report.lines if line.status == "fail")


def test_an_endless_loop_is_stopped_and_ends_the_grading() -> None:
    report = graded("while True:\n    pass", timeout=1.0)
    assert first(report) == "with 4 ranks the code was still computing when its time was up"
    assert [line.status for line in report.lines] == ["fail", "not judged", "not judged"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("sys.exit(0)", "exit"),
        ("exit()", "exit"),
        ("os._exit(0)", "left with exit code 0, without a result"),
        ("os._exit(3)", "left with exit code 3, without a result"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "was ended by SIGKILL"),
        ("import ctypes\nctypes.string_at(0)", "was ended by SIGSEGV"),
        ("return 1 / 0", "the code raised ZeroDivisionError: division by zero"),
        ("raise ValueError(object())", "the code raised ValueError: <object object at 0x...>"),
        ("if dist.get_rank() == 2:\n    raise KeyError('x')\ndist.barrier()", "rank 2 raised KeyError"),
        ("return undefined_name", "the code raised NameError: name 'undefined_name' is not defined"),
        ("if dist.get_rank() == 0:\n    dist.barrier()\nreturn dist.get_rank(), dist.get_world_size()", "wait"),
        ("dist.recv(torch.ones(1), src=(dist.get_rank() + 1) % dist.get_world_size())", "wait for each other"),
        ("if dist.get_rank() == 1:\n    time.sleep(60)\ndist.barrier()", "the ranks wait for each other"),
    ],
)
def test_each_accident_has_its_sentence(body: str, said: str) -> None:
    report = graded(body)
    assert said in first(report), str(report)
    assert report.points == 0 and report.attempted
    assert "0x7" not in str(report)


def test_one_accident_is_told_once() -> None:
    text = str(graded("return 1 / 0"))
    assert text.count("division by zero") == 1 and text.count("The same happened here.") == 2


def test_what_cannot_be_sent_to_a_rank_is_named() -> None:
    lock = threading.Lock()

    def hello_rank() -> tuple[int, int]:
        with lock:
            return 0, 1

    report = judge(EXERCISES["hello_rank"], hello_rank)
    assert "lock" in first(report)


def test_a_wrong_signature_is_an_error_of_the_call() -> None:
    report = graded("return [0]", "shard_indices", "n")
    assert "TypeError" in first(report) and "shard_indices()" in first(report)


def test_destroying_the_group_does_not_hurt() -> None:
    body = "answer = dist.get_rank(), dist.get_world_size()\ndist.destroy_process_group()\nreturn answer"
    assert graded(body).passed


def test_the_kernel_never_runs_the_code() -> None:
    here = os.getpid()
    body = f"if os.getpid() == {here}:\n    os._exit(9)\nreturn dist.get_rank(), dist.get_world_size()"
    assert graded(body).passed


def test_gangs_are_gone_after_grading() -> None:
    graded("return dist.get_rank(), dist.get_world_size()")
    before = len(psutil.Process().children(recursive=True))
    for _ in range(3):
        graded("os._exit(1)")
        graded("return dist.get_rank(), dist.get_world_size()")
    assert len(psutil.Process().children(recursive=True)) <= before
