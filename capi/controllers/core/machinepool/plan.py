"""What a pass over one MachinePool does. Pure.

Upstream: internal/controllers/machinepool/{machinepool_controller,machinepool_controller_phases}.go.
Differs: Machines need neither a connection to the workload cluster nor a provisioned pool; missing provider objects are
waited for (a watch on the reference wakes the pool), not retried.
"""

from datetime import datetime

from capi import contract
from capi.api.core.conditions import AVAILABLE, DELETING
from capi.api.core.v1beta2 import Cluster
from capi.controllers import owners
from capi.controllers.core.clusterless import waiting
from capi.controllers.core.machinepool import deletion
from capi.controllers.core.machinepool.dangling import dangling
from capi.controllers.core.machinepool.machines import MANAGER, machine_writes
from capi.controllers.core.machinepool.noderef import node_writes
from capi.controllers.core.machinepool.remediation import remediation_writes
from capi.controllers.core.machinepool.scope import NO_BOOTSTRAP, Scope, provider_ids
from capi.controllers.core.machinepool.status import status_of
from capi.kube import conditions
from capi.kube.errors import CapiError, ContractError
from capi.kube.types import Object
from capi.runtime.plan import Apply, Event, Plan, Write, target

__all__ = ["MANAGER", "plan"]


def plan(seen: Scope, now: datetime) -> Plan:
    """Own, reflect, count; or, for a pool being deleted, the next stage of its end."""
    if seen.pool.deleting:
        return _ending(seen, now)
    if seen.cluster is None:
        return waiting(seen.pool, seen.pool.spec.cluster_name, AVAILABLE)
    seen.memory.begin(seen.pool.spec.template, len(seen.infra_machines))
    writes: list[Write] = []
    problems: list[CapiError] = [found.error for found in (seen.bootstrap, seen.infra) if found.error is not None]
    for found in (seen.bootstrap, seen.infra):
        adopting, refused = owners.adopt(found.usable, seen.pool, seen.pool.spec.cluster_name, controller=True)
        writes += adopting
        problems += refused
    problems += _bootstrap_problems(seen)
    writes.append(Apply(target(seen.pool), own_fields(seen, seen.cluster), must_exist=True))
    machines = machine_writes(seen)
    problems += machines.problems
    writes += machines.writes
    writes += node_writes(seen, seen.cluster, provider_ids(seen.pool, seen.infra))
    replacing, told = remediation_writes(seen)
    writes += replacing
    warnings, recheck = dangling(seen, now)
    observed = status_of(seen, None, now)
    due = [after for after in (observed.requeue_after, recheck) if after is not None]
    return Plan(
        writes=writes,
        status=observed.status,
        events=(*machines.events, *told, *warnings),
        requeue_after=min(due) if due else None,
        error=problems[0] if problems else None,
    )


def _bootstrap_problems(seen: Scope) -> list[CapiError]:
    if seen.lacks_bootstrap:
        return [CapiError(f"MachinePool {seen.pool.name}: {NO_BOOTSTRAP}")]
    config = seen.bootstrap.usable
    if config is not None and contract.data_secret_created(config) and not contract.data_secret_name(config):
        return [ContractError(f"{seen.bootstrap} has its data secret created but no status.dataSecretName")]
    return []


def own_fields(seen: Scope, cluster: Cluster) -> Object:
    """What this controller owns of a pool: membership, the instances, and the Secret that the bootstrap config made."""
    body: Object = {"metadata": owners.membership(seen.pool.spec.cluster_name, owners.reference(cluster))}
    spec: Object = {}
    ids = provider_ids(seen.pool, seen.infra)
    if ids or seen.pool.spec.provider_id_list:  # an empty list takes back what somebody else wrote there
        spec["providerIDList"] = list(ids)
    secret = data_secret(seen)
    if secret:
        spec["template"] = {"spec": {"bootstrap": {"dataSecretName": secret}}}
    return {**body, "spec": spec} if spec else body


def data_secret(seen: Scope) -> str | None:
    """The Secret of the config that is referred to now, the former one until that is ready; None if the user's counts.

    A name that came from a config stays when the reference to it is taken away: to let go of it would erase it.
    """
    bootstrap = seen.pool.spec.template.spec.bootstrap
    if bootstrap.config_ref is None:
        owned = owners.owned_fields(seen.pool, MANAGER, "spec", "template", "spec", "bootstrap")
        return bootstrap.data_secret_name if owned else None
    config = seen.bootstrap.usable
    made = contract.data_secret_name(config) if config is not None and contract.data_secret_created(config) else None
    return made or bootstrap.data_secret_name


def _ending(seen: Scope, now: datetime) -> Plan:
    stage = deletion.stage(seen, now)
    observed = status_of(seen, stage.ending, now)
    return Plan(
        writes=stage.writes,
        status=observed.status,
        finalized=stage.finalized,
        events=_stage_events(seen, stage.ending.reason, stage.ending.message),
        requeue_after=stage.requeue_after,
        error=stage.error,
    )


def _stage_events(seen: Scope, reason: str, message: str) -> tuple[Event, ...]:
    before = conditions.get(seen.pool.status.conditions, DELETING)
    if before is not None and before.status == "True" and before.reason == reason:
        return ()
    return (Event(reason, message),)
