"""From a reconciler's declared watches to keys in its queue."""

from collections.abc import Callable, Iterable
from typing import Any

from capi.kube.objects import Resource
from capi.kube.types import Key
from capi.runtime.caches import ManagementReader
from capi.runtime.clusters import ClusterConnections
from capi.runtime.informer import Informer
from capi.runtime.plan import ClusterKey
from capi.runtime.reconciler import Reconciler
from capi.runtime.watches import AnyWatch, Connections, External, Owned, Watch, Workload

Enqueue = Callable[[Iterable[Key]], None]
Mapping = Callable[[Any], Iterable[Key]]


def connect(
    reconciler: Reconciler[Any],
    reader: ManagementReader,
    connections: ClusterConnections | None,
    enqueue: Enqueue,
) -> None:
    """Declare all reads of a reconciler and subscribe `enqueue` to all that wakes it.

    Raises ValueError for watches of workload clusters when the manager has no connections to any.
    """
    watches: list[AnyWatch] = list(reconciler.watches)
    reader.external_watches = [watch for watch in watches if isinstance(watch, External)]
    reader.workload_watches = [watch for watch in watches if isinstance(watch, Workload)]
    reader.on_external = lambda informer: _externals(reconciler.kind, reader, informer, enqueue)
    reader.informer(reconciler.kind).subscribe(_handler(lambda obj: (obj.key,), None, enqueue))
    for watch in watches:
        if isinstance(watch, Watch):
            _watch(watch, reader, enqueue)
        elif isinstance(watch, Owned):
            informer = reader.declare(watch.kind, watch.indexes)
            mapping = owners(reconciler.kind, controller_only=watch.controller_only)
            informer.subscribe(_handler(mapping, watch.changed, enqueue))
        elif isinstance(watch, Workload | Connections):
            if connections is None:
                raise ValueError(f"{reconciler.manager} watches workload clusters; give the manager a connector")
            if isinstance(watch, Workload):
                _workload(watch, reader, connections, enqueue)
            else:
                connections.listen(_listener(watch, reader, enqueue), reasons=watch.reasons)


def owners(kind: type[Resource], *, controller_only: bool) -> Mapping:
    """Maps an object to its owners of `kind`, in any version of it."""
    group, name = kind.resource.group, kind.resource.kind

    def keys(obj: Any) -> Iterable[Key]:
        for ref in obj.metadata.owner_references:
            if ref.kind == name and ref.group == group and (ref.controller or not controller_only):
                yield Key(obj.metadata.namespace, ref.name)

    return keys


def _handler(keys: Mapping, changed: Callable[[Any, Any], bool] | None, enqueue: Enqueue) -> Callable[[Any, Any], None]:
    def handle(old: Any, new: Any) -> None:
        if old is not None and new is not None:
            if changed is not None and not changed(old, new):
                return
            found = set(keys(new))
            found.update(keys(old))
            enqueue(found)
        else:
            enqueue(keys(old if new is None else new))

    return handle


def _watch(watch: Watch, reader: ManagementReader, enqueue: Enqueue) -> None:
    informer = reader.declare(watch.kind, watch.indexes, watch.labels)
    keys = watch.keys
    if keys is not None:
        mapping = keys
        informer.subscribe(_handler(lambda obj: mapping(obj, reader), watch.changed, enqueue))


def _externals(kind: type[Resource], reader: ManagementReader, informer: Informer, enqueue: Enqueue) -> None:
    for watch in reader.external_watches:
        mapping = owners(kind, controller_only=False)
        if watch.keys is not None:
            mapping = _with(watch.keys, reader)
        informer.subscribe(_handler(mapping, None, enqueue))


def _with(keys: Callable[[Any, Any], Iterable[Key]], reader: ManagementReader) -> Mapping:
    return lambda obj: keys(obj, reader)


def _workload(watch: Workload, reader: ManagementReader, connections: ClusterConnections, enqueue: Enqueue) -> None:
    keys = watch.keys

    def handle(cluster: ClusterKey, old: Any, new: Any) -> None:
        if keys is not None:
            mapping = keys
            _handler(lambda obj: mapping(obj, cluster, reader), watch.changed, enqueue)(old, new)

    connections.watch(watch, handle)


def _listener(watch: Connections, reader: ManagementReader, enqueue: Enqueue) -> Callable[[ClusterKey], None]:
    return lambda cluster: enqueue(watch.keys(cluster, reader))
