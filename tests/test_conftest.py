"""A skip that .ci/run promised not to happen is a failure; any other skip stays one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SKIPPED = """
import pytest

@pytest.mark.{mark}
def test_of_something():
    pytest.skip("not here")
"""


@pytest.mark.parametrize(
    ("mark", "promised", "code"),
    [("browser", "1", 1), ("slow", "1", 1), ("browser", "", 0), ("gpu", "1", 0)],
    ids=str,
)
def test_promised_tests_must_run(tmp_path: Path, mark: str, promised: str, code: int) -> None:
    shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)
    (tmp_path / "test_it.py").write_text(SKIPPED.format(mark=mark))
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    browser\n    gpu\n    slow\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env=os.environ | {"COURSE_NOTHING_SKIPPED": promised},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout
    assert ("promises a run" in done.stdout) == bool(code)
