"""InfraMachines (DevMachine, DockerMachine): one instance, simulated or a container.

Upstream: docker/reconcilers/devmachine_reconciler.go. Differs: a pool's InfraMachine is started before its Machine exists; the
InfraMachine alone says which instance it means (spec.providerID), so it can be deleted when all else is gone; a Node that
somebody deletes comes back at once, not with the next resync.
"""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import ClassVar

from capi.api.builtin import Node, Secret
from capi.api.core import finalizers, labels, secrets
from capi.api.core.conditions import Reason
from capi.api.core.v1beta2 import Cluster, Machine, MachinePool
from capi.backends.port import Backend, BootstrapData, ControlPlaneProgress, ControlPlaneSpec, InstanceEvent
from capi.controllers import pause
from capi.controllers.infra import backends, gates, knobs, lookups, shortage
from capi.controllers.infra.backends import Backends
from capi.controllers.infra.family import DEV, DOCKER, Family, InfraMachine
from capi.controllers.infra.machine import controlplane
from capi.controllers.infra.machine import plan as machine_plan
from capi.controllers.infra.machine import status as machine_status
from capi.controllers.infra.machine.scope import Scope
from capi.controllers.kubeconfig import BadSecret, authority_of
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
SECRET_RETRY = timedelta(seconds=5)
"""A bootstrap Secret that is named and missing is no kind of thing that is watched."""


def _of_event(event: InstanceEvent, _reader: Reader) -> Iterable[Key]:
    yield Key(event.cluster.namespace, event.name)


def _never(_old: Node, _new: Node) -> bool:
    """Nodes wake nobody while they are there."""
    return False


def _machine_changed(old: Machine, new: Machine) -> bool:
    return (old.metadata.generation, old.status.node_ref is None) != (
        new.metadata.generation,
        new.status.node_ref is None,
    )


def _provider_ids(infra: InfraMachine) -> Iterable[str]:
    return (infra.spec.provider_id,) if infra.spec.provider_id else ()


class InfraMachineReconciler:
    """See the module's text. Of one family: a subclass says which."""

    family: ClassVar[Family]
    manager: ClassVar[str]
    finalizer: ClassVar[str | None] = finalizers.DEV_MACHINE

    def __init__(self, available: Backends) -> None:
        family = self.family
        self.kind: type[InfraMachine] = family.machine
        self._backends = available
        self._made: dict[Key, tuple[Backend, str, ClusterKey]] = {}
        """Instances asked for, by their InfraMachines: what is left if one goes without its finalizer."""
        of_cluster = lookups.of_cluster(family.machine)
        self.watches: Sequence[AnyWatch] = (
            Watch(family.machine, indexes={"providerID": _provider_ids}),
            Watch(family.pool, keys=shortage.machines_of(family), changed=shortage.pool_changed),
            Watch(Machine, keys=self._of_machine, changed=_machine_changed),
            Watch(MachinePool),
            Watch(Cluster, keys=of_cluster, changed=shortage.cluster_changed),
            Connections(keys=_by_key(of_cluster)),
            Workload(Node, keys=self._of_node, changed=_never),
            *(Feed(backend.events, _of_event) for backend in available.values()),
        )

    def unclaimed(self, obj: InfraMachine, reader: Reader) -> bool:
        """On its own, and no Machine means it yet."""
        pooled = lookups.owner(obj, self.family.pool) is not None or labels.POOL_NAME in obj.metadata.labels
        return not pooled and lookups.machine_of(obj, reader) is None

    def paused(self, obj: InfraMachine, reader: Reader) -> Sequence[str]:
        return pause.causes(obj, lookups.cluster_of(obj, reader))

    async def reconcile(self, obj: InfraMachine, reader: Reader, now: datetime) -> Plan:
        backend = self._backends.get(backends.name_of(obj.spec.backend))
        if backend is None:
            kept = obj.spec.backend.external is not None  # only its own backend can remove what it made
            if obj.deleting and not kept:
                return Plan(finalized=True)
            missing = backends.missing(obj.spec.backend, self._backends)
            return Plan(status=machine_status.unsupported(obj, missing))
        seen = self.observe(obj, reader, backend)
        if obj.deleting:
            stays = machine_plan.lingers(seen, now)
            return Plan(requeue_after=stays) if stays else await self._delete(seen, backend)
        if machine_plan.ownerless(seen):
            return Plan()
        if seen.simulated and seen.control_plane:
            return await self._control_plane(seen, backend, reader, now)
        gate = machine_plan.gate(seen)
        if gate is not None and not machine_plan.runs(seen):
            return machine_plan.waiting(seen, gate)
        return (await self._run(seen, backend, reader, now))[0]

    async def _control_plane(self, seen: Scope, backend: Backend, reader: Reader, now: datetime) -> Plan:
        """A simulated member of the control plane: as a worker, and then etcd and API server."""
        gate = machine_plan.gate(seen)
        if gate is not None and not machine_plan.runs(seen):
            return controlplane.told(machine_plan.waiting(seen, gate), seen.infra)
        cluster = seen.cluster
        if cluster is None or lookups.is_hosted(cluster):
            return Plan(status=machine_status.unsupported(seen.infra, HOSTED_MESSAGE))
        secret = await reader.live(Secret, secrets.ca(cluster.name), cluster.namespace)
        endpoint = cluster.spec.control_plane_endpoint
        if secret is None or endpoint is None or not endpoint.valid:
            missing = f"Waiting for Secret {secrets.ca(cluster.name)} and for Cluster spec.controlPlaneEndpoint"
            why = gates.Gate(Reason.WAITING_FOR_CONTROL_PLANE_INITIALIZED, missing)
            waits = dataclasses.replace(machine_plan.waiting(seen, why), requeue_after=AUTHORITY_RETRY)
            return controlplane.told(waits, seen.infra)
        try:
            etcd, api_server = machine_plan.control_plane_delays(seen)
            asked = controlplane.asked(seen.infra, endpoint, authority_of(secret), etcd, api_server)
        except (TerminalError, BadSecret) as error:
            return machine_plan.invalid(seen, TerminalError(error.message))
        plan, progress = await self._run(seen, backend, reader, now, asked)
        return controlplane.told(plan, seen.infra, progress)

    def observe(self, obj: InfraMachine, reader: Reader, backend: Backend) -> Scope:
        """Everything from caches."""
        machine = lookups.machine_of(obj, reader)
        cluster = lookups.cluster_of(obj, reader)
        if cluster is None and machine is not None:
            cluster = reader.get(Cluster, machine.spec.cluster_name, obj.namespace)
        pool = lookups.owner(obj, self.family.pool)
        seen = Scope(
            infra=obj,
            machine=machine,
            machine_pool=lookups.labelled_pool(obj, reader),
            cluster=cluster,
            pool=pool.name if pool is not None else "",
            pool_uid=pool.uid if pool is not None else "",
            simulated=backends.name_of(obj.spec.backend) == backends.IN_MEMORY,
            as_vm=backends.name_of(obj.spec.backend) != backends.DOCKER,
        )
        id_ = obj.spec.provider_id or backend.identify(seen.cluster_key, seen.host)
        return dataclasses.replace(seen, id=id_, node=self._node(seen, id_, backend, reader))

    def _node(self, seen: Scope, id_: str, backend: Backend, reader: Reader) -> Node | None:
        """The Node that the instance became; a simulated one sees to its own."""
        connection = reader.workload(seen.cluster_key)
        name = backend.node_name(id_)
        return connection.get(Node, name) if connection is not None and name else None

    async def _run(
        self, seen: Scope, backend: Backend, reader: Reader, now: datetime, asked: ControlPlaneSpec | None = None
    ) -> tuple[Plan, ControlPlaneProgress | None]:
        """Ask for the instance; of a simulated control plane machine also how far its members are."""
        try:
            if backend.bootstraps and not machine_plan.bootstrapped(seen) and seen.data_secret:
                secret = await reader.live(Secret, seen.data_secret, seen.infra.namespace)
                if secret is None:
                    return self._no_secret(seen, seen.data_secret), None
                seen = dataclasses.replace(seen, bootstrap=_data(secret))
            if seen.simulated:
                seen = dataclasses.replace(seen, limits=shortage.limits(seen.infra, seen.cluster, self.family, reader))
            spec = machine_plan.instance_spec(seen, now)
            spec = dataclasses.replace(spec, simulation=dataclasses.replace(spec.simulation, control_plane=asked))
            self._made[seen.infra.key] = (backend, spec.id, spec.cluster)
            instance = await backend.ensure_running(spec)
        except knobs.InvalidKnob as error:
            return machine_plan.misread(seen, error), None
        except TerminalError as error:
            return machine_plan.invalid(seen, error), None
        except BackendError as error:
            return machine_plan.failed(seen, error), None
        return machine_plan.progress(seen, spec, instance, now), instance.control_plane

    def _no_secret(self, seen: Scope, name: str) -> Plan:
        text = f"Waiting for Secret {name} with the bootstrap data"
        waiting = machine_plan.waiting(seen, gates.Gate(Reason.WAITING_FOR_BOOTSTRAP_DATA, text))
        known = machine_status.machine_condition(seen.infra)
        status = waiting.status if known is None or known.status == "False" else None
        return dataclasses.replace(waiting, status=status, requeue_after=SECRET_RETRY)

    async def _delete(self, seen: Scope, backend: Backend) -> Plan:
        infra = seen.infra
        announced = machine_plan.announced(seen)
        if announced is not None:
            return announced
        uid = "" if machine_status.is_provisioned(infra) else infra.metadata.uid
        try:
            await backend.ensure_absent(seen.id, infra.name, seen.cluster_key, uid=uid)
        except BackendError as error:
            return machine_plan.not_removed(seen, error)
        self._made.pop(infra.key, None)
        return Plan(finalized=True)

    async def gone(self, key: Key) -> None:
        """Its finalizer was taken off by force: the instance goes all the same."""
        made = self._made.get(key)
        if made is not None:
            backend, id_, cluster = made
            await backend.ensure_absent(id_, key.name, cluster)
            self._made.pop(key, None)

    def _of_machine(self, machine: Machine, _reader: Reader) -> Iterable[Key]:
        ref = machine.spec.infrastructure_ref
        if ref.group_kind == self.kind.resource.group_kind:
            yield Key(machine.namespace, ref.name)

    def _of_node(self, node: Node, cluster: ClusterKey, reader: Reader) -> Iterable[Key]:
        """The machine whose Node was deleted behind its back, and which joins again; or whose Node has come and does not know
        its provider ID."""
        connection = reader.workload(cluster)
        if connection is None or (node.spec.provider_id and connection.get(Node, node.name) is not None):
            return
        named = (backend.identify(cluster, node.name) for backend in self._backends.values())
        ids = {node.spec.provider_id} if node.spec.provider_id else set(named)
        for id_ in ids:
            yield from (infra.key for infra in reader.index(self.kind, "providerID", id_))


def _by_key(keys: Callable[[Cluster, Reader], Iterable[Key]]) -> Callable[[ClusterKey, Reader], Iterable[Key]]:
    def of_key(cluster: ClusterKey, reader: Reader) -> Iterable[Key]:
        found = reader.get(Cluster, cluster.name, cluster.namespace)
        return keys(found, reader) if found is not None else ()

    return of_key


def _data(secret: Secret) -> BootstrapData:
    value = secret.data.get("value")
    if value is None:
        text = f"Secret {secret.name} has no key value, which is to hold the bootstrap data"
        raise BackendError(text, reason="InvalidBootstrapData")
    return BootstrapData(value, secret.data.get("format", b"").decode(errors="replace"))


class DevMachineReconciler(InfraMachineReconciler):
    """Of DevMachines."""

    family: ClassVar[Family] = DEV
    manager: ClassVar[str] = "capi-devmachine"


class DockerMachineReconciler(InfraMachineReconciler):
    """Of DockerMachines."""

    family: ClassVar[Family] = DOCKER
    manager: ClassVar[str] = "capi-dockermachine"
