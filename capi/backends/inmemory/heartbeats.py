"""The heartbeats of a hosted cluster's kubelets: one Lease a Node in kube-node-lease, renewed every ten seconds.

They are written to the workload API only, whose watchers of Nodes see nothing of them. Renewals are spread over the
interval by the Nodes' names. Source: Kubernetes pkg/kubelet/kubelet.go (nodeLeaseDurationSeconds 40, renewed after a quarter
of it). Differs: `lastHeartbeatTime` of a Node's conditions is never renewed, which would wake everybody who watches Nodes.
"""

import asyncio
import hashlib
import logging
from contextlib import suppress
from datetime import datetime

from capi.aio.clock import Clock
from capi.backends.inmemory.nodes import NODES
from capi.client.client import Client
from capi.kube import times
from capi.kube.errors import AlreadyExists, ApiError, NotFound, TransportError
from capi.kube.types import Object, ResourceType

logger = logging.getLogger(__name__)

LEASES = ResourceType("coordination.k8s.io", "v1", "Lease", "leases")
NAMESPACE = "kube-node-lease"
LASTS = 40
"""Seconds after the last renewal from which a node controller would give a Node up."""
INTERVAL = LASTS // 4
SLOTS = INTERVAL
"""Parts of the interval: each second those of one part are renewed."""


class Heartbeats:
    """Those of one cluster. `run` until cancelled."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._slots: tuple[dict[str, str], ...] = tuple({} for _ in range(SLOTS))
        """Uids of Nodes by their names, for each second of the interval."""
        self._some = asyncio.Event()

    def start(self, node: str, uid: str) -> None:
        """The kubelet of a Node beats from now on. Idempotent."""
        slot = self._slots[_slot(node)]
        if slot.get(node) != uid:
            slot[node] = uid
            self._some.set()

    def stop(self, node: str) -> None:
        """The kubelet falls silent; its Lease stays and grows old. Idempotent."""
        self._slots[_slot(node)].pop(node, None)

    async def run(self) -> None:
        """Raises bugs only; what an API server refuses is tried again at the next turn."""
        turn = 0
        while True:
            if not any(self._slots):
                self._some.clear()
                await self._some.wait()
            due = self._slots[turn % SLOTS]
            if due:
                await asyncio.gather(*(self._renew(node, uid) for node, uid in list(due.items())))
            turn += 1
            await asyncio.sleep(INTERVAL / SLOTS)

    async def _renew(self, node: str, uid: str) -> None:
        now = self._clock.now()
        try:
            with suppress(NotFound):
                await self._client.patch(LEASES, node, NAMESPACE, _renewal(now), manager="kubelet")
                return
            await self._create(node, uid, now)
        except (ApiError, TransportError) as error:
            logger.debug("A heartbeat failed", extra={"node": node, "error": error.message})

    async def _create(self, node: str, uid: str, now: datetime) -> None:
        """The Lease belongs to the Node, and goes with it: without the Node there is none."""
        try:
            found = await self._client.get(NODES, node)
        except NotFound:
            self.stop(node)
            return
        if found["metadata"]["uid"] == uid:
            with suppress(AlreadyExists):
                await self._client.create(LEASES, lease(node, uid, now), manager="kubelet")


def lease(node: str, uid: str, now: datetime) -> Object:
    """The first one of a Node."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}
    return {
        "metadata": {"name": node, "namespace": NAMESPACE, "ownerReferences": [owner]},
        "spec": {"holderIdentity": node, "leaseDurationSeconds": LASTS, **_renewal(now)["spec"]},
    }


def _renewal(now: datetime) -> Object:
    return {"spec": {"renewTime": times.format_micro(now)}}


def _slot(node: str) -> int:
    return hashlib.sha256(node.encode()).digest()[0] % SLOTS
