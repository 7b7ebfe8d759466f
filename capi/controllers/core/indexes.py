"""How Machines, pools and Nodes are filed, so that no event costs a scan. Shared by the core controllers."""

from collections.abc import Iterable
from typing import Final

from capi.api.core import labels
from capi.api.core.v1beta2 import Cluster, Machine, MachineHealthCheck, MachinePool
from capi.controllers.core import nodes
from capi.controllers.core.objects import ref_values
from capi.kube import names
from capi.kube.objects import Unstructured
from capi.kube.types import Key
from capi.runtime.reader import Reader
from capi.runtime.watches import Indexes

_HASHED = "hash_"


def cluster_value(namespace: str, name: str, more: str = "") -> str:
    """How things of a cluster are filed."""
    return f"{namespace}/{name}/{more}" if more else f"{namespace}/{name}"


def pool_value(namespace: str, name: str) -> str:
    """How Machines of a pool are filed: by its name as a label value."""
    return f"{namespace}/{names.label_value(name)}"


def _machine_cluster(machine: Machine) -> Iterable[str]:
    return (cluster_value(machine.namespace, machine.spec.cluster_name),)


def _machine_pool(machine: Machine) -> Iterable[str]:
    """By label and by controller reference: either may be missing for a while."""
    found = set()
    label = machine.metadata.labels.get(labels.POOL_NAME)
    if label:
        found.add(f"{machine.namespace}/{label}")
    ref = machine.metadata.controller
    if ref is not None and ref.kind == "MachinePool":
        found.add(pool_value(machine.namespace, ref.name))
    return found


def _machine_provider_id(machine: Machine) -> Iterable[str]:
    return (machine.spec.provider_id,) if machine.spec.provider_id else ()


def _machine_node(machine: Machine) -> Iterable[str]:
    ref = machine.status.node_ref
    return (cluster_value(machine.namespace, machine.spec.cluster_name, ref.name),) if ref is not None else ()


def _machine_reference(machine: Machine) -> Iterable[str]:
    return ref_values(machine.namespace, machine.spec.infrastructure_ref, machine.spec.bootstrap.config_ref)


def _control_plane_of(machine: Machine) -> Iterable[str]:
    return _machine_cluster(machine) if labels.CONTROL_PLANE in machine.metadata.labels else ()


def _deleting_in(machine: Machine) -> Iterable[str]:
    return (machine.namespace,) if machine.deleting else ()


def _unpooled_of(machine: Machine) -> Iterable[str]:
    return () if labels.POOL_NAME in machine.metadata.labels else _machine_cluster(machine)


def _pool_cluster(pool: MachinePool) -> Iterable[str]:
    return (cluster_value(pool.namespace, pool.spec.cluster_name),)


def _pool_reference(pool: MachinePool) -> Iterable[str]:
    spec = pool.spec.template.spec
    return ref_values(pool.namespace, spec.infrastructure_ref, spec.bootstrap.config_ref)


def _cluster_reference(cluster: Cluster) -> Iterable[str]:
    return ref_values(cluster.namespace, cluster.spec.infrastructure_ref, cluster.spec.control_plane_ref)


def _check_cluster(check: MachineHealthCheck) -> Iterable[str]:
    return (cluster_value(check.namespace, check.spec.cluster_name),)


MACHINE: Final[Indexes] = {
    "cluster": _machine_cluster,
    "controlPlaneOf": _control_plane_of,
    "deletingIn": _deleting_in,
    "nodeRef": _machine_node,
    "pool": _machine_pool,
    "providerID": _machine_provider_id,
    "reference": _machine_reference,
    "unpooledOf": _unpooled_of,
}
POOL: Final[Indexes] = {"cluster": _pool_cluster, "reference": _pool_reference}
CLUSTER: Final[Indexes] = {"reference": _cluster_reference}
HEALTH_CHECK: Final[Indexes] = {"cluster": _check_cluster}
NODE: Final[Indexes] = {"providerID": nodes.provider_ids}


def pool_by_label(reader: Reader, namespace: str, label: str, cluster: str = "") -> MachinePool | None:
    """The pool that a pool-name label means, also a hashed one; only one of `cluster`, if that is given."""
    if not label:
        return None
    if not label.startswith(_HASHED):
        pool = reader.get(MachinePool, label, namespace)
        found = [pool] if pool is not None else []
    else:
        pools = reader.list(MachinePool, namespace)
        found = [pool for pool in pools if names.label_value(pool.name) == label]
    return next((pool for pool in found if not cluster or pool.spec.cluster_name == cluster), None)


def pools_of_label(obj: Unstructured, reader: Reader) -> Iterable[Key]:
    """The pool of an InfraMachine, by its labels."""
    wanted = obj.metadata.labels
    pool = pool_by_label(reader, obj.namespace, wanted.get(labels.POOL_NAME, ""), wanted.get(labels.CLUSTER_NAME, ""))
    return (pool.key,) if pool is not None else ()
