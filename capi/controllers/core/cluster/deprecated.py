"""The Cluster's status of the old API, which clients of v1beta1 still read: four conditions and the present failure. Pure.

Upstream: internal/controllers/cluster (deprecated.v1beta1).
Differs: failureReason tells what is wrong now and is gone when nothing is; there are no terminal failures.
"""

from datetime import datetime

from capi import contract
from capi.api.core.conditions import V1Beta1
from capi.api.core.v1beta2 import (
    ClusterDeprecatedStatus,
    ClusterInitialization,
    ClusterV1Beta1Status,
    V1Beta1Condition,
)
from capi.controllers.core import deprecated
from capi.controllers.core.cluster.scope import Scope


def deprecated_status(seen: Scope, start: ClusterInitialization, now: datetime) -> ClusterDeprecatedStatus:
    """The block `status.deprecated`. `start` are the steps reached, this pass included."""
    block = seen.cluster.status.deprecated
    before = (block.v1beta1 if block is not None else None) or ClusterV1Beta1Status()
    parts = [_infrastructure(seen, start), *_control_plane(seen, start)]
    reason, message = failure(seen)
    conditions = [deprecated.summary(parts), *parts, _initialized(seen, start)]
    return ClusterDeprecatedStatus(
        v1beta1=ClusterV1Beta1Status(
            conditions=deprecated.stamped(before.conditions, conditions, now),
            failure_reason=reason,
            failure_message=message,
        )
    )


def failure(seen: Scope) -> tuple[str, str]:
    """failureReason and failureMessage, empty when nothing is wrong."""
    for found in (seen.infra, seen.control_plane):
        if found.obj is not None:
            reason, message = contract.failure(found.obj)
            if reason or message:
                return reason, f"Failure detected from referenced resource {found}: {message or reason}"
    return "", ""


def _infrastructure(seen: Scope, start: ClusterInitialization) -> V1Beta1Condition:
    type_, good = V1Beta1.INFRASTRUCTURE_READY, bool(start.infrastructure_provisioned)
    if seen.infra.missing and good and not seen.cluster.deleting:
        return deprecated.false(type_, V1Beta1.DELETED, "Error", f"{seen.infra} has been deleted")
    return deprecated.mirrored(type_, seen.infra, good, V1Beta1.WAITING_FOR_INFRASTRUCTURE)


def _control_plane(seen: Scope, start: ClusterInitialization) -> list[V1Beta1Condition]:
    """Nothing of a Cluster without a control plane object."""
    if seen.control_plane.ref is None:
        return []
    good = bool(start.control_plane_initialized)
    return [
        deprecated.mirrored(V1Beta1.CONTROL_PLANE_READY, seen.control_plane, good, V1Beta1.WAITING_FOR_CONTROL_PLANE)
    ]


def _initialized(seen: Scope, start: ClusterInitialization) -> V1Beta1Condition:
    type_ = V1Beta1.CONTROL_PLANE_INITIALIZED
    if start.control_plane_initialized:
        return deprecated.true(type_)
    if seen.control_plane.ref is not None:
        message = "Waiting for control plane provider to indicate the control plane has been initialized"
        return deprecated.false(type_, V1Beta1.WAITING_FOR_CONTROL_PLANE_INITIALIZED, "Info", message)
    message = "Waiting for the first control plane machine to have its status.nodeRef set"
    return deprecated.false(type_, V1Beta1.MISSING_NODE_REF, "Info", message)
