"""The end of a Machine, stage by stage. Pure.

Order: pre-drain hooks, drain, volume detach, pre-terminate hooks, infrastructure, bootstrap config, Node, finalizer.
Each stage either is passed or says what it waits for; a watch on what it waits for starts the next pass.
Upstream: internal/controllers/machine/machine_controller.go (reconcileDelete).
Differs: a missing Cluster does not hold a Machine back; the Node and the finalizer go in one pass.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from capi import contract
from capi.api.builtin import Node
from capi.api.core import annotations
from capi.api.core.conditions import DELETING, MachineReason
from capi.api.core.v1beta2 import MachineDeletionStatus
from capi.controllers.core.machine.scope import Scope
from capi.controllers.core.objects import Found
from capi.kube import conditions
from capi.kube.errors import CapiError
from capi.runtime.plan import ClusterKey, Delete, Write, target


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Where a deletion is: the reason of the Deleting condition, what to write, and since when it waits."""

    reason: str
    message: str = ""
    writes: Sequence[Write] = ()
    times: MachineDeletionStatus | None = None
    finalized: bool = False
    requeue_after: timedelta | None = None
    error: CapiError | None = None


_Step = Callable[[Scope, datetime], Stage | None]


def stage(seen: Scope, now: datetime) -> Stage:
    """The stage that a deletion is in."""
    for step in _STEPS:
        found = step(seen, now)
        if found is not None:
            return found
    return Stage(reason=MachineReason.DELETION_COMPLETED, message="Deletion completed", finalized=True)


def _pre_drain_hook(seen: Scope, now: datetime) -> Stage | None:
    hooks = _hooks(seen, annotations.PRE_DRAIN_HOOK_PREFIX)
    if not hooks or not _concerns_node(seen):
        return None
    times = _times(seen)
    started = times.wait_for_pre_drain_hook_start_time or _second(now)
    return Stage(
        reason=MachineReason.WAITING_FOR_PRE_DRAIN_HOOK,
        message=f"Waiting for pre-drain hooks to be removed (hooks: {', '.join(hooks)})",
        times=msgspec.structs.replace(times, wait_for_pre_drain_hook_start_time=started),
    )


def _drain(seen: Scope, now: datetime) -> Stage | None:
    """SEAM: Pods are not evicted yet; the stage is passed. It belongs between the hooks, where `_STEPS` has it."""
    return None


def _volume_detach(seen: Scope, now: datetime) -> Stage | None:
    """SEAM: volumes are not waited for yet; the stage is passed."""
    return None


def _pre_terminate_hook(seen: Scope, now: datetime) -> Stage | None:
    """Holds even where the Node will not be deleted."""
    hooks = _hooks(seen, annotations.PRE_TERMINATE_HOOK_PREFIX)
    if not hooks:
        return None
    times = _times(seen)
    started = times.wait_for_pre_terminate_hook_start_time or _second(now)
    return Stage(
        reason=MachineReason.WAITING_FOR_PRE_TERMINATE_HOOK,
        message=f"Waiting for pre-terminate hooks to be removed (hooks: {', '.join(hooks)})",
        times=msgspec.structs.replace(times, wait_for_pre_terminate_hook_start_time=started),
    )


def _infrastructure(seen: Scope, now: datetime) -> Stage | None:
    return _external(seen.infra, MachineReason.WAITING_FOR_INFRASTRUCTURE_DELETION, seen)


def _bootstrap(seen: Scope, now: datetime) -> Stage | None:
    return _external(seen.bootstrap, MachineReason.WAITING_FOR_BOOTSTRAP_DELETION, seen)


def _external(found: Found, reason: str, seen: Scope) -> Stage | None:
    if found.obscure is not None:
        return Stage(
            reason=MachineReason.INTERNAL_ERROR, message=found.obscure.message, error=found.obscure, times=_kept(seen)
        )
    if found.present is None:
        return None
    writes = () if found.present.deleting else (Delete(target(found.present)),)
    return Stage(reason=reason, message=f"Waiting for {found} to be deleted", writes=writes, times=_kept(seen))


def _node(seen: Scope, now: datetime) -> Stage | None:
    """Delete the Node in the same pass as the finalizer: a failure keeps the finalizer, and the pass is repeated.

    The timeout ends waiting and failing; where the Node can be deleted, it is tried at least once.
    """
    if refusal(seen):
        return None
    late = _timed_out(seen, now)
    if not seen.connected:
        if late or not _node_known(seen):
            return None
        return Stage(
            reason=MachineReason.DELETING_NODE,
            message="Waiting for the connection to the workload cluster to delete the Node",
            times=_kept(seen),
            requeue_after=_time_left(seen, now),
        )
    node, cluster = node_of(seen), seen.cluster
    if node is None or cluster is None or (late and _tried(seen)):
        return None
    delete = Delete(target(node, ClusterKey(cluster.namespace, cluster.name)))
    return Stage(
        reason=MachineReason.DELETING_NODE, message=f"Deleting Node {node.name}", writes=(delete,), finalized=True
    )


def _tried(seen: Scope) -> bool:
    """An earlier pass got as far as the Node; one that succeeded would have been the last."""
    before = conditions.get(seen.machine.status.conditions, DELETING)
    return before is not None and before.reason == MachineReason.DELETING_NODE


_STEPS: tuple[_Step, ...] = (
    _pre_drain_hook,
    _drain,
    _volume_detach,
    _pre_terminate_hook,
    _infrastructure,
    _bootstrap,
    _node,
)


def refusal(seen: Scope) -> str:
    """Why the Node is left alone; empty when it may be drained and deleted."""
    if seen.cluster is None:
        return "the Cluster does not exist"
    if seen.cluster.deleting:
        return "the Cluster is being deleted"
    if not _node_known(seen):
        return "there is no Node"
    plane = seen.control_plane
    if plane.error is not None:
        return ""  # nobody says that the cluster has ended
    if plane.obj is not None:
        if plane.obj.deleting:
            return "the control plane is being deleted"
        if contract.external_managed_control_plane(plane.obj):
            return ""
    return "" if seen.control_plane_machines else "there is no control plane Machine"


def _concerns_node(seen: Scope) -> bool:
    """Hooks before the drain, the drain and the wait for volumes only concern Machines whose Node may be deleted."""
    return not refusal(seen)


def node_of(seen: Scope) -> Node | None:
    """The Node to delete: the one with the Machine's provider ID; of several the one that the Machine has known."""
    if len(seen.nodes) > 1:
        known = seen.machine.status.node_ref
        return next((node for node in seen.nodes if known is not None and node.name == known.name), None)
    return seen.node


def _node_known(seen: Scope) -> bool:
    return seen.machine.status.node_ref is not None or bool(seen.nodes)


def _hooks(seen: Scope, prefix: str) -> list[str]:
    return sorted(name for name in seen.machine.metadata.annotations if name.startswith(prefix))


def _times(seen: Scope) -> MachineDeletionStatus:
    return seen.machine.status.deletion or MachineDeletionStatus()


def _kept(seen: Scope) -> MachineDeletionStatus | None:
    return seen.machine.status.deletion


def _timeout(seen: Scope) -> timedelta | None:
    """None: try for ever."""
    deletion = seen.machine.spec.deletion
    seconds = deletion.node_deletion_timeout_seconds if deletion is not None else None
    return timedelta(seconds=seconds) if seconds else None


def _time_left(seen: Scope, now: datetime) -> timedelta | None:
    timeout, began = _timeout(seen), seen.machine.metadata.deletion_timestamp
    return began + timeout - now if timeout is not None and began is not None else None


def _timed_out(seen: Scope, now: datetime) -> bool:
    left = _time_left(seen, now)
    return left is not None and left <= timedelta()


def _second(now: datetime) -> datetime:
    return now.replace(microsecond=0)
