"""The pool's status of the old API, which clients of v1beta1 still read: counters of Nodes, four conditions. Pure.

Upstream: internal/controllers/machinepool (deprecated.v1beta1).
Differs: failureReason tells what is wrong now and is gone when nothing is; there are no terminal failures.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from capi import contract
from capi.api.core.conditions import V1Beta1
from capi.api.core.v1beta2 import (
    MachinePoolDeprecatedStatus,
    MachinePoolV1Beta1Status,
    V1Beta1Condition,
)
from capi.controllers.core.machinepool.noderef import NodeCount
from capi.controllers.core.machinepool.scope import Scope
from capi.controllers.core.objects import Found
from capi.controllers.core.summary import ready_of

INVALID_CONFIGURATION = "InvalidConfiguration"
_RANK = {"Error": 0, "Warning": 1, "Info": 2}


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
        _mirrored(V1Beta1.BOOTSTRAP_READY, seen.bootstrap, flags.bootstrapped, V1Beta1.WAITING_FOR_DATA_SECRET),
        _infrastructure(seen, flags.provisioned),
        _replicas_ready(replicas, ready, seen.pool.spec.replicas),
    ]
    reason, message = failure(seen)
    return MachinePoolDeprecatedStatus(
        v1beta1=MachinePoolV1Beta1Status(
            conditions=stamped(before.conditions, [summary(parts), *parts], now),
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
        return _false(
            V1Beta1.INFRASTRUCTURE_READY, V1Beta1.INCORRECT_EXTERNAL_REF, "Error", f"{seen.infra} does not exist"
        )
    return _mirrored(V1Beta1.INFRASTRUCTURE_READY, seen.infra, provisioned, V1Beta1.WAITING_FOR_INFRASTRUCTURE)


def _mirrored(type_: str, found: Found, good: bool, waiting: str) -> V1Beta1Condition:
    reported = ready_of(contract.conditions(found.obj)) if found.obj is not None else None
    if reported is not None:
        if reported.status == "True":
            return V1Beta1Condition(type=type_, status="True")
        severity = "Info" if reported.status == "False" else ""
        return V1Beta1Condition(
            type=type_, status=reported.status, severity=severity, reason=reported.reason, message=reported.message
        )
    return V1Beta1Condition(type=type_, status="True") if good else _false(type_, waiting, "Info")


def _replicas_ready(replicas: int | None, ready: int | None, desired: int | None) -> V1Beta1Condition:
    """Not before replicas were reported: nothing is not the same as none wanted."""
    wanted = replicas if desired is None else desired
    if replicas is not None and replicas == ready == wanted:
        return V1Beta1Condition(type=V1Beta1.REPLICAS_READY, status="True")
    return _false(V1Beta1.REPLICAS_READY, V1Beta1.WAITING_FOR_REPLICAS_READY, "Info")


def _false(type_: str, reason: str, severity: str, message: str = "") -> V1Beta1Condition:
    return V1Beta1Condition(type=type_, status="False", severity=severity, reason=reason, message=message)


def summary(parts: Sequence[V1Beta1Condition]) -> V1Beta1Condition:
    """Ready: what the worst part says."""
    bad = sorted((c for c in parts if c.status == "False"), key=lambda c: _RANK.get(c.severity, 2))
    worst = bad[0] if bad else next((c for c in parts if c.status != "True"), None)
    if worst is None:
        return V1Beta1Condition(type=V1Beta1.READY, status="True")
    return msgspec.structs.replace(worst, type=V1Beta1.READY)


def stamped(
    old: Iterable[V1Beta1Condition], new: Iterable[V1Beta1Condition], now: datetime
) -> tuple[V1Beta1Condition, ...]:
    """`new` with the times of `old` where the status did not change."""
    before = {c.type: c for c in old}
    result = []
    for condition in new:
        known = before.get(condition.type)
        same = known is not None and known.status == condition.status and known.last_transition_time is not None
        time = known.last_transition_time if known is not None and same else now.replace(microsecond=0)
        result.append(msgspec.structs.replace(condition, last_transition_time=time))
    return tuple(result)
