"""The stop button, time-outs and the death of the notebook: the call ends, the kernel stays, no process is left."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import psutil
import pytest
import torch
import torch.distributed as dist

from course.errors import RunInterrupted, RunTimeout
from course.ranks import Ranks


def spins():
    while True:
        pass


def swallows():
    while True:
        try:
            time.sleep(1)
        except:  # noqa: E722
            pass


def ignores_signals():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(1)


def stuck_in_cpp(rank):
    if rank == 0:
        dist.recv(torch.zeros(1), src=1)
    else:
        time.sleep(10_000)


def stop_soon(gang):
    """Press stop once every rank is at work."""
    before = {pid: psutil.Process(pid).cpu_times().user for pid in gang.pids}

    def press():
        until = time.monotonic() + 1.0
        while time.monotonic() < until and any(psutil.Process(p).cpu_times().user == t for p, t in before.items()):
            time.sleep(0.02)
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press).start()


@pytest.mark.parametrize(
    ("fn", "lost"), [(spins, False), (swallows, True), (ignores_signals, True), (stuck_in_cpp, False)]
)
def test_one_press_stops_every_rank_and_keeps_the_notebook(fn, lost):
    with Ranks(2, stall=60) as gang:
        gang.put(kept=1)
        stop_soon(gang)
        start = time.monotonic()
        with pytest.raises(RunInterrupted, match="stopped by you") as caught:
            gang.run(fn)
        assert time.monotonic() - start < 8
        assert ("variables are gone" in str(caught.value)) == lost
        assert len(caught.value._render_traceback_()) == 1
        if not lost:
            assert gang.get("kept") == [1, 1]
        assert gang.run(lambda rank: rank).values == [0, 1]


def test_a_timeout_does_the_same(pair):
    with pytest.raises(RunTimeout, match="longer than its timeout of 0.5 s"):
        pair.run(spins, timeout=0.5)
    with pytest.raises(RunTimeout, match=r"rank 0 was in recv from 1 \(.*\), rank 1 was at test_stop.py, line"):
        pair.run(stuck_in_cpp, timeout=1)

    def one_spins(rank):
        while rank == 1:
            pass

    with pytest.raises(RunTimeout, match=r"rank 1 was at test_stop.py, line \d+, rank 0 had finished"):
        pair.run(one_spins, timeout=1)


def test_a_press_while_ranks_are_formed_is_not_lost():
    with Ranks(2) as gang:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            for i in range(1000):
                gang.resize(2 + i % 2)
        assert gang.run(lambda rank: rank).values == list(range(gang.world_size))


def kernel(code, **kwargs):
    """A process that stands for the notebook's kernel; it prints what its code prints."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **kwargs,
    )


def alive_after(pids, seconds):
    """Those of the processes that are still there; one that has ended but was not yet collected is not."""

    def lives(pid):
        try:
            return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    until = time.monotonic() + seconds
    while time.monotonic() < until and any(lives(pid) for pid in pids):
        time.sleep(0.02)
    return [pid for pid in pids if lives(pid)]


COLLECTIVE = """
    import time, torch, torch.distributed as dist
    from course.ranks import Ranks
    gang = Ranks(4)
    print(*gang.pids, gang._gang.starter.pid, gang._gang.folder, flush=True)
    def wait(rank):
        import subprocess, sys
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
        loner = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"], start_new_session=True)
        print(child.pid, loner.pid)
        if rank:
            dist.barrier()
        else:
            time.sleep(1000)
    gang.run(wait, stall=1000)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, "group"])
def test_no_process_outlives_the_notebook(how):
    process = kernel(COLLECTIVE)
    *pids, folder = process.stdout.readline().split()
    pids = [int(pid) for pid in pids]
    for _ in range(4):
        pids += [int(word) for word in process.stdout.readline().split() if word.isdigit()]
    assert len(pids) == 13 and all(psutil.pid_exists(pid) for pid in pids)
    if how == "group":
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.send_signal(how)
    process.wait()
    assert not alive_after(pids, seconds=2)
    until = time.monotonic() + 2
    while Path(folder).exists() and time.monotonic() < until:
        time.sleep(0.02)
    assert not Path(folder).exists()


def test_ranks_end_when_the_fork_server_is_killed():
    process = kernel(COLLECTIVE)
    *pids, _ = process.stdout.readline().split()
    *ranks, server = (int(pid) for pid in pids)
    others = [int(word) for _ in range(4) for word in process.stdout.readline().split() if word.isdigit()]
    os.kill(server, signal.SIGKILL)
    assert not alive_after(ranks, seconds=2)
    process.kill()
    process.wait()
    for pid in others:  # whoever kills the server itself has to clear up what the ranks had started
        os.kill(pid, signal.SIGKILL)


def test_a_rank_with_the_number_of_one_that_has_ended_is_alive():
    """Process numbers come round after some ten thousand."""
    with Ranks(2, live=False) as gang:
        starter, pid = gang._gang.starter, gang.pids[1]
        os.kill(pid, signal.SIGKILL)
        assert not alive_after([pid], seconds=5) and gang.run(lambda rank: rank).values == [0, 1]
        there, here = socket.socketpair()
        with there, here:
            kept, starter._socket = starter._socket, here
            assert starter.exit_of(pid) == -signal.SIGKILL
            there.sendall(b'{"pid": %d}\n' % pid)
            assert starter._reply("pid", "no reply")["pid"] == pid
            assert starter.exit_of(pid) is None
            starter._socket = kept


def test_only_ranks_are_killed():
    stranger = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, process_group=0)
    with Ranks(1, live=False) as gang:
        gang._gang.starter.kill(stranger.pid)
        gang.resize(2)  # the server has read on
        assert stranger.poll() is None
    stranger.communicate(b"\n")
    assert stranger.returncode == 0


def test_a_script_without_a_main_guard_runs_and_ends_quietly(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from course import Ranks\n"
        "ranks = Ranks(2)\n"
        "def double(rank):\n    return rank * 2\n"
        "print(ranks.run(double).values, ranks.pids)\n"
    )
    for start in ("", ", start='spawn'"):
        script.write_text(script.read_text().replace("Ranks(2)", f"Ranks(2{start})"))
        done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and done.stderr == ""
        assert done.stdout.startswith("[0, 2]")
        pids = [int(word.strip("[],")) for word in done.stdout.split()[2:]]
        assert not alive_after(pids, seconds=2)


def test_nothing_listens_beyond_loopback_and_nobody_else_can_read(ranks):
    def groups():
        dist.new_group([0, 1])
        dist.barrier()

    ranks.run(groups)
    listening = [
        c.laddr.ip
        for pid in [*ranks.pids, ranks._gang.starter.pid]
        for c in psutil.Process(pid).net_connections("inet")
        if c.status == psutil.CONN_LISTEN
    ]
    assert listening and all(ip.startswith(("127.", "::1", "::ffff:127.")) for ip in listening)
    folder = ranks._gang.folder
    assert folder.stat().st_mode & 0o077 == 0


def test_ranks_are_the_first_to_go_when_memory_runs_out(ranks):
    assert all(Path(f"/proc/{pid}/oom_score_adj").read_text().strip() == "1000" for pid in ranks.pids)
    assert Path("/proc/self/oom_score_adj").read_text().strip() != "1000"
