"""Simulated machines: they take time to boot, join their cluster as real Node objects, and can be lost.

What a machine is, follows from its InstanceSpec: after a restart of the process the first `ensure_running` of each
rebuilds it, with the same timing, and its Node registers anew only if the workload API has lost it. The memory here holds
no truth but which machines were lost since the start; a controller that was told so has it in a condition.

Upstream: docker/reconcilers/backends/inmemory/inmemorymachine_backend.go.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from capi.aio.clock import Clock
from capi.backends.inmemory import nodes, timing
from capi.backends.port import BackendUnavailable, Instance, InstanceEvent, InstanceGone, InstanceSpec, Stage
from capi.client.client import Client
from capi.kube.errors import AlreadyExists, ApiError, NotFound, TransportError
from capi.runtime.plan import ClusterKey


class WorkloadApis(Protocol):
    """Where simulated machines register their Nodes; `workload.WorkloadClusters` hosts them."""

    def client(self, cluster: ClusterKey) -> Client | None:
        """None while the cluster's API is not served."""
        ...


@dataclass(slots=True)
class _Machine:
    """Memory of one machine: exact times, to better than the second that API objects give."""

    spec: InstanceSpec
    stage: Stage
    seen: datetime
    up: datetime | None = None
    registered: bool = False


class InMemoryBackend:
    """A Backend (capi.backends.port) without infrastructure."""

    def __init__(self, workloads: WorkloadApis, clock: Clock) -> None:
        self._workloads = workloads
        self._clock = clock
        self._machines: dict[str, _Machine] = {}
        self._lost: set[str] = set()
        self._feeds: set[_Feed] = set()

    async def ensure_running(self, spec: InstanceSpec) -> Instance:
        """See Backend. Node registration is the only write, and only to the workload API."""
        if spec.id in self._lost:
            raise InstanceGone(f"the simulated machine of {spec.name} was lost")
        now = self._clock.now()
        machine = self._machines.get(spec.id)
        if machine is None or machine.spec.uid != spec.uid:
            machine = self._machines[spec.id] = _Machine(spec, Stage.STARTING, seen=now)
        machine.spec = spec
        ready = timing.precise(spec.created, machine.seen) + timing.duration(spec.simulation.vm, spec.uid, "vm")
        if spec.running_since is None and now < ready:
            return _instance(machine, next_change=ready)
        machine.stage = Stage.RUNNING if machine.stage == Stage.STARTING else machine.stage
        machine.up = machine.up or now
        up = timing.precise(spec.running_since, machine.up) if spec.running_since else machine.up
        joins = up + timing.duration(spec.simulation.node, spec.uid, "node")
        if now < joins:
            return _instance(machine, next_change=joins)
        return await self._join(machine, now)

    async def ensure_absent(self, id_: str, name: str, cluster: ClusterKey) -> None:
        """See Backend. The Node goes with its machine: nobody else would remove it when a whole cluster is deleted."""
        self._machines.pop(id_, None)
        self._lost.discard(id_)
        client = self._workloads.client(cluster)
        if client is None:
            return  # the workload cluster is gone, and its Nodes with it
        try:
            with suppress(NotFound):
                found = await client.get(nodes.NODES, name)
                if found.get("spec", {}).get("providerID") == id_:
                    await client.delete(nodes.NODES, name, uid=found["metadata"]["uid"])
        except (ApiError, TransportError) as error:
            raise BackendUnavailable(f"removing Node {name} of cluster {cluster}: {error.message}") from error

    async def list(self, cluster: ClusterKey, pool: str) -> Sequence[Instance]:
        """See Backend. O(machines)."""
        found = [m for m in self._machines.values() if m.spec.cluster == cluster and m.spec.pool == pool]
        return [_instance(m) for m in sorted(found, key=lambda m: m.spec.name)]

    def events(self) -> AsyncIterator[InstanceEvent]:
        """See Backend."""
        return _Feed(self._feeds)

    async def lose(self, id_: str) -> None:
        """Fault injection: the machine vanishes; its Node stays behind and stops answering. Unknown machines are left alone."""
        machine = self._machines.pop(id_, None)
        if machine is None:
            return
        self._lost.add(id_)
        client = self._workloads.client(machine.spec.cluster)
        if client is not None:
            with suppress(NotFound):
                body = nodes.unreachable(self._clock.now())
                await client.patch(nodes.NODES, machine.spec.name, "", body, type_="strategic", subresource="status")
        for feed in self._feeds:
            feed.push(InstanceEvent(machine.spec.cluster, machine.spec.name, machine.spec.pool))

    async def _join(self, machine: _Machine, now: datetime) -> Instance:
        client = self._workloads.client(machine.spec.cluster)
        if client is None:
            machine.registered = False
            return _instance(machine, waiting=True)
        try:
            await _register(client, machine, now)
        except (ApiError, TransportError) as error:
            raise BackendUnavailable(f"registering Node {machine.spec.name}: {error.message}") from error
        machine.stage = Stage.JOINED
        machine.registered = True
        return _instance(machine)


async def _register(client: Client, machine: _Machine, now: datetime) -> None:
    """Create the Node, unless this machine has one. A namesake that another machine left behind is replaced."""
    spec = machine.spec
    if not machine.registered:
        try:
            await client.create(nodes.NODES, nodes.node(spec, now), manager="kubelet")
            return
        except AlreadyExists:
            pass
    try:
        found = await client.get(nodes.NODES, spec.name)
    except NotFound:
        await client.create(nodes.NODES, nodes.node(spec, now), manager="kubelet")
        return
    if found.get("spec", {}).get("providerID") != spec.id:
        await client.delete(nodes.NODES, spec.name, uid=found["metadata"]["uid"])
        await client.create(nodes.NODES, nodes.node(spec, now), manager="kubelet")


def _instance(machine: _Machine, *, next_change: datetime | None = None, waiting: bool = False) -> Instance:
    spec = machine.spec
    return Instance(
        id=spec.id,
        name=spec.name,
        cluster=spec.cluster,
        pool=spec.pool,
        stage=machine.stage,
        addresses=() if machine.stage == Stage.STARTING else nodes.addresses(spec),
        waiting_for_control_plane=waiting,
        next_change=next_change,
    )


class _Feed:
    """One reader of the events; pending ones are kept once each, in order."""

    def __init__(self, feeds: "set[_Feed]") -> None:
        self._pending: dict[InstanceEvent, None] = {}
        self._wake = asyncio.Event()
        self._feeds = feeds
        feeds.add(self)

    def push(self, event: InstanceEvent) -> None:
        self._pending[event] = None
        self._wake.set()

    def __aiter__(self) -> "_Feed":
        return self

    async def __anext__(self) -> InstanceEvent:
        while not self._pending:
            self._wake.clear()
            await self._wake.wait()
        event = next(iter(self._pending))
        del self._pending[event]
        return event

    async def aclose(self) -> None:
        """The reader has gone."""
        self._feeds.discard(self)
