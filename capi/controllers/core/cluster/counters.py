"""How many Machines a Cluster has, by role. Pure.

Upstream: internal/controllers/cluster/cluster_controller_status.go (setWorkersReplicas, setControlPlaneReplicas).
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from capi import contract
from capi.api.core.conditions import AVAILABLE, READY, UP_TO_DATE
from capi.api.core.v1beta2 import Machine, MachinePool, ReplicaCounters, StatusVersion
from capi.controllers.core.cluster.scope import Scope
from capi.kube.conditions import is_true

MAX_VERSIONS = 32


def worker_counters(seen: Scope) -> ReplicaCounters | None:
    """Of pools and of Machines outside pools; None while there are neither."""
    pools, machines = seen.pools, seen.workers
    if not pools and not machines:
        return ReplicaCounters(
            desired_replicas=0, replicas=0, up_to_date_replicas=0, ready_replicas=0, available_replicas=0
        )
    alone = machine_counters(machines)
    return ReplicaCounters(
        desired_replicas=_sum([p.spec.replicas for p in pools], alone.desired_replicas),
        replicas=_sum([p.status.replicas for p in pools], alone.replicas),
        up_to_date_replicas=_sum([p.status.up_to_date_replicas for p in pools], alone.up_to_date_replicas),
        ready_replicas=_sum([p.status.ready_replicas for p in pools], alone.ready_replicas),
        available_replicas=_sum([p.status.available_replicas for p in pools], alone.available_replicas),
        versions=_merged((*_pool_versions(pools), *alone.versions)),
    )


def control_plane_counters(seen: Scope) -> ReplicaCounters | None:
    """As the control plane object says; of the control plane's Machines where there is no such object."""
    obj = seen.control_plane.obj
    if obj is not None:
        return ReplicaCounters(
            desired_replicas=contract.desired_replicas(obj),
            replicas=contract.replicas(obj),
            up_to_date_replicas=contract.up_to_date_replicas(obj),
            ready_replicas=contract.ready_replicas(obj),
            available_replicas=contract.available_replicas(obj),
            versions=contract.versions(obj)[:MAX_VERSIONS],
        )
    if seen.control_plane.ref is not None:
        return seen.cluster.status.control_plane
    return machine_counters(seen.control_plane_machines) if seen.control_plane_machines else None


def machine_counters(machines: Sequence[Machine]) -> ReplicaCounters:
    """Of Machines outside pools, each of which is wanted."""
    return ReplicaCounters(
        desired_replicas=len(machines),
        replicas=len(machines),
        up_to_date_replicas=_with(machines, UP_TO_DATE),
        ready_replicas=_with(machines, READY),
        available_replicas=_with(machines, AVAILABLE),
        versions=_merged(StatusVersion(version=m.spec.version, replicas=1) for m in machines if m.spec.version),
    )


def _with(machines: Iterable[Machine], type_: str) -> int:
    return sum(is_true(machine.status.conditions, type_) for machine in machines)


def _sum(values: Iterable[int | None], more: int | None) -> int:
    return sum(value or 0 for value in values) + (more or 0)


def _pool_versions(pools: Iterable[MachinePool]) -> Iterable[StatusVersion]:
    return (version for pool in pools for version in pool.status.versions)


def _merged(versions: Iterable[StatusVersion]) -> tuple[StatusVersion, ...]:
    counts: Counter[str] = Counter()
    for version in versions:
        counts[version.version] += version.replicas or 0
    return tuple(StatusVersion(version=v, replicas=n) for v, n in sorted(counts.items())[:MAX_VERSIONS])
