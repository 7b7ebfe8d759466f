"""InfraMachinePools (DevMachinePool, DockerMachinePool): the instances behind a MachinePool, as InfraMachines.

Upstream: docker/reconcilers/devmachinepool_reconciler.go. Differs: Machines are watched too, so a delete-machine mark or a
deletion is seen at once.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import ClassVar

from capi.api.core import annotations, finalizers
from capi.api.core.conditions import READY
from capi.api.core.v1beta2 import Cluster, Machine, MachinePool
from capi.api.infra.v1beta2 import DevMachinePoolStatus
from capi.controllers import pause
from capi.controllers.infra import backends, lookups
from capi.controllers.infra.backends import Backends
from capi.controllers.infra.family import DEV, DOCKER, Family, InfraMachine, InfraMachinePool
from capi.controllers.infra.machine.status import machine_condition
from capi.controllers.infra.machinepool.plan import plan
from capi.controllers.infra.machinepool.scope import Scope
from capi.controllers.infra.machinepool.template import pool_labels
from capi.kube import conditions
from capi.kube.objects import Resource
from capi.kube.types import Key
from capi.runtime.plan import ClusterKey, Plan
from capi.runtime.reader import Reader
from capi.runtime.watches import AnyWatch, Watch

PROGRESS = timedelta(seconds=1)
"""Least time between two writes of a status that say no more than how far it is."""


def _owners(obj: Resource) -> Iterable[str]:
    return [ref.uid for ref in obj.metadata.owner_references]


def _controller(machine: Machine) -> Iterable[str]:
    ref = machine.metadata.controller
    return (ref.uid,) if ref is not None else ()


def _infra_changed(old: InfraMachine, new: InfraMachine) -> bool:
    return _infra_essence(old) != _infra_essence(new)


def _infra_essence(infra: InfraMachine) -> tuple[object, ...]:
    metadata, status = infra.metadata, infra.status
    itself = machine_condition(infra)
    return (
        metadata.deletion_timestamp, metadata.labels, metadata.owner_references, metadata.finalizers, infra.spec, itself,
        status.initialization, status.addresses, conditions.is_true(status.conditions, READY),
    )  # fmt: skip


def _machine_changed(old: Machine, new: Machine) -> bool:
    return _machine_essence(old) != _machine_essence(new)


def _machine_essence(machine: Machine) -> tuple[object, ...]:
    marked = annotations.DELETE_MACHINE in machine.metadata.annotations
    return machine.deleting, marked, machine.metadata.labels, conditions.is_true(machine.status.conditions, READY)


def _pool_changed(old: MachinePool, new: MachinePool) -> bool:
    return (old.metadata.generation, old.deleting, old.metadata.annotations) != (
        new.metadata.generation, new.deleting, new.metadata.annotations,
    )  # fmt: skip


class InfraMachinePoolReconciler:
    """See the module's text. Of one family: a subclass says which."""

    family: ClassVar[Family]
    manager: ClassVar[str]
    finalizer: ClassVar[str | None] = finalizers.DEV_MACHINE_POOL
    spacing: ClassVar[timedelta] = timedelta(milliseconds=50)
    """A pass sees the whole pool, so the events of many instances are taken together."""

    def __init__(self, available: Backends) -> None:
        family = self.family
        self.kind: type[InfraMachinePool] = family.pool
        self._backends = available
        of_machine_pool, of_machine = lookups.pools_of_machine_pool(family), lookups.pools_of_machine(family)
        of_infra, of_cluster = lookups.pools_of_infra(family), lookups.of_cluster(family.pool)
        self.watches: Sequence[AnyWatch] = (
            Watch(family.machine, keys=of_infra, changed=_infra_changed, indexes={"owner": _owners}),
            Watch(Machine, keys=of_machine, changed=_machine_changed, indexes={"controller": _controller}),
            Watch(MachinePool, keys=of_machine_pool, changed=_pool_changed),
            Watch(Cluster, keys=of_cluster, changed=lookups.cluster_changed),
        )
        self._wrote: dict[Key, datetime] = {}

    def unclaimed(self, obj: InfraMachinePool, reader: Reader) -> bool:
        """No MachinePool owns it yet."""
        return lookups.machine_pool_of(obj, reader) is None

    def paused(self, obj: InfraMachinePool, reader: Reader) -> Sequence[str]:
        return pause.causes(obj, lookups.cluster_of(obj, reader))

    async def reconcile(self, obj: InfraMachinePool, reader: Reader, now: datetime) -> Plan:
        seen = await self.observe(obj, reader)
        if obj.deleting and not seen.infra:
            await self._sweep(seen)
        return self._calmed(obj, plan(seen, now), now)

    async def observe(self, obj: InfraMachinePool, reader: Reader) -> Scope:
        """Read everything from caches; a Machine that seems to have lost its InfraMachine is made sure of by a live read."""
        pool = lookups.machine_pool_of(obj, reader)
        kind = self.family.machine
        infra: dict[str, InfraMachine] = {m.name: m for m in reader.index(kind, "owner", obj.metadata.uid)}
        machines: Mapping[str, Machine] = {}
        dangling: list[Machine] = []
        if pool is not None:
            labels = pool_labels(pool)
            infra |= {m.name: m for m in reader.list(kind, obj.namespace, labels)}
            controlled = reader.index(Machine, "controller", pool.metadata.uid)  # labels may be missing for a while
            machines = _by_infra(kind, [*reader.list(Machine, obj.namespace, labels), *controlled])
            for name, machine in machines.items():
                gone = name not in infra and not machine.deleting
                if gone and await reader.live(kind, name, obj.namespace) is None:
                    dangling.append(machine)
        ordered = [infra[name] for name in sorted(infra)]
        cluster = lookups.cluster_of(obj, reader)
        if pool is not None:
            cluster = reader.get(Cluster, pool.spec.cluster_name, obj.namespace)
        backend = self._backends.get(backends.name_of(obj.spec.backend))
        seen = Scope(obj, self.family, pool, cluster, ordered, machines, dangling)
        if backend is None:
            return dataclasses.replace(seen, unsupported=backends.missing(obj.spec.backend, self._backends))
        return dataclasses.replace(seen, identify=backend.identify, shape=backend.shape)

    async def _sweep(self, seen: Scope) -> None:
        """Instances that no object names any more; the pool's name was theirs."""
        cluster = ClusterKey(seen.pool.namespace, seen.cluster_name)
        backend = self._backends.get(backends.name_of(seen.pool.spec.backend))
        if backend is not None:
            for instance in await backend.list(cluster, seen.pool.name, seen.pool.metadata.uid):
                await backend.ensure_absent(instance.id, instance.name, cluster)
        self._wrote.pop(seen.pool.key, None)

    async def gone(self, key: Key) -> None:
        self._wrote.pop(key, None)

    def _calmed(self, obj: InfraMachinePool, wanted: Plan, now: datetime) -> Plan:
        """The plan, with a status that is mere progress put off a little."""
        if wanted.status is None or wanted.finalized:
            return wanted
        assert isinstance(wanted.status, DevMachinePoolStatus)
        rest = self._wrote.get(obj.key, now) + PROGRESS - now
        if obj.key in self._wrote and rest > timedelta() and _is_progress(obj.status, wanted.status):
            later = min(rest, wanted.requeue_after or rest)
            return dataclasses.replace(wanted, status=None, requeue_after=later)
        self._wrote[obj.key] = now
        return wanted


def _is_progress(old: DevMachinePoolStatus, new: DevMachinePoolStatus) -> bool:
    """The pool is still not ready, for the same reason; only numbers and messages moved."""
    states = {c.type: (c.status, c.reason) for c in old.conditions}
    return (
        old.initialization == new.initialization
        and old.infrastructure_machine_kind == new.infrastructure_machine_kind
        and all(c.status == "False" and states.get(c.type) == (c.status, c.reason) for c in new.conditions)
    )


def _by_infra(kind: type[InfraMachine], machines: Sequence[Machine]) -> Mapping[str, Machine]:
    wanted = kind.resource.group_kind
    return {m.spec.infrastructure_ref.name: m for m in machines if m.spec.infrastructure_ref.group_kind == wanted}


class DevMachinePoolReconciler(InfraMachinePoolReconciler):
    """Of DevMachinePools."""

    family: ClassVar[Family] = DEV
    manager: ClassVar[str] = "capi-devmachinepool"


class DockerMachinePoolReconciler(InfraMachinePoolReconciler):
    """Of DockerMachinePools."""

    family: ClassVar[Family] = DOCKER
    manager: ClassVar[str] = "capi-dockermachinepool"
