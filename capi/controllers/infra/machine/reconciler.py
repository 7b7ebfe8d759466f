"""DevMachine: one instance, here a simulated one.

Upstream: docker/reconcilers/devmachine_reconciler.go. Differs: a pool's DevMachine is started before its Machine exists;
the DevMachine alone says which instance it means (spec.providerID), so it can be deleted when all else is gone; a Node that
somebody deletes comes back at once, not with the next resync.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import ClassVar

from capi.api.builtin import Node
from capi.api.core import finalizers, labels
from capi.api.core.conditions import Dev
from capi.api.core.v1beta2 import Cluster, Machine, MachinePool
from capi.api.infra.v1beta2 import DevMachine, DevMachinePool
from capi.backends.port import Backend, InstanceEvent
from capi.controllers import pause
from capi.controllers.infra import knobs, lookups, shortage
from capi.controllers.infra.machine import plan as machine_plan
from capi.controllers.infra.machine import status as machine_status
from capi.controllers.infra.machine.plan import Scope
from capi.kube import conditions
from capi.kube.errors import BackendError, TerminalError
from capi.kube.types import Key
from capi.runtime.plan import ClusterKey, Plan
from capi.runtime.reader import Reader
from capi.runtime.watches import AnyWatch, Connections, Feed, Watch, Workload

CONTROL_PLANE_MESSAGE = (
    "Simulated control plane machines are not supported in this version; refer to a DevControlPlane in"
    " Cluster spec.controlPlaneRef"
)


def _of_machine(machine: Machine, _reader: Reader) -> Iterable[Key]:
    ref = machine.spec.infrastructure_ref
    if ref.group_kind == DevMachine.resource.group_kind:
        yield Key(machine.namespace, ref.name)


def _of_cluster(cluster: Cluster, reader: Reader) -> Iterable[Key]:
    return _of_cluster_key(ClusterKey(*cluster.key), reader)


def _of_cluster_key(cluster: ClusterKey, reader: Reader) -> Iterable[Key]:
    return [m.key for m in reader.list(DevMachine, cluster.namespace, {labels.CLUSTER_NAME: cluster.name})]


def _of_event(event: InstanceEvent, _reader: Reader) -> Iterable[Key]:
    yield Key(event.cluster.namespace, event.name)


def _of_lost_node(node: Node, cluster: ClusterKey, reader: Reader) -> Iterable[Key]:
    """The machine whose Node was deleted behind its back, and which joins again; Nodes that are there wake nobody."""
    connection = reader.workload(cluster)
    if connection is None or connection.get(Node, node.name) is not None:
        return
    infra = reader.get(DevMachine, node.name, cluster.namespace)
    if infra is not None and infra.spec.provider_id == node.spec.provider_id:
        yield infra.key


def _node_update(_old: Node, _new: Node) -> bool:
    return False


def _spec_changed(old: Machine, new: Machine) -> bool:
    return old.metadata.generation != new.metadata.generation


class DevMachineReconciler:
    """See the module's text."""

    kind = DevMachine
    manager: ClassVar[str] = "capi-devmachine"
    finalizer: ClassVar[str | None] = finalizers.DEV_MACHINE

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._made: dict[Key, tuple[str, ClusterKey]] = {}
        """Instances asked for, by their DevMachines: what is left if one goes without its finalizer."""
        self.watches: Sequence[AnyWatch] = (
            Watch(Machine, keys=_of_machine, changed=_spec_changed),
            Watch(MachinePool),
            Watch(Cluster, keys=_of_cluster, changed=shortage.cluster_changed),
            Watch(DevMachinePool, keys=shortage.machines_of, changed=shortage.pool_changed),
            Connections(keys=_of_cluster_key),
            Workload(Node, keys=_of_lost_node, changed=_node_update),
            Feed(backend.events, _of_event),
        )

    def paused(self, obj: DevMachine, reader: Reader) -> Sequence[str]:
        return pause.causes(obj, lookups.cluster_of(obj, reader))

    async def reconcile(self, obj: DevMachine, reader: Reader, now: datetime) -> Plan:
        if obj.spec.backend.in_memory is None:
            return Plan(finalized=True) if obj.deleting else Plan(status=machine_status.unsupported(obj))
        seen = self.observe(obj, reader)
        if obj.deleting:
            stays = machine_plan.lingers(seen, now)
            return Plan(requeue_after=stays) if stays else await self._delete(seen)
        if machine_plan.ownerless(seen):
            return Plan()
        if labels.CONTROL_PLANE in obj.metadata.labels:
            return Plan(status=machine_status.unsupported(obj, CONTROL_PLANE_MESSAGE))
        gate = machine_plan.gate(seen)
        if gate is not None and not _running(obj):
            return machine_plan.waiting(seen, gate)
        return await self._run(seen, reader, now)

    def observe(self, obj: DevMachine, reader: Reader) -> Scope:
        """Everything from caches."""
        machine = lookups.machine_of(obj, reader)
        pool = lookups.labelled_pool(obj, reader)
        cluster = lookups.cluster_of(obj, reader)
        if cluster is None and machine is not None:
            cluster = reader.get(Cluster, machine.spec.cluster_name, obj.namespace)
        return Scope(obj, machine, pool, cluster, lookups.owner_name(obj, DevMachinePool))

    async def _run(self, seen: Scope, reader: Reader, now: datetime) -> Plan:
        try:
            limits = shortage.limits(seen.infra, seen.cluster, reader)
            spec = machine_plan.instance_spec(replace(seen, limits=limits), now)
        except knobs.InvalidKnob as error:
            return machine_plan.misread(seen, error)
        except TerminalError as error:
            return machine_plan.invalid(seen, error)
        try:
            instance = await self._backend.ensure_running(spec)
        except BackendError as error:
            return machine_plan.failed(seen, error)
        self._made[seen.infra.key] = (spec.id, spec.cluster)
        return machine_plan.progress(seen, spec, instance, now)

    async def _delete(self, seen: Scope) -> Plan:
        try:
            await self._backend.ensure_absent(seen.id, seen.infra.name, seen.cluster_key)
        except BackendError as error:
            return machine_plan.failed(seen, error)
        self._made.pop(seen.infra.key, None)
        return Plan(finalized=True)

    async def gone(self, key: Key) -> None:
        """Its finalizer was taken off by force: the instance goes all the same."""
        made = self._made.get(key)
        if made is not None:
            await self._backend.ensure_absent(made[0], key.name, made[1])
            self._made.pop(key, None)


def _running(infra: DevMachine) -> bool:
    return conditions.is_true(infra.status.conditions, Dev.VM_PROVISIONED)
