"""Ports on the loopback address for programs that are still to listen on them."""

import random
import socket

LOOPBACK = "127.0.0.1"
_PORTS = range(12000, 32000)  # below what Linux hands to outgoing connections


def hold_port() -> socket.socket:
    """Return a socket that keeps a port until it is closed.

    A program that sets SO_REUSEADDR, as servers do, can listen on the port all the same. Whoever
    looks for a free one cannot get it: this socket was bound without that option.
    """
    while True:
        held = socket.socket()
        try:
            held.bind((LOOPBACK, random.SystemRandom().choice(_PORTS)))
        except OSError:
            held.close()
            continue
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return held
