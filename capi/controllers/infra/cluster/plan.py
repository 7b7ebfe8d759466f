"""DevCluster: the endpoint of a simulated cluster. Pure.

Upstream: docker/reconcilers/backends/inmemory/inmemorycluster_backend.go. Differs: the port is chosen once and kept in
spec.controlPlaneEndpoint, next to what the user gave; nothing is served before the control plane controller does it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from capi.api.core import annotations
from capi.api.core.v1beta2 import APIEndpoint, Cluster
from capi.api.infra.v1beta2 import DevCluster
from capi.controllers.infra.cluster import status as cluster_status
from capi.runtime.plan import Apply, Plan, Write, target


@dataclass(frozen=True, slots=True)
class Scope:
    """All that one pass looks at."""

    infra: DevCluster
    cluster: Cluster | None
    endpoint: APIEndpoint | None
    """Where the cluster's API is to be: as given, completed with an address and a reserved port."""


def plan(seen: Scope) -> Plan:
    """One pass. There is nothing to clean up: the control plane gives the port back."""
    if seen.infra.deleting:
        return Plan(finalized=True)
    if annotations.MANAGED_BY in seen.infra.metadata.annotations:
        return Plan()  # contract: something else provisions it and writes its status
    if seen.infra.spec.backend.in_memory is None:
        return Plan(status=cluster_status.unsupported(seen.infra))
    if seen.cluster is None or seen.endpoint is None:
        return Plan()  # core makes the Cluster its owner, which wakes this key
    present = seen.infra.spec.control_plane_endpoint
    return Plan(
        writes=_spec(seen, seen.endpoint, seen.cluster) if present is None or not present.valid else (),
        status=cluster_status.of(seen.infra, provisioned=present is not None and present.valid),
    )


def taken_ports(own: DevCluster, all_clusters: Sequence[DevCluster]) -> set[int]:
    """Ports that other DevClusters keep."""
    others = (c.spec.control_plane_endpoint for c in all_clusters if c.metadata.uid != own.metadata.uid)
    return {endpoint.port for endpoint in others if endpoint is not None and endpoint.port}


def _spec(seen: Scope, endpoint: APIEndpoint, cluster: Cluster) -> Sequence[Write]:
    listener = {annotations.INMEMORY_LISTENER: str(cluster.key)}
    body = {
        "metadata": {"annotations": listener},
        "spec": {"controlPlaneEndpoint": {"host": endpoint.host, "port": endpoint.port}},
    }
    return (Apply(target(seen.infra), body, must_exist=True),)
