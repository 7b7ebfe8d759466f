"""Cluster.status. Pure.

Upstream: internal/controllers/cluster/{cluster_controller_status,cluster_controller_phases}.go.
"""

from datetime import datetime, timedelta

import msgspec

from capi import contract
from capi.api.core import conditions as types
from capi.api.core.conditions import ClusterReason
from capi.api.core.v1beta2 import (
    APIEndpoint,
    ClusterInitialization,
    ClusterStatus,
    FailureDomain,
)
from capi.controllers.core.cluster.counters import control_plane_counters, worker_counters
from capi.controllers.core.cluster.deletion import Stage
from capi.controllers.core.cluster.deprecated import deprecated_status
from capi.controllers.core.cluster.scope import Scope
from capi.controllers.core.cluster.workers import worker_conditions
from capi.controllers.core.objects import Found
from capi.controllers.core.summary import Part, Reasons, false, mirror, ready_of, summarize, true, unknown
from capi.kube import conditions, times
from capi.kube.conditions import Condition

PROBE_GRACE = timedelta(seconds=50)
"""How long a lost connection still counts as one."""
_AVAILABLE = Reasons(ClusterReason.AVAILABLE, ClusterReason.NOT_AVAILABLE, ClusterReason.AVAILABLE_UNKNOWN)


def status_of(seen: Scope, stage: Stage | None, now: datetime) -> ClusterStatus:
    """The whole status; `stage` is None while the Cluster is not being deleted."""
    start = initialization(seen)
    parts = [
        probe_condition(seen, now),
        infrastructure_condition(seen),
        control_plane_initialized_condition(seen, start),
        control_plane_available_condition(seen, start),
        *worker_conditions(seen),
        true(types.DELETING, stage.reason, stage.message)
        if stage
        else false(types.DELETING, ClusterReason.NOT_DELETING),
    ]
    return msgspec.structs.replace(
        seen.cluster.status,
        conditions=(*parts, available_condition(seen, parts)),
        initialization=start if start != ClusterInitialization() else None,
        control_plane=control_plane_counters(seen),
        workers=worker_counters(seen),
        failure_domains=_failure_domains(seen),
        phase=phase_of(seen, start),
        deprecated=deprecated_status(seen, start, now),
    )


def initialization(seen: Scope) -> ClusterInitialization:
    """Neither step is taken back. Without an infrastructure object the infrastructure counts as provisioned."""
    before = seen.start
    infra, plane = seen.infra.usable, seen.control_plane.usable
    provisioned = before.infrastructure_provisioned or (
        contract.provisioned(infra) if infra is not None else seen.infra.ref is None
    )
    if seen.control_plane.ref is not None:
        initialized = plane is not None and contract.control_plane_initialized(plane)
    else:
        initialized = any(m.status.node_ref is not None and not m.deleting for m in seen.control_plane_machines)
    return ClusterInitialization(
        infrastructure_provisioned=True if provisioned else None,
        control_plane_initialized=True if before.control_plane_initialized or initialized else None,
    )


def endpoint(seen: Scope) -> APIEndpoint | None:
    """The Cluster's endpoint, else what infrastructure or control plane reports."""
    current = seen.cluster.spec.control_plane_endpoint
    if current is not None and current.valid:
        return current
    for found, good in ((seen.infra, contract.provisioned), (seen.control_plane, None)):
        obj = found.usable
        if obj is not None and (good is None or good(obj)):
            reported = contract.control_plane_endpoint(obj)
            if reported is not None:
                return reported
    return None


def phase_of(seen: Scope, start: ClusterInitialization) -> str:
    """Later rules win."""
    cluster = seen.cluster
    if cluster.deleting:
        return "Deleting"
    at = endpoint(seen)
    if start.infrastructure_provisioned and at is not None and at.valid:
        return "Provisioned"
    if seen.infra.ref is not None or seen.control_plane.ref is not None:
        return "Provisioning"
    return "Pending"


def probe_recheck(seen: Scope, now: datetime) -> timedelta | None:
    """When a lost connection will have been lost for too long; None if that changes nothing."""
    probe = conditions.get(seen.cluster.status.conditions, types.REMOTE_CONNECTION_PROBE)
    if seen.connected or seen.lost_since is None or probe is None or probe.status != "True":
        return None
    left = seen.lost_since + PROBE_GRACE - now
    return left if left > timedelta() else None


def probe_condition(seen: Scope, now: datetime) -> Condition:
    """RemoteConnectionProbe: True with a connection and for a short while after it was lost."""
    type_ = types.REMOTE_CONNECTION_PROBE
    if seen.connected or probe_recheck(seen, now) is not None:
        return true(type_, ClusterReason.PROBE_SUCCEEDED)
    before = conditions.get(seen.cluster.status.conditions, type_)
    if seen.access.waiting:
        message = seen.access.waiting
    elif before is None:
        message = "Remote connection not established yet"
    elif before.status == "False" or seen.lost_since is None:
        message = before.message.partition("\n")[0] or "Remote connection down"
    else:
        message = f"Remote connection probe failed, probe last succeeded at {times.format(seen.lost_since)}"
    why = f"\n* {seen.trouble}" if seen.trouble and not seen.access.waiting else ""
    return false(type_, ClusterReason.PROBE_FAILED, message + why)


def infrastructure_condition(seen: Scope) -> Condition:
    """InfrastructureReady."""
    type_, found = types.INFRASTRUCTURE_READY, seen.infra
    if found.ref is None:
        return true(type_, ClusterReason.READY)
    if found.obj is None:
        return _not_there(type_, found, deleted=seen.cluster.deleting or bool(seen.start.infrastructure_provisioned))
    good = contract.provisioned(found.obj)
    text = f"{found.ref.kind} status.initialization.provisioned is false"
    fallback = true(type_, ClusterReason.READY) if good else false(type_, ClusterReason.NOT_READY, text)
    return mirror(ready_of(contract.conditions(found.obj)), type_, fallback)


def control_plane_initialized_condition(seen: Scope, start: ClusterInitialization) -> Condition:
    """ControlPlaneInitialized: once True it stays."""
    type_, found = types.CONTROL_PLANE_INITIALIZED, seen.control_plane
    if start.control_plane_initialized:
        return true(type_, ClusterReason.INITIALIZED)
    if found.error is not None:
        return unknown(type_, ClusterReason.INTERNAL_ERROR, found.error.message)
    if found.missing:
        return false(type_, ClusterReason.OBJECT_DOES_NOT_EXIST, f"{found} does not exist")
    return false(type_, ClusterReason.NOT_INITIALIZED, "Control plane not yet initialized")


def control_plane_available_condition(seen: Scope, start: ClusterInitialization) -> Condition:
    """ControlPlaneAvailable: as the control plane says; one that says nothing is available once it is initialized."""
    type_, found = types.CONTROL_PLANE_AVAILABLE, seen.control_plane
    if found.ref is not None and found.obj is None:
        return _not_there(type_, found, deleted=seen.cluster.deleting or bool(start.control_plane_initialized))
    if start.control_plane_initialized:
        fallback = true(type_, ClusterReason.AVAILABLE)
    else:
        fallback = false(type_, ClusterReason.NOT_AVAILABLE, "Control plane not yet initialized")
    if found.obj is None:
        return fallback
    reported = conditions.get(contract.conditions(found.obj), types.AVAILABLE)
    return mirror(reported, type_, fallback, ClusterReason.AVAILABLE)


def _not_there(type_: str, found: Found, *, deleted: bool) -> Condition:
    if found.error is not None:
        return unknown(type_, ClusterReason.INTERNAL_ERROR, found.error.message)
    if deleted:
        return false(type_, ClusterReason.OBJECT_DELETED, f"{found} has been deleted")
    return false(type_, ClusterReason.OBJECT_DOES_NOT_EXIST, f"{found} does not exist")


def available_condition(seen: Scope, parts: list[Condition]) -> Condition:
    """Available: the summary of the others and of the availability gates."""
    ours = {c.type for c in parts}
    present = (*parts, *(c for c in seen.cluster.status.conditions if c.type not in ours))
    gates = seen.cluster.spec.availability_gates
    summarized = [
        Part(types.DELETING, negative=True),
        Part(types.REMOTE_CONNECTION_PROBE),
        Part(types.INFRASTRUCTURE_READY),
        Part(types.CONTROL_PLANE_AVAILABLE),
        Part(types.WORKERS_AVAILABLE),
        *(Part(gate.condition_type, negative=gate.polarity == "Negative") for gate in gates),
    ]
    return summarize(types.AVAILABLE, _AVAILABLE, summarized, present)


def _failure_domains(seen: Scope) -> tuple[FailureDomain, ...]:
    infra = seen.infra.usable
    return contract.failure_domains(infra) if infra is not None else seen.cluster.status.failure_domains
