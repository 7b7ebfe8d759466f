"""A pool and its Nodes: references in the order of the provider IDs, and Nodes whose instance has left the pool. Pure.

Provider IDs are compared whole; a Node with the same last segment is somebody else's.
Upstream: internal/controllers/machinepool/machinepool_controller_noderef.go.
Differs: readiness is counted anew in every pass; a Machine's Node is left to the Machine.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from capi.api.core.v1beta2 import Cluster, ObjectReference
from capi.controllers.core.machinepool.scope import Scope
from capi.controllers.core.nodes import pool_node_patch
from capi.runtime.plan import ClusterKey, Delete, Write, target


@dataclass(frozen=True, slots=True)
class NodeCount:
    """The Nodes of a pool. `versions` has one entry for every Node."""

    refs: tuple[ObjectReference, ...]
    ready: int
    available: int
    versions: tuple[str, ...]
    next_available: datetime | None = None
    """When minReadySeconds will have passed for the next one."""


def count(seen: Scope, provider_ids: Iterable[str], now: datetime) -> NodeCount | None:
    """None while the workload cluster is not connected. O(provider IDs)."""
    if seen.nodes is None:
        return None
    minimum = timedelta(seconds=seen.pool.spec.template.spec.min_ready_seconds or 0)
    refs, versions, waits = [], [], []
    ready = available = 0
    remembered = seen.memory.nodes
    for provider_id in provider_ids:
        node = seen.nodes.get(provider_id)
        if node is None:
            continue
        facts = remembered(node)
        refs.append(facts.reference)
        if facts.version:
            versions.append(facts.version)
        if not facts.ready:
            continue
        ready += 1
        due = facts.ready_since + minimum if minimum and facts.ready_since is not None else now
        if due <= now:
            available += 1
        else:
            waits.append(due)
    return NodeCount(tuple(refs), ready, available, tuple(versions), min(waits) if waits else None)


def references(seen: Scope, counted: NodeCount | None, provider_ids: Sequence[str]) -> tuple[ObjectReference, ...]:
    """The new references; the old ones while nothing is known, or while no Node of a non-empty list can be found; none to
    the Nodes of somebody else."""
    if seen.infra.foreign:
        return ()
    if counted is None or (not counted.refs and provider_ids):
        return seen.pool.status.node_refs
    if not provider_ids and seen.pool.spec.replicas != 0:
        return seen.pool.status.node_refs
    return counted.refs


def node_writes(seen: Scope, cluster: Cluster, provider_ids: Iterable[str]) -> list[Write]:
    """Marks on the Nodes of a pool without Machines, and the end of retired Nodes."""
    if seen.nodes is None:
        return []
    writes: list[Write] = []
    listed = set(provider_ids)
    if not seen.machine_kind and seen.infra.obj is not None:
        for provider_id in listed:
            node = seen.nodes.get(provider_id)
            patch = pool_node_patch(node, cluster, seen.pool.name) if node is not None else None
            if patch is not None:
                writes.append(patch)
    return writes + retired_node_deletes(seen, cluster, listed)


def retired_node_deletes(seen: Scope, cluster: Cluster, listed: Iterable[str]) -> list[Write]:
    """Nodes that the pool refers to although their instance has left; not those that a Machine will delete."""
    if not seen.retired:
        return []
    kept = set(listed)
    held = {seen.memory.machines(machine).node for machine in seen.machines}
    where = ClusterKey(cluster.namespace, cluster.name)
    return [
        Delete(target(node, where))
        for node in seen.retired
        if node.spec.provider_id and node.spec.provider_id not in kept and node.name not in held
    ]
