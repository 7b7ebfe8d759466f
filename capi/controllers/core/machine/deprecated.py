"""The Machine's conditions of the old API, which clients of v1beta1 still read. Pure.

Upstream: internal/controllers/machine/machine_controller{,_phases,_noderef}.go (deprecated.v1beta1).
Differs: OwnerRemediated and HealthCheckSucceeded follow the new conditions of these names, which others write; conditions of a
deletion are there from the stage on that they are about; failureReason tells what is wrong now, and goes with its cause.
"""

from collections.abc import Iterator
from datetime import datetime

from capi import contract
from capi.api.builtin import Node
from capi.api.core import conditions as types
from capi.api.core.conditions import MachineReason, V1Beta1
from capi.api.core.v1beta2 import MachineDeletionStatus, MachineDeprecatedStatus, MachineV1Beta1Status, V1Beta1Condition
from capi.controllers.core import deprecated
from capi.controllers.core.machine.scope import Scope, had_bootstrap_data
from capi.controllers.core.machine.stage import Stage
from capi.kube import conditions

INVALID_CONFIGURATION = "InvalidConfiguration"
_IN_READY = (
    V1Beta1.INFRASTRUCTURE_READY,
    V1Beta1.BOOTSTRAP_READY,
    V1Beta1.HEALTH_CHECK_SUCCEEDED,
    V1Beta1.OWNER_REMEDIATED,
    V1Beta1.DRAINING_SUCCEEDED,
)
_PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure")
_OLD_REASONS = {
    MachineReason.NODE_DELETED: "NodeNotFound",
    MachineReason.HAS_REMEDIATE_ANNOTATION: "HasRemediateMachineAnnotation",
}


def deprecated_status(seen: Scope, stage: Stage | None, now: datetime) -> MachineDeprecatedStatus:
    """The block `status.deprecated`."""
    block = seen.machine.status.deprecated
    before = (block.v1beta1 if block is not None else None) or MachineV1Beta1Status()
    parts = [*_references(seen), *_health(seen), *_node(seen, stage, before), *_deletion(seen, stage)]
    ready = deprecated.summary([part for part in parts if part.type in _IN_READY])
    reason, message = failure(seen)
    return MachineDeprecatedStatus(
        v1beta1=MachineV1Beta1Status(
            conditions=deprecated.stamped(before.conditions, [ready, *parts], now),
            failure_reason=reason,
            failure_message=message,
        )
    )


def failure(seen: Scope) -> tuple[str, str]:
    """failureReason and failureMessage: what is wrong now, empty when nothing is."""
    if seen.machine.deleting:
        return "", ""
    if seen.infra.missing and seen.provisioned:
        return INVALID_CONFIGURATION, f"Machine infrastructure resource {seen.infra} has been deleted after being ready"
    for found in (seen.bootstrap, seen.infra):
        if found.obj is not None:
            reason, message = contract.failure(found.obj)
            if reason or message:
                return reason, f"Failure detected from referenced resource {found}: {message or reason}"
    return "", ""


def _references(seen: Scope) -> Iterator[V1Beta1Condition]:
    """BootstrapReady (only of Machines with a config) and InfrastructureReady."""
    deleting = seen.machine.deleting
    if seen.bootstrap.ref is not None:
        created = had_bootstrap_data(seen.machine) or bool(seen.machine.spec.bootstrap.data_secret_name)
        waiting = V1Beta1.DELETED if deleting and seen.bootstrap.missing else V1Beta1.WAITING_FOR_DATA_SECRET
        good = created and not (deleting and seen.bootstrap.missing)
        yield deprecated.mirrored(V1Beta1.BOOTSTRAP_READY, seen.bootstrap, good, waiting)
    waiting = V1Beta1.DELETED if deleting and seen.infra.missing else V1Beta1.WAITING_FOR_INFRASTRUCTURE
    yield deprecated.mirrored(
        V1Beta1.INFRASTRUCTURE_READY, seen.infra, seen.provisioned and not seen.infra.missing, waiting
    )


def _health(seen: Scope) -> Iterator[V1Beta1Condition]:
    """What a health check has said."""
    for new, old in (
        (types.HEALTH_CHECK_SUCCEEDED, V1Beta1.HEALTH_CHECK_SUCCEEDED),
        (types.OWNER_REMEDIATED, V1Beta1.OWNER_REMEDIATED),
    ):
        found = conditions.get(seen.machine.status.conditions, new)
        if found is not None and found.status == "True":
            yield deprecated.true(old)
        elif found is not None:
            message = "" if found.reason == MachineReason.NODE_DELETED else found.message
            yield deprecated.false(old, _OLD_REASONS.get(found.reason, found.reason), "Warning", message)


def _node(seen: Scope, stage: Stage | None, before: MachineV1Beta1Status) -> Iterator[V1Beta1Condition]:
    """NodeHealthy; while the Node cannot be looked at, what was said before."""
    type_ = V1Beta1.NODE_HEALTHY
    if stage is not None and stage.node_failure:
        yield deprecated.false(type_, V1Beta1.DELETION_FAILED, "Warning", stage.node_failure)
    elif seen.infra.missing or (seen.infra.present is not None and seen.infra.present.deleting):
        yield deprecated.false(type_, V1Beta1.DELETING, "Info")
    elif not seen.provider_id:
        yield deprecated.false(type_, V1Beta1.WAITING_FOR_NODE_REF, "Info")
    elif not seen.connected:
        yield from (known for known in before.conditions if known.type == type_)
    elif seen.node is not None:
        yield _healthy(seen.node)
    elif seen.machine.status.node_ref is not None:
        yield deprecated.false(type_, V1Beta1.NODE_NOT_FOUND, "Error")
    else:
        yield deprecated.false(type_, V1Beta1.NODE_PROVISIONING, "Warning")


def _healthy(node: Node) -> V1Beta1Condition:
    """Bad if any condition is, unknown if all are."""
    by_type = {condition.type: condition.status for condition in node.status.conditions}
    wanted = {"Ready": "True", **dict.fromkeys(_PRESSURES, "False")}
    known = {name: by_type[name] for name in wanted if by_type.get(name) in ("True", "False")}
    bad = [name for name, status in known.items() if status != wanted[name]]
    if bad:
        return deprecated.false(
            V1Beta1.NODE_HEALTHY, V1Beta1.NODE_CONDITIONS_FAILED, "Warning", f"Node {', '.join(bad)}"
        )
    if not known:
        return V1Beta1Condition(type=V1Beta1.NODE_HEALTHY, status="Unknown", reason=V1Beta1.NODE_CONDITIONS_FAILED)
    return deprecated.true(V1Beta1.NODE_HEALTHY)


def _deletion(seen: Scope, stage: Stage | None) -> Iterator[V1Beta1Condition]:
    """One for each stage that was begun."""
    if stage is None:
        return
    noted = stage.times or seen.machine.status.deletion or MachineDeletionStatus()
    for began, type_, reason, waiting in (
        (
            noted.wait_for_pre_drain_hook_start_time,
            V1Beta1.PRE_DRAIN_HOOK_SUCCEEDED,
            MachineReason.WAITING_FOR_PRE_DRAIN_HOOK,
            V1Beta1.WAITING_EXTERNAL_HOOK,
        ),
        (noted.node_drain_start_time, V1Beta1.DRAINING_SUCCEEDED, MachineReason.DRAINING_NODE, V1Beta1.DRAINING),
        (
            noted.wait_for_node_volume_detach_start_time,
            V1Beta1.VOLUME_DETACH_SUCCEEDED,
            MachineReason.WAITING_FOR_VOLUME_DETACH,
            V1Beta1.WAITING_FOR_VOLUME_DETACH,
        ),
        (
            noted.wait_for_pre_terminate_hook_start_time,
            V1Beta1.PRE_TERMINATE_HOOK_SUCCEEDED,
            MachineReason.WAITING_FOR_PRE_TERMINATE_HOOK,
            V1Beta1.WAITING_EXTERNAL_HOOK,
        ),
    ):
        if began is not None:
            yield deprecated.false(type_, waiting, "Info") if stage.reason == reason else deprecated.true(type_)
