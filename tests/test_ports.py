import socket

import pytest

from pytest_cre.ports import LOOPBACK, hold_port


def test_held_port_is_there_for_a_server_time_and_again_and_for_nobody_who_looks_for_one():
    with hold_port() as held:
        port = held.getsockname()[1]
        for _ in range(2):
            with (
                socket.create_server((LOOPBACK, port)) as server,
                socket.create_connection((LOOPBACK, port)) as asking,
            ):
                assert asking.getpeername() == (LOOPBACK, port)
                server.accept()[0].close()
            with socket.socket() as other, pytest.raises(OSError, match="in use"):
                other.bind((LOOPBACK, port))


def test_port_that_is_taken_is_passed_over(monkeypatch):
    with hold_port() as held, socket.socket() as probe:
        taken = held.getsockname()[1]
        probe.bind((LOOPBACK, 0))
        free = probe.getsockname()[1]
        probe.close()
        wanted = iter((taken, free))
        monkeypatch.setattr("random.SystemRandom.choice", lambda *_: next(wanted))
        with hold_port() as other:
            assert other.getsockname()[1] == free
