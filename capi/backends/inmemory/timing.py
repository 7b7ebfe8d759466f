"""When a simulated machine and its Node are ready: pure, and the same after a restart.

Upstream: docker/reconcilers/backends/inmemory. Differs: the jitter is drawn once per machine, from its uid.
"""

import hashlib
from datetime import datetime, timedelta

from capi.backends.port import Delay

SECOND = timedelta(seconds=1)


def duration(delay: Delay, uid: str, what: str) -> timedelta:
    """`base + uniform(0, jitter · base)`, drawn by `uid` and by `what` ("vm", "node")."""
    return delay.base * (1 + max(0.0, delay.jitter) * fraction(uid, what))


def fraction(uid: str, what: str) -> float:
    """A number in [0, 1) that depends on the arguments alone."""
    return int.from_bytes(hashlib.sha256(f"{what}/{uid}".encode()).digest()[:7], "big") / 2**56


def precise(stamp: datetime, seen: datetime) -> datetime:
    """The moment that an API timestamp names: it was cut to the second, so it lies between `stamp` and a second later.

    `seen` is when this process first knew of it, which is exact unless the process was started later.
    """
    return min(max(seen, stamp), stamp + SECOND)
