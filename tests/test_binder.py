"""The image for mybinder.org asks for what pyproject.toml asks for, and its scripts are scripts."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CONDA_NAMES = {"torch": "pytorch-cpu", "matplotlib": "matplotlib-base"}


def test_both_lists_hold_the_same_packages_and_bounds() -> None:
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    names = [re.match(r"([\w-]+)(.*)", line).groups() for line in wanted]
    expected = {CONDA_NAMES.get(name, name) + bounds for name, bounds in names}
    listed = re.findall(r"^  - (\S+)", (ROOT / "binder" / "environment.yml").read_text(), re.MULTILINE)
    assert expected == {entry for entry in listed if entry != "pip" and not entry.startswith("python=")}


@pytest.mark.parametrize("name", ["binder/postBuild", "binder/start", ".ci/run"])
def test_scripts_can_be_run(name: str) -> None:
    assert os.access(ROOT / name, os.X_OK)
    assert subprocess.run(["bash", "-n", str(ROOT / name)], check=False).returncode == 0
