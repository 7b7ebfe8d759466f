"""What reconcilers read: implementations of `runtime.reader` over informers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from capi.client.client import Client
from capi.kube.errors import NotFound
from capi.kube.objects import Resource, Unstructured
from capi.kube.types import GroupKind, Key, ResourceType
from capi.runtime.clusters import ClusterConnections, Connection
from capi.runtime.externals import ExternalKinds
from capi.runtime.informer import Informer
from capi.runtime.informers import Informers
from capi.runtime.plan import ClusterKey
from capi.runtime.reader import Contact, UndeclaredRead
from capi.runtime.store import IndexFunction
from capi.runtime.watches import External, Indexes, Workload

R = TypeVar("R", bound=Resource)
OnExternal = Callable[[Informer], None]


class Declared:
    """The kinds one reconciler declared on one API server, and its names for indexes. Implements reader.CacheReader."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._informers: dict[type[Resource], Informer] = {}
        self._by_resource: dict[ResourceType, Informer] = {}
        self._indexes: dict[tuple[type[Resource], str], IndexFunction] = {}

    def add(self, kind: type[Resource], informer: Informer, indexes: Indexes) -> None:
        """Allow reads of `kind`. Raises ValueError when it was declared under another label selector."""
        if self._informers.setdefault(kind, informer) is not informer:
            raise ValueError(f"{self._owner} declares {kind.__name__} with two different label selectors")
        self._by_resource[kind.resource] = informer
        for name, function in indexes.items():
            if self._indexes.setdefault((kind, name), function) is not function:
                raise ValueError(f"{self._owner} declares two indexes {name!r} of {kind.__name__}")
            informer.store.add_index(function)

    def informer(self, kind: type[Resource]) -> Informer:
        found = self._informers.get(kind)
        if found is None:
            raise UndeclaredRead(f"{self._owner} reads {kind.__name__}, which it does not watch; add it to its watches")
        return found

    def informer_of(self, resource: ResourceType) -> Informer | None:
        return self._by_resource.get(resource)

    def get(self, kind: type[R], name: str, namespace: str = "") -> R | None:
        found: R | None = self.informer(kind).store.get(Key(namespace, name))
        return found

    def list(self, kind: type[R], namespace: str | None = None, labels: Mapping[str, str] | None = None) -> Sequence[R]:
        return self.informer(kind).store.list(namespace, labels)

    def index(self, kind: type[R], index: str, value: str) -> Sequence[R]:
        store = self.informer(kind).store
        function = self._indexes.get((kind, index))
        if function is None:
            raise UndeclaredRead(f"{self._owner} reads index {index!r} of {kind.__name__}; declare it with the watch")
        return store.by_index(function, value)


class ClusterReader(Declared):
    """Reads of one connected workload cluster. Implements reader.WorkloadReader."""

    def __init__(self, owner: str, connection: Connection, watches: Iterable[Workload]) -> None:
        super().__init__(owner)
        self._client = connection.client
        for watch in watches:
            self.add(watch.kind, connection.informers.of(watch.kind), watch.indexes)

    async def live_list(
        self, kind: type[R], namespace: str | None = None, labels: str = "", fields: str = ""
    ) -> Sequence[R]:
        return await self._client.list(kind, namespace, labels=labels, fields=fields)


class ManagementReader(Declared):
    """Reads of one reconciler. Implements reader.Reader."""

    def __init__(
        self,
        owner: str,
        client: Client,
        informers: Informers,
        externals: ExternalKinds,
        connections: ClusterConnections | None,
    ) -> None:
        super().__init__(owner)
        self._client = client
        self._shared = informers
        self._externals = externals
        self._connections = connections
        self.external_watches: Sequence[External] = ()
        self.workload_watches: Sequence[Workload] = ()
        self.on_external: OnExternal = lambda _: None
        """Set by the controller: called with every cache of a provider kind that was read, to subscribe to it."""
        self._known: set[GroupKind] = set()
        self._clusters: dict[ClusterKey, tuple[Connection, ClusterReader]] = {}

    def declare(self, kind: type[Resource], indexes: Indexes, labels: str = "") -> Informer:
        """Allow reads of a kind, and cache it."""
        informer = self._shared.of(kind, labels)
        self.add(kind, informer, indexes)
        return informer

    def find(self, resource: ResourceType, cluster: ClusterKey | None = None) -> Informer | None:
        """The cache of a resource in which this reconciler's own writes will show, if it has one."""
        if cluster is None:
            return self.informer_of(resource) or self._externals.running(resource)
        reader = self.workload(cluster)
        return reader.informer_of(resource) if reader is not None else None

    async def external(self, group_kind: GroupKind, name: str, namespace: str) -> Unstructured | None:
        found: Unstructured | None = (await self._external(group_kind)).store.get(Key(namespace, name))
        return found

    async def external_list(
        self, group_kind: GroupKind, namespace: str, labels: Mapping[str, str]
    ) -> Sequence[Unstructured]:
        return (await self._external(group_kind)).store.list(namespace, labels)

    async def live_external(self, resource: ResourceType, name: str, namespace: str) -> Unstructured | None:
        try:
            return Unstructured.of(resource, await self._client.get(resource, name, namespace))
        except NotFound:
            return None

    async def external_type(self, group_kind: GroupKind) -> ResourceType:
        return self._externals.type_of(group_kind)

    async def _external(self, group_kind: GroupKind) -> Informer:
        if not self.external_watches:
            raise UndeclaredRead(f"{self._owner} reads provider objects ({group_kind}); add External() to its watches")
        if group_kind not in self._known:
            self._known.add(group_kind)
            self._externals.want(group_kind, self._meet)
        return await self._externals.informer(group_kind)

    def _meet(self, informer: Informer) -> None:
        for watch in self.external_watches:
            for label in watch.label_indexes:
                informer.store.add_label_index(label)
        self.on_external(informer)

    async def live(self, kind: type[R], name: str, namespace: str = "") -> R | None:
        try:
            return await self._client.get(kind, name, namespace)
        except NotFound:
            return None

    def workload(self, cluster: ClusterKey) -> ClusterReader | None:
        if self._connections is None:
            return None
        connection = self._connections.get(cluster)
        if connection is None:
            self._clusters.pop(cluster, None)
            return None
        known = self._clusters.get(cluster)
        if known is None or known[0] is not connection:
            known = self._clusters[cluster] = connection, ClusterReader(self._owner, connection, self.workload_watches)
        return known[1]

    def contact(self, cluster: ClusterKey) -> Contact:
        return self._connections.contact(cluster) if self._connections is not None else Contact()

    def workload_client(self, cluster: ClusterKey) -> Client | None:
        connection = self._connections.get(cluster) if self._connections is not None else None
        return connection.client if connection is not None else None
