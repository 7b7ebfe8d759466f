"""Simulated machines: they take time to boot, join their cluster as real Node objects, and can be lost.

What a machine is, follows from its InstanceSpec: after a restart of the process the first `ensure_running` of each
rebuilds it, with the same timing, and its Node registers anew only if the workload API has lost it. The memory here holds
no truth but which machines were lost since the start; a controller that was told so has it in a condition.

What goes wrong on purpose (`InstanceSpec.simulation`) follows from the spec too. A machine that is short of capacity is not
made; it is told of as soon as another one goes.

Upstream: docker/reconcilers/backends/inmemory/inmemorymachine_backend.go.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Protocol

from capi.aio.clock import Clock
from capi.aio.feed import Feed, Feeds
from capi.backends.inmemory import members, nodes, registration, timing
from capi.backends.port import (
    BackendUnavailable,
    CapacityShortage,
    ControlPlaneSpec,
    Instance,
    InstanceEvent,
    InstanceGone,
    InstanceSpec,
    Limit,
    MachineShape,
    Stage,
)
from capi.client.client import Client
from capi.client.pki import KeyPair
from capi.kube.errors import ApiError, TransportError
from capi.runtime.plan import ClusterKey


class WorkloadApis(Protocol):
    """Where simulated machines register their Nodes; `workload.WorkloadClusters` hosts them."""

    def client(self, cluster: ClusterKey) -> Client | None:
        """None while the cluster's API is not served."""
        ...

    async def prepare(self, cluster: ClusterKey, port: int, authority: KeyPair, version: str) -> bool:
        """Run the cluster's API server for its control plane machines, shut until `serve`. Whether it was started now.

        An API server that runs keeps its version. Raises BackendError.
        """
        ...

    async def serve(self, cluster: ClusterKey, *, on: bool) -> None:
        """Open or shut the API to everybody but `inside`. Raises PortTaken, BackendError."""
        ...

    def inside(self, cluster: ClusterKey) -> Client | None:
        """For the machines that make up the API; None while there is no server."""
        ...

    def is_shut(self, cluster: ClusterKey) -> bool:
        """Whether the cluster's API does not answer although its server runs: it is not served yet, or an outage is simulated."""
        ...

    def beats(self, cluster: ClusterKey, node: str, uid: str) -> None:
        """The kubelet of a Node, given by name and uid, sends heartbeats from now on."""
        ...

    def falls_silent(self, cluster: ClusterKey, node: str) -> None:
        """It sends no more of them."""
        ...

    def gone(self, cluster: ClusterKey, node: str) -> None:
        """The machine of a Node was removed: there are no heartbeats any more, and its Pods end."""
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
    member: members.Member | None = None
    """Of a control plane machine whose Node has joined."""

    @property
    def serves(self) -> bool:
        return self.member is not None and self.member.api_server


class InMemoryBackend:
    """A Backend (capi.backends.port) without infrastructure."""

    bootstraps = False

    def __init__(self, workloads: WorkloadApis, clock: Clock) -> None:
        self._workloads = workloads
        self._clock = clock
        self._machines: dict[str, _Machine] = {}
        self._lost: set[str] = set()
        self._short: dict[str, InstanceSpec] = {}
        """Machines that were refused for a shortage."""
        self._feeds: Feeds[InstanceEvent] = Feeds()
        self._planes: dict[ClusterKey, asyncio.Lock] = {}
        """One control plane machine of a cluster starts or goes at a time."""
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

    async def ensure_absent(self, id_: str, name: str, cluster: ClusterKey, *, uid: str = "") -> None:
        """See Backend. The Node goes with its machine: nobody else would remove it when a whole cluster is deleted."""
        machine = self._machines.get(id_)
        if uid and machine is not None and machine.spec.uid != uid:
            return
        if machine is not None:
            self._workloads.gone(cluster, name)
        self._lost.discard(id_)
        self._short.pop(id_, None)
        if machine is not None and machine.member is not None:
            await self._leave(machine)
        elif self._workloads.is_shut(cluster):
            self._workloads.when_back(cluster, partial(registration.remove, id_, name, self._clock.now()))
        elif (client := self._workloads.client(cluster)) is not None:  # else all Nodes are gone
            try:
                await registration.remove(id_, name, self._clock.now(), client)
            except (ApiError, TransportError) as error:
                raise BackendUnavailable(f"removing Node {name} of cluster {cluster}: {error.message}") from error
        self._machines.pop(id_, None)
        self._room(cluster)

    async def list(self, cluster: ClusterKey, pool: str, uid: str = "") -> Sequence[Instance]:
        """See Backend. O(machines)."""
        found = [m for m in self._machines.values() if m.spec.cluster == cluster and m.spec.pool == pool]
        found = [m for m in found if not uid or m.spec.pool_uid == uid]
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
        machine = self._machines.pop(spec.id, None)
        self._lost.add(spec.id)
        self._workloads.falls_silent(spec.cluster, spec.name)
        self._room(spec.cluster)
        client = self._workloads.client(spec.cluster)
        if client is not None:
            with suppress(ApiError, TransportError):
                await registration.mark_unreachable(client, spec, self._clock.now())
        if machine is not None and machine.member is not None:
            await self._shut_without_members(spec.cluster)

    async def _join(self, machine: _Machine, now: datetime) -> Instance:
        spec, asked = machine.spec, machine.spec.simulation.control_plane
        client = await self._own_api(spec, asked) if asked is not None else self._api(spec.cluster)
        if client is None:
            machine.registered = False
            return _instance(machine, waiting=True)
        again: datetime | None = None
        try:
            node = await registration.register(client, spec, now, known=machine.registered)
            await registration.inject(client, node, spec, now)
            self._beat(spec, node["metadata"]["uid"])
            machine.stage, machine.registered = Stage.JOINED, True
            if asked is not None:
                again = await self._advance(client, machine, asked, now)
        except (ApiError, TransportError) as error:
            raise BackendUnavailable(f"registering Node {spec.name}: {error.message}") from error
        return _instance(machine, next_change=again)

    def _api(self, cluster: ClusterKey) -> Client | None:
        """For workers: None while it does not answer."""
        return None if self._workloads.is_shut(cluster) else self._workloads.client(cluster)

    async def _own_api(self, spec: InstanceSpec, asked: ControlPlaneSpec) -> Client | None:
        """For control plane machines, which are there before anybody can reach it. A new server knows of none of them."""
        fresh = await self._workloads.prepare(spec.cluster, asked.port, asked.authority, spec.version)
        for machine in self._machines.values() if fresh else ():
            if machine.spec.cluster == spec.cluster:
                machine.registered, machine.member = False, None
        return self._workloads.inside(spec.cluster)

    async def _advance(
        self, client: Client, machine: _Machine, asked: ControlPlaneSpec, now: datetime
    ) -> datetime | None:
        """The next step of a control plane machine; the API is served from the first that has come so far."""
        async with self._plane(machine.spec.cluster):
            machine.member = machine.member or members.Member(now)
            again = await members.advance(client, machine.member, machine.spec, asked, now)
            if machine.serves:
                await self._workloads.serve(machine.spec.cluster, on=True)
        return again

    async def _leave(self, machine: _Machine) -> None:
        """A control plane machine goes, with its Pods and its Node; the last one shuts the API."""
        spec = machine.spec
        async with self._plane(spec.cluster):
            client = self._workloads.inside(spec.cluster)
            if client is not None:
                try:
                    await members.remove(client, spec.name, self._clock.now())
                    await registration.remove(spec.id, spec.name, self._clock.now(), client)
                except (ApiError, TransportError) as error:
                    raise BackendUnavailable(f"removing control plane machine {spec.name}: {error.message}") from error
            machine.member = None
            await self._shut_without_members(spec.cluster)

    async def _shut_without_members(self, cluster: ClusterKey) -> None:
        there = [m for m in self._machines.values() if m.spec.cluster == cluster]
        if not any(m.serves for m in there):
            await self._workloads.serve(cluster, on=False)

    def _plane(self, cluster: ClusterKey) -> asyncio.Lock:
        return self._planes.setdefault(cluster, asyncio.Lock())


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
        control_plane=machine.member.progress if machine.member is not None else None,
        next_change=next_change,
    )
