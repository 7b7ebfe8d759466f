"""How the objects of one cluster find each other: by references and labels, never by equal names."""

from collections.abc import Iterable

from capi.api.controlplane.v1beta2 import DevControlPlane
from capi.api.core.labels import CLUSTER_NAME, POOL_NAME
from capi.api.core.v1beta2 import Cluster, Machine, MachinePool
from capi.api.infra.v1beta2 import DevMachine, DevMachinePool
from capi.kube.names import label_value
from capi.kube.objects import Resource
from capi.kube.types import GroupKind, Key
from capi.runtime.reader import Reader


def cluster_of(obj: Resource, reader: Reader) -> Cluster | None:
    """The Cluster of the cluster-name label."""
    name = obj.metadata.labels.get(CLUSTER_NAME, "")
    return reader.get(Cluster, name, obj.namespace) if name else None


def owner_name(obj: Resource, kind: type[Resource]) -> str:
    """Name of the owner of that kind, whatever its version; "" without one."""
    wanted = kind.resource.group_kind
    return next((ref.name for ref in obj.metadata.owner_references if GroupKind(ref.group, ref.kind) == wanted), "")


def machine_of(infra: DevMachine, reader: Reader) -> Machine | None:
    """The Machine that owns a DevMachine, or, before it does, the one of the same name that refers to it."""
    name = owner_name(infra, Machine) or infra.name
    machine = reader.get(Machine, name, infra.namespace)
    if machine is None or machine.spec.infrastructure_ref.name != infra.name:
        return None
    return machine if machine.spec.infrastructure_ref.group_kind == DevMachine.resource.group_kind else None


def machine_pool_of(pool: DevMachinePool, reader: Reader) -> MachinePool | None:
    """The MachinePool that owns a DevMachinePool."""
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


def pools_of_machine_pool(pool: MachinePool, _reader: Reader) -> Iterable[Key]:
    """The DevMachinePool that a MachinePool refers to."""
    ref = pool.spec.template.spec.infrastructure_ref
    if ref.group_kind == DevMachinePool.resource.group_kind:
        yield Key(pool.namespace, ref.name)


def pools_of_machine(machine: Machine, reader: Reader) -> Iterable[Key]:
    """The DevMachinePool behind a pool's Machine, which label or owner reference tells."""
    owner = owner_name(machine, MachinePool)
    pool = reader.get(MachinePool, owner, machine.namespace) if owner else labelled_pool(machine, reader)
    return pools_of_machine_pool(pool, reader) if pool is not None else ()


def pools_of_infra(infra: DevMachine, reader: Reader) -> Iterable[Key]:
    """The DevMachinePool that owns a DevMachine, or should."""
    if name := owner_name(infra, DevMachinePool):
        yield Key(infra.namespace, name)
    elif pool := labelled_pool(infra, reader):
        yield from pools_of_machine_pool(pool, reader)


def pools_of_cluster(cluster: Cluster, reader: Reader) -> Iterable[Key]:
    """The DevMachinePools of a Cluster."""
    return [pool.key for pool in reader.list(DevMachinePool, cluster.namespace, {CLUSTER_NAME: cluster.name})]


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
    )


def owning_cluster(obj: Resource, reader: Reader) -> Cluster | None:
    """The Cluster that owns an infra cluster or a control plane, whatever their names."""
    name = owner_name(obj, Cluster)
    return reader.get(Cluster, name, obj.namespace) if name else None


def is_hosted(cluster: Cluster) -> bool:
    """The Cluster's API is served by a DevControlPlane, without machines."""
    ref = cluster.spec.control_plane_ref
    return ref is not None and ref.group_kind == DevControlPlane.resource.group_kind
