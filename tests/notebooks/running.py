"""Pages run as a learner's machine would run them, in processes of their own, and what they leave behind."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

import nbformat
import psutil

ROOT = Path(__file__).resolve().parents[2]
MARK = "COURSE_TEST_MARK"
SECONDS = 300  # for one page; a slow machine is not a failure

UNSOLVED = """
import sys, nbformat
from nbclient import NotebookClient
page = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(page, timeout=120, resources={"metadata": {"path": sys.argv[2]}}).execute()
"""


def nbval(path: Path, *, strict: bool) -> tuple[bool, str]:
    """Whether nbval accepts a page, and what it says. Strict compares outputs; lax only asks that it runs."""
    arguments = [
        "--nbval" if strict else "--nbval-lax",
        "--nbval-current-env",
        "--nbval-cell-timeout=60",
        f"--nbval-sanitize-with={ROOT / 'tests' / 'nbval_sanitize.cfg'}",
        "--color=no",
        "-q",
        *("-p", "no:cacheprovider"),
    ]
    return _run([sys.executable, "-m", "pytest", *arguments, str(path)])


def run_all(path: Path) -> tuple[bool, str]:
    """Whether a page runs from top to bottom without an error, and what nbclient says."""
    return _run([sys.executable, "-c", UNSOLVED, str(path), str(path.parent)])


def _run(command: list[str]) -> tuple[bool, str]:
    mark = uuid.uuid4().hex
    environment = os.environ | {MARK: mark, "COURSE_OUTPUT": "grouped", "COURSE_PROGRESS": "off"}
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT)
        try:
            passed = process.wait(SECONDS) == 0
            overtime = ""
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            passed, overtime = False, f"\nnot done after {SECONDS} s"
        left = _left_after(mark)
        output.seek(0)
        said = output.read()[-6000:] + overtime
    if left and not overtime:
        return False, f"{said}\nprocesses left behind: {left}"
    return passed, said


def _left_after(mark: str, seconds: float = 10) -> list[str]:
    """Command lines of processes that still carry the mark; they get a moment to end."""
    end = time.monotonic() + seconds
    while (left := _marked(mark)) and time.monotonic() < end:
        time.sleep(0.1)
    found = [" ".join(process.cmdline())[:200] for process in left if process.is_running()]
    for process in left:
        process.kill()
    return found


def _marked(mark: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


def sources(path: Path, kind: str) -> list[nbformat.NotebookNode]:
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == kind]
