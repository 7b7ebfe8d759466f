"""An InfraCluster: the endpoint of a simulated cluster. Pure; clusters of containers: balancing.py.

Upstream: docker/reconcilers/backends/inmemory/inmemorycluster_backend.go. Differs: the port is chosen once and kept in
spec.controlPlaneEndpoint, next to what the user gave; nothing is served before the control plane controller does it.
"""

from collections.abc import Sequence

from capi.api.core import annotations
from capi.api.core.v1beta2 import APIEndpoint, Cluster
from capi.controllers.infra.cluster import status as cluster_status
from capi.controllers.infra.cluster.scope import Scope
from capi.controllers.infra.family import InfraCluster
from capi.runtime.plan import Apply, Plan, Write, target


def plan(seen: Scope) -> Plan:
    """One pass. There is nothing to clean up: the control plane gives the port back."""
    if seen.infra.deleting:
        return Plan(finalized=True)
    if seen.cluster is None or seen.endpoint is None:
        return Plan()  # core makes the Cluster its owner, which wakes this key
    present = seen.infra.spec.control_plane_endpoint
    return Plan(
        writes=_spec(seen, seen.endpoint, seen.cluster) if present is None or not present.valid else (),
        status=cluster_status.of(seen.infra, provisioned=present is not None and present.valid),
    )


def managed_elsewhere(infra: InfraCluster) -> bool:
    """Contract: something else provisions it and writes its status."""
    return annotations.MANAGED_BY in infra.metadata.annotations


def taken_ports(own: InfraCluster, all_clusters: Sequence[InfraCluster]) -> set[int]:
    """Ports that other InfraClusters keep."""
    others = (c.spec.control_plane_endpoint for c in all_clusters if c.metadata.uid != own.metadata.uid)
    return {endpoint.port for endpoint in others if endpoint is not None and endpoint.port}


def _spec(seen: Scope, endpoint: APIEndpoint, cluster: Cluster) -> Sequence[Write]:
    listener = {annotations.INMEMORY_LISTENER: str(cluster.key)}
    body = {
        "metadata": {"annotations": listener},
        "spec": {"controlPlaneEndpoint": {"host": endpoint.host, "port": endpoint.port}},
    }
    return (Apply(target(seen.infra), body, must_exist=True),)
