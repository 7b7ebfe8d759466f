"""How the objects of one cluster find each other: by references and labels, never by equal names."""

from collections.abc import Callable, Iterable

from capi.api.controlplane.v1beta2 import DevControlPlane
from capi.api.core.labels import CLUSTER_NAME, CONTROL_PLANE, POOL_NAME
from capi.api.core.v1beta2 import Cluster, Machine, MachinePool
from capi.controllers.infra.family import Family, InfraMachine, InfraMachinePool
from capi.kube.names import label_value
from capi.kube.objects import OwnerReference, Resource
from capi.kube.types import GroupKind, Key
from capi.runtime.reader import Reader


def cluster_of(obj: Resource, reader: Reader) -> Cluster | None:
    """The Cluster of the cluster-name label."""
    name = obj.metadata.labels.get(CLUSTER_NAME, "")
    return reader.get(Cluster, name, obj.namespace) if name else None


def owner(obj: Resource, kind: type[Resource]) -> OwnerReference | None:
    """The reference to the owner of that kind, whatever its version."""
    wanted = kind.resource.group_kind
    return next((ref for ref in obj.metadata.owner_references if GroupKind(ref.group, ref.kind) == wanted), None)


def owner_name(obj: Resource, kind: type[Resource]) -> str:
    """Name of the owner of that kind; "" without one."""
    found = owner(obj, kind)
    return found.name if found is not None else ""


def is_control_plane(*objects: Resource | None) -> bool:
    """Whether any of a Machine and its InfraMachine carries the label."""
    return any(CONTROL_PLANE in one.metadata.labels for one in objects if one is not None)


def machine_of(infra: InfraMachine, reader: Reader) -> Machine | None:
    """The Machine that owns an InfraMachine, or, before it does, the one of the same name that refers to it."""
    name = owner_name(infra, Machine) or infra.name
    machine = reader.get(Machine, name, infra.namespace)
    if machine is None or machine.spec.infrastructure_ref.name != infra.name:
        return None
    return machine if machine.spec.infrastructure_ref.group_kind == infra.resource.group_kind else None


def machine_pool_of(pool: InfraMachinePool, reader: Reader) -> MachinePool | None:
    """The MachinePool that owns an InfraMachinePool."""
    name = owner_name(pool, MachinePool)
    return reader.get(MachinePool, name, pool.namespace) if name else None


def labelled_pool(obj: Resource, reader: Reader) -> MachinePool | None:
    """The MachinePool that the pool-name label means, hashed or not."""
    value = obj.metadata.labels.get(POOL_NAME, "")
    if not value:
        return None
    direct = reader.get(MachinePool, value, obj.namespace)
    if direct is not None or not value.startswith("hash_"):
        return direct
    pools = reader.list(MachinePool, obj.namespace)
    return next((pool for pool in pools if label_value(pool.name) == value), None)


def pools_of_machine_pool(family: Family) -> Callable[[MachinePool, Reader], Iterable[Key]]:
    """The InfraMachinePool that a MachinePool refers to."""

    def keys(pool: MachinePool, _reader: Reader) -> Iterable[Key]:
        ref = pool.spec.template.spec.infrastructure_ref
        if ref.group_kind == family.pool.resource.group_kind:
            yield Key(pool.namespace, ref.name)

    return keys


def pools_of_machine(family: Family) -> Callable[[Machine, Reader], Iterable[Key]]:
    """The InfraMachinePool behind a pool's Machine, which label or owner reference tells."""
    of_pool = pools_of_machine_pool(family)

    def keys(machine: Machine, reader: Reader) -> Iterable[Key]:
        owner = owner_name(machine, MachinePool)
        pool = reader.get(MachinePool, owner, machine.namespace) if owner else labelled_pool(machine, reader)
        return of_pool(pool, reader) if pool is not None else ()

    return keys


def pools_of_infra(family: Family) -> Callable[[InfraMachine, Reader], Iterable[Key]]:
    """The InfraMachinePool that owns an InfraMachine, or should."""
    of_pool = pools_of_machine_pool(family)

    def keys(infra: InfraMachine, reader: Reader) -> Iterable[Key]:
        if name := owner_name(infra, family.pool):
            yield Key(infra.namespace, name)
        elif pool := labelled_pool(infra, reader):
            yield from of_pool(pool, reader)

    return keys


def of_cluster(kind: type[Resource]) -> Callable[[Cluster, Reader], Iterable[Key]]:
    """Objects of a kind that carry the Cluster's label."""

    def keys(cluster: Cluster, reader: Reader) -> Iterable[Key]:
        return [obj.key for obj in reader.list(kind, cluster.namespace, {CLUSTER_NAME: cluster.name})]

    return keys


def cluster_changed(old: Cluster, new: Cluster) -> bool:
    """Whether anything changed of a Cluster that matters to its infrastructure."""
    return _essence(old) != _essence(new)


def _essence(cluster: Cluster) -> tuple[object, ...]:
    spec = cluster.spec
    return (
        spec.paused,
        cluster.status.initialization,
        cluster.deleting,
        spec.control_plane_endpoint,
        spec.control_plane_ref,
        spec.cluster_network,
    )


def owning_cluster(obj: Resource, reader: Reader) -> Cluster | None:
    """The Cluster that owns an infra cluster or a control plane, whatever their names."""
    name = owner_name(obj, Cluster)
    return reader.get(Cluster, name, obj.namespace) if name else None


def is_hosted(cluster: Cluster) -> bool:
    """The Cluster's API is served by a DevControlPlane, without machines."""
    ref = cluster.spec.control_plane_ref
    return ref is not None and ref.group_kind == DevControlPlane.resource.group_kind
