"""Whether one Machine is well. Pure.

Upstream: internal/controllers/machinehealthcheck/machinehealthcheck_targets.go.
Differs: a Machine that is not evaluated yet is not called healthy; the clock of nodeStartupTimeoutSeconds starts when the
Machine's infrastructure is ready, so an instance that takes long to make is no reason to replace it (to replace those,
list InfrastructureReady among unhealthyMachineConditions).
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from enum import Enum
from typing import NamedTuple

from capi.api.core import annotations, labels
from capi.api.core.conditions import CONTROL_PLANE_INITIALIZED, INFRASTRUCTURE_READY, MachineReason
from capi.api.core.v1beta2 import Cluster, Machine, MachineHealthCheck, MachineHealthCheckChecks
from capi.controllers.core.machinehealthcheck.scope import Scope, Target
from capi.kube import conditions, duration
from capi.kube.conditions import Condition

STARTUP_TIMEOUT = timedelta(seconds=600)
"""Of checks that say nothing; the default on admission is the same."""
_SLACK = timedelta(seconds=1)
"""Timestamps have whole seconds: looked at this much later, a timeout has certainly passed."""


class Health(Enum):
    """What is known of a Machine."""

    HEALTHY = "healthy"
    UNHEALTHY = "unhealthy"
    PENDING = "pending"
    """It may become either: a clock runs, it has no Node yet, or it is being deleted."""
    UNKNOWN = "unknown"
    """Not evaluated, because its Cluster is not ready for that."""


class Verdict(NamedTuple):
    """What a look at a target came to."""

    health: Health
    reason: str = ""
    """Of an unhealthy Machine: the reason of its HealthCheckSucceeded condition."""
    message: str = ""
    due: datetime | None = None
    """When time alone may change the verdict."""
    contested: bool = False
    """Another check finds the Machine unhealthy, and it is for that one to say so."""


class _Complaint(NamedTuple):
    """Something wrong with a Machine, now (`due` None) or from `due` on if it stays."""

    reason: str
    message: str
    due: datetime | None = None


def judge(seen: Scope, target: Target, now: datetime) -> Verdict:
    """The verdict on one target."""
    own = _judge(seen, target, now)
    if own.health is Health.HEALTHY:
        rivals: Iterable[MachineHealthCheck] = target.others
    elif own.health is Health.UNHEALTHY:
        rivals = (other for other in target.others if other.name < seen.check.name)
    else:
        return own
    return own._replace(contested=any(_finds_unhealthy(other, seen, target, now) for other in rivals))


def _finds_unhealthy(other: MachineHealthCheck, seen: Scope, target: Target, now: datetime) -> bool:
    return _judge(replace(seen, check=other), target, now).health is Health.UNHEALTHY


def _judge(seen: Scope, target: Target, now: datetime) -> Verdict:
    if annotations.REMEDIATE_MACHINE in target.machine.metadata.annotations:
        message = f"Health check failed: marked for remediation via {annotations.REMEDIATE_MACHINE} annotation"
        return Verdict(Health.UNHEALTHY, MachineReason.HAS_REMEDIATE_ANNOTATION, message)
    cluster = seen.cluster
    if cluster is None or not _evaluated(cluster, target.machine):
        return Verdict(Health.UNKNOWN)
    complaints = list(_complaints(seen, cluster, target, now))
    found = [complaint for complaint in complaints if complaint.due is None]
    if found:
        machine = next((c.reason for c in found if c.reason == MachineReason.UNHEALTHY_MACHINE), "")
        return Verdict(Health.UNHEALTHY, machine or found[0].reason, _message(found))
    due = min((complaint.due for complaint in complaints if complaint.due is not None), default=None)
    well = due is None and target.node is not None and not target.machine.deleting
    return Verdict(Health.HEALTHY if well else Health.PENDING, due=due)


def _message(found: list[_Complaint]) -> str:
    if len(found) == 1:
        return f"Health check failed: {found[0].message}"
    return "\n".join(("Health check failed:", *(f"  * {complaint.message}" for complaint in found)))


def _evaluated(cluster: Cluster, machine: Machine) -> bool:
    """Workers need a control plane to join, every Machine needs the cluster's infrastructure."""
    if not conditions.is_true(cluster.status.conditions, INFRASTRUCTURE_READY):
        return False
    return labels.CONTROL_PLANE in machine.metadata.labels or conditions.is_true(
        cluster.status.conditions, CONTROL_PLANE_INITIALIZED
    )


def _complaints(seen: Scope, cluster: Cluster, target: Target, now: datetime) -> Iterator[_Complaint]:
    checks = seen.check.spec.checks or MachineHealthCheckChecks()
    for wanted in checks.unhealthy_machine_conditions:
        found = conditions.get(target.machine.status.conditions, wanted.type)
        if found is not None and found.status == wanted.status:
            yield _held(MachineReason.UNHEALTHY_MACHINE, "Machine", found, wanted.timeout_seconds, now)
    if not target.node_name:
        yield from _startup(checks, cluster, target, now)
    elif not seen.connected:
        return
    elif target.node is None:
        yield _Complaint(MachineReason.NODE_DELETED, f"Node {target.node_name} has been deleted")
    else:
        by_type = {condition.type: condition for condition in target.node.status.conditions}
        for watched in checks.unhealthy_node_conditions:
            reported = by_type.get(watched.type)
            if reported is not None and reported.status == watched.status:
                as_condition = Condition(
                    type=watched.type,
                    status=watched.status,
                    reason=reported.reason or watched.type,
                    last_transition_time=reported.last_transition_time,
                )
                yield _held(MachineReason.UNHEALTHY_NODE, "Node", as_condition, watched.timeout_seconds, now)


def _held(reason: str, kind: str, found: Condition, seconds: int, now: datetime) -> _Complaint:
    """A condition that has the status of an unhealthy one, long enough or not yet."""
    timeout = timedelta(seconds=seconds)
    since = found.last_transition_time
    message = (
        f"condition {found.type} on {kind} is reporting status {found.status} for more than {duration.format(timeout)}"
    )
    if since is None or since + timeout < now:
        return _Complaint(reason, message)
    return _Complaint(reason, message, since + timeout + _SLACK)


def _startup(checks: MachineHealthCheckChecks, cluster: Cluster, target: Target, now: datetime) -> Iterator[_Complaint]:
    """A Machine without a Node has some time to get one, counted from when it could have begun to."""
    seconds = checks.node_startup_timeout_seconds
    timeout = STARTUP_TIMEOUT if seconds is None else timedelta(seconds=seconds)
    began = _began(cluster, target)
    if not timeout or began is None:
        return
    message = f"Node failed to report startup in {duration.format(timeout)}"
    late = began + timeout < now
    yield _Complaint(MachineReason.NODE_STARTUP_TIMEOUT, message, None if late else began + timeout + _SLACK)


def _began(cluster: Cluster, target: Target) -> datetime | None:
    """When the instance could begin to join; None while it cannot."""
    if target.provisioned_since is None:
        return None
    moments = [target.machine.metadata.creation_timestamp, target.provisioned_since]
    for type_ in (INFRASTRUCTURE_READY, CONTROL_PLANE_INITIALIZED):
        found = conditions.get(cluster.status.conditions, type_)
        moments.append(found.last_transition_time if found is not None and found.status == "True" else None)
    return max(moment for moment in moments if moment is not None)
