"""The end of a Cluster: workers, control plane, infrastructure, finalizer. Pure.

Each stage is woken by the watch on what it waits for.
Upstream: internal/controllers/cluster/cluster_controller.go (reconcileDelete).
Differs: no polling; Machines that say they are a pool's go even if no pool is left.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from capi.api.core.conditions import ClusterReason
from capi.controllers.core.cluster.scope import Scope
from capi.controllers.core.objects import Found
from capi.kube.errors import CapiError
from capi.runtime.plan import Delete, Write, target

_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Where a deletion is, and what to do."""

    reason: str
    message: str = ""
    writes: Sequence[Write] = ()
    finalized: bool = False
    error: CapiError | None = None


def stage(seen: Scope) -> Stage:
    """The stage that the deletion is in."""
    return (
        _workers(seen)
        or _external(seen.control_plane, ClusterReason.WAITING_FOR_CONTROL_PLANE_DELETION)
        or _control_plane_machines(seen)
        or _external(seen.infra, ClusterReason.WAITING_FOR_INFRASTRUCTURE_DELETION)
        or Stage(reason=ClusterReason.DELETION_COMPLETED, message="Deletion completed", finalized=True)
    )


def _workers(seen: Scope) -> Stage | None:
    """Pools and worker Machines, the Machines of pools included, must be gone before the control plane goes.

    A pool deletes its Machines; those whose pools have gone without them are deleted here.
    """
    workers, pooled = seen.workers, seen.pooled
    if not seen.pools and not workers and not pooled:
        return None
    waiting = []
    if seen.pools:
        waiting.append(_names("MachinePools", [pool.name for pool in seen.pools]))
    if pooled:
        waiting.append(f"* {len(pooled)} Machines of MachinePools")
    if workers:
        waiting.append(_names("Machines", [machine.name for machine in workers]))
    return Stage(
        reason=ClusterReason.WAITING_FOR_WORKERS_DELETION,
        message="\n".join(waiting),
        writes=[Delete(target(obj)) for obj in (*(seen.pools or pooled), *workers) if not obj.deleting],
    )


def _control_plane_machines(seen: Scope) -> Stage | None:
    """Of a Cluster without a control plane object."""
    machines = seen.control_plane_machines
    if not machines:
        return None
    alone = seen.control_plane.ref is None
    return Stage(
        reason=ClusterReason.WAITING_FOR_CONTROL_PLANE_DELETION,
        message=_names("Machines", [machine.name for machine in machines]),
        writes=[Delete(target(machine)) for machine in machines if alone and not machine.deleting],
    )


def _external(found: Found, reason: str) -> Stage | None:
    if found.obscure is not None:
        return Stage(reason=ClusterReason.INTERNAL_ERROR, message=found.obscure.message, error=found.obscure)
    if found.present is None:
        return None
    return Stage(
        reason=reason,
        message=f"* {found}: waiting for its deletion",
        writes=() if found.present.deleting else (Delete(target(found.present)),),
    )


def _names(kind: str, names: Sequence[str]) -> str:
    shown = ", ".join(sorted(names)[:_NAMED])
    more = f", ... ({len(names) - _NAMED} more)" if len(names) > _NAMED else ""
    return f"* {kind}: {shown}{more}"
