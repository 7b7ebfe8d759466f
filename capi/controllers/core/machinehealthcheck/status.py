"""MachineHealthCheck.status. Pure.

Upstream: internal/controllers/machinehealthcheck/machinehealthcheck_controller.go.
"""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from capi.api.core.conditions import REMEDIATION_ALLOWED, HealthCheckReason, V1Beta1
from capi.api.core.v1beta2 import (
    MachineHealthCheckDeprecatedStatus,
    MachineHealthCheckStatus,
    MachineHealthCheckV1Beta1Status,
    V1Beta1Condition,
)
from capi.controllers.core.deprecated import stamped
from capi.controllers.core.machinehealthcheck.gate import Gate
from capi.controllers.core.machinehealthcheck.scope import Scope
from capi.controllers.core.machinehealthcheck.verdict import Health, Verdict
from capi.controllers.core.summary import false, true, unknown
from capi.kube.conditions import Condition

MAX_TARGETS = 10_000


def status_of(seen: Scope, verdicts: Sequence[Verdict], gate: Gate, now: datetime) -> MachineHealthCheckStatus:
    """The whole status."""
    healthy = sum(verdict.health is Health.HEALTHY for verdict in verdicts)
    names = sorted(target.machine.name for target in seen.targets)[:MAX_TARGETS]
    allowed = remediation_allowed(gate, len(verdicts), unhealthy_of(verdicts))
    return msgspec.structs.replace(
        seen.check.status,
        conditions=(allowed,),
        expected_machines=len(verdicts),
        current_healthy=healthy,
        remediations_allowed=gate.left if gate.allowed else 0,
        targets=tuple(names),
        deprecated=_deprecated(seen, allowed, now),
    )


def unhealthy_of(verdicts: Sequence[Verdict]) -> int:
    """Machines that count as unhealthy for the limit: also those whose clock runs, and those on their way out."""
    return sum(verdict.health in (Health.UNHEALTHY, Health.PENDING) for verdict in verdicts)


def remediation_allowed(gate: Gate, total: int, unhealthy: int) -> Condition:
    """RemediationAllowed, with the numbers if it is not."""
    if gate.problem:
        return unknown(REMEDIATION_ALLOWED, HealthCheckReason.INTERNAL_ERROR, gate.problem)
    if gate.allowed:
        return true(REMEDIATION_ALLOWED, HealthCheckReason.REMEDIATION_ALLOWED)
    message = (
        f"Remediation is not allowed, {unhealthy} of {total} Machines are not started or unhealthy"
        f" (total: {total}, unhealthy: {unhealthy}, {gate.limit})"
    )
    return false(REMEDIATION_ALLOWED, HealthCheckReason.TOO_MANY_UNHEALTHY, message)


def _deprecated(seen: Scope, allowed: Condition, now: datetime) -> MachineHealthCheckDeprecatedStatus:
    parts = [
        V1Beta1Condition(type=REMEDIATION_ALLOWED, status="True")
        if allowed.status == "True"
        else V1Beta1Condition(
            type=REMEDIATION_ALLOWED,
            status="False",
            severity="Warning",
            reason=HealthCheckReason.TOO_MANY_UNHEALTHY,
            message=allowed.message,
        )
    ]
    if seen.template_ref is not None and seen.template.obj is None:
        why = seen.template.error.message if seen.template.error is not None else f"{seen.template} does not exist"
        parts.append(
            V1Beta1Condition(
                type=V1Beta1.EXTERNAL_REMEDIATION_TEMPLATE_AVAILABLE,
                status="False",
                severity="Error",
                reason=V1Beta1.EXTERNAL_REMEDIATION_TEMPLATE_NOT_FOUND,
                message=why,
            )
        )
    block = seen.check.status.deprecated
    before = block.v1beta1.conditions if block is not None and block.v1beta1 is not None else ()
    return MachineHealthCheckDeprecatedStatus(
        v1beta1=MachineHealthCheckV1Beta1Status(conditions=stamped(before, parts, now))
    )
