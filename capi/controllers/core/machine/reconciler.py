"""The Machine controller.

Wakes on: the Machine, its infrastructure and bootstrap objects (by reference, so that one that appears later counts), its
Node (by provider ID), its Cluster's readiness, deletion and connection, its pool's template version, and, while it is being
deleted, the MachineDrainRules of its namespace, and the control plane and its Machines (a Node of a cluster without is left alone).
Upstream: internal/controllers/machine/machine_controller.go.
Differs: one write of the status per pass; no polling.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, ClassVar

from capi import contract
from capi.api.builtin import Node
from capi.api.core import annotations, finalizers, labels
from capi.api.core.conditions import REMOTE_CONNECTION_PROBE
from capi.api.core.v1beta2 import Cluster, Machine, MachineDrainRule, MachinePool
from capi.controllers import owners, pause
from capi.controllers.core import indexes, nodes
from capi.controllers.core.machine.drain.reads import SharedLists, look
from capi.controllers.core.machine.plan import MANAGER, plan
from capi.controllers.core.machine.scope import Scope, is_pooled, provider_id
from capi.controllers.core.nodes import NodeSync
from capi.controllers.core.objects import ABSENT, Found, look_up, value_of
from capi.kube import conditions
from capi.kube.objects import Unstructured
from capi.kube.types import Key
from capi.runtime.plan import ClusterKey, Plan
from capi.runtime.reader import Reader
from capi.runtime.watches import AnyWatch, Connections, External, Watch, Workload


class MachineReconciler:
    """Makes a Machine out of an instance, and an orderly end of it."""

    kind: type[Machine] = Machine
    manager: ClassVar[str] = MANAGER
    finalizer: ClassVar[str | None] = finalizers.MACHINE
    gathering: ClassVar[timedelta] = timedelta(milliseconds=20)
    """A Node joins and its InfraMachine says so at the same moment: one status write, not two."""

    def __init__(self, sync: NodeSync = nodes.NOTHING_MORE) -> None:
        self._sync = sync
        self._lists = SharedLists()
        self.watches: Sequence[AnyWatch] = (
            Watch(Machine, keys=_of_control_plane_machine, changed=_comes_or_goes, indexes=indexes.MACHINE),
            Watch(Cluster, keys=_of_cluster, changed=cluster_matters, indexes=indexes.CLUSTER),
            Watch(MachinePool, keys=_of_pool, changed=_template_changed, indexes=indexes.POOL),
            Watch(MachineDrainRule, keys=_of_rule),
            External(keys=_of_external, label_indexes=(labels.CLUSTER_NAME, labels.POOL_NAME)),
            Workload(Node, keys=_of_node, changed=node_matters, indexes=indexes.NODE),
            Connections(keys=_of_connection),
        )

    def paused(self, obj: Machine, reader: Reader) -> Sequence[str]:
        return pause.causes(obj, reader.get(Cluster, obj.spec.cluster_name, obj.namespace))

    async def reconcile(self, obj: Machine, reader: Reader, now: datetime) -> Plan:
        seen = replace(await observe(obj, reader), sync=self._sync)
        if obj.deleting:
            seen = await look(seen, reader, self._lists, now)
        return plan(seen, now)


async def observe(machine: Machine, reader: Reader) -> Scope:
    """Read the caches; nothing here waits but for the first read of a provider kind."""
    namespace, name = machine.namespace, machine.spec.cluster_name
    cluster = reader.get(Cluster, name, namespace)
    infra = await look_up(reader, machine.spec.infrastructure_ref, namespace, contract.INFRA_MACHINE)
    bootstrap = await look_up(reader, machine.spec.bootstrap.config_ref, namespace, contract.BOOTSTRAP)
    control_plane, planes = ABSENT, 0
    if machine.deleting and cluster is not None and not cluster.deleting:
        control_plane, planes = await _control_plane(cluster, reader)
    connection = reader.workload(ClusterKey(namespace, name))
    found: Sequence[Node] = ()
    if connection is not None:
        wanted = provider_id(machine, infra.obj)
        if wanted:
            found = connection.index(Node, "providerID", wanted)
        elif machine.deleting and machine.status.node_ref is not None:
            known = connection.get(Node, machine.status.node_ref.name)
            found = (known,) if known is not None else ()
    pool = _pool(machine, reader)
    return Scope(
        machine=machine,
        cluster=cluster,
        pool=pool,
        pool_infra=await _pool_infra(pool, infra, reader),
        infra=_own(infra, machine),
        bootstrap=_own(bootstrap, machine),
        control_plane=control_plane,
        control_plane_machines=planes,
        connected=connection is not None,
        nodes=tuple(found),
    )


def _own(found: Found, machine: Machine) -> Found:
    """What another Machine controls is neither used nor deleted. (A provider's own controller, or one that made the object for
    this Machine, has a say in it, but no claim on it.)"""
    obj = found.present
    foreign = owners.foreign_controller(obj, machine) if obj is not None else None
    theirs = foreign is not None and (foreign.group, foreign.kind) == (Machine.resource.group, Machine.resource.kind)
    return found.unless_foreign(machine) if theirs else found


async def _pool_infra(pool: MachinePool | None, infra: Found, reader: Reader) -> Unstructured | None:
    """Read only for InfraMachines that say from which template they were made."""
    if pool is None or infra.obj is None or annotations.TEMPLATE_HASH not in infra.obj.metadata.annotations:
        return None
    found = await look_up(reader, pool.spec.template.spec.infrastructure_ref, pool.namespace, contract.INFRA_POOL)
    return found.obj


async def _control_plane(cluster: Cluster, reader: Reader) -> tuple[Found, int]:
    found = await look_up(
        reader, cluster.spec.control_plane_ref, cluster.namespace, (contract.external_managed_control_plane,)
    )
    machines = reader.index(Machine, "controlPlaneOf", indexes.cluster_value(cluster.namespace, cluster.name))
    return found, sum(not machine.deleting for machine in machines)


def _pool(machine: Machine, reader: Reader) -> MachinePool | None:
    """The pool of a pool's Machine, by its controller reference, else by its label."""
    if not is_pooled(machine):
        return None
    ref = machine.metadata.controller
    if ref is not None:
        return reader.get(MachinePool, ref.name, machine.namespace) if ref.kind == "MachinePool" else None
    return indexes.pool_by_label(reader, machine.namespace, machine.metadata.labels.get(labels.POOL_NAME, ""))


def _of_cluster(cluster: Cluster, reader: Reader) -> Iterable[Key]:
    return [m.key for m in reader.index(Machine, "cluster", indexes.cluster_value(cluster.namespace, cluster.name))]


def _of_connection(cluster: ClusterKey, reader: Reader) -> Iterable[Key]:
    return [m.key for m in reader.index(Machine, "cluster", indexes.cluster_value(*cluster))]


def _of_pool(pool: MachinePool, reader: Reader) -> Iterable[Key]:
    return [m.key for m in reader.index(Machine, "pool", indexes.pool_value(pool.namespace, pool.name))]


def _of_rule(rule: MachineDrainRule, reader: Reader) -> Iterable[Key]:
    """The Machines of the rule's namespace that are being deleted."""
    return [m.key for m in reader.index(Machine, "deletingIn", rule.namespace)]


def _of_control_plane_machine(machine: Machine, reader: Reader) -> Iterable[Key]:
    """The Machines of its cluster that are being deleted."""
    if labels.CONTROL_PLANE not in machine.metadata.labels:
        return ()
    return _deleting_of(machine.namespace, machine.spec.cluster_name, reader)


def _deleting_of(namespace: str, cluster: str, reader: Reader) -> list[Key]:
    return [m.key for m in reader.index(Machine, "deletingIn", namespace) if m.spec.cluster_name == cluster]


def _comes_or_goes(old: Machine, new: Machine) -> bool:
    return old.deleting != new.deleting or old.metadata.labels != new.metadata.labels


def _of_external(obj: Unstructured, reader: Reader) -> Iterable[Key]:
    """The Machines of an infrastructure or bootstrap object; of a pool's infrastructure that tells its template, all; of a
    control plane those that are being deleted."""
    value = value_of(obj)
    found = [m.key for m in reader.index(Machine, "reference", value)]
    if not found and annotations.TEMPLATE_HASH in obj.metadata.annotations:
        for pool in reader.index(MachinePool, "reference", value):
            found += _of_pool(pool, reader)
    for cluster in reader.index(Cluster, "reference", value):
        found += _deleting_of(cluster.namespace, cluster.name, reader)
    return found


def _of_node(node: Node, cluster: ClusterKey, reader: Reader) -> Iterable[Key]:
    """The Machines of this cluster with the Node's provider ID or name; of another cluster never."""
    found = [
        *(reader.index(Machine, "providerID", node.spec.provider_id) if node.spec.provider_id else ()),
        *reader.index(Machine, "nodeRef", indexes.cluster_value(cluster.namespace, cluster.name, node.name)),
    ]
    return {m.key for m in found if (m.namespace, m.spec.cluster_name) == cluster}


def cluster_matters(old: Cluster, new: Cluster) -> bool:
    """Whether a change of a Cluster concerns its Machines."""
    return _cluster_facts(old) != _cluster_facts(new)


def _cluster_facts(cluster: Cluster) -> tuple[Any, ...]:
    probe = conditions.get(cluster.status.conditions, REMOTE_CONNECTION_PROBE)
    return (
        cluster.metadata.uid,
        cluster.deleting,
        bool(cluster.spec.paused),
        cluster.status.initialization,
        (probe.status, probe.message if probe.status != "True" else "") if probe is not None else None,
    )


def node_matters(old: Node, new: Node) -> bool:
    """Whether a change of a Node concerns its Machine; a heartbeat does not."""
    return (
        old.metadata.uid != new.metadata.uid
        or old.spec.provider_id != new.spec.provider_id
        or old.metadata.labels != new.metadata.labels
        or old.metadata.annotations != new.metadata.annotations
        or old.spec.taints != new.spec.taints
        or old.spec.unschedulable != new.spec.unschedulable
        or old.status.volumes_attached != new.status.volumes_attached
        or old.status.node_info != new.status.node_info
        or nodes.condition_facts(old) != nodes.condition_facts(new)
    )


def _template_changed(old: MachinePool, new: MachinePool) -> bool:
    return old.spec.template.spec.version != new.spec.template.spec.version or old.metadata.uid != new.metadata.uid
