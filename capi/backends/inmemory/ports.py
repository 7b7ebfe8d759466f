"""Ports for simulated API servers: outside the range that kernels hand out, so that a port kept is a port found again."""

import hashlib
import socket
from collections.abc import Collection, Iterator

from capi.kube.errors import BackendError

FIRST, LAST = 20000, 30000
"""Upstream's range; Linux gives outgoing connections ports from 32768 up."""


def choose(seed: str, host: str, taken: Collection[int]) -> int:
    """The first free port of the seed's own sequence through the range. Raises BackendError when none is free."""
    for port in _sequence(seed):
        if port not in taken and is_free(host, port):
            return port
    raise BackendError(f"no free port between {FIRST} and {LAST} on {host}", reason="NoFreePort")


def is_free(host: str, port: int) -> bool:
    """Whether a listener could be opened there now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def _sequence(seed: str) -> Iterator[int]:
    span = LAST - FIRST + 1
    start = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:4], "big") % span
    return (FIRST + (start + step) % span for step in range(span))
