"""What a pass over one Cluster does. Pure.

Upstream: internal/controllers/cluster/{cluster_controller,cluster_controller_phases}.go.
"""

from datetime import datetime

from capi.api.core.conditions import DELETING
from capi.api.core.v1beta2 import ClusterInitialization, ClusterStatus
from capi.controllers import owners
from capi.controllers.core.cluster import deletion
from capi.controllers.core.cluster.scope import Scope
from capi.controllers.core.cluster.status import endpoint, probe_recheck, status_of
from capi.kube import conditions
from capi.kube.objects import to_wire
from capi.runtime.plan import Apply, Event, Plan, Write, target

MANAGER = "capi-cluster"


def plan(seen: Scope, now: datetime) -> Plan:
    """Own, tell; or, for a Cluster being deleted, the next stage of its end."""
    if seen.cluster.deleting:
        return _ending(seen, now)
    problems = [found.error for found in (seen.infra, seen.control_plane) if found.error is not None]
    writes: list[Write] = []
    for found in (seen.infra, seen.control_plane):
        adopting, refused = owners.adopt(found.usable, seen.cluster, seen.cluster.name, controller=False)
        writes += adopting
        problems += refused
    writes += _endpoint_writes(seen)
    if seen.access.write is not None:
        writes.append(seen.access.write)
    due = [after for after in (probe_recheck(seen, now), seen.access.recheck) if after is not None]
    status = status_of(seen, None, now)
    return Plan(
        writes=writes,
        status=status,
        events=_events(seen, status),
        requeue_after=min(due) if due else None,
        error=problems[0] if problems else None,
    )


def _endpoint_writes(seen: Scope) -> list[Write]:
    """The control plane endpoint, if the user did not give one. Once copied it is this controller's and stays."""
    current = seen.cluster.spec.control_plane_endpoint
    given = current is not None and current.valid
    if given and owners.owned_fields(seen.cluster, MANAGER, "spec", "controlPlaneEndpoint") is None:
        return []
    found = endpoint(seen)
    if found is None:
        return []
    body = {"spec": {"controlPlaneEndpoint": to_wire(found)}}
    return [Apply(target(seen.cluster), body, must_exist=True)]


def _ending(seen: Scope, now: datetime) -> Plan:
    stage = deletion.stage(seen)
    return Plan(
        writes=stage.writes,
        status=status_of(seen, stage, now),
        finalized=stage.finalized,
        events=_stage_events(seen, stage),
        error=stage.error,
    )


def _stage_events(seen: Scope, stage: deletion.Stage) -> tuple[Event, ...]:
    if stage.finalized:
        return (Event("Deleted", f"Cluster {seen.cluster.name} has been deleted"),)
    before = conditions.get(seen.cluster.status.conditions, DELETING)
    if before is not None and before.status == "True" and before.reason == stage.reason:
        return ()
    return (Event(stage.reason, stage.message),)


def _events(seen: Scope, status: ClusterStatus) -> tuple[Event, ...]:
    before, after = seen.start, status.initialization or ClusterInitialization()
    found = []
    if after.infrastructure_provisioned and not before.infrastructure_provisioned:
        found.append(Event("InfrastructureReady", f"Cluster {seen.cluster.name} has its infrastructure"))
    if after.control_plane_initialized and not before.control_plane_initialized:
        found.append(Event("ControlPlaneInitialized", f"Cluster {seen.cluster.name} has an initialized control plane"))
    if status.phase != seen.cluster.status.phase:
        found.append(Event(status.phase, f"Cluster {seen.cluster.name} is {status.phase}"))
    return tuple(found)
