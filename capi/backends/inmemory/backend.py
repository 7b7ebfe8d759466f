"""Simulated machines: they take time to boot, join their cluster as real Node objects, and can be lost.

What a machine is, follows from its InstanceSpec: after a restart of the process the first `ensure_running` of each
rebuilds it, with the same timing, and its Node registers anew only if the workload API has lost it. The memory here holds
no truth but which machines were lost since the start; a controller that was told so has it in a condition.

What goes wrong on purpose (`InstanceSpec.simulation`) follows from the spec too. A machine that is short of capacity is not
made; it is told of as soon as another one goes.

Upstream: docker/reconcilers/backends/inmemory/inmemorymachine_backend.go.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Protocol

from capi.aio.clock import Clock
from capi.backends.inmemory import nodes, timing
from capi.backends.inmemory.feed import Feed, Feeds
from capi.backends.port import (
    BackendUnavailable,
    CapacityShortage,
    Instance,
    InstanceEvent,
    InstanceGone,
    InstanceSpec,
    Limit,
    MachineShape,
    Stage,
)
from capi.client.client import Client
from capi.kube.errors import AlreadyExists, ApiError, NotFound, TransportError
from capi.kube.types import Object
from capi.runtime.plan import ClusterKey


class WorkloadApis(Protocol):
    """Where simulated machines register their Nodes; `workload.WorkloadClusters` hosts them."""

    def client(self, cluster: ClusterKey) -> Client | None:
        """None while the cluster's API is not served."""
        ...

    def is_down(self, cluster: ClusterKey) -> bool:
        """Whether fault injection keeps the cluster's API from answering; `client` has one all the same."""
        ...

    def beats(self, cluster: ClusterKey, node: str, uid: str) -> None:
        """The kubelet of a Node, given by name and uid, sends heartbeats from now on."""
        ...

    def falls_silent(self, cluster: ClusterKey, node: str) -> None:
        """It sends no more of them."""
        ...

    def when_back(self, cluster: ClusterKey, job: Callable[[Client], Awaitable[None]]) -> None:
        """Do it when the API answers again; forgotten if it is stopped before."""
        ...

    def listen(self, listener: Callable[[ClusterKey], None]) -> None:
        """Call whenever a cluster's API begins to be served, with what it held before or with nothing."""
        ...


@dataclass(slots=True)
class _Machine:
    """Memory of one machine: exact times, to better than the second that API objects give."""

    spec: InstanceSpec
    stage: Stage
    began: datetime
    """When the boot began: later than `InstanceSpec.created` if there was a shortage."""
    up: datetime | None = None
    registered: bool = False


class InMemoryBackend:
    """A Backend (capi.backends.port) without infrastructure."""

    def __init__(self, workloads: WorkloadApis, clock: Clock) -> None:
        self._workloads = workloads
        self._clock = clock
        self._machines: dict[str, _Machine] = {}
        self._lost: set[str] = set()
        self._short: dict[str, InstanceSpec] = {}
        """Machines that were refused for a shortage."""
        self._feeds: Feeds[InstanceEvent] = Feeds()
        workloads.listen(self._served)

    @property
    def shape(self) -> MachineShape:
        return nodes.SHAPE

    async def ensure_running(self, spec: InstanceSpec) -> Instance:
        """See Backend. Node registration is the only write, and only to the workload API."""
        if spec.simulation.lost and spec.id not in self._lost:
            await self._abandon(spec)
        if spec.id in self._lost:
            raise InstanceGone(f"The simulated machine {spec.name} was lost")
        now = self._clock.now()
        machine = self._made(spec, now)
        ready = machine.began + timing.duration(spec.simulation.vm, spec.uid, "vm")
        if spec.running_since is None and now < ready:
            return _instance(machine, next_change=ready)
        machine.stage = Stage.RUNNING if machine.stage == Stage.STARTING else machine.stage
        machine.up = machine.up or now
        up = timing.precise(spec.running_since, machine.up) if spec.running_since else machine.up
        if spec.simulation.never_joins and machine.stage != Stage.JOINED:
            return _instance(machine)
        joins = up + timing.duration(spec.simulation.node, spec.uid, "node")
        if now < joins and machine.stage != Stage.JOINED:
            return _instance(machine, next_change=joins)
        return await self._join(machine, now)

    async def ensure_absent(self, id_: str, name: str, cluster: ClusterKey) -> None:
        """See Backend. The Node goes with its machine: nobody else would remove it when a whole cluster is deleted."""
        if self._machines.pop(id_, None) is not None:
            self._workloads.falls_silent(cluster, name)
        self._lost.discard(id_)
        self._short.pop(id_, None)
        self._room(cluster)
        client = self._workloads.client(cluster)
        if client is None:
            return  # the workload cluster is gone, and its Nodes with it
        if self._workloads.is_down(cluster):
            self._workloads.when_back(cluster, partial(_remove, id_, name))
            return
        try:
            await _remove(id_, name, client)
        except (ApiError, TransportError) as error:
            raise BackendUnavailable(f"removing Node {name} of cluster {cluster}: {error.message}") from error

    async def list(self, cluster: ClusterKey, pool: str) -> Sequence[Instance]:
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

    def _made(self, spec: InstanceSpec, now: datetime) -> _Machine:
        """The machine, made now if there is room for it. Raises CapacityShortage."""
        machine = self._machines.get(spec.id)
        if machine is None or machine.spec.uid != spec.uid:
            began = timing.precise(spec.created, now) if spec.id not in self._short else now
            short = self._shortage(spec) if spec.running_since is None else None
            if short is not None:
                self._short[spec.id] = spec
                raise CapacityShortage(_words(short, spec))
            self._short.pop(spec.id, None)
            machine = self._machines[spec.id] = _Machine(spec, Stage.STARTING, began)
        machine.spec = spec
        return machine

    def _shortage(self, spec: InstanceSpec) -> Limit | None:
        """What keeps a machine from being made. O(machines), with a limit only."""
        for limit in spec.simulation.limits:
            there = (m.spec for m in self._machines.values() if m.spec.cluster == spec.cluster and m.spec.id != spec.id)
            made = sum(not limit.pool or other.pool == limit.pool for other in there)
            if max(made, limit.running) >= limit.most:
                return limit
        return None

    def _beat(self, spec: InstanceSpec, uid: str) -> None:
        if spec.simulation.ready == "True":
            self._workloads.beats(spec.cluster, spec.name, uid)
        else:
            self._workloads.falls_silent(spec.cluster, spec.name)

    def _room(self, cluster: ClusterKey) -> None:
        """A machine has gone: those of its cluster that were refused may be asked for again."""
        for spec in self._short.values():
            if spec.cluster == cluster:
                self._feeds.publish(InstanceEvent(cluster, spec.name, spec.pool))

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
        self._workloads.falls_silent(spec.cluster, spec.name)
        self._room(spec.cluster)
        client = self._workloads.client(spec.cluster)
        if client is not None:
            with suppress(ApiError, TransportError):
                await _mark_unreachable(client, spec, self._clock.now())

    async def _join(self, machine: _Machine, now: datetime) -> Instance:
        client = self._workloads.client(machine.spec.cluster)
        if client is None or self._workloads.is_down(machine.spec.cluster):
            machine.registered = False
            return _instance(machine, waiting=True)
        try:
            node = await _register(client, machine, now)
            await _inject(client, node, machine.spec, now)
            self._beat(machine.spec, node["metadata"]["uid"])
        except (ApiError, TransportError) as error:
            raise BackendUnavailable(f"registering Node {machine.spec.name}: {error.message}") from error
        machine.stage = Stage.JOINED
        machine.registered = True
        return _instance(machine)


async def _register(client: Client, machine: _Machine, now: datetime) -> Object:
    """The Node, created unless this machine has one. A namesake that another machine left behind is replaced."""
    spec = machine.spec
    if not machine.registered:
        with suppress(AlreadyExists):
            return await client.create(nodes.NODES, nodes.node(spec, now), manager="kubelet")
    try:
        found = await client.get(nodes.NODES, spec.name)
        if found.get("spec", {}).get("providerID") == spec.id:
            return found
        await client.delete(nodes.NODES, spec.name, uid=found["metadata"]["uid"])
    except NotFound:
        pass
    return await client.create(nodes.NODES, nodes.node(spec, now), manager="kubelet")


async def _inject(client: Client, node: Object, spec: InstanceSpec, now: datetime) -> None:
    """Make the Node's conditions those that are asked for; what others have made of them is left alone unless they are."""
    wanted = spec.simulation.ready
    if nodes.injected(node) == wanted:
        return
    body: Object = {"status": {"conditions": nodes.conditions(wanted, now)}}
    await client.patch(nodes.NODES, spec.name, "", body, type_="strategic", subresource="status", manager="kubelet")


async def _remove(id_: str, name: str, client: Client) -> None:
    """The Node of a machine that has gone."""
    with suppress(NotFound):
        found = await client.get(nodes.NODES, name)
        if found.get("spec", {}).get("providerID") == id_:
            await client.delete(nodes.NODES, name, uid=found["metadata"]["uid"])


async def _mark_unreachable(client: Client, spec: InstanceSpec, now: datetime) -> None:
    found = await client.get(nodes.NODES, spec.name)
    if found.get("spec", {}).get("providerID") != spec.id or nodes.is_unreachable(found):
        return
    body = nodes.unreachable(now)
    await client.patch(nodes.NODES, spec.name, "", body, type_="strategic", subresource="status", manager="kubelet")


def _words(limit: Limit, spec: InstanceSpec) -> str:
    owner = f"pool {limit.pool}" if limit.pool else f"cluster {spec.cluster}"
    return f"No capacity for {spec.name}: {owner} can have {limit.most} machines at a time; tried again when one goes"


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
