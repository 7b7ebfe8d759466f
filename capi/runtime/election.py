"""Leader election by a coordination.k8s.io Lease: at most one manager works at a time.

Clocks of different machines are never compared: whether another holder's lease has run out is judged by how long *this*
process has seen it unchanged. A leader stops working when it could not renew for `renew_deadline`, counted from before the
last successful renewal was sent; others wait `lease_duration`, which is longer.
Upstream: client-go tools/leaderelection.
"""

import asyncio
import contextlib
import logging
import os
import random
import secrets
import socket
from dataclasses import dataclass, field

from capi.aio.clock import Clock
from capi.client.client import Client
from capi.kube import times
from capi.kube.errors import AlreadyExists, ApiError, CapiError, Conflict, NotFound, TransportError
from capi.kube.types import Object, ResourceType

logger = logging.getLogger(__name__)

LEASES = ResourceType("coordination.k8s.io", "v1", "Lease", "leases")


class LeadershipLost(CapiError):
    """Another manager may be leading now: this one could not renew its lease in time. Start it again."""


def default_identity() -> str:
    """Unique per process."""
    return f"{socket.gethostname()}_{os.getpid()}_{secrets.token_hex(4)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Election:
    """Where and how to elect. Times in seconds; lease_duration > renew_deadline > retry_period."""

    namespace: str
    name: str
    identity: str = field(default_factory=default_identity)
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0


class LeaderElector:
    """Acquires, holds and releases one lease: `await acquire()`, then `await hold()`, then `await release()`."""

    def __init__(self, client: Client, clock: Clock, election: Election) -> None:
        self._client = client
        self._clock = clock
        self._election = election
        self._lease: Object | None = None
        self._seen: Object | None = None
        """Its spec when it last changed, and when this process saw that."""
        self._seen_at = 0.0
        self._renewed_at = 0.0
        self.leading = False

    async def acquire(self) -> None:
        """Return once this process holds the lease."""
        while True:
            if await self._attempt(self._clock.monotonic() + self._election.renew_deadline):
                self.leading = True
                logger.info("Leading", extra={"lease": self._election.name, "identity": self._election.identity})
                return
            await self._clock.sleep(self._election.retry_period * (1 + 0.2 * random.random()))

    async def hold(self) -> None:
        """Renew until cancelled. Raises LeadershipLost when that failed for too long, or someone else holds the lease."""
        try:
            while True:
                await self._clock.sleep(self._election.retry_period)
                deadline = self._renewed_at + self._election.renew_deadline
                while not await self._attempt(deadline):
                    if self._held_by_other() or self._clock.monotonic() >= deadline:
                        raise LeadershipLost
                    pause = min(self._election.retry_period, deadline - self._clock.monotonic())
                    await self._clock.sleep(max(0.0, pause))
        finally:
            self.leading = False

    def may_write(self) -> bool:
        """Whether nobody else can be leading now. False before the lease runs out for others, also in a process that was
        stopped for a while and has not looked at its lease since."""
        return self.leading and self._clock.monotonic() < self._renewed_at + self._election.renew_deadline

    async def release(self) -> None:
        """Let others lead at once; best effort."""
        lease = self._lease
        if lease is None or lease["spec"].get("holderIdentity") != self._election.identity:
            return
        now = times.format_micro(self._clock.now())
        spec = {**lease["spec"], "holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": now, "acquireTime": now}
        with contextlib.suppress(ApiError, TransportError, TimeoutError):  # it runs out by itself
            async with asyncio.timeout(self._election.retry_period):
                await self._client.update_raw(LEASES, {**lease, "spec": spec})
        self._lease = None

    def _held_by_other(self) -> bool:
        holder = (self._seen or {}).get("holderIdentity")
        return bool(holder) and holder != self._election.identity

    async def _attempt(self, deadline: float) -> bool:
        """Try to take or renew the lease before `deadline`; True if this process holds it now."""
        sent = self._clock.monotonic()
        try:
            async with asyncio.timeout(max(0.0, deadline - sent)):
                held = await self._take_or_renew()
        except (ApiError, TransportError, TimeoutError) as error:
            self._lease = None  # what it is now has to be read again
            logger.debug("Electing failed", extra={"error": str(error)})
            return False
        if held:
            self._renewed_at = sent
        return held

    async def _take_or_renew(self) -> bool:
        election = self._election
        lease = self._lease
        if lease is None:
            try:
                lease = await self._client.get(LEASES, election.name, election.namespace)
            except NotFound:
                return await self._create()
            self._observe(lease)
        spec = lease["spec"]
        holder = spec.get("holderIdentity")
        mine = holder == election.identity
        if holder and not mine and self._clock.monotonic() < self._seen_at + self._term(spec):
            self._lease = None
            return False
        wanted = {
            **self._spec(),
            "acquireTime": spec.get("acquireTime") if mine else times.format_micro(self._clock.now()),
            "leaseTransitions": int(spec.get("leaseTransitions") or 0) + (0 if mine else 1),
        }
        try:
            updated = await self._client.update_raw(LEASES, {**lease, "spec": wanted})
        except Conflict:
            self._lease = None
            return False
        self._observe(updated)
        self._lease = updated
        return True

    def _term(self, spec: Object) -> float:
        """How long another holder's silence must last: as long as it or we say, whichever is longer."""
        return max(self._election.lease_duration, float(spec.get("leaseDurationSeconds") or 0))

    async def _create(self) -> bool:
        now = times.format_micro(self._clock.now())
        metadata = {"name": self._election.name, "namespace": self._election.namespace}
        body = {"metadata": metadata, "spec": {**self._spec(), "acquireTime": now, "leaseTransitions": 0}}
        try:
            self._lease = await self._client.create(LEASES, body)
        except AlreadyExists:
            return False
        self._observe(self._lease)
        return True

    def _spec(self) -> Object:
        return {
            "holderIdentity": self._election.identity,
            "leaseDurationSeconds": int(self._election.lease_duration),
            "renewTime": times.format_micro(self._clock.now()),
        }

    def _observe(self, lease: Object) -> None:
        if lease.get("spec") != self._seen:
            self._seen = lease.setdefault("spec", {})
            self._seen_at = self._clock.monotonic()
