"""What a drain and the wait for volumes read in the workload cluster, live, and not before it is needed.

Pods are read by Node in every pass. What concerns many Nodes (DaemonSets, namespaces, attachments, volumes) is read at most
once a second for all Machines of a cluster together.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from capi.api.builtin import DaemonSet, Namespace, Node, PersistentVolume, Pod, VolumeAttachment
from capi.api.core.v1beta2 import MachineDrainRule
from capi.controllers.core.machine.drain.pods import unfinished_daemon_pod, unreachable
from capi.controllers.core.machine.drain.rules import needs_namespaces, rules_for
from capi.controllers.core.machine.drain.steps import drain, drain_due, volumes_due
from capi.controllers.core.machine.drain.view import DrainView, VolumeView
from capi.controllers.core.machine.drain.volumes import names_by_attachment, names_in_status
from capi.controllers.core.machine.scope import Scope
from capi.controllers.core.machine.stage import node_of
from capi.kube.errors import ApiError, CapiError, ContractError, NotFound, TransportError
from capi.kube.objects import Resource
from capi.runtime.plan import ClusterKey
from capi.runtime.reader import Reader, WorkloadReader

R = TypeVar("R", bound=Resource)
FRESH = timedelta(seconds=1)
"""How long a list that several Machines need is used."""
TIMEOUT = 10.0
"""Seconds that one answer may take."""


@dataclass(slots=True)
class _Shared:
    """One list of one cluster: who comes while it is read waits for it."""

    lock: asyncio.Lock
    read_at: datetime | None = None
    found: Sequence[Any] = ()
    error: CapiError | None = None


class SharedLists:
    """Lists of whole kinds, one answer for all that ask within `FRESH`."""

    def __init__(self) -> None:
        self._lists: dict[tuple[ClusterKey, type[Resource]], _Shared] = {}

    async def all(self, connection: WorkloadReader, cluster: ClusterKey, kind: type[R], now: datetime) -> Sequence[R]:
        """Every object of a kind; none where the kind is not served. Raises ApiError, TransportError."""
        shared = self._lists.setdefault((cluster, kind), _Shared(asyncio.Lock()))
        async with shared.lock:
            if shared.read_at is None or not timedelta() <= now - shared.read_at < FRESH:
                await self._read(connection, kind, shared)
                shared.read_at = now
        self._forget(now)
        if shared.error is not None:
            raise shared.error
        return shared.found

    async def _read(self, connection: WorkloadReader, kind: type[Resource], shared: _Shared) -> None:
        shared.found, shared.error = (), None
        try:
            shared.found = await answered(connection.live_list(kind))
        except NotFound:
            return
        except (ApiError, TransportError) as error:
            shared.error = error

    def _forget(self, now: datetime) -> None:
        old = [k for k, s in self._lists.items() if s.read_at and now - s.read_at >= FRESH and not s.lock.locked()]
        for key in old:
            del self._lists[key]


async def answered(request: Awaitable[Sequence[R]]) -> Sequence[R]:
    """The answer, if it comes in time. Raises TransportError."""
    try:
        async with asyncio.timeout(TIMEOUT):
            return await request
    except TimeoutError as error:
        raise TransportError(f"no answer from the workload cluster within {TIMEOUT:.0f} s") from error


async def look(seen: Scope, reader: Reader, lists: SharedLists, now: datetime) -> Scope:
    """The Scope of a Machine that is being deleted, with what the stage it is in has to see of its Node."""
    node, cluster = node_of(seen), seen.cluster
    if node is None or cluster is None or not seen.connected:
        return seen
    looking = _Looking(seen, node, reader, lists, ClusterKey(cluster.namespace, cluster.name), now)
    if drain_due(seen, now):
        if not node.spec.unschedulable:
            return seen
        seen = replace(seen, drain=await looking.at_pods())
        if drain(seen, now) is not None:
            return seen
    if not volumes_due(seen, now) or unreachable(node):
        return seen
    view = await looking.at_volumes()
    if view.volumes and seen.drain is None:
        seen = replace(seen, drain=await looking.at_pods())
    return replace(seen, volumes=view)


@dataclass(frozen=True, slots=True)
class _Looking:
    """One look at one Node."""

    seen: Scope
    node: Node
    reader: Reader
    lists: SharedLists
    cluster: ClusterKey
    now: datetime

    async def at_pods(self) -> DrainView:
        try:
            return await self._pods()
        except (ApiError, TransportError, ContractError) as error:
            return DrainView(error=error)

    async def _pods(self) -> DrainView:
        machine, cluster = self.seen.machine, self.seen.cluster
        assert cluster is not None
        rules = rules_for(machine, cluster, self.reader.list(MachineDrainRule, machine.namespace))
        pods = await answered(self._connection().live_list(Pod, fields=f"spec.nodeName={self.node.name}"))
        owned = any(unfinished_daemon_pod(pod) for pod in pods)
        return DrainView(
            pods=pods,
            daemon_sets=frozenset(found.metadata.uid for found in await self._all(DaemonSet)) if owned else frozenset(),
            namespaces=(
                {found.name: found.metadata.labels for found in await self._all(Namespace)}
                if pods and needs_namespaces(rules)
                else {}
            ),
            rules=rules,
        )

    async def at_volumes(self) -> VolumeView:
        try:
            attachments = await self._all(VolumeAttachment)
            if not names_in_status(self.node) and not names_by_attachment(self.node, attachments):
                return VolumeView()
            return VolumeView(attachments=attachments, volumes=await self._all(PersistentVolume))
        except (ApiError, TransportError) as error:
            return VolumeView(error=error)

    async def _all(self, kind: type[R]) -> Sequence[R]:
        return await self.lists.all(self._connection(), self.cluster, kind, self.now)

    def _connection(self) -> WorkloadReader:
        found = self.reader.workload(self.cluster)
        if found is None:
            raise TransportError("the connection to the workload cluster was lost")
        return found
