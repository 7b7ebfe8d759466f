"""How containers are named and found again. Pure.

A container is found by its labels: namespace, cluster and machine, never by a name that is taken apart. Upstream labels the
cluster's name only, so clusters of one name in two namespaces share, and destroy, each other's containers.

Upstream: container names `<cluster>-<machine>`, labels io.x-k8s.kind.*, provider IDs docker:////<container>.
"""

import hashlib
from collections.abc import Mapping
from typing import Final

from capi.backends.port import InstanceSpec
from capi.runtime.plan import ClusterKey

KIND_CLUSTER: Final = "io.x-k8s.kind.cluster"
KIND_ROLE: Final = "io.x-k8s.kind.role"
FAILURE_DOMAIN: Final = "io.x-k8s.cluster.failureDomain"
POOL: Final = "dev.cluster.x-k8s.io/machine-pool"
NAMESPACE: Final = "dev.cluster.x-k8s.io/namespace"
"""Ours, as are those below. Of the Cluster object; every container of this provider has it."""
MACHINE: Final = "dev.cluster.x-k8s.io/machine"
"""Name of the InfraMachine."""
OWNER_UID: Final = "dev.cluster.x-k8s.io/owner-uid"
"""Of the InfraMachine, or of the InfraCluster of a load balancer: which of two management servers on one engine made it."""
POOL_UID: Final = "dev.cluster.x-k8s.io/pool-uid"
MADE_BY: Final = "dev.cluster.x-k8s.io/made-by"
"""On a network that this provider made, and removes when nothing of it is left."""

CONTROL_PLANE: Final = "control-plane"
WORKER: Final = "worker"
LOAD_BALANCER: Final = "external-load-balancer"

_LONGEST = 63
"""A container's name is a host name and a Node's name too."""
_ID_PREFIX = "docker:////"


def container_name(cluster: ClusterKey, host: str) -> str:
    """`<cluster>-<host>`, or `host` alone if it begins so already; what is too long ends in a hash."""
    name = host if host.startswith(f"{cluster.name}-") else f"{cluster.name}-{host}"
    name = name.replace(".", "-")
    if len(name) <= _LONGEST:
        return name
    return f"{name[: _LONGEST - 9].rstrip('-')}-{_digest(name)}"


def balancer_names(cluster: ClusterKey) -> tuple[str, str]:
    """`<cluster>-lb`, and the name to take if the first is another's: of a cluster of the same name elsewhere."""
    first = container_name(cluster, f"{cluster.name}-lb")
    return first, container_name(cluster, f"{cluster.name}-lb-{_digest(str(cluster))}")


def provider_id(container: str) -> str:
    return f"{_ID_PREFIX}{container}"


def container_of(provider_id: str) -> str:
    """The container of a provider ID; "" for an ID that is none of this provider's."""
    return provider_id.removeprefix(_ID_PREFIX) if provider_id.startswith(_ID_PREFIX) else ""


def of_machine(spec: InstanceSpec) -> Mapping[str, str]:
    """All labels of a machine's container."""
    wanted = {
        KIND_CLUSTER: spec.cluster.name,
        KIND_ROLE: CONTROL_PLANE if spec.control_plane else WORKER,
        NAMESPACE: spec.cluster.namespace,
        MACHINE: spec.name,
        OWNER_UID: spec.uid,
        POOL: spec.pool,
        POOL_UID: spec.pool_uid,
        FAILURE_DOMAIN: spec.failure_domain,
    }
    return {key: value for key, value in wanted.items() if value}


def to_find(cluster: ClusterKey, machine: str) -> Mapping[str, str]:
    """Those by which the containers of one machine are asked for."""
    return {KIND_CLUSTER: cluster.name, NAMESPACE: cluster.namespace, MACHINE: machine}


def of_balancer(cluster: ClusterKey, uid: str) -> Mapping[str, str]:
    """All labels of a load balancer's container."""
    return {
        KIND_CLUSTER: cluster.name,
        KIND_ROLE: LOAD_BALANCER,
        NAMESPACE: cluster.namespace,
        OWNER_UID: uid,
    }


def cluster_of(labels: Mapping[str, str]) -> ClusterKey:
    return ClusterKey(labels.get(NAMESPACE, ""), labels.get(KIND_CLUSTER, ""))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
