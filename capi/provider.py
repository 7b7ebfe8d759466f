"""For providers written in Python: all that one needs, in one import. docs/providers.md walks through an example.

A provider is a `Backend`: it makes instances, removes them, and says how they are. Pools, Machines, health checks, roll-outs and
deletion are this program's business. Its pools say `spec.backend.external.name`, the name under which it is given here.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from capi.aio.feed import Feed, Feeds
from capi.app.settings import UpSettings
from capi.backends.inmemory.workload import WorkloadClusters
from capi.backends.port import (
    Address,
    Backend,
    BackendUnavailable,
    Instance,
    InstanceEvent,
    InstanceGone,
    InstanceSpec,
    MachineShape,
    Stage,
)
from capi.cli import up as cli_up
from capi.client.client import Client
from capi.kube.errors import AlreadyExists, ApiError, BackendError, NotFound, TransportError
from capi.kube.types import Object, ResourceType
from capi.runtime.plan import ClusterKey

Provide: TypeAlias = Callable[[WorkloadClusters], Mapping[str, Backend]]
"""Makes the backends, by name. `workloads.client(cluster)` reaches the API of a cluster that is hosted here (a DevControlPlane),
for instances whose Nodes nobody else registers; None for other clusters, and while it is not served."""


def up(provide: Provide, settings: UpSettings) -> int:
    """What `capi up` does, with further backends: blocks until it is stopped, and returns the exit code."""
    return cli_up.up(settings, provide)


__all__ = [
    "Address",
    "AlreadyExists",
    "ApiError",
    "Backend",
    "BackendError",
    "BackendUnavailable",
    "Client",
    "ClusterKey",
    "Feed",
    "Feeds",
    "Instance",
    "InstanceEvent",
    "InstanceGone",
    "InstanceSpec",
    "MachineShape",
    "NotFound",
    "Object",
    "Provide",
    "ResourceType",
    "Stage",
    "TransportError",
    "UpSettings",
    "WorkloadClusters",
    "up",
]
