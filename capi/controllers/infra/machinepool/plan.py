"""An InfraMachinePool: which instances there are, decided from what was read. Pure.

The pool's own objects are InfraMachines, written before their instances exist, so a crash leaves nothing behind that no
object names. Instances are removed by deleting their *Machine*, so that core drains them; a InfraMachine is deleted directly
only if it has no Machine and none is coming.

Upstream: docker/reconcilers/backends/docker/dockermachinepool_backend.go.
Differs: members that are leaving count, Machines' marks and readiness decide, the order is fixed, lost instances are
replaced at once, status never hides later trouble.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from capi.api.core import annotations
from capi.api.core.conditions import READY
from capi.api.core.v1beta2 import MachinePool
from capi.controllers.infra import backends, gates, knobs
from capi.controllers.infra.family import InfraMachine
from capi.controllers.infra.machine.status import is_lost
from capi.controllers.infra.machinepool import status as pool_status
from capi.controllers.infra.machinepool.placement import placed
from capi.controllers.infra.machinepool.scaling import Decision, Member, decide
from capi.controllers.infra.machinepool.scope import Scope, externally_managed, wanted_replicas, was_provisioned
from capi.controllers.infra.machinepool.strategy import strategy_of
from capi.controllers.infra.machinepool.template import desired_machine, drifted, made_from, new_names, template_hash
from capi.kube import conditions
from capi.runtime.plan import Apply, Delete, Event, Plan, Write, target

ORPHAN_GRACE = timedelta(minutes=1)
"""How long core gets to make a Machine for a InfraMachine before the pool removes one that it does not want by itself."""


def plan(seen: Scope, now: datetime) -> Plan:
    """One pass."""
    if seen.pool.deleting:
        return _plan_deletion(seen)
    if seen.unsupported:
        return Plan(status=pool_status.unsupported(seen.unsupported))
    if seen.machine_pool is None:
        return Plan()  # core makes the MachinePool its owner, which wakes this key
    pool = seen.machine_pool
    waiting = gates.infrastructure(seen.cluster) or gates.bootstrap(
        seen.cluster, pool.spec.template.spec.bootstrap.data_secret_name
    )
    current = template_hash(pool, seen.pool)
    members = [_member(seen, pool, infra, current) for infra in seen.infra]
    desired = _desired(seen, pool, members)
    idle = waiting or pool.deleting
    decision = Decision() if idle else decide(members, desired, strategy_of(seen.pool, desired))
    simulated = backends.name_of(seen.pool.spec.backend) == backends.IN_MEMORY
    misread = knobs.misread(seen.pool.metadata.annotations, knobs.OF_POOLS, now) if simulated else ""
    if misread:  # new machines would copy what means nothing
        decision = dataclasses.replace(decision, create=0)
    removals, later = _removals(seen, (*decision.clear, *decision.remove), now)
    return Plan(
        writes=[
            *_own_spec(seen),
            *_observed_replicas(seen, pool, desired),
            *(desired_machine(seen, pool, infra.name, infra) for infra in seen.infra if drifted(seen, pool, infra)),
            *_new_machines(seen, pool, members, decision.create),
            *removals,
        ],
        status=pool_status.misread(seen, misread) if misread else pool_status.of(seen, desired, waiting),
        events=tuple(_events(decision)),
        requeue_after=later,
    )


def _new_machines(seen: Scope, pool: MachinePool, members: Sequence[Member], count: int) -> Iterator[Write]:
    """New InfraMachines, spread over the failure domains; lost and leaving instances are nowhere any more."""
    gone = {m.name for m in members if m.lost or m.deleting}
    staying = [infra for infra in seen.infra if infra.name not in gone]
    for name, domain in placed(staying, pool, new_names(seen, count, pool)):
        yield desired_machine(seen, pool, name, domain=domain)


def _member(seen: Scope, pool: MachinePool, infra: InfraMachine, current: str) -> Member:
    machine = seen.machines.get(infra.name)
    return Member(
        name=infra.name,
        created=infra.metadata.creation_timestamp,
        deleting=infra.deleting or (machine is not None and machine.deleting),
        lost=is_lost(infra),
        marked=machine is not None and annotations.DELETE_MACHINE in machine.metadata.annotations,
        ready=machine is not None
        and conditions.is_true(infra.status.conditions, READY)
        and conditions.is_true(machine.status.conditions, READY),
        outdated=(made_from(infra) or current) != current and not externally_managed(pool),
    )


def _desired(seen: Scope, pool: MachinePool, members: Sequence[Member]) -> int:
    """Wanted instances; of an externally managed pool, once it was filled, as many as there are."""
    if externally_managed(pool) and was_provisioned(seen.pool):
        return sum(not m.deleting and not m.lost for m in members)
    return wanted_replicas(pool)


def _observed_replicas(seen: Scope, pool: MachinePool, observed: int) -> Iterator[Write]:
    """Contract: the provider writes the observed number back into an externally managed MachinePool."""
    if externally_managed(pool) and was_provisioned(seen.pool) and observed != pool.spec.replicas:
        yield Apply(target(pool), {"spec": {"replicas": observed}}, must_exist=True)


def _own_spec(seen: Scope) -> Iterator[Write]:
    """The contract's spec.providerIDList, sorted; an ID stays until its InfraMachine is gone, or core would delete the Node."""
    ids = tuple(sorted(infra.spec.provider_id for infra in seen.infra if infra.spec.provider_id))
    own = seen.pool.spec.provider_id or f"dev:////{seen.cluster_name}-dmp-{seen.pool.name}"
    if (ids, own) != (seen.pool.spec.provider_id_list, seen.pool.spec.provider_id):
        yield Apply(target(seen.pool), {"spec": {"providerID": own, "providerIDList": list(ids)}}, must_exist=True)


def _removals(seen: Scope, names: Sequence[str], now: datetime) -> tuple[list[Write], timedelta | None]:
    """Deletions of Machines, dangling ones included; and when to look again at members that have no Machine yet."""
    writes: list[Write] = [Delete(target(machine)) for machine in seen.dangling if not machine.deleting]
    infra = {m.name: m for m in seen.infra}
    doomed = [m.name for m in seen.infra if m.deleting]  # by somebody else: its Machine must follow
    later: timedelta | None = None
    for name in (*names, *doomed):
        machine = seen.machines.get(name)
        if machine is not None:
            if not machine.deleting:
                writes.append(Delete(target(machine)))
        elif not infra[name].deleting:
            left = (infra[name].metadata.creation_timestamp or now) + ORPHAN_GRACE - now
            if left <= timedelta():
                writes.append(Delete(target(infra[name])))
            else:
                later = min(left, later or left)
    return writes, later


def _plan_deletion(seen: Scope) -> Plan:
    """Machines first, InfraMachines without one directly; nothing is made. Ends when no InfraMachine is left."""
    writes: list[Write] = []
    for infra in seen.infra:
        machine = seen.machines.get(infra.name)
        if machine is None and not infra.deleting:
            writes.append(Delete(target(infra)))
        elif machine is not None and not machine.deleting:
            writes.append(Delete(target(machine)))
    if not seen.infra:
        return Plan(finalized=True)
    return Plan(writes=writes, status=pool_status.deleting(seen))


def _events(decision: Decision) -> Iterator[Event]:
    if decision.create:
        yield Event("SuccessfulCreate", f"Creating {_instances(decision.create)}")
    if decision.clear:
        yield Event("InstanceGone", f"Replacing lost {_instances(len(decision.clear))}", "Warning")
    if decision.remove:
        yield Event("SuccessfulDelete", f"Deleting {_instances(len(decision.remove))}")


def _instances(count: int) -> str:
    return "1 instance" if count == 1 else f"{count} instances"
