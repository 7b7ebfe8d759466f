"""For providers written in Python: all that one needs, in one import. docs/providers.md walks through an example.

A provider is a `Backend`: it makes instances, removes them, and says how they are. Pools, Machines, health checks, roll-outs and
deletion are this program's business. Its pools say `spec.backend.external.name`, the name under which it is given here.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TypeAlias

from capi.aio.feed import Feed, Feeds
from capi.app.settings import UpSettings
from capi.backends.inmemory import registration
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
"""Makes the backends, by name. What it is given knows the clusters whose API is hosted here (DevControlPlane): see HostedNodes."""


class HostedNodes:
    """Registers Nodes for instances that have no kubelet, in clusters whose API is hosted here."""

    def __init__(self, workloads: WorkloadClusters) -> None:
        self._workloads = workloads
        self._joined: set[str] = set()

    async def join(self, spec: InstanceSpec) -> bool:
        """The instance has its Node. False while the cluster's API is not served. Raises BackendUnavailable."""
        client = self._workloads.client(spec.cluster)
        if client is None:
            return False
        try:
            await registration.register(client, spec, datetime.now(UTC), known=spec.id in self._joined)
        except (ApiError, TransportError) as error:
            raise BackendUnavailable(f"registering Node {spec.name}: {error.message}") from error
        self._joined.add(spec.id)
        return True

    async def leave(self, id_: str, name: str, cluster: ClusterKey) -> None:
        """The Node goes. Raises BackendUnavailable."""
        self._joined.discard(id_)
        client = self._workloads.client(cluster)
        if client is not None:
            try:
                await registration.remove(id_, name, datetime.now(UTC), client)
            except (ApiError, TransportError) as error:
                raise BackendUnavailable(f"removing Node {name}: {error.message}") from error


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
    "HostedNodes",
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
