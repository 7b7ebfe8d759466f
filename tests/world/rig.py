"""The whole of capi in one test: embedded server on a memory store, all controllers, simulated infrastructure, virtual time.

No sockets, no threads, no real seconds: `settle` runs until nothing is left to do now, `advance` lets time pass.
"""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from capi.aio.clock import LoopClock
from capi.api.core.v1beta2 import Machine, MachinePool
from capi.app import compose, embedded, inputs
from capi.backends.inmemory.workload import InProcessFirst
from capi.client.client import Client
from capi.client.transport import Transport
from capi.kube.objects import Resource
from capi.kube.types import Object, ResourceType
from capi.runtime.clusters import Connector
from capi.runtime.manager import Manager
from capi.runtime.plan import ClusterKey
from capi.server.store.interface import Store
from capi.server.store.memory import MemoryStore
from tests.world import manifests

R = TypeVar("R", bound=Resource)
Wire: TypeAlias = Callable[[Transport], Transport]


def _plain(transport: Transport) -> Transport:
    return transport


INFRA = "infrastructure.cluster.x-k8s.io"


@dataclass(frozen=True, slots=True)
class WiredConnector:
    """Connects controllers to workload clusters through `wire`."""

    inner: Connector
    wire: Wire

    async def connect(self, cluster: ClusterKey, kubeconfig: bytes) -> Transport:
        return self.wire(await self.inner.connect(cluster, kubeconfig))


@dataclass(frozen=True, slots=True)
class WiredInfrastructure(compose.Infrastructure):
    """The same, but for its connections."""

    wire: Wire = field(kw_only=True)

    @property
    def connector(self) -> Connector:
        return WiredConnector(InProcessFirst(self.workloads, compose.HttpConnector()), self.wire)


class World:
    """A running world; `client` is a user with all rights."""

    infra: compose.Infrastructure
    manager: Manager
    heartbeats = False
    """Of simulated kubelets: hours of virtual time hold very many of them."""

    def __init__(
        self,
        api: embedded.EmbeddedApi,
        clock: LoopClock,
        wire: Wire,
        directory: Path | None,
        *,
        sockets: bool,
        workload_wire: Wire = _plain,
    ) -> None:
        self._directory = directory
        self._sockets = sockets
        self.api = api
        self._wire = wire
        self._workload_wire = workload_wire
        self.clock = clock
        self.stores = KeptStores()
        self._stack = AsyncExitStack()
        self.client = Client(api.transport("user"), user_agent="user")

    async def apply(self, *objects: Object) -> None:
        """As a user: checked together, then applied."""
        read = [inputs.Manifest(body, "test") for body in objects]
        await inputs.check(self.client, read)
        await inputs.apply(self.client, read)

    async def settle(self, patience: timedelta = timedelta(minutes=2)) -> None:
        """Let everything happen that happens without outside change: timers that are due soon included."""
        deadline = self.clock.monotonic() + patience.total_seconds()
        quiet = 0
        while quiet < 3:
            await asyncio.sleep(0.05)
            quiet = quiet + 1 if self.manager.idle(within=3.0) and self.api.registry.idle else 0
            assert self.clock.monotonic() < deadline, f"the world does not settle: {self.manager.trouble()}"

    async def advance(self, **duration: float) -> None:
        """Let that much time pass, then settle."""
        await asyncio.sleep(timedelta(**duration).total_seconds())
        await self.settle()

    async def pool(self, name: str = "workers") -> MachinePool:
        return await self.client.get(MachinePool, name, "default")

    async def machines(self, pool: str = "workers") -> dict[str, Machine]:
        found = await self.client.list(Machine, "default", labels=f"cluster.x-k8s.io/pool-name={pool}")
        return {machine.name: machine for machine in found}

    async def cluster_with_pool(self, replicas: int | None = 3, **options: Any) -> None:
        """The quickstart's objects, settled."""
        await self.apply(*manifests.cluster(), *manifests.pool(replicas=replicas, **options))
        await self.settle()

    def workload(self, cluster: str = "quickstart") -> Client:
        client = self.infra.workloads.client(ClusterKey("default", cluster))
        assert client is not None, "the workload API is not served"
        return client

    async def restart_controllers(self) -> None:
        """As if the controllers' process had ended and another had started; the API server stays, memories are gone."""
        await self.stop_controllers()
        await self.start_controllers()

    async def stop_controllers(self) -> None:
        """As if the controllers' process had ended in good order."""
        await self._stack.aclose()

    def crash_controllers(self) -> None:
        """Whatever they are doing, they end now."""
        self._running.cancel()

    async def stop_manager(self) -> None:
        """As if the controllers' process had ended, and infrastructure went on without it."""
        self.manager.stop()
        await asyncio.wait([self._running])

    async def until(self, holds: Callable[[], Awaitable[bool]], patience: timedelta = timedelta(minutes=1)) -> None:
        """Let things happen until `holds`."""
        deadline = self.clock.monotonic() + patience.total_seconds()
        while not await holds():
            await asyncio.sleep(0.02)
            assert self.clock.monotonic() < deadline, "it does not come true"

    async def start_controllers(self) -> None:
        self._stack = AsyncExitStack()
        self.infra = await self._stack.enter_async_context(
            compose.infrastructure(
                self.clock,
                stores=self.stores,
                directory=self._directory,
                host="127.0.0.1",
                sockets=self._sockets,
                heartbeats=self.heartbeats,
            )
        )
        wired = WiredInfrastructure(self.infra.workloads, self.infra.backend, wire=self._workload_wire)
        self.manager = compose.manager(self._wire(self.api.transport()), self.clock, wired)
        self._running = asyncio.ensure_future(self.manager.run())
        self._stack.push_async_callback(self._stop, self.manager, self._running)

    async def _stop(self, manager: Manager, task: "asyncio.Future[None]") -> None:
        manager.stop()
        await asyncio.wait([task])
        if not task.cancelled():
            task.result()

    async def close(self) -> None:
        await self._stack.aclose()

    async def loosen(self, resource: ResourceType) -> None:
        """As if a provider's CRD had no schema worth the name: everything can be written."""
        anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        definition = await self.client.get(embedded.CRD, resource.qualified_plural)
        versions = [
            {
                **version,
                "schema": {"openAPIV3Schema": {**anything, "properties": {"spec": anything, "status": anything}}},
            }
            for version in definition["spec"]["versions"]
        ]
        await self.client.patch(embedded.CRD, resource.qualified_plural, "", {"spec": {"versions": versions}})

    def failures(self, controller: str = "capi-machinepool") -> float:
        """Passes of a controller that ended in an error, since it started."""
        registry = self.manager.metrics.registry
        found = registry.get_sample_value("controller_runtime_reconcile_errors_total", {"controller": controller})
        assert found is not None, f"there is no controller {controller}"
        return found

    async def writes(self) -> Counter[str]:
        """Write requests so far by `verb resource`, as the server counted them; leases left out."""
        text = (await self.client.send("GET", "/metrics")).decode()
        counts: Counter[str] = Counter()
        for line in text.splitlines():
            if not line.startswith("apiserver_request_total{"):
                continue
            labels = dict(re.findall(r'(\w+)="([^"]*)"', line))
            if (
                labels["verb"].upper()
                in ("POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION", "CREATE", "UPDATE")
                and labels["resource"] != "leases"
            ):
                counts[f"{labels['verb']} {labels['resource']}/{labels.get('subresource', '')}"] += int(
                    float(line.rpartition(" ")[2])
                )
        return counts


class KeptStores:
    """Memory stores of workload clusters that survive a restart of the controllers, as files do."""

    def __init__(self) -> None:
        self._kept: dict[ClusterKey, KeptStore] = {}

    def open(self, cluster: ClusterKey) -> Store:
        return self._kept.setdefault(cluster, KeptStore())

    def forget(self, cluster: ClusterKey) -> None:
        self._kept.pop(cluster, None)

    @property
    def kept(self) -> set[ClusterKey]:
        """Clusters whose objects would survive."""
        return set(self._kept)


class KeptStore(MemoryStore):
    async def close(self) -> None:
        """Its owner has gone; what it holds stays."""


@asynccontextmanager
async def world(
    wire: Wire = _plain,
    *,
    store: Store | None = None,
    directory: Path | None = None,
    sockets: bool = False,
    workload_wire: Wire = _plain,
) -> AsyncIterator[World]:
    """A world whose controllers have started; `wire` puts faults between them and the API, `workload_wire` between core's
    controllers and the workload clusters.

    It is fresh unless `store` holds something; workload clusters are kept in `directory`, else in memory. Files and
    `sockets` need real time.
    """
    clock = LoopClock()
    async with embedded.embedded_api(store or MemoryStore(), clock) as api:
        serving = asyncio.ensure_future(api.registry.run())
        made = World(api, clock, wire, directory, sockets=sockets, workload_wire=workload_wire)
        try:
            await made.start_controllers()
            await made.settle()
            yield made
        finally:
            await made.close()
            serving.cancel()
            await asyncio.wait([serving])
            if not serving.cancelled() and (error := serving.exception()):
                raise error
