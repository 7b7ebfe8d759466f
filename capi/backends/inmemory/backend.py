"""Simulated machines: they take time to boot, join their cluster as real Node objects, and can be lost.

What a machine is, follows from its InstanceSpec: after a restart of the process the first `ensure_running` of each
rebuilds it, with the same timing, and its Node registers anew only if the workload API has lost it. The memory here holds
no truth but which machines were lost since the start; a controller that was told so has it in a condition.

Upstream: docker/reconcilers/backends/inmemory/inmemorymachine_backend.go.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from capi.aio.clock import Clock
from capi.aio.feed import Feed, Feeds
from capi.backends.inmemory import nodes, timing
from capi.backends.port import (
    BackendUnavailable,
    Instance,
    InstanceEvent,
    InstanceGone,
    InstanceSpec,
    MachineShape,
    Stage,
)
from capi.client.client import Client
from capi.kube.errors import AlreadyExists, ApiError, NotFound, TransportError
from capi.runtime.plan import ClusterKey


class WorkloadApis(Protocol):
    """Where simulated machines register their Nodes; `workload.WorkloadClusters` hosts them."""

    def client(self, cluster: ClusterKey) -> Client | None:
        """None while the cluster's API is not served."""
        ...

    def listen(self, listener: Callable[[ClusterKey], None]) -> None:
        """Call whenever a cluster's API begins to be served, with what it held before or with nothing."""
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

    bootstraps = False

    def __init__(self, workloads: WorkloadApis, clock: Clock) -> None:
        self._workloads = workloads
        self._clock = clock
        self._machines: dict[str, _Machine] = {}
        self._lost: set[str] = set()
        self._feeds: Feeds[InstanceEvent] = Feeds()
        workloads.listen(self._served)

    @property
    def shape(self) -> MachineShape:
        return nodes.SHAPE

    async def measure(self) -> MachineShape:
        return nodes.SHAPE

    def identify(self, cluster: ClusterKey, host: str) -> str:
        """See Backend. Differs: upstream's `in-memory://<name>` is not unique over clusters."""
        return f"in-memory:///{cluster.namespace}/{cluster.name}/{host}"

    def node_name(self, id_: str) -> str:
        """See Backend."""
        return ""

    async def ensure_running(self, spec: InstanceSpec) -> Instance:
        """See Backend. Node registration is the only write, and only to the workload API."""
        if spec.simulation.lost and spec.id not in self._lost:
            await self._abandon(spec)
        if spec.id in self._lost:
            raise InstanceGone(f"The simulated machine {spec.name} was lost")
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

    async def ensure_absent(self, id_: str, name: str, cluster: ClusterKey, *, uid: str = "") -> None:
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

    async def list(self, cluster: ClusterKey, pool: str, uid: str = "") -> Sequence[Instance]:
        """See Backend. O(machines)."""
        found = [m for m in self._machines.values() if m.spec.cluster == cluster and m.spec.pool == pool]
        return [_instance(m) for m in sorted(found, key=lambda m: m.spec.name)]

    def events(self) -> Feed[InstanceEvent]:
        """See Backend."""
        return self._feeds.open()

    async def lose(self, id_: str) -> None:
        """Fault injection: the machine vanishes and its Node stops answering. A machine that is not known is left alone."""
        machine = self._machines.get(id_)
        if machine is None:
            return
        await self._abandon(machine.spec)
        self._feeds.publish(InstanceEvent(machine.spec.cluster, machine.spec.name, machine.spec.pool))

    def _served(self, cluster: ClusterKey) -> None:
        """Its machines join, again if they had: nobody else may notice that there is another server behind the address."""
        for machine in self._machines.values():
            if machine.spec.cluster == cluster and machine.stage != Stage.STARTING:
                machine.registered = False
                self._feeds.publish(InstanceEvent(cluster, machine.spec.name, machine.spec.pool))

    async def _abandon(self, spec: InstanceSpec) -> None:
        """Forget the machine; its Node stays behind, as a node controller would show it.

        A workload API that cannot be reached does not bring the machine back: the Node goes with the Machine anyway.
        """
        self._machines.pop(spec.id, None)
        self._lost.add(spec.id)
        client = self._workloads.client(spec.cluster)
        if client is not None:
            with suppress(ApiError, TransportError):
                await _mark_unreachable(client, spec, self._clock.now())

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


async def _mark_unreachable(client: Client, spec: InstanceSpec, now: datetime) -> None:
    found = await client.get(nodes.NODES, spec.name)
    if found.get("spec", {}).get("providerID") != spec.id or nodes.is_unreachable(found):
        return
    body = nodes.unreachable(now)
    await client.patch(nodes.NODES, spec.name, "", body, type_="strategic", subresource="status", manager="kubelet")


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
