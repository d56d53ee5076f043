"""Frees a rank that is blocked in a communication call: shuts its connected loopback sockets, never its listeners.

A blocked call then ends with an error within milliseconds, and the learner's variables stay. Nothing else frees it:
a signal is not seen inside the call, and aborting the group waits for the group's own timeout.
"""

from __future__ import annotations

import os
import socket


def shut_loopback_sockets() -> int:
    """Shut every connected TCP socket of this process whose peer is on the loopback interface; how many there were."""
    shut = 0
    folder = "/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"
    for name in os.listdir(folder):
        try:
            descriptor = os.dup(int(name))
        except (OSError, ValueError):  # closed since
            continue
        try:
            copy = socket.socket(fileno=descriptor)
        except OSError:  # not a socket
            os.close(descriptor)
            continue
        with copy:
            if copy.family in (socket.AF_INET, socket.AF_INET6) and copy.type == socket.SOCK_STREAM:
                shut += _shut(copy)
    return shut


def _shut(connection: socket.socket) -> int:
    try:
        host = connection.getpeername()[0]
        if host.startswith(("127.", "::1", "::ffff:127.")):
            connection.shutdown(socket.SHUT_RDWR)
            return 1
    except OSError:  # a listener, or closed by its peer
        pass
    return 0
