"""What a pass over one MachineHealthCheck does. Pure.

Upstream: internal/controllers/machinehealthcheck/machinehealthcheck_controller.go.
Differs: events tell transitions; timers of pending Machines run on while remediation is stopped by the limit.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from capi.api.core.conditions import REMEDIATION_ALLOWED
from capi.controllers import owners
from capi.controllers.core.clusterless import waiting
from capi.controllers.core.machinehealthcheck.gate import Gate, gate_of
from capi.controllers.core.machinehealthcheck.remediation import is_marked, target_events, target_writes
from capi.controllers.core.machinehealthcheck.scope import Scope
from capi.controllers.core.machinehealthcheck.status import remediation_allowed, status_of, unhealthy_of
from capi.controllers.core.machinehealthcheck.verdict import Health, Verdict, judge
from capi.kube import conditions
from capi.runtime.plan import Apply, Event, Plan, Write, target

MANAGER = "capi-machinehealthcheck"


def plan(seen: Scope, now: datetime) -> Plan:
    """Judge every target, tell the Machines, and have the unhealthy ones remediated unless there are too many.

    Nothing is judged while Nodes cannot be read: a cluster out of sight is not one full of sick Machines.
    """
    check = seen.check
    if check.deleting:
        return Plan()
    if seen.cluster is None:
        return waiting(check, check.spec.cluster_name, REMEDIATION_ALLOWED)
    membership = owners.membership(check.spec.cluster_name, owners.reference(seen.cluster))
    writes: list[Write] = [Apply(target(check), {"metadata": membership}, must_exist=True)]
    if not seen.connected and any(each.node_name for each in seen.targets):
        return Plan(writes=writes)  # the status stays as it is: the connection wakes this
    verdicts = [judge(seen, each, now) for each in seen.targets]
    gate = gate_of(check, len(verdicts), unhealthy_of(verdicts))
    events = _restriction(seen, verdicts, gate)
    for each, verdict in zip(seen.targets, verdicts, strict=True):
        writes += target_writes(seen, each, verdict, allowed=gate.allowed, now=now)
        events += target_events(each, verdict, check.name)
    return Plan(
        writes=writes,
        status=status_of(seen, verdicts, gate, now),
        events=events,
        requeue_after=_next_look(verdicts, now),
        error=seen.template.error,  # a kind that is not known yet has no watch that would wake this
    )


def _restriction(seen: Scope, verdicts: Sequence[Verdict], gate: Gate) -> list[Event]:
    """When the limit begins to hold remediation back, or a further Machine turns unhealthy behind it."""
    sick = [each for each, verdict in zip(seen.targets, verdicts, strict=True) if verdict.health is Health.UNHEALTHY]
    if gate.allowed or not sick:
        return []
    before = conditions.get(seen.check.status.conditions, REMEDIATION_ALLOWED)
    began = before is None or before.status == "True"
    if not began and all(is_marked(each) for each in sick):
        return []
    now = remediation_allowed(gate, len(verdicts), unhealthy_of(verdicts))
    return [Event("RemediationRestricted", now.message, "Warning")]


def _next_look(verdicts: Sequence[Verdict], now: datetime) -> timedelta | None:
    due = [verdict.due for verdict in verdicts if verdict.due is not None]
    return max(min(due) - now, timedelta()) if due else None
