"""The lesson's ring in MPI gives the sums of the formula under both of MPICH's launchers; the page's opens no port."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "notebooks" / "ring_mpi.py"
LAUNCHERS = ("mpirun", "mpiexec.gforker")
NUMBERS = 1_000_003
ONE_MACHINE = {"UCX_TLS": "self,sm"}  # shared memory alone: processes of one machine need no network
LISTENING = """
import psutil
from mpi4py import MPI
MPI.COMM_WORLD.allreduce(1)
print([tuple(c.laddr) for c in psutil.Process().net_connections() if c.status == psutil.CONN_LISTEN])
"""


def launch(launcher: str, n: int, *arguments: str) -> str:
    """What a program prints under a launcher beside this Python, on n processes."""
    command = Path(sys.executable).with_name(launcher)
    if importlib.util.find_spec("mpi4py") is None or not command.exists():
        pytest.skip("the extra `mpi` is not installed: pip install -e '.[mpi]'")
    line = [str(command), "-n", str(n), sys.executable, *arguments]
    done = subprocess.run(line, env=os.environ | ONE_MACHINE, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("n", [1, 3, 4])
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_every_process_gets_the_sums_of_the_ring(launcher: str, n: int) -> None:
    """Rank r brings (r + 1) * [0, 1, 2...]: the sums are n(n + 1)/2 times that."""
    times = n * (n + 1) // 2
    last, total = times * (NUMBERS - 1), times * (NUMBERS * (NUMBERS - 1) // 2)
    assert launch(launcher, n, str(PROGRAM)).splitlines() == [
        f"rank {rank} of {n}: last number {last}, total {total}, equal to MPI's own" for rank in range(n)
    ]


def test_the_launcher_of_the_page_opens_no_port() -> None:
    said = launch("mpiexec.gforker", 2, "-c", LISTENING)
    assert said.count("[]") == 2 and not said.replace("[]", "").split(), said  # lines may come mingled
