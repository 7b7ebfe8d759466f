"""Connections to workload clusters: made when a cluster can be reached, renewed when its credentials change.

Each cluster has a task of its own, so that one that hangs delays no other. A connection is announced once its caches are
filled, and its loss is announced too. The kubeconfig is the value of Secret `<cluster>-kubeconfig`.
Upstream: controllers/clustercache.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, ClassVar, Protocol

import msgspec

from capi.aio.backoff import Attempts, Backoff
from capi.aio.clock import Clock
from capi.api.core.v1beta2 import Cluster
from capi.client.client import Client
from capi.client.transport import Transport
from capi.kube.errors import ApiError, CapiError, NotFound, TransportError, Unauthorized
from capi.kube.objects import Resource
from capi.kube.types import ResourceType
from capi.runtime.informers import Informers
from capi.runtime.plan import ClusterKey
from capi.runtime.reader import Contact
from capi.runtime.watches import Workload, watched

logger = logging.getLogger(__name__)

KUBECONFIG = "-kubeconfig"
"""Suffix of the name of the Secret with a cluster's kubeconfig."""
CONNECT_TIMEOUT = 60.0
"""Seconds for connecting and filling the caches."""
RETRY = Backoff(base=0.2, cap=30.0, jitter=0.2)
PROBE_INTERVAL = 10.0
PROBE_TIMEOUT = 5.0
PROBE_FAILURES = 5
"""Failures in a row that end a connection."""
SILENCE = 60.0
"""Seconds a cache may be out of contact while the cluster answers: then it is no longer believed."""
REASON = 500
"""Characters that are kept of the reason why a cluster cannot be connected."""
LOOK_AGAIN = 30.0
"""Seconds after which a missing kubeconfig is looked for again, in case its Secret has no label by which to watch it."""
_STABLE = 30.0
"""Seconds a connection must have lasted for its loss to count as the first failure."""


class KubeconfigSecret(Resource):
    """A Secret that belongs to a Cluster."""

    resource: ClassVar[ResourceType] = ResourceType("", "v1", "Secret", "secrets")
    data: dict[str, bytes] = msgspec.field(default_factory=dict)


class Connector(Protocol):
    """How workload clusters are reached: over HTTP, or within this process."""

    async def connect(self, cluster: ClusterKey, kubeconfig: bytes) -> Transport:
        """A transport to the cluster. Raises CapiError when the kubeconfig is of no use."""
        ...


class Connection:
    """A connected workload cluster."""

    def __init__(self, cluster: ClusterKey, client: Client, clock: Clock) -> None:
        self.cluster = cluster
        self.client = client
        self.informers = Informers(client, clock)


class _Link:
    """What is known of one Cluster, connected or not."""

    def __init__(self) -> None:
        self.changed = asyncio.Event()
        """Its Secret changed: look whether the connection is still right."""
        self.tried = asyncio.Event()
        """The first attempt to connect is over, well or badly."""
        self.connection: Connection | None = None
        self.contact = Contact()
        self.task: asyncio.Task[None] | None = None


class ClusterConnections:
    """All workload clusters of a manager. `run` keeps them until cancelled."""

    def __init__(
        self, client: Client, informers: Informers, connector: Connector, clock: Clock, watch_filter: str = ""
    ) -> None:
        """`watch_filter`: connect only Clusters with that value of the watch-filter label."""
        self._watch_filter = watch_filter
        self._client = client
        self._connector = connector
        self._clock = clock
        self._clusters = informers.of(Cluster)
        self._secrets = informers.of(
            KubeconfigSecret, "cluster.x-k8s.io/cluster-name", keep=lambda secret: secret.name.endswith(KUBECONFIG)
        )
        self._links: dict[ClusterKey, _Link] = {}
        self._watches: list[tuple[Workload, Callable[[ClusterKey, Any, Any], None]]] = []
        self._listeners: list[Callable[[ClusterKey], None]] = []
        self._told_why: list[Callable[[ClusterKey], None]] = []

    def watch(self, watch: Workload, handler: Callable[[ClusterKey, Any, Any], None]) -> None:
        """Cache a kind in every cluster and tell `handler` of its changes. Before `run` only."""
        self._watches.append((watch, handler))

    def listen(self, listener: Callable[[ClusterKey], None], *, reasons: bool = False) -> None:
        """Call when a cluster was connected or lost; with `reasons` also when it cannot be connected for another reason than before."""
        self._listeners.append(listener)
        if reasons:
            self._told_why.append(listener)

    def get(self, cluster: ClusterKey) -> Connection | None:
        """The connection to a cluster, None while there is none."""
        link = self._links.get(cluster)
        return link.connection if link is not None else None

    def contact(self, cluster: ClusterKey) -> Contact:
        """What is known of the way to a cluster."""
        link = self._links.get(cluster)
        return link.contact if link is not None else Contact()

    async def first_round(self) -> None:
        """Return when every cluster known now has been connected, or could not be at the first attempt."""
        for link in list(self._links.values()):
            await link.tried.wait()

    async def run(self) -> None:
        """Connect, watch over and disconnect clusters until cancelled."""
        async with asyncio.TaskGroup() as group:
            stops = (
                self._clusters.subscribe(lambda old, new: self._cluster_changed(group, old, new)),
                self._secrets.subscribe(self._secret_changed),
            )
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                for stop in stops:
                    stop()

    def _cluster_changed(self, group: asyncio.TaskGroup, old: Cluster | None, new: Cluster | None) -> None:
        if new is None or not watched(new, self._watch_filter):
            known = new or old
            assert known is not None
            link = self._links.pop(ClusterKey(*known.key), None)
            if link is not None and link.task is not None:
                link.task.cancel()
            return
        key, initialization = ClusterKey(*new.key), new.status.initialization
        if key not in self._links and initialization is not None and initialization.infrastructure_provisioned:
            link = self._links[key] = _Link()
            link.task = group.create_task(self._keep(key, link), name=f"cluster {key}")

    def _secret_changed(self, old: KubeconfigSecret | None, new: KubeconfigSecret | None) -> None:
        secret = new or old
        assert secret is not None
        link = self._links.get(ClusterKey(secret.namespace, secret.name.removesuffix(KUBECONFIG)))
        if link is not None and (old is None or new is None or old.data.get("value") != new.data.get("value")):
            link.changed.set()

    async def _keep(self, cluster: ClusterKey, link: _Link) -> None:
        """Connect again and again; one cluster's trouble, even a bug, stays its own."""
        attempts = Attempts(RETRY)
        while True:
            began = self._clock.monotonic()
            link.changed.clear()
            wait = LOOK_AGAIN
            try:
                kubeconfig = await self._kubeconfig(cluster)
                if kubeconfig is not None:
                    async with self._connected(cluster, link, kubeconfig) as connection:
                        await self._watch_over(cluster, link, connection, kubeconfig)
                    continue
                self._troubled(cluster, link, f"Secret {cluster.name}{KUBECONFIG} with its kubeconfig does not exist")
            except (CapiError, TimeoutError, OSError) as error:
                words = str(error) or type(error).__name__
                logger.info("Connecting a workload cluster failed", extra={"cluster": str(cluster), "error": words})
                self._troubled(cluster, link, words)
                if self._clock.monotonic() - began > _STABLE:
                    attempts.succeeded()
                wait = attempts.failed()
            except Exception:
                logger.exception("Connecting a workload cluster failed", extra={"cluster": str(cluster)})
                wait = attempts.failed()
            link.tried.set()
            await _either(link.changed, wait)

    def _troubled(self, cluster: ClusterKey, link: _Link, why: str) -> None:
        """Remember why there is no connection. A workload cluster may answer at any length; it ends up in a condition."""
        why = " ".join(why.split())[:REASON]
        if why != link.contact.trouble:
            link.contact = replace(link.contact, trouble=why)
            self._announce(cluster, self._told_why)

    async def _kubeconfig(self, cluster: ClusterKey) -> bytes | None:
        try:
            secret = await self._client.get(KubeconfigSecret, cluster.name + KUBECONFIG, cluster.namespace)
        except NotFound:
            return None
        return secret.data.get("value")

    @asynccontextmanager
    async def _connected(self, cluster: ClusterKey, link: _Link, kubeconfig: bytes) -> AsyncIterator[Connection]:
        """A connection with filled caches, announced, and torn down again at the end."""
        async with asyncio.timeout(CONNECT_TIMEOUT):
            transport = await self._connector.connect(cluster, kubeconfig)
        try:
            async with asyncio.TaskGroup() as group:
                connection = Connection(cluster, Client(transport), self._clock)
                try:
                    await self._fill(group, connection)
                    link.connection, link.contact = connection, Contact(self._clock.now())
                    link.tried.set()
                    self._announce(cluster, self._listeners)
                    yield connection
                finally:
                    connection.informers.stop_all()
                    if link.connection is not None:
                        link.connection = None
                        self._announce(cluster, self._listeners)
        except (
            BaseExceptionGroup
        ) as failures:  # only this body's own error can be in it: reflectors never end by themselves
            raise failures.exceptions[0] from failures
        finally:
            await transport.close()

    async def _fill(self, group: asyncio.TaskGroup, connection: Connection) -> None:
        for watch, _ in self._watches:
            informer = connection.informers.of(watch.kind)
            for function in watch.indexes.values():
                informer.store.add_index(function)
        connection.informers.start(group)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                await self._probe(connection)
                await connection.informers.wait_synced()
        except TimeoutError as error:
            trouble = _words(connection.informers.trouble())
            raise TransportError(f"no caches within {CONNECT_TIMEOUT:.0f} s: {trouble}") from error
        for watch, handler in self._watches:
            connection.informers.of(watch.kind).subscribe(_bound(handler, connection.cluster))

    def _announce(self, cluster: ClusterKey, listeners: Iterable[Callable[[ClusterKey], None]]) -> None:
        for listener in listeners:
            try:
                listener(cluster)
            except Exception:
                logger.exception("Mapping a connection failed", extra={"cluster": str(cluster)})

    async def _watch_over(self, cluster: ClusterKey, link: _Link, connection: Connection, kubeconfig: bytes) -> None:
        """Return when the kubeconfig has changed; raise when the cluster is lost."""
        failures = 0
        while True:
            await _either(link.changed, PROBE_INTERVAL)
            if link.changed.is_set() and await self._renewed(cluster, link, kubeconfig):
                return
            try:
                async with asyncio.timeout(PROBE_TIMEOUT):
                    await self._probe(connection)
            except (TransportError, ApiError, TimeoutError) as error:
                failures += 1
                if isinstance(error, Unauthorized) or failures >= PROBE_FAILURES:
                    raise
            else:
                _check_caches(connection)
                failures, link.contact = 0, Contact(self._clock.now())

    async def _renewed(self, cluster: ClusterKey, link: _Link, kubeconfig: bytes) -> bool:
        """Whether the Secret has another kubeconfig now. Trouble with the management cluster is no reason to leave this one."""
        try:
            link.changed.clear()
            return await self._kubeconfig(cluster) != kubeconfig
        except (ApiError, TransportError) as error:
            logger.info("Reading a kubeconfig failed", extra={"cluster": str(cluster), "error": error.message})
            asyncio.get_running_loop().call_later(PROBE_INTERVAL, link.changed.set)
            return False

    async def _probe(self, connection: Connection) -> None:
        """Ask for a sign of life; refusals but 401 are one. Raises Unauthorized, TransportError or a server's error."""
        try:
            await connection.client.send("GET", "/")
        except ApiError as error:
            if isinstance(error, Unauthorized) or error.status_code >= 500:
                raise


def _check_caches(connection: Connection) -> None:
    """Raises TransportError when the cluster answers, but not those who watch it: what is cached of it may be long untrue."""
    silent = connection.informers.trouble(SILENCE)
    if silent:
        raise TransportError(f"no news for {SILENCE:.0f} s: {_words(silent)}")


def _words(trouble: Mapping[str, str]) -> str:
    return "; ".join(f"{kind}: {why}" for kind, why in sorted(trouble.items()))


def _bound(handler: Callable[[ClusterKey, Any, Any], None], cluster: ClusterKey) -> Callable[[Any, Any], None]:
    return lambda old, new: handler(cluster, old, new)


async def _either(event: asyncio.Event, seconds: float) -> None:
    """Wait for an event, or that long."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
