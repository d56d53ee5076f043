"""The checks of pages can fail: each is shown a page that should pass and pages that should not."""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_notebook, new_output

from course.grading.notebooks import KERNELSPEC
from tests.notebooks.running import nbval, run_all


def written(folder: Path, source: str, shown: str) -> Path:
    output = new_output("stream", text=shown)
    page = new_notebook(
        cells=[new_code_cell(source, execution_count=1, outputs=[output])], metadata={"kernelspec": KERNELSPEC}
    )
    nbformat.write(page, folder / "page.ipynb")
    return folder / "page.ipynb"


def test_another_output_fails_strictly_only(tmp_path: Path) -> None:
    page = written(tmp_path, "print(1, 'at 0x7f00')", "2 at 0x8888\n")
    assert not nbval(page, strict=True)[0] and nbval(page, strict=False)[0]


def test_an_error_fails(tmp_path: Path) -> None:
    page = written(tmp_path, "1 / 0", "")
    for passed, said in (nbval(page, strict=False), run_all(page)):
        assert not passed and "ZeroDivisionError" in said


def test_a_process_left_behind_fails(tmp_path: Path) -> None:
    source = (
        "import subprocess, sys\n"
        "sleeper = 'import time; time.sleep(120)'\n"
        "orphan = f'import subprocess, sys; subprocess.Popen([sys.executable, \"-c\", {sleeper!r}])'\n"
        "subprocess.run([sys.executable, '-c', orphan], start_new_session=True)\n"
        "print('started')"
    )
    passed, said = run_all(written(tmp_path, source, "started\n"))
    assert not passed and "left behind" in said and "time.sleep(120)" in said
