"""`import course.planner`: what it loads, and what it opens."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import course.planner

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("torch", "numpy", "matplotlib", "rich", "typer", "IPython")

SEARCH = """
from course.planner import find_plans
from course.spec.chips import Cluster, chip_of
from course.spec.plan import Plan
from course.spec.shape import shape_of
find_plans(shape_of("llama-3.1-8b"), Cluster(chip=chip_of("h100"), num_gpus=8), Plan(global_batch=64, sequence=8192))
"""


def loaded(code: str) -> set[str]:
    """Modules in a fresh interpreter after `code`."""
    code += "\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("code", ["import course.planner", "from course.planner import *", SEARCH])
def test_nothing_heavy_is_loaded(code: str) -> None:
    assert not loaded(code) & set(HEAVY)


def test_the_door_alone_loads_no_room() -> None:
    rooms = {name for name in loaded("import course.planner") if name.startswith("course.planner.")}
    assert rooms == set()


def test_every_name_opens() -> None:
    assert all(getattr(course.planner, name) is not None for name in course.planner.__all__)
    assert dir(course.planner) == course.planner.__all__
    with pytest.raises(AttributeError, match="has no name 'fit_'; it has ALGORITHMS"):
        _ = course.planner.fit_
