"""The Cluster controller.

Wakes on: the Cluster, its infrastructure and control plane objects (by reference), its pools, its Machines (those of
pools only when they come or go), and the connection to it, or what stands in its way.
Upstream: internal/controllers/cluster/cluster_controller.go.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import ClassVar

from capi import contract
from capi.api.core import finalizers, labels
from capi.api.core.v1beta2 import Cluster, Machine, MachinePool
from capi.controllers import owners, pause
from capi.controllers.core import indexes
from capi.controllers.core.cluster.access import observe_access
from capi.controllers.core.cluster.plan import MANAGER, plan
from capi.controllers.core.cluster.scope import Scope
from capi.controllers.core.objects import Found, look_up, value_of
from capi.kube.objects import Unstructured
from capi.kube.types import Key
from capi.runtime.plan import ClusterKey, Plan
from capi.runtime.reader import Reader
from capi.runtime.watches import AnyWatch, Connections, External, Watch


class ClusterReconciler:
    """Ties infrastructure, control plane and workers together."""

    kind: type[Cluster] = Cluster
    manager: ClassVar[str] = MANAGER
    finalizer: ClassVar[str | None] = finalizers.CLUSTER
    spacing: ClassVar[timedelta] = timedelta(milliseconds=200)
    """Least time between two passes of one Cluster, which is woken by everything that belongs to it. It also leaves a
    client that has just created a provider object time to write its status before the object gets an owner."""

    def __init__(self) -> None:
        self._lost: dict[Key, datetime] = {}
        """When a cluster that has not answered since the start was first found missing; so a restart begins the grace anew."""
        self.watches: Sequence[AnyWatch] = (
            Watch(Cluster, indexes=indexes.CLUSTER),
            Watch(MachinePool, keys=_of_pool, changed=pool_matters, indexes=indexes.POOL),
            Watch(Machine, keys=_of_machine, changed=machine_matters, indexes=indexes.MACHINE),
            External(keys=_of_external),
            Connections(keys=_of_connection, reasons=True),
        )

    def paused(self, obj: Cluster, reader: Reader) -> Sequence[str]:
        return pause.causes(obj, obj)

    async def reconcile(self, obj: Cluster, reader: Reader, now: datetime) -> Plan:
        key, since = ClusterKey(*obj.key), None
        if reader.workload(key) is not None:
            self._lost.pop(obj.key, None)
        else:
            since = reader.contact(key).seen or self._lost.setdefault(obj.key, now)
        made = plan(await observe(obj, reader, since, now), now)
        if made.finalized:
            self._lost.pop(obj.key, None)
        return made

    async def gone(self, key: Key) -> None:
        self._lost.pop(key, None)


async def observe(cluster: Cluster, reader: Reader, lost_since: datetime | None, now: datetime) -> Scope:
    """Read the caches, and the Secrets of a Cluster without a control plane object. O(pools + Machines outside pools), at the end O(Machines)."""
    value = indexes.cluster_value(cluster.namespace, cluster.name)
    unpooled = reader.index(Machine, "unpooledOf", value)
    infra = await look_up(reader, cluster.spec.infrastructure_ref, cluster.namespace, contract.INFRA_CLUSTER)
    plane = await look_up(reader, cluster.spec.control_plane_ref, cluster.namespace, contract.CONTROL_PLANE)
    return Scope(
        cluster=cluster,
        infra=unless_another_cluster_s(infra, cluster),
        control_plane=unless_another_cluster_s(plane, cluster),
        pools=reader.index(MachinePool, "cluster", value),
        unpooled=unpooled,
        pooled=_pooled(cluster, reader) if cluster.deleting else (),
        connected=lost_since is None,
        lost_since=lost_since,
        trouble=reader.contact(ClusterKey(*cluster.key)).trouble,
        access=await observe_access(cluster, reader, now),
    )


def _pooled(cluster: Cluster, reader: Reader) -> Sequence[Machine]:
    machines = reader.index(Machine, "cluster", indexes.cluster_value(cluster.namespace, cluster.name))
    return [machine for machine in machines if labels.POOL_NAME in machine.metadata.labels]


def unless_another_cluster_s(found: Found, cluster: Cluster) -> Found:
    """The same, but an object that another Cluster owned first is an error: it is neither used nor deleted."""
    obj = found.present
    refs = obj.metadata.owner_references if obj is not None else ()
    first = next(
        (ref for ref in refs if (ref.group, ref.kind) == (cluster.resource.group, cluster.resource.kind)), None
    )
    if first is None or first.uid == cluster.metadata.uid or owners.is_outlived(first, cluster):
        return found
    message = (
        f"{found} belongs to Cluster {first.name}, so Cluster {cluster.name} cannot use it; refer to another object"
    )
    return Found(found.ref, error=owners.Foreign(message))


def _of_pool(pool: MachinePool, reader: Reader) -> Iterable[Key]:
    return (Key(pool.namespace, pool.spec.cluster_name),)


def _of_machine(machine: Machine, reader: Reader) -> Iterable[Key]:
    return (Key(machine.namespace, machine.spec.cluster_name),)


def _of_external(obj: Unstructured, reader: Reader) -> Iterable[Key]:
    return [cluster.key for cluster in reader.index(Cluster, "reference", value_of(obj))]


def _of_connection(cluster: ClusterKey, reader: Reader) -> Iterable[Key]:
    return (Key(*cluster),)


def pool_matters(old: MachinePool, new: MachinePool) -> bool:
    """Whether a change of a pool concerns its Cluster."""
    return (
        old.deleting != new.deleting
        or old.spec.replicas != new.spec.replicas
        or _pool_counters(old) != _pool_counters(new)
    )


def _pool_counters(pool: MachinePool) -> tuple[object, ...]:
    status = pool.status
    return (
        status.replicas,
        status.ready_replicas,
        status.available_replicas,
        status.up_to_date_replicas,
        status.versions,
    )


def machine_matters(old: Machine, new: Machine) -> bool:
    """Updates of pool Machines never concern the Cluster: their pool counts them."""
    return labels.POOL_NAME not in new.metadata.labels or labels.POOL_NAME not in old.metadata.labels
