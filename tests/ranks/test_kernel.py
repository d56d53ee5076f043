"""In a real IPython kernel: cells, stop, short errors, figures, restart."""

from __future__ import annotations

import time

import psutil
import pytest
from jupyter_client.manager import start_new_kernel


@pytest.fixture(scope="module")
def kernel():
    manager, client = start_new_kernel(kernel_name="python3")
    yield manager, client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def send(client, code, wait_for=None):
    """Run a cell; (text, error, displayed mime types). With `wait_for`, return as soon as that text was printed."""
    message = client.execute(code, stop_on_error=False)
    text, error, shown = "", None, []
    while True:
        got = client.get_iopub_msg(timeout=60)
        if got["parent_header"].get("msg_id") != message:
            continue
        kind, content = got["msg_type"], got["content"]
        if kind == "stream":
            text += content["text"]
        elif kind == "error":
            error = content
        elif kind in ("display_data", "execute_result"):
            shown.append(content["data"])
        if (wait_for and wait_for in text) or (kind == "status" and content["execution_state"] == "idle"):
            return text, error, shown


def finish(client):
    error = None
    while True:
        got = client.get_iopub_msg(timeout=60)
        if got["msg_type"] == "error":
            error = got["content"]
        elif error and got["msg_type"] == "status" and got["content"]["execution_state"] == "idle":
            return error


def test_a_learners_session(kernel):
    manager, client = kernel
    send(client, "from course import Ranks\nranks = Ranks(2)\nkept = 'here'")
    text, error, _ = send(client, "%%ranks\nprint('hello', rank)\nrank + 1")
    assert error is None and "[rank 1] hello 1" in text and "[rank 1] 2" in text

    _, error, _ = send(client, "def f(rank):\n    y = 1\n    return 1 // rank\nranks.run(f)")
    assert error["ename"] == "RankError" and "In [3], line 3" in error["evalue"]
    shown = "\n".join(error["traceback"])
    assert "return 1 // rank" in shown and "site-packages" not in shown and "pool.py" not in shown
    assert len(shown.splitlines()) < 8

    _, error, shown = send(client, "%%ranks\nimport matplotlib.pyplot as plt\nplt.plot([rank, 2]);")
    assert error is None and sum("image/png" in data for data in shown) == 2

    text, error, _ = send(client, "%%time\nranks.run(lambda: None).values")
    assert error is None and "Wall time" in text
    _, error, shown = send(client, "assert ranks.run(lambda rank: rank).values == [0, 1]\nkept")
    assert error is None and shown[0]["text/plain"] == "'here'"


def test_the_stop_button(kernel):
    manager, client = kernel
    code = "def spin():\n    print('spinning', flush=True)\n    while True: pass\nranks.run(spin)"
    send(client, code, wait_for="spinning")
    manager.interrupt_kernel()
    start = time.monotonic()
    error = finish(client)
    assert time.monotonic() - start < 8
    assert error["ename"] == "RunInterrupted" and "stopped by you" in error["evalue"]
    assert len("\n".join(error["traceback"]).splitlines()) <= 2
    _, error, shown = send(client, "kept, ranks.run(lambda rank: rank).values")
    assert error is None and shown[0]["text/plain"] == "('here', [0, 1])"


def test_a_restart_leaves_no_process(kernel):
    manager, client = kernel
    text, _, _ = send(client, "print(*ranks.pids, ranks._gang.starter.pid)")
    pids = [int(word) for word in text.split()]
    assert len(pids) == 3 and all(psutil.pid_exists(pid) for pid in pids)
    manager.restart_kernel(now=True)
    until = time.monotonic() + 2
    while time.monotonic() < until and any(psutil.pid_exists(pid) for pid in pids):
        time.sleep(0.02)
    assert not any(psutil.pid_exists(p) and psutil.Process(p).status() != psutil.STATUS_ZOMBIE for p in pids)
