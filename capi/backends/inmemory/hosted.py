"""One cluster's API server in this process, and whether it answers: a gate before callers in here, a listener for the others."""

import errno
import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TypeAlias

from capi.backends.inmemory.front import Front
from capi.backends.inmemory.gate import Gate
from capi.backends.inmemory.heartbeats import Heartbeats
from capi.backends.inmemory.kubelet import Kubelets
from capi.backends.port import PortTaken
from capi.client.client import Client
from capi.client.inprocess import InProcessTransport
from capi.client.pki import KeyPair
from capi.kube.errors import BackendError, CapiError
from capi.server.http.listener import Listener, ListenError

logger = logging.getLogger(__name__)

CLOSE_GRACE = 1.0
"""Seconds that connections get to end when a cluster's API server stops."""

Job: TypeAlias = Callable[[Client], Awaitable[None]]


@dataclass(slots=True)
class Hosted:
    """A running API server, shut at first. `resources` closes, in this order: listener, background tasks, registry, store."""

    identity: tuple[int, KeyPair, str]
    """Port, authority and version."""
    front: Front
    gate: Gate
    client: Client
    """Through the gate."""
    inside: Client
    """Behind the gate."""
    heartbeats: Heartbeats
    kubelets: Kubelets
    resources: AsyncExitStack
    host: str = ""
    """Address to listen on; "" for none."""
    listener: Listener | None = None
    failure: BaseException | None = None
    jobs: list[Job] = field(default_factory=list)
    """What is to be done when it is opened again."""

    @classmethod
    def make(
        cls, identity: tuple[int, KeyPair, str], name: str, front: Front, resources: AsyncExitStack, host: str
    ) -> "Hosted":
        """Of a server that has started. `name` is its cluster's."""
        gate = Gate(front.handler, name)
        gate.shut()
        client = Client(InProcessTransport(gate))
        inside = Client(InProcessTransport(front.handler))
        return cls(
            identity,
            front,
            gate,
            client,
            inside,
            Heartbeats(client, front.clock),
            Kubelets(client, front.clock),
            resources,
            host,
        )

    async def open(self) -> None:
        """Answer, and catch up. Raises PortTaken, BackendError: then it stays shut."""
        if self.host:
            try:
                self.listener = await self.front.listen(self.host, self.identity[0])
            except ListenError as error:
                raise _refusal(error) from error
        self.gate.open()
        jobs, self.jobs = self.jobs, []
        for job in jobs:
            try:
                await job(self.client)
            except CapiError as error:
                logger.info("Catching up after an outage failed", extra={"error": error.message})

    async def shut(self) -> None:
        """Answer nobody but `inside`. Idempotent."""
        self.gate.shut()
        listener, self.listener = self.listener, None
        if listener is not None:
            await listener.close(CLOSE_GRACE)

    async def close(self) -> None:
        """Stop it; its data stays in its store."""
        await self.client.transport.close()
        await self.inside.transport.close()
        await self.resources.aclose()


def _refusal(error: ListenError) -> BackendError:
    message = (
        f"The API server of this cluster cannot listen: {error.message}. The address is kept in Cluster and DevCluster"
        " spec.controlPlaneEndpoint; if it cannot be freed, delete the Cluster and create it again"
    )
    taken = isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.EADDRINUSE
    return PortTaken(message) if taken else BackendError(message, reason="ListenFailed")
