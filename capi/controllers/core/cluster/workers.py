"""Conditions of a Cluster about its Machines. Pure.

MachinePools are not among them: they have conditions of their own, and a Cluster whose only workers are pools has
"NoWorkers" here, as upstream says it. Their Machines count in `status.workers`.
Upstream: internal/controllers/cluster/cluster_controller_status.go.
"""

from collections.abc import Sequence

from capi import contract
from capi.api.core import conditions as types
from capi.api.core.conditions import HEALTH_CHECK_SUCCEEDED, OWNER_REMEDIATED, READY, UP_TO_DATE, ClusterReason
from capi.api.core.v1beta2 import Machine
from capi.controllers.core.cluster.scope import Scope
from capi.controllers.core.summary import Reasons, aggregate, false, mirror, true, unknown
from capi.kube import conditions
from capi.kube.conditions import Condition

_READY = Reasons(ClusterReason.READY, ClusterReason.NOT_READY, ClusterReason.READY_UNKNOWN)
_UP_TO_DATE = Reasons(ClusterReason.UP_TO_DATE, ClusterReason.NOT_UP_TO_DATE, ClusterReason.UP_TO_DATE_UNKNOWN)


def worker_conditions(seen: Scope) -> list[Condition]:
    """Everything that is said of Machines outside pools, and what the control plane says of itself."""
    planes, workers = seen.control_plane_machines, seen.workers
    return [
        true(types.WORKERS_AVAILABLE, ClusterReason.NO_WORKERS),
        _aggregate(types.CONTROL_PLANE_MACHINES_READY, _READY, READY, planes),
        _aggregate(types.CONTROL_PLANE_MACHINES_UP_TO_DATE, _UP_TO_DATE, UP_TO_DATE, planes),
        _aggregate(types.WORKER_MACHINES_READY, _READY, READY, workers),
        _aggregate(types.WORKER_MACHINES_UP_TO_DATE, _UP_TO_DATE, UP_TO_DATE, workers),
        _of_control_plane(seen, types.ROLLING_OUT, ClusterReason.NOT_ROLLING_OUT),
        _of_control_plane(seen, types.SCALING_UP, ClusterReason.NOT_SCALING_UP),
        _of_control_plane(seen, types.SCALING_DOWN, ClusterReason.NOT_SCALING_DOWN),
        _remediating([*planes, *workers]),
    ]


def _aggregate(type_: str, reasons: Reasons, source: str, machines: Sequence[Machine]) -> Condition:
    named = []
    for machine in machines:
        found = conditions.get(machine.status.conditions, source)
        if found is None and source == UP_TO_DATE:
            continue  # only owners that roll out say it
        missing = unknown(source, ClusterReason.NOT_YET_REPORTED, f"Condition {source} not yet reported")
        named.append((machine.name, found or missing))
    if not named:
        return true(type_, ClusterReason.NO_REPLICAS)
    return aggregate(type_, reasons, "Machine", named)


def _of_control_plane(seen: Scope, type_: str, quiet: str) -> Condition:
    """As the control plane says; False when it says nothing."""
    obj = seen.control_plane.obj
    reported = conditions.get(contract.conditions(obj), type_) if obj is not None else None
    return mirror(reported, type_, false(type_, quiet))


def _remediating(machines: Sequence[Machine]) -> Condition:
    found = [
        machine.name
        for machine in machines
        if _false(machine, HEALTH_CHECK_SUCCEEDED) and _false(machine, OWNER_REMEDIATED)
    ]
    if not found:
        return false(types.REMEDIATING, ClusterReason.NOT_REMEDIATING)
    return true(types.REMEDIATING, ClusterReason.REMEDIATING, f"Machines {', '.join(sorted(found)[:3])}")


def _false(machine: Machine, type_: str) -> bool:
    found = conditions.get(machine.status.conditions, type_)
    return found is not None and found.status == "False"
