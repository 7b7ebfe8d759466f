"""The end of a Machine, stage by stage. Pure.

Order: pre-drain hooks, drain, volume detach, pre-terminate hooks, infrastructure, bootstrap config, Node, finalizer.
Each stage either is passed or says what it waits for; a watch on what it waits for starts the next pass.
Upstream: internal/controllers/machine/machine_controller.go (reconcileDelete).
Differs: a missing Cluster does not hold a Machine back; the Node and the finalizer go in one pass.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import msgspec

from capi.api.core import annotations
from capi.api.core.conditions import DELETING, MachineReason
from capi.api.core.v1beta2 import MachineDeletionStatus
from capi.controllers.core.machine.drain.steps import drain, passed, volume_detach
from capi.controllers.core.machine.scope import Scope
from capi.controllers.core.machine.stage import (
    Stage,
    hooks,
    kept,
    node_known,
    node_of,
    refusal,
    second,
    time_left,
    times,
)
from capi.controllers.core.objects import Found
from capi.kube import conditions
from capi.runtime.plan import ClusterKey, Delete, Event, Failures, target

_Step = Callable[[Scope, datetime], Stage | None]


def stage(seen: Scope, now: datetime) -> Stage:
    """The stage that a deletion is in."""
    steps = (found for step in _STEPS if (found := step(seen, now)) is not None)
    current = next(steps, Stage(reason=MachineReason.DELETION_COMPLETED, message="Deletion completed", finalized=True))
    return replace(current, events=(*current.events, *passed(seen, current.reason, now)))


def _pre_drain_hook(seen: Scope, now: datetime) -> Stage | None:
    found = hooks(seen, annotations.PRE_DRAIN_HOOK_PREFIX)
    if not found or refusal(seen):
        return None
    noted = times(seen)
    started = noted.wait_for_pre_drain_hook_start_time or second(now)
    return Stage(
        reason=MachineReason.WAITING_FOR_PRE_DRAIN_HOOK,
        message=f"Waiting for pre-drain hooks to be removed (hooks: {', '.join(found)})",
        times=msgspec.structs.replace(noted, wait_for_pre_drain_hook_start_time=started),
    )


def _pre_terminate_hook(seen: Scope, now: datetime) -> Stage | None:
    """Holds even where the Node will not be deleted."""
    found = hooks(seen, annotations.PRE_TERMINATE_HOOK_PREFIX)
    if not found:
        return None
    noted = kept(seen, now) or times(seen)
    started = noted.wait_for_pre_terminate_hook_start_time or second(now)
    return Stage(
        reason=MachineReason.WAITING_FOR_PRE_TERMINATE_HOOK,
        message=f"Waiting for pre-terminate hooks to be removed (hooks: {', '.join(found)})",
        times=msgspec.structs.replace(noted, wait_for_pre_terminate_hook_start_time=started),
    )


def _infrastructure(seen: Scope, now: datetime) -> Stage | None:
    return _external(seen.infra, MachineReason.WAITING_FOR_INFRASTRUCTURE_DELETION, kept(seen, now))


def _bootstrap(seen: Scope, now: datetime) -> Stage | None:
    return _external(seen.bootstrap, MachineReason.WAITING_FOR_BOOTSTRAP_DELETION, kept(seen, now))


def _external(found: Found, reason: str, noted: MachineDeletionStatus | None) -> Stage | None:
    if found.obscure is not None:
        return Stage(
            reason=MachineReason.INTERNAL_ERROR, message=found.obscure.message, error=found.obscure, times=noted
        )
    if found.present is None:
        return None
    writes = () if found.present.deleting else (Delete(target(found.present)),)
    return Stage(reason=reason, message=f"Waiting for {found} to be deleted", writes=writes, times=noted)


def _node(seen: Scope, now: datetime) -> Stage | None:
    """Delete the Node in the same pass as the finalizer: a failure keeps the finalizer, and the pass is repeated.

    The timeout ends waiting and failing; where the Node can be deleted, it is tried at least once.
    """
    if refusal(seen):
        return None
    left = _time_left(seen, now)
    late = left is not None and left <= timedelta()
    if not seen.connected:
        if late or not node_known(seen):
            return None
        return Stage(
            reason=MachineReason.DELETING_NODE,
            message="Waiting for the connection to the workload cluster to delete the Node",
            times=kept(seen, now),
            requeue_after=left,
        )
    node, cluster = node_of(seen), seen.cluster
    if node is None or cluster is None or (late and _tried(seen)):
        return None
    delete = Delete(target(node, ClusterKey(cluster.namespace, cluster.name)))
    return Stage(
        reason=MachineReason.DELETING_NODE,
        message=f"Deleting Node {node.name}",
        writes=(delete,),
        finalized=True,
        hindsight=lambda failures: _node_failed(seen, failures, now),
    )


def _node_failed(seen: Scope, failures: Failures, now: datetime) -> Stage:
    """As it is told when the Node could not be deleted; the pass is repeated."""
    name = next(failed.name for failed in failures)
    why = f"Failed to delete Node {name}: {'; '.join(error.message for error in failures.values())}"
    return Stage(
        reason=MachineReason.DELETING_NODE,
        message=why,
        times=kept(seen, now),
        events=(Event("FailedDeleteNode", why, "Warning"),),
        node_failure=why,
    )


def _time_left(seen: Scope, now: datetime) -> timedelta | None:
    deletion = seen.machine.spec.deletion
    seconds = deletion.node_deletion_timeout_seconds if deletion is not None else None
    return time_left(seconds, seen.machine.metadata.deletion_timestamp, now)


def _tried(seen: Scope) -> bool:
    """An earlier pass got as far as the Node; one that succeeded would have been the last."""
    before = conditions.get(seen.machine.status.conditions, DELETING)
    return before is not None and before.reason == MachineReason.DELETING_NODE


_STEPS: tuple[_Step, ...] = (
    _pre_drain_hook,
    drain,
    volume_detach,
    _pre_terminate_hook,
    _infrastructure,
    _bootstrap,
    _node,
)
