"""Federations of one machine run one after the other: FLARE's server has one port."""

import contextlib
import socket
import time

# Nobody else listens here; a process that dies gives it back.
PORT = 38002


@contextlib.contextmanager
def alone(patience=1200.0):
    """Wait until no other worker of the tests has a federation."""
    deadline = time.monotonic() + patience
    while True:
        try:
            held = socket.create_server(("localhost", PORT))
        except OSError:
            assert time.monotonic() < deadline, "another federation does not end"
            time.sleep(0.5)
            continue
        with held:
            yield
        return
