"""A hosted cluster and its simulated machines, on virtual time."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from capi.aio.clock import LoopClock
from capi.backends.inmemory.backend import InMemoryBackend
from capi.backends.inmemory.workload import WorkloadClusters
from capi.backends.port import InstanceSpec, Simulation
from capi.client import pki
from capi.client.client import Client
from capi.runtime.plan import ClusterKey

CLUSTER = ClusterKey("ns", "prod")


class Rig:
    def __init__(self, clock: LoopClock, workloads: WorkloadClusters) -> None:
        self.clock, self.workloads = clock, workloads
        self.authority = pki.new_ca("prod", clock.now())
        self.backend = InMemoryBackend(workloads, clock)

    async def serve(self) -> Client:
        await self.workloads.ensure_running(CLUSTER, 20000, self.authority, "v1.35.4")
        client = self.workloads.client(CLUSTER)
        assert client is not None
        return client

    def spec(self, name: str = "a", *, pool: str = "workers", uid: str = "", **simulated: Any) -> InstanceSpec:
        return InstanceSpec(
            id=f"in-memory:///ns/prod/{name}",
            name=name,
            uid=uid or f"uid-{name}",
            cluster=CLUSTER,
            pool=pool,
            version="v1.35.4",
            created=self.clock.now(),
            simulation=Simulation(**simulated),
        )


@contextlib.asynccontextmanager
async def a_rig(*, heartbeats: bool = True) -> AsyncIterator[Rig]:
    clock = LoopClock()
    async with WorkloadClusters(clock, sockets=False, heartbeats=heartbeats) as workloads:
        yield Rig(clock, workloads)
