"""Kubelets for containers that have none: Nodes that appear when a container was bootstrapped, and are marked when it stops.

Knows nothing of the code under test but the labels on containers and where the bootstrap leaves its result.
"""

import asyncio
import contextlib
from collections.abc import Callable
from datetime import UTC, datetime

import orjson
from aiodocker import Docker, DockerError

from capi.client.client import Client
from capi.kube import times
from capi.kube.errors import ApiError, TransportError
from capi.kube.types import Object, ResourceType
from capi.runtime.plan import ClusterKey

NODES = ResourceType("", "v1", "Node", "nodes", namespaced=False)
LOOK = 0.1
"""Seconds between two looks at the engine; a real kubelet takes longer."""
_PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure")
_LABELS = ("dev.cluster.x-k8s.io/namespace", "dev.cluster.x-k8s.io/machine")


class Kubelets:
    """Those of all clusters. `run` until cancelled."""

    def __init__(self, docker: Docker, workload: Callable[[ClusterKey], Client | None]) -> None:
        self._docker = docker
        self._workload = workload
        self._known: dict[str, str] = {}
        """Container ID to what its Node says: Ready, NotReady."""
        self._joined: set[str] = set()

    async def run(self) -> None:
        while True:
            with contextlib.suppress(DockerError, ApiError, TransportError, OSError):
                await self._look()
            await asyncio.sleep(LOOK)

    async def _look(self) -> None:
        wanted = orjson.dumps({"label": list(_LABELS)}).decode()
        for found in await self._docker.containers.list(all=True, filters=wanted):
            container: Object = found._container
            state = "Ready" if container["State"] == "running" else "NotReady"
            if self._known.get(container["Id"]) == state:
                continue
            joined = container["Id"] in self._joined
            if not joined and not (state == "Ready" and await self._bootstrapped(found)):
                continue
            self._joined.add(container["Id"])
            if await self._tell(container, state):
                self._known[container["Id"]] = state

    async def _bootstrapped(self, container: object) -> bool:
        """The stand-in for kubeadm has run."""
        try:
            await container.get_archive("/etc/kubernetes/kubelet.conf")  # type: ignore[attr-defined]
        except DockerError:
            return False
        return True

    async def _tell(self, container: Object, state: str) -> bool:
        labels = container["Labels"]
        cluster = ClusterKey(labels[_LABELS[0]], labels["io.x-k8s.kind.cluster"])
        client = self._workload(cluster)
        name = container["Names"][0].lstrip("/")
        if client is None:
            return False
        ready, now = state == "Ready", times.format(datetime.now(UTC))
        says = {"Ready": "True", **dict.fromkeys(_PRESSURES, "False")}
        conditions = [
            {"type": type_, "status": good if ready else "Unknown", "reason": state, "lastTransitionTime": now}
            for type_, good in says.items()
        ]
        node = {
            "metadata": {"name": name},
            "status": {"conditions": conditions, "nodeInfo": {"kubeletVersion": "v1.34.0"}},
        }
        try:
            await client.create(NODES, node)
        except ApiError:
            await client.patch(NODES, name, "", {"status": node["status"]}, type_="strategic", subresource="status")
        return True
