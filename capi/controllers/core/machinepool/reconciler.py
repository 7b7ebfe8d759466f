"""The MachinePool controller.

Wakes on: the pool, its Machines, its InfraMachines (by label), its infrastructure and bootstrap objects (by reference),
its Nodes, its Cluster and the connection to it. Passes of one pool are spaced, and what comes in between is one pass.
Upstream: internal/controllers/machinepool/machinepool_controller.go.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar

from capi import contract
from capi.api.builtin import Node
from capi.api.core import annotations, finalizers, labels
from capi.api.core.v1beta2 import Cluster, Machine, MachinePool
from capi.controllers import pause
from capi.controllers.core import indexes
from capi.controllers.core.machinepool.machines import MANAGER
from capi.controllers.core.machinepool.plan import plan
from capi.controllers.core.machinepool.scope import Memory, Scope, node_facts, provider_ids, selector
from capi.controllers.core.objects import Found, look_up, value_of
from capi.kube.errors import ContractError, TransportError
from capi.kube.objects import Unstructured
from capi.kube.types import GroupKind, Key
from capi.runtime.plan import ClusterKey, Plan
from capi.runtime.reader import Reader, WorkloadReader
from capi.runtime.watches import AnyWatch, Connections, External, Watch, Workload


class MachinePoolReconciler:
    """Surfaces every instance of a pool as a Machine, and counts."""

    kind: type[MachinePool] = MachinePool
    manager: ClassVar[str] = MANAGER
    finalizer: ClassVar[str | None] = finalizers.MACHINE_POOL
    spacing: ClassVar[timedelta] = timedelta(milliseconds=100)
    """Least time between two passes of one pool: a pass costs O(machines), however many events there were."""

    def __init__(self) -> None:
        self._memories: dict[Key, tuple[str, Memory]] = {}
        """With the uid of the pool they are of."""
        self.watches: Sequence[AnyWatch] = (
            Watch(MachinePool, indexes=indexes.POOL),
            Watch(Cluster, keys=_of_cluster, changed=_cluster_matters),
            Watch(Machine, keys=_of_machine, changed=machine_matters, indexes=indexes.MACHINE),
            External(keys=_of_external, label_indexes=(labels.CLUSTER_NAME, labels.POOL_NAME)),
            Workload(Node, keys=_of_node, changed=_node_matters, indexes=indexes.NODE),
            Connections(keys=_of_connection),
        )

    def paused(self, obj: MachinePool, reader: Reader) -> Sequence[str]:
        return pause.causes(obj, reader.get(Cluster, obj.spec.cluster_name, obj.namespace))

    async def reconcile(self, obj: MachinePool, reader: Reader, now: datetime) -> Plan:
        uid, memory = self._memories.get(obj.key, ("", Memory()))
        if uid != obj.metadata.uid:
            memory = Memory()
            self._memories[obj.key] = (obj.metadata.uid, memory)
        return plan(await observe(obj, reader, memory), now)

    async def gone(self, key: Key) -> None:
        self._memories.pop(key, None)


async def observe(pool: MachinePool, reader: Reader, memory: Memory) -> Scope:
    """Read the caches. O(instances)."""
    namespace, template = pool.namespace, pool.spec.template.spec
    infra = await look_up(reader, template.infrastructure_ref, namespace, contract.INFRA_POOL)
    bootstrap = await look_up(reader, template.bootstrap.config_ref, namespace, contract.BOOTSTRAP)
    infra, infra_machines = await _infra_machines(pool, infra.unless_foreign(pool), reader)
    machines = reader.index(Machine, "pool", indexes.pool_value(namespace, pool.name))
    unpaired = _unpaired(infra_machines, machines)
    stale = [infra.name for infra in unpaired if await _is_stale(infra, memory, reader)]
    if stale:
        infra_machines = [infra for infra in infra_machines if infra.name not in stale]
    connection = reader.workload(ClusterKey(namespace, pool.spec.cluster_name))
    nodes = None
    retired: Sequence[Node] = ()
    if connection is not None:
        nodes = _nodes(pool, infra, infra_machines, connection, memory)
        retired = [] if infra.foreign else _retired(pool, nodes, connection)
    return Scope(
        pool=pool,
        cluster=reader.get(Cluster, pool.spec.cluster_name, namespace),
        infra=infra,
        bootstrap=bootstrap.unless_foreign(pool),
        infra_machines=infra_machines,
        machines=machines,
        strangers=_strangers(unpaired, reader),
        nodes=nodes,
        retired=retired,
        memory=memory,
    )


async def _infra_machines(pool: MachinePool, infra: Found, reader: Reader) -> tuple[Found, Sequence[Unstructured]]:
    """The InfraMachines, of the kind that the infrastructure names; trouble with that kind is trouble with it."""
    obj = infra.obj
    kind = contract.infrastructure_machine_kind(obj) if obj is not None else ""
    if obj is None or not kind:
        return infra, ()
    wanted = GroupKind(obj.resource.group, kind)
    trouble = contract.INFRA_MACHINE.trouble(wanted)
    if trouble is not None:
        return Found(infra.ref, error=trouble, broken=obj), ()
    try:
        found = await reader.external_list(wanted, pool.namespace, selector(pool))
    except (ContractError, TransportError) as error:
        return Found(infra.ref, error=error, broken=obj), ()
    return infra, found


def _unpaired(infra_machines: Sequence[Unstructured], machines: Sequence[Machine]) -> list[Unstructured]:
    """InfraMachines that no Machine of the pool refers to."""
    paired = {machine.spec.infrastructure_ref.name for machine in machines}
    return [infra for infra in infra_machines if infra.name not in paired]


async def _is_stale(infra: Unstructured, memory: Memory, reader: Reader) -> bool:
    """The InfraMachine had a Machine, which has gone, and only a late cache still shows the InfraMachine.

    Of two caches one may be far behind the other; a Machine made for an InfraMachine that went with its Machine would stay for
    ever. The API server is asked, but only about those that had a Machine before.
    """
    if infra.deleting or memory.surfaced.get(infra.name) != infra.metadata.uid:
        return False
    live = await reader.live_external(infra.resource, infra.name, infra.namespace)
    return live is None or live.deleting or live.metadata.uid != infra.metadata.uid


def _strangers(unpaired: Sequence[Unstructured], reader: Reader) -> Mapping[str, Machine]:
    """Machines with the name of an InfraMachine that are not known as this pool's."""
    named = ((infra.name, reader.get(Machine, infra.name, infra.namespace)) for infra in unpaired)
    return {name: machine for name, machine in named if machine is not None}


def _nodes(
    pool: MachinePool,
    infra: Found,
    infra_machines: Sequence[Unstructured],
    connection: WorkloadReader,
    memory: Memory,
) -> dict[str, Node]:
    """The pool's Nodes by provider ID; an ID that several Nodes claim has none."""
    wanted = dict.fromkeys(provider_ids(pool, infra))
    for machine in infra_machines:
        try:
            wanted[memory.infra(machine).provider_id] = None
        except ContractError:
            continue  # the plan reports it
    found = {}
    for provider_id in wanted:
        if provider_id:
            nodes = connection.index(Node, "providerID", provider_id)
            if len(nodes) == 1:
                found[provider_id] = nodes[0]
    return found


def _retired(pool: MachinePool, nodes: Mapping[str, Node], connection: WorkloadReader) -> list[Node]:
    """Nodes that the references name, with their uid, and that are none of the pool's any more; at the end all of them.

    Never one without a provider ID, nor one whose marks say that something else owns it by now.
    """
    current = set() if pool.deleting else {node.name for node in nodes.values()}
    found = []
    for ref in pool.status.node_refs:
        if ref.name not in current:
            node = connection.get(Node, ref.name)
            if node is not None and node.metadata.uid == ref.uid and node.spec.provider_id and _may_own(pool, node):
                found.append(node)
    return found


def _may_own(pool: MachinePool, node: Node) -> bool:
    marks = node.metadata.annotations
    owner = marks.get(annotations.NODE_OWNER_KIND), marks.get(annotations.NODE_OWNER_NAME)
    return owner in ((None, None), (MachinePool.resource.kind, pool.name))


def _of_cluster(cluster: Cluster, reader: Reader) -> Iterable[Key]:
    return [p.key for p in reader.index(MachinePool, "cluster", indexes.cluster_value(cluster.namespace, cluster.name))]


def _of_connection(cluster: ClusterKey, reader: Reader) -> Iterable[Key]:
    return [p.key for p in reader.index(MachinePool, "cluster", indexes.cluster_value(*cluster))]


def _of_machine(machine: Machine, reader: Reader) -> Iterable[Key]:
    ref = machine.metadata.controller
    if ref is not None and ref.kind == MachinePool.resource.kind:
        yield Key(machine.namespace, ref.name)
    label = machine.metadata.labels.get(labels.POOL_NAME, "")
    if label and (ref is None or label != ref.name):
        pool = indexes.pool_by_label(reader, machine.namespace, label)
        if pool is not None:
            yield pool.key


def _of_external(obj: Unstructured, reader: Reader) -> Iterable[Key]:
    """A pool's infrastructure or bootstrap config, or one of its InfraMachines."""
    yield from (pool.key for pool in reader.index(MachinePool, "reference", value_of(obj)))
    if labels.POOL_NAME in obj.metadata.labels:
        yield from indexes.pools_of_label(obj, reader)


def _of_node(node: Node, cluster: ClusterKey, reader: Reader) -> Iterable[Key]:
    """The one pool a Node belongs to: by its Machine, by its marks, or by the pools' lists; two claimants are none."""
    marks = node.metadata.annotations
    if marks.get(annotations.NODE_CLUSTER_NAME, cluster.name) != cluster.name:
        return ()
    if marks.get(annotations.NODE_CLUSTER_NAMESPACE, cluster.namespace) != cluster.namespace:
        return ()
    if marks.get(annotations.NODE_OWNER_KIND) == MachinePool.resource.kind:
        return (Key(cluster.namespace, marks.get(annotations.NODE_OWNER_NAME, "")),)
    provider_id = node.spec.provider_id
    if not provider_id:
        return ()
    machines = reader.index(Machine, "providerID", provider_id)
    owners = {key for machine in machines if _of(machine, cluster) for key in _of_machine(machine, reader)}
    if not machines:
        pools = reader.index(MachinePool, "cluster", indexes.cluster_value(*cluster))
        owners = {pool.key for pool in pools if provider_id in pool.spec.provider_id_list}
    return owners if len(owners) == 1 else ()


def _of(machine: Machine, cluster: ClusterKey) -> bool:
    return (machine.namespace, machine.spec.cluster_name) == cluster


def _cluster_matters(old: Cluster, new: Cluster) -> bool:
    return (old.metadata.uid, old.deleting, bool(old.spec.paused)) != (
        new.metadata.uid,
        new.deleting,
        bool(new.spec.paused),
    )


def machine_matters(old: Machine, new: Machine) -> bool:
    """Whether a change of a Machine concerns its pool."""
    return _machine_facts(old) != _machine_facts(new)


def _machine_facts(machine: Machine) -> tuple[Any, ...]:
    meta, status = machine.metadata, machine.status
    info = status.node_info
    return (
        meta.uid,
        machine.deleting,
        meta.labels,
        meta.annotations,
        meta.finalizers,
        meta.owner_references,
        machine.spec,
        [(c.type, c.status, c.message) for c in status.conditions],
        status.node_ref,
        info.kubelet_version if info is not None else "",
    )


def _node_matters(old: Node, new: Node) -> bool:
    return (
        old.metadata.uid != new.metadata.uid
        or old.spec.provider_id != new.spec.provider_id
        or old.spec.taints != new.spec.taints
        or old.metadata.annotations != new.metadata.annotations
        or node_facts(old) != node_facts(new)
    )
