"""Two machines on one: network namespaces joined by a cable (a veth pair), each with torchrun processes of its own."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TextIO

ADDRESSES = ("10.77.0.1", "10.77.0.2")


def missing() -> str:
    """Why two machines cannot be had here; "" if they can."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "network namespaces need the ip command (Debian: iproute2)"
    name = f"try{secrets.token_hex(3)}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return "" if made.returncode == 0 else f"network namespaces are refused: {made.stderr.strip()}"


class Machines:
    """Context manager: two namespaces, their cable, and every process started in them."""

    def __init__(self) -> None:
        tag = secrets.token_hex(3)
        self.names = (f"m{tag}a", f"m{tag}b")
        self.cards = (f"v{tag}a", f"v{tag}b")
        self.running: dict[subprocess.Popen[str], TextIO] = {}

    def __enter__(self) -> Machines:
        for name in self.names:
            _ip("netns", "add", name)
        _ip("link", "add", self.cards[0], "type", "veth", "peer", "name", self.cards[1])
        for name, card, address in zip(self.names, self.cards, ADDRESSES, strict=True):
            _ip("link", "set", card, "netns", name)
            _ip("-n", name, "addr", "add", f"{address}/24", "dev", card)
            _ip("-n", name, "link", "set", "lo", "up")
            _ip("-n", name, "link", "set", card, "up")
        return self

    def __exit__(self, *error: object) -> None:
        for process in self.running:
            self.kill(process)
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)

    def slow_down(self, rate: str) -> None:
        """Give the cable a bandwidth ("200mbit") in each direction."""
        for name, card in zip(self.names, self.cards, strict=True):
            limit = ["tbf", "rate", rate, "burst", "64kb", "latency", "400ms"]
            subprocess.run(
                ["ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", card, "root", *limit], check=True
            )  # fmt: skip

    def torchrun(self, machine: int, *options: str, program: list[str]) -> subprocess.Popen[str]:
        """Start torchrun on a machine, in a session of its own."""
        environment = os.environ | {
            "GLOO_SOCKET_IFNAME": self.cards[machine], "TP_SOCKET_IFNAME": self.cards[machine], "OMP_NUM_THREADS": "1",
            "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",  # else torchrun waits for ever for a machine that came back
        }  # fmt: skip
        command = ["ip", "netns", "exec", self.names[machine], sys.executable, "-m", "torch.distributed.run"]
        output = tempfile.TemporaryFile("w+")  # noqa: SIM115 (a pipe that nobody empties would stop it)
        process = subprocess.Popen(
            [*command, "--local-addr", ADDRESSES[machine], *options, "-m", *program],
            env=environment, stdout=output, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip
        self.running[process] = output
        return process

    def said(self, process: subprocess.Popen[str]) -> str:
        """What a torchrun and its processes have printed."""
        output = self.running[process]
        output.seek(0)
        return output.read()

    def finish(self, *processes: subprocess.Popen[str], limit: float = 120) -> None:
        """Wait until all have ended well."""
        for process in processes:
            process.wait(limit)
            assert process.returncode == 0, self.said(process)

    def kill(self, process: subprocess.Popen[str]) -> None:
        """The power goes: every process of one torchrun, at once. Those that it started have sessions of their own."""
        family = [process.pid, *_descendants(process.pid)]
        for pid in family:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        process.wait()


def _descendants(pid: int) -> list[int]:
    import psutil

    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


def records(path: Path) -> list[dict[str, float]]:
    """The lines of a training log, the word on resuming left out."""
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [line for line in lines if "step" in line]
