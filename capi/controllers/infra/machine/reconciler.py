"""DevMachine: one instance, here a simulated one.

Upstream: docker/reconcilers/devmachine_reconciler.go. Differs: a pool's DevMachine is started before its Machine exists;
the DevMachine alone says which instance it means (spec.providerID), so it can be deleted when all else is gone; a Node that
somebody deletes comes back at once, not with the next resync.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import ClassVar

from capi.api.builtin import Node, Secret
from capi.api.core import finalizers, labels, secrets
from capi.api.core.conditions import Dev, Reason
from capi.api.core.v1beta2 import Cluster, Machine, MachinePool
from capi.api.infra.v1beta2 import DevMachine, DevMachinePool
from capi.backends.port import Backend, ControlPlaneProgress, ControlPlaneSpec, InstanceEvent
from capi.controllers import pause
from capi.controllers.infra import gates, knobs, lookups, shortage
from capi.controllers.infra.machine import controlplane
from capi.controllers.infra.machine import plan as machine_plan
from capi.controllers.infra.machine import status as machine_status
from capi.controllers.infra.machine.plan import Scope
from capi.controllers.kubeconfig import BadSecret, authority_of
from capi.kube import conditions
from capi.kube.errors import BackendError, TerminalError
from capi.kube.types import Key
from capi.runtime.plan import ClusterKey, Plan
from capi.runtime.reader import Reader
from capi.runtime.watches import AnyWatch, Connections, Feed, Watch, Workload

HOSTED_MESSAGE = (
    "The control plane of this Cluster is a DevControlPlane, which has no machines; take the label"
    f" {labels.CONTROL_PLANE} off this Machine"
)
AUTHORITY_RETRY = timedelta(seconds=10)
"""When to look again for the Secret with a cluster's authority, which is not watched."""


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
            return await self._control_plane(seen, reader, now)
        gate = machine_plan.gate(seen)
        if gate is not None and not _running(obj):
            return machine_plan.waiting(seen, gate)
        return await self._run(seen, reader, now)

    async def _control_plane(self, seen: Scope, reader: Reader, now: datetime) -> Plan:
        """A member of the control plane: as a worker, and then etcd and API server."""
        gate = machine_plan.gate(seen)
        if gate is not None and not _running(seen.infra):
            return controlplane.told(machine_plan.waiting(seen, gate), seen.infra)
        cluster = seen.cluster
        if cluster is None or lookups.is_hosted(cluster):
            return Plan(status=machine_status.unsupported(seen.infra, HOSTED_MESSAGE))
        secret = await reader.live(Secret, secrets.ca(cluster.name), cluster.namespace)
        endpoint = cluster.spec.control_plane_endpoint
        if secret is None or endpoint is None or not endpoint.valid:
            missing = f"Waiting for Secret {secrets.ca(cluster.name)} and for Cluster spec.controlPlaneEndpoint"
            why = gates.Gate(Reason.WAITING_FOR_CONTROL_PLANE_INITIALIZED, missing)
            waits = replace(machine_plan.waiting(seen, why), requeue_after=AUTHORITY_RETRY)
            return controlplane.told(waits, seen.infra)
        try:
            etcd, api_server = machine_plan.control_plane_delays(seen)
            asked = controlplane.asked(seen.infra, endpoint, authority_of(secret), etcd, api_server)
        except TerminalError as error:
            return machine_plan.invalid(seen, error)
        except BadSecret as error:
            return machine_plan.invalid(seen, TerminalError(error.message))
        return await self._run(seen, reader, now, asked)

    def observe(self, obj: DevMachine, reader: Reader) -> Scope:
        """Everything from caches."""
        machine = lookups.machine_of(obj, reader)
        pool = lookups.labelled_pool(obj, reader)
        cluster = lookups.cluster_of(obj, reader)
        if cluster is None and machine is not None:
            cluster = reader.get(Cluster, machine.spec.cluster_name, obj.namespace)
        return Scope(obj, machine, pool, cluster, lookups.owner_name(obj, DevMachinePool))

    async def _run(self, seen: Scope, reader: Reader, now: datetime, asked: ControlPlaneSpec | None = None) -> Plan:
        plan, progress = await self._ran(seen, reader, now, asked)
        return plan if asked is None else controlplane.told(plan, seen.infra, progress)

    async def _ran(
        self, seen: Scope, reader: Reader, now: datetime, asked: ControlPlaneSpec | None
    ) -> tuple[Plan, ControlPlaneProgress | None]:
        try:
            limits = shortage.limits(seen.infra, seen.cluster, reader)
            spec = machine_plan.instance_spec(replace(seen, limits=limits), now)
        except knobs.InvalidKnob as error:
            return machine_plan.misread(seen, error), None
        except TerminalError as error:
            return machine_plan.invalid(seen, error), None
        spec = replace(spec, simulation=replace(spec.simulation, control_plane=asked))
        try:
            instance = await self._backend.ensure_running(spec)
        except BackendError as error:
            return machine_plan.failed(seen, error), None
        self._made[seen.infra.key] = (spec.id, spec.cluster)
        return machine_plan.progress(seen, spec, instance, now), instance.control_plane

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
