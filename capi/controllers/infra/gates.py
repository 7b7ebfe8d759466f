"""What an infrastructure object waits for before anything is made. Pure.

Upstream: the gates at the head of every DevMachine backend.
"""

from typing import NamedTuple

from capi.api.core.conditions import Reason
from capi.api.core.v1beta2 import Cluster


class Gate(NamedTuple):
    """Why nothing happens yet: reason and message of a condition that is False."""

    reason: str
    message: str


def infrastructure(cluster: Cluster | None) -> Gate | None:
    """Machines are made only in provisioned cluster infrastructure."""
    initialization = cluster.status.initialization if cluster is not None else None
    if initialization is not None and initialization.infrastructure_provisioned:
        return None
    return Gate(
        Reason.WAITING_FOR_CLUSTER_INFRASTRUCTURE_READY, "Waiting for the cluster infrastructure to be provisioned"
    )


def bootstrap(cluster: Cluster | None, data_secret: str | None) -> Gate | None:
    """Machines are made only once their bootstrap data exists; "" says that there is none to wait for."""
    if data_secret is not None:
        return None
    if not initialized(cluster):
        return Gate(Reason.WAITING_FOR_CONTROL_PLANE_INITIALIZED, "Waiting for the control plane to be initialized")
    return Gate(Reason.WAITING_FOR_BOOTSTRAP_DATA, "Waiting for the bootstrap data to be available")


def initialized(cluster: Cluster | None) -> bool:
    """The cluster's API was reachable once."""
    initialization = cluster.status.initialization if cluster is not None else None
    return bool(initialization is not None and initialization.control_plane_initialized)
