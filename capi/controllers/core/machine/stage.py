"""A stage of a Machine's deletion as a value, and what several stages ask of the Scope. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from capi import contract
from capi.api.builtin import Node
from capi.api.core import annotations
from capi.api.core.v1beta2 import MachineDeletionStatus
from capi.controllers.core.machine.scope import Scope
from capi.kube.errors import CapiError
from capi.runtime.plan import Event, Failures, Write


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
    events: Sequence[Event] = ()
    """Besides the one that the stage has begun."""
    delays: Sequence[str] = ()
    """What a long stay in this stage is likely due to."""
    silent: bool = False
    """Nothing is told yet: the next pass, at once, knows more."""
    node_failure: str = ""
    """Why the Node could not be deleted."""
    hindsight: "Callable[[Failures], Stage] | None" = None
    """The stage as it is told when writes failed."""


def refusal(seen: Scope) -> str:
    """Why the Node is left alone; empty when it may be drained and deleted."""
    if seen.cluster is None:
        return "the Cluster does not exist"
    if seen.cluster.deleting:
        return "the Cluster is being deleted"
    if not node_known(seen):
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


def node_of(seen: Scope) -> Node | None:
    """The Node to drain and delete: the one with the Machine's provider ID; of several the one that the Machine has known."""
    if len(seen.nodes) > 1:
        known = seen.machine.status.node_ref
        return next((node for node in seen.nodes if known is not None and node.name == known.name), None)
    return seen.node


def node_known(seen: Scope) -> bool:
    return seen.machine.status.node_ref is not None or bool(seen.nodes)


def hooks(seen: Scope, prefix: str) -> list[str]:
    """Annotations that hold the deletion back."""
    return sorted(name for name in seen.machine.metadata.annotations if name.startswith(prefix))


def kept(seen: Scope, now: datetime) -> MachineDeletionStatus | None:
    """The times noted so far; those of a drain and of a wait for volumes that were over at once are noted with the next stage."""
    noted, excluded = times(seen), annotations.EXCLUDE_NODE_DRAINING in seen.machine.metadata.annotations
    if seen.drain is not None and noted.node_drain_start_time is None and not excluded:
        noted = msgspec.structs.replace(noted, node_drain_start_time=second(now))
    if seen.volumes is not None and noted.wait_for_node_volume_detach_start_time is None:
        noted = msgspec.structs.replace(noted, wait_for_node_volume_detach_start_time=second(now))
    return noted if noted != MachineDeletionStatus() else seen.machine.status.deletion


def times(seen: Scope) -> MachineDeletionStatus:
    return seen.machine.status.deletion or MachineDeletionStatus()


def second(now: datetime) -> datetime:
    return now.replace(microsecond=0)


def time_left(seconds: int | None, began: datetime | None, now: datetime) -> timedelta | None:
    """Of a timeout; None when there is none (unset and 0 mean for ever), or when it has not begun."""
    return began + timedelta(seconds=seconds) - now if seconds and began is not None else None
