"""The end of a pool: its Machines through their own workflow, its infrastructure and bootstrap config, its Nodes. Pure.

Every stage is woken by the watch on what it waits for.
Upstream: internal/controllers/machinepool/machinepool_controller.go (reconcileDelete).
Differs: Machines are deleted first, so that they are drained while the infrastructure stands; the pool's own Nodes are
deleted, not only those that left its list before; a missing Cluster or one that is going itself does not hold it back.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from capi.api.core.conditions import DELETING, MachineReason
from capi.controllers.core.machinepool.scope import Scope
from capi.controllers.core.machinepool.status import Ending
from capi.kube import conditions
from capi.kube.errors import CapiError
from capi.runtime.plan import ClusterKey, Delete, Write, target

WAITING_FOR_MACHINES = "WaitingForMachinesDeletion"
"""Ours, after the Cluster's WaitingForWorkersDeletion."""
_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Where a deletion is, and what to do."""

    ending: Ending
    writes: Sequence[Write] = ()
    finalized: bool = False
    requeue_after: timedelta | None = None
    error: CapiError | None = None


def stage(seen: Scope, now: datetime) -> Stage:
    """The stage that the deletion is in."""
    return _machines(seen) or _externals(seen) or _nodes(seen, now)


def _machines(seen: Scope) -> Stage | None:
    machines = [*seen.own_machines, *seen.lost_machines]
    if not machines:
        return None
    names = sorted(machine.name for machine in machines)
    more = f", ... ({len(names) - _NAMED} more)" if len(names) > _NAMED else ""
    return Stage(
        ending=Ending(WAITING_FOR_MACHINES, f"Waiting for Machines {', '.join(names[:_NAMED])}{more} to be deleted"),
        writes=[Delete(target(machine)) for machine in machines if not machine.deleting],
    )


def _externals(seen: Scope) -> Stage | None:
    for found in (seen.infra, seen.bootstrap):
        if found.obscure is not None:
            return Stage(ending=Ending(MachineReason.INTERNAL_ERROR, found.obscure.message), error=found.obscure)
    present = [found for found in (seen.infra, seen.bootstrap) if found.present is not None]
    if not present:
        return None
    reason = (
        MachineReason.WAITING_FOR_INFRASTRUCTURE_DELETION
        if seen.infra.present is not None
        else MachineReason.WAITING_FOR_BOOTSTRAP_DELETION
    )
    return Stage(
        ending=Ending(reason, f"Waiting for {' and '.join(str(found) for found in present)} to be deleted"),
        writes=[Delete(target(obj)) for found in present if (obj := found.present) is not None and not obj.deleting],
    )


def _nodes(seen: Scope, now: datetime) -> Stage:
    """Delete the Nodes together with the finalizer: a failure keeps the finalizer, and the pass is repeated.

    The timeout ends waiting and failing; where the Nodes can be deleted, it is tried at least once.
    """
    cluster = seen.cluster
    done = Stage(ending=Ending(MachineReason.DELETION_COMPLETED, "Deletion completed"), finalized=True)
    if cluster is None or cluster.deleting or not seen.pool.status.node_refs:
        return done
    late = _timed_out(seen, now)
    if late and (seen.nodes is None or _tried(seen)):
        return done
    if seen.nodes is None:
        return Stage(
            ending=Ending(
                MachineReason.DELETING_NODE, "Waiting for the connection to the workload cluster to delete Nodes"
            ),
            requeue_after=_time_left(seen, now),
        )
    if not seen.retired:
        return done
    where = ClusterKey(cluster.namespace, cluster.name)
    return Stage(
        ending=Ending(MachineReason.DELETING_NODE, f"Deleting {len(seen.retired)} Nodes"),
        writes=[Delete(target(node, where)) for node in seen.retired],
        finalized=True,
    )


def _tried(seen: Scope) -> bool:
    """An earlier pass got as far as the Nodes; one that succeeded would have been the last."""
    before = conditions.get(seen.pool.status.conditions, DELETING)
    return before is not None and before.reason == MachineReason.DELETING_NODE


def _time_left(seen: Scope, now: datetime) -> timedelta | None:
    """None: no limit."""
    deletion, began = seen.pool.spec.template.spec.deletion, seen.pool.metadata.deletion_timestamp
    seconds = deletion.node_deletion_timeout_seconds if deletion is not None else None
    return began + timedelta(seconds=seconds) - now if seconds and began is not None else None


def _timed_out(seen: Scope, now: datetime) -> bool:
    left = _time_left(seen, now)
    return left is not None and left <= timedelta()
