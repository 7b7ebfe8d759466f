"""Simulated shortages: what the annotations of a pool and of a Cluster let a machine have, and what wakes it when they change."""

from collections.abc import Callable, Iterable

from capi.api.core import labels
from capi.api.core.conditions import Dev
from capi.api.core.v1beta2 import Cluster
from capi.backends.port import Limit
from capi.controllers.infra import knobs, lookups
from capi.controllers.infra.family import Family, InfraMachine, InfraMachinePool
from capi.controllers.infra.names import CAPACITY_ANNOTATION
from capi.kube import conditions
from capi.kube.objects import Resource
from capi.kube.types import Key
from capi.runtime.reader import CacheReader, Reader


def limits(infra: InfraMachine, cluster: Cluster | None, family: Family, reader: CacheReader) -> tuple[Limit, ...]:
    """Of its pool, then of its Cluster; for a machine that is not running yet. O(machines of the cluster), with a shortage only.

    Raises InvalidKnob.
    """
    if _runs(infra):
        return ()
    owner = lookups.owner_name(infra, family.pool)
    pool = reader.get(family.pool, owner, infra.namespace) if owner else None
    found: tuple[Limit, ...] = ()
    if pool is not None and CAPACITY_ANNOTATION in pool.metadata.annotations:
        members = [m for m in _others(infra, family, reader) if lookups.owner_name(m, family.pool) == owner]
        found += _limit(pool, sum(map(_runs, members)), owner)
    if cluster is not None and CAPACITY_ANNOTATION in cluster.metadata.annotations:
        found += _limit(cluster, sum(map(_runs, _others(infra, family, reader))))
    return found


def cluster_changed(old: Cluster, new: Cluster) -> bool:
    """Whether anything changed of a Cluster that matters to its machines."""
    return pool_changed(old, new) or lookups.cluster_changed(old, new)


def pool_changed(old: Resource, new: Resource) -> bool:
    """Whether there is another shortage than before."""
    return old.metadata.annotations.get(CAPACITY_ANNOTATION) != new.metadata.annotations.get(CAPACITY_ANNOTATION)


def machines_of(family: Family) -> Callable[[InfraMachinePool, Reader], Iterable[Key]]:
    """The InfraMachines of a pool that a change of its shortage concerns: those that do not run."""

    def keys(pool: InfraMachinePool, reader: Reader) -> Iterable[Key]:
        there = reader.list(family.machine, pool.namespace)
        return [m.key for m in there if not _runs(m) and lookups.owner_name(m, family.pool) == pool.name]

    return keys


def _limit(owner: Resource, running: int, pool: str = "") -> tuple[Limit, ...]:
    try:
        return knobs.limit(owner.metadata.annotations, running, pool)
    except knobs.InvalidKnob as error:
        raise error.of(f"{owner.resource.kind} {owner.name}") from error


def _others(infra: InfraMachine, family: Family, reader: CacheReader) -> Iterable[InfraMachine]:
    """Those of its cluster that are there to stay: of one that goes, the backend knows better when it is gone."""
    cluster = {labels.CLUSTER_NAME: infra.metadata.labels.get(labels.CLUSTER_NAME, "")}
    return [m for m in reader.list(family.machine, infra.namespace, cluster) if m.name != infra.name and not m.deleting]


def _runs(infra: InfraMachine) -> bool:
    return conditions.is_true(infra.status.conditions, Dev.VM_PROVISIONED)
