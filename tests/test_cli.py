"""The command line as scripts and people use it: words, exit codes, and a JupyterLab that answers."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from course import cli
from tests.browser.lab import answers, wait_until

Course = Callable[..., tuple[int, str, str]]
ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def course(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Course:
    """Call the command in this process: (exit code, stdout, stderr)."""
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "progress.json"))
    monkeypatch.setenv("COLUMNS", "120")

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["course", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        code = ended.value.code
        return code if isinstance(code, int) else 0, *capsys.readouterr()

    return call


@pytest.fixture
def page(tmp_path: Path) -> Callable[..., Path]:
    def write(*cells: str, name: str = "page.ipynb") -> Path:
        nbformat.write(new_notebook(cells=[new_code_cell(cell) for cell in cells]), tmp_path / name)
        return tmp_path / name

    return write


RIGHT = "def hello_rank():\n    return dist.get_rank(), dist.get_world_size()"
WRONG = "def hello_rank():\n    return dist.get_world_size(), dist.get_rank()"
IMPORTS = "import torch.distributed as dist\nfrom course import Ranks, grade\nranks = Ranks(4)"


@pytest.mark.parametrize("command", ["lab", "doctor", "grade", "progress", "build"])
def test_every_command_has_help_with_examples(course: Course, command: str) -> None:
    code, out, _ = course(command, "--help")
    assert code == 0 and f"$ course {command}" in out
    assert command in course("--help")[1]


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("lab", "no/such/page.ipynb"),
        ("lab", "--port", "many"),
        ("grade",),
        ("grade", "no/such/page.ipynb"),
        ("build", "page.ipynb"),
        ("build", "--check", "--run"),
    ],
)
def test_a_wrong_use_exits_with_2(course: Course, arguments: tuple[str, ...]) -> None:
    code, _, err = course(*arguments)
    assert code == 2 and err.strip()


def test_doctor_starts_two_ranks_and_says_what_they_found(course: Course) -> None:
    code, out, _ = course("doctor")
    assert code == 0
    assert "added 0 and 1 over" in out and re.search(r"cores +\d", out) and "GPUs" in out


def test_doctor_names_what_is_missing_and_exits_with_1(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    code, out, err = course("doctor")
    assert code == 1
    assert "two ranks" not in out and "PyTorch: cannot be loaded" in err and "make lab" in err


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"cpu.max": "max 100000"}, 8),
        ({"cpu.max": "250000 100000"}, 2),
        ({"cpu.max": "50000 100000"}, 1),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 8),
        ({"cpu/cpu.cfs_quota_us": "300000", "cpu/cpu.cfs_period_us": "100000"}, 3),
        ({}, 8),
    ],
)
def test_cores_are_those_of_the_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], cores: int
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    monkeypatch.setattr(cli, "CGROUP", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
    assert cli.usable_cores() == cores


def test_memory_is_that_of_the_container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "CGROUP", tmp_path)
    machine = cli.usable_memory()[1]
    (tmp_path / "memory.max").write_text("1000000\n")
    (tmp_path / "memory.current").write_text("400000\n")
    assert cli.usable_memory() == (600000, 1000000)
    (tmp_path / "memory.max").write_text("max\n")
    assert cli.usable_memory()[1] == machine


def test_grade_tells_right_from_wrong_by_its_exit_code(course: Course, page: Callable[..., Path]) -> None:
    code, out, _ = course("grade", str(page(IMPORTS, RIGHT)))
    assert code == 0 and "hello_rank (core): 3 of 3 points" in out and "page.ipynb: 3 of 3 points" in out
    code, out, _ = course("grade", str(page(IMPORTS, WRONG)))
    assert code == 1 and "FAIL" in out


def test_grade_goes_on_after_a_page_that_is_none(course: Course, page: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / "bad.ipynb").write_text("no notebook")
    empty = page("1 + 1", name="empty.ipynb")
    code, out, err = course("grade", str(tmp_path / "bad.ipynb"), str(empty), str(page(IMPORTS, RIGHT)))
    assert code == 1
    assert "bad.ipynb is not a notebook" in err and "empty.ipynb holds no answer" in err
    assert "page.ipynb: 3 of 3 points" in out


def test_grade_keeps_points_only_when_asked(course: Course, page: Callable[..., Path]) -> None:
    solved = str(page(IMPORTS, RIGHT))
    code, out, _ = course("grade", "--json", solved)
    result = json.loads(out)
    assert code == 0 and (result["page"], result["points"], result["total"]) == (solved, 3, 3)
    assert result["exercises"][0]["exercise"] == "hello_rank" and result["exercises"][0]["passed"] is True
    assert course("progress")[1].startswith("0 of")
    course("grade", "--record", solved)
    assert course("progress")[1].startswith("3 of")


def test_an_unsolved_page_is_not_wrong(course: Course, page: Callable[..., Path]) -> None:
    code, out, _ = course("grade", str(page("def hello_rank():\n    raise NotImplementedError('yours')")))
    assert code == 0 and "not attempted" in out


def test_build_checks_another_checkout_from_inside_it(
    course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "course").mkdir()
    (tmp_path / "course" / "cli").mkdir()
    (tmp_path / "notebooks").mkdir()
    monkeypatch.chdir(tmp_path / "notebooks")
    code, _, err = course("build", "--check")
    assert code == 1 and "solutions/00_start_here.ipynb is missing" in err


def test_lab_answers_at_the_address_it_prints() -> None:
    command = [sys.executable, "-m", "course.cli", "lab", "--no-browser", "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as lab:
        try:
            said = []
            for line in lab.stdout:
                said.append(line)
                if address := re.search(r"http://127\.0\.0\.1:\d+(/\S+)\?token=\w+", line):
                    break
            else:
                pytest.fail("".join(said))
            assert address[1] == "/lab/tree/notebooks/00_start_here.ipynb"
            wait_until(lambda: answers(address[0]), f"an answer at {address[0]}", 30)
        finally:
            lab.terminate()
            lab.stdout.read()
