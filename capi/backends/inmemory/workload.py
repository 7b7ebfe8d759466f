"""The API servers of simulated clusters, hosted in this process: one store, port and certificate authority each.

Each is the same server as the management API. Nothing here decides where or with which keys: the port is kept in
DevCluster.spec.controlPlaneEndpoint and the authority in the Secret `<cluster>-ca`, so after a restart the control plane
controller starts each server again exactly as it was. Callers in this process reach it without sockets (`client`,
`InProcessFirst`).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from contextlib import AsyncExitStack
from types import TracebackType

import orjson

from capi.aio.clock import Clock
from capi.aio.feed import Feed, Feeds
from capi.backends.inmemory import ports
from capi.backends.inmemory.front import open_front
from capi.backends.inmemory.hosted import Hosted, Job
from capi.backends.inmemory.stores import MemoryStores, Stores
from capi.client.client import Client
from capi.client.inprocess import InProcessTransport
from capi.client.pki import KeyPair
from capi.client.transport import Transport
from capi.kube.errors import BackendError, ServiceUnavailable
from capi.kube.messages import Answer, Handler, Request, Response
from capi.runtime.clusters import Connector
from capi.runtime.plan import ClusterKey

logger = logging.getLogger(__name__)


class WorkloadClusters:
    """Implements ControlPlanes (capi.backends.port) and WorkloadApis. Use as an asynchronous context manager."""

    def __init__(
        self,
        clock: Clock,
        *,
        stores: Stores | None = None,
        host: str = "127.0.0.1",
        sockets: bool = True,
        heartbeats: bool = True,
    ) -> None:
        """`sockets` False: reachable inside the process only, for tests on virtual time. `heartbeats` False: idle clusters are
        not written to at all.
        """
        self._heartbeats = heartbeats
        self._clock = clock
        self._stores = stores or MemoryStores()
        self._host = host
        self._sockets = sockets
        self._hosted: dict[ClusterKey, Hosted] = {}
        self._reserved: dict[ClusterKey, int] = {}
        self._locks: dict[ClusterKey, asyncio.Lock] = {}
        self._down: set[ClusterKey] = set()
        """Clusters with a simulated outage."""
        self._unserved: set[ClusterKey] = set()
        """Clusters whose control plane machines do not serve the API yet, or no more."""
        self._tasks = asyncio.TaskGroup()
        self._failures: Feeds[ClusterKey] = Feeds()
        self._listeners: list[Callable[[ClusterKey], None]] = []

    async def __aenter__(self) -> "WorkloadClusters":
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.close()
        finally:
            await self._tasks.__aexit__(kind, error, trace)

    @property
    def host(self) -> str:
        return self._host

    def reserve(self, cluster: ClusterKey, taken: Collection[int], seed: str = "") -> int:
        """See ControlPlanes."""
        if cluster not in self._reserved:
            others = {port for key, port in self._reserved.items() if key != cluster}
            self._reserved[cluster] = ports.choose(seed or str(cluster), self._host, {*taken, *others})
        return self._reserved[cluster]

    async def ensure_running(self, cluster: ClusterKey, port: int, authority: KeyPair, version: str) -> None:
        """See ControlPlanes."""
        await self.serve(cluster, on=True)
        async with self._lock(cluster):
            hosted = self._hosted.get(cluster)
            if hosted is not None:
                if hosted.failure is None and hosted.identity == (port, authority, version):
                    return
                await self._stop(cluster)
            self._hosted[cluster] = await self._start(cluster, port, authority, version)
        self._announce(cluster)

    async def ensure_absent(self, cluster: ClusterKey) -> None:
        """See ControlPlanes."""
        async with self._lock(cluster):
            await self._stop(cluster)
            self._stores.forget(cluster)
            self._down.discard(cluster)
            self._unserved.discard(cluster)
            self._reserved.pop(cluster, None)

    async def interrupt(self, cluster: ClusterKey, *, down: bool) -> None:
        """See ControlPlanes."""
        await self._turn(self._down, cluster, there=down)

    async def prepare(self, cluster: ClusterKey, port: int, authority: KeyPair, version: str) -> bool:
        """See WorkloadApis."""
        async with self._lock(cluster):
            hosted = self._hosted.get(cluster)
            if hosted is not None:
                if hosted.failure is None and hosted.identity[:2] == (port, authority):
                    return False
                await self._stop(cluster)
            self._unserved.add(cluster)
            self._hosted[cluster] = await self._start(cluster, port, authority, version)
            return True

    async def serve(self, cluster: ClusterKey, *, on: bool) -> None:
        """See WorkloadApis."""
        await self._turn(self._unserved, cluster, there=not on)

    def inside(self, cluster: ClusterKey) -> Client | None:
        """See WorkloadApis."""
        hosted = self._hosted.get(cluster)
        return hosted.inside if hosted is not None and hosted.failure is None else None

    def is_shut(self, cluster: ClusterKey) -> bool:
        """See WorkloadApis."""
        return cluster in self._down or cluster in self._unserved

    def beats(self, cluster: ClusterKey, node: str, uid: str) -> None:
        """See WorkloadApis."""
        hosted = self._hosted.get(cluster)
        if hosted is not None:
            hosted.heartbeats.start(node, uid)

    def falls_silent(self, cluster: ClusterKey, node: str) -> None:
        """See WorkloadApis."""
        hosted = self._hosted.get(cluster)
        if hosted is not None:
            hosted.heartbeats.stop(node)

    def gone(self, cluster: ClusterKey, node: str) -> None:
        """See WorkloadApis."""
        hosted = self._hosted.get(cluster)
        if hosted is not None:
            hosted.heartbeats.stop(node)
            hosted.kubelets.gone(node)

    def when_back(self, cluster: ClusterKey, job: Job) -> None:
        """See WorkloadApis."""
        hosted = self._hosted.get(cluster)
        if hosted is not None:
            hosted.jobs.append(job)

    def failures(self) -> Feed[ClusterKey]:
        """See ControlPlanes."""
        return self._failures.open()

    def client(self, cluster: ClusterKey) -> Client | None:
        """See WorkloadApis."""
        hosted = self._hosted.get(cluster)
        return hosted.client if hosted is not None and hosted.failure is None else None

    def listen(self, listener: Callable[[ClusterKey], None]) -> None:
        """See WorkloadApis."""
        self._listeners.append(listener)

    def handler(self, cluster: ClusterKey) -> Handler | None:
        """The server itself, for callers in this process; None while it does not run."""
        hosted = self._hosted.get(cluster)
        return hosted.gate if hosted is not None and hosted.failure is None else None

    async def close(self) -> None:
        """Stop all servers; their data stays. Idempotent."""
        for cluster in list(self._hosted):
            async with self._lock(cluster):
                await self._stop(cluster)

    async def _turn(self, reasons: set[ClusterKey], cluster: ClusterKey, *, there: bool) -> None:
        """A reason to be shut comes or goes; the gate follows."""
        async with self._lock(cluster):
            if there == (cluster in reasons):
                return
            before, hosted = self.is_shut(cluster), self._hosted.get(cluster)
            (reasons.add if there else reasons.discard)(cluster)
            if hosted is None or self.is_shut(cluster) == before:
                return
            if there:
                await hosted.shut()
                return
            try:
                await hosted.open()
            except BackendError:  # another process has the port: it stays shut, and the caller tries again
                reasons.add(cluster)
                raise
        self._announce(cluster)

    def _announce(self, cluster: ClusterKey) -> None:
        for listener in self._listeners:
            listener(cluster)

    async def _start(self, cluster: ClusterKey, port: int, authority: KeyPair, version: str) -> Hosted:
        async with AsyncExitStack() as resources:
            store = self._stores.open(cluster)
            resources.push_async_callback(store.close)
            front = await open_front(store, self._clock, authority, version, resources)
            host = self._host if self._sockets else ""
            made = Hosted.make((port, authority, version), str(cluster), front, resources, host)
            task = self._tasks.create_task(self._run(cluster, made, front.run), name=f"workload API {cluster}")
            resources.push_async_callback(_cancelled, task)
            life = self._tasks.create_task(self._live(cluster, made), name=f"kubelets {cluster}")
            resources.push_async_callback(_cancelled, life)
            resources.push_async_callback(made.shut)
            if not self.is_shut(cluster):
                await made.open()
            made.resources = resources.pop_all()
            return made

    async def _run(self, cluster: ClusterKey, hosted: Hosted, run: Callable[[], Awaitable[None]]) -> None:
        """A crash of one server is its own: its next `ensure_running` starts it again."""
        try:
            await run()
        except Exception as error:
            logger.exception("API server of a workload cluster failed", extra={"cluster": str(cluster)})
            hosted.failure = error
            self._failures.publish(cluster)
            self._announce(cluster)  # control plane machines start it again

    async def _live(self, cluster: ClusterKey, hosted: Hosted) -> None:
        """Pods run and end, Nodes are alive. A bug in it is not the server's."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(hosted.kubelets.run())
                if self._heartbeats:
                    group.create_task(hosted.heartbeats.run())
        except Exception:
            logger.exception("The kubelets of a workload cluster failed", extra={"cluster": str(cluster)})

    async def _stop(self, cluster: ClusterKey) -> None:
        hosted = self._hosted.pop(cluster, None)
        if hosted is not None:
            await hosted.close()

    def _lock(self, cluster: ClusterKey) -> asyncio.Lock:
        return self._locks.setdefault(cluster, asyncio.Lock())


class InProcessFirst:
    """A Connector that needs no socket for the clusters hosted here and asks `other` for all else."""

    def __init__(self, workloads: WorkloadClusters, other: Connector) -> None:
        self._workloads = workloads
        self._other = other

    async def connect(self, cluster: ClusterKey, kubeconfig: bytes) -> Transport:
        if self._workloads.handler(cluster) is not None:
            return InProcessTransport(_Current(self._workloads, cluster))
        return await self._other.connect(cluster, kubeconfig)


class _Current:
    """A Handler that passes on to the server which runs now: it may be stopped and started again behind a connection."""

    def __init__(self, workloads: WorkloadClusters, cluster: ClusterKey) -> None:
        self._workloads = workloads
        self._cluster = cluster

    async def handle(self, request: Request) -> Answer:
        handler = self._workloads.handler(self._cluster)
        if handler is None:
            stopped = ServiceUnavailable(f"the API server of cluster {self._cluster} is stopped")
            return Response(stopped.status_code, orjson.dumps(stopped.status))
        return await handler.handle(request)


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
