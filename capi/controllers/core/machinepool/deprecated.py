"""The pool's status of the old API, which clients of v1beta1 still read: counters of Nodes, four conditions. Pure.

Upstream: internal/controllers/machinepool (deprecated.v1beta1).
Differs: failureReason tells what is wrong now and is gone when nothing is; there are no terminal failures.
"""

from dataclasses import dataclass
from datetime import datetime

from capi import contract
from capi.api.core.conditions import V1Beta1
from capi.api.core.v1beta2 import (
    MachinePoolDeprecatedStatus,
    MachinePoolV1Beta1Status,
    V1Beta1Condition,
)
from capi.controllers.core import deprecated
from capi.controllers.core.machinepool.noderef import NodeCount
from capi.controllers.core.machinepool.scope import Scope

INVALID_CONFIGURATION = "InvalidConfiguration"


@dataclass(frozen=True, slots=True)
class Flags:
    """The two steps of a pool's start, as they are now."""

    bootstrapped: bool
    provisioned: bool


def deprecated_status(
    seen: Scope, flags: Flags, counted: NodeCount | None, replicas: int | None, now: datetime
) -> MachinePoolDeprecatedStatus:
    """The block `status.deprecated`."""
    before = previous(seen)
    if counted is None:
        ready, available = before.ready_replicas, before.available_replicas
        unavailable = before.unavailable_replicas
    else:
        ready, available = counted.ready, counted.available
        unavailable = max(0, (replicas or 0) - available)
    parts = [
        deprecated.mirrored(
            V1Beta1.BOOTSTRAP_READY, seen.bootstrap, flags.bootstrapped, V1Beta1.WAITING_FOR_DATA_SECRET
        ),
        _infrastructure(seen, flags.provisioned),
        _replicas_ready(replicas, ready, seen.pool.spec.replicas),
    ]
    reason, message = failure(seen)
    return MachinePoolDeprecatedStatus(
        v1beta1=MachinePoolV1Beta1Status(
            conditions=deprecated.stamped(before.conditions, [deprecated.summary(parts), *parts], now),
            failure_reason=reason,
            failure_message=message,
            ready_replicas=ready,
            available_replicas=available,
            unavailable_replicas=unavailable,
        )
    )


def previous(seen: Scope) -> MachinePoolV1Beta1Status:
    """What the block said before."""
    block = seen.pool.status.deprecated
    return (block.v1beta1 if block is not None else None) or MachinePoolV1Beta1Status()


def failure(seen: Scope) -> tuple[str, str]:
    """failureReason and failureMessage, empty when nothing is wrong."""
    if seen.pool.deleting:
        return "", ""
    start = seen.pool.status.initialization
    if seen.infra.missing and start is not None and start.infrastructure_provisioned:
        return (
            INVALID_CONFIGURATION,
            f"MachinePool infrastructure resource {seen.infra} has been deleted after being ready",
        )
    for found in (seen.bootstrap, seen.infra):
        if found.obj is not None:
            reason, message = contract.failure(found.obj)
            if reason or message:
                return reason, f"Failure detected from referenced resource {found}: {message or reason}"
    return "", ""


def _infrastructure(seen: Scope, provisioned: bool) -> V1Beta1Condition:
    if seen.infra.missing and not seen.pool.deleting:
        return deprecated.false(
            V1Beta1.INFRASTRUCTURE_READY, V1Beta1.INCORRECT_EXTERNAL_REF, "Error", f"{seen.infra} does not exist"
        )
    return deprecated.mirrored(
        V1Beta1.INFRASTRUCTURE_READY, seen.infra, provisioned, V1Beta1.WAITING_FOR_INFRASTRUCTURE
    )


def _replicas_ready(replicas: int | None, ready: int | None, desired: int | None) -> V1Beta1Condition:
    """Not before replicas were reported: nothing is not the same as none wanted."""
    wanted = replicas if desired is None else desired
    if replicas is not None and replicas == ready == wanted:
        return deprecated.true(V1Beta1.REPLICAS_READY)
    return deprecated.false(V1Beta1.REPLICAS_READY, V1Beta1.WAITING_FOR_REPLICAS_READY, "Info")
