"""MachinePool.status. Pure.

Upstream: internal/controllers/machinepool/machinepool_controller_{status,phases}.go.
Differs: the v1beta2 conditions that upstream only reserves are written; counters of Machines are exact in every pass;
`initialization` never goes back to false: what bootstrap and infrastructure say later is told by their conditions.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from capi import contract
from capi.api.core import annotations
from capi.api.core import conditions as types
from capi.api.core.conditions import MachineReason, Reason
from capi.api.core.v1beta2 import MachinePoolInitialization, MachinePoolStatus, StatusVersion
from capi.controllers.core.machinepool import noderef
from capi.controllers.core.machinepool.deprecated import Flags, deprecated_status, previous
from capi.controllers.core.machinepool.noderef import NodeCount
from capi.controllers.core.machinepool.scope import NO_BOOTSTRAP, MachineFacts, Scope, provider_ids
from capi.controllers.core.objects import Found
from capi.controllers.core.summary import Reasons, aggregate, false, mirror, ready_of, true, unknown
from capi.kube.conditions import Condition

MAX_VERSIONS = 100
NEW = timedelta(seconds=10)
"""A Machine this young is not yet expected to report its conditions."""
_READY = Reasons(Reason.READY, Reason.NOT_READY, Reason.READY_UNKNOWN)
_UP_TO_DATE = Reasons(Reason.UP_TO_DATE, Reason.NOT_UP_TO_DATE, Reason.UP_TO_DATE_UNKNOWN)


@dataclass(frozen=True, slots=True)
class Ending:
    """Where the deletion of a pool is: reason and message of its Deleting condition."""

    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Observed:
    """The status, and when the clock alone will change it."""

    status: MachinePoolStatus
    requeue_after: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Counters:
    """replicas, readyReplicas, availableReplicas, upToDateReplicas, versions."""

    replicas: int | None
    ready: int | None
    available: int | None
    up_to_date: int | None
    versions: tuple[StatusVersion, ...] = ()


def status_of(seen: Scope, ending: Ending | None, now: datetime) -> Observed:
    """The whole status; `ending` is None while the pool is not being deleted."""
    old = seen.pool.status
    ids = provider_ids(seen.pool, seen.infra)
    counted = noderef.count(seen, ids, now)
    facts = seen.own_facts
    counters = counters_of(seen, facts, counted)
    flags, start = flags_of(seen), initialization_of(seen)
    refs = noderef.references(seen, counted, ids)
    ready = counted.ready if counted is not None else previous(seen).ready_replicas
    status = msgspec.structs.replace(
        old,
        conditions=conditions_of(seen, facts, counters, ending, now),
        initialization=start,
        node_refs=refs,
        replicas=counters.replicas,
        ready_replicas=counters.ready,
        available_replicas=counters.available,
        up_to_date_replicas=counters.up_to_date,
        versions=counters.versions,
        phase=phase_of(seen, start, ready or 0, has_nodes=bool(refs)),
        deprecated=deprecated_status(seen, flags, counted, counters.replicas, now),
    )
    return Observed(status, _next_look(facts, counted, now))


def flags_of(seen: Scope) -> Flags:
    """What bootstrap and infrastructure say now; what they said before while they cannot be read."""
    start = seen.pool.status.initialization or MachinePoolInitialization()
    return Flags(
        bootstrapped=_flag(_bootstrapped(seen), start.bootstrap_data_secret_created),
        provisioned=_flag(_provisioned(seen), start.infrastructure_provisioned),
    )


def initialization_of(seen: Scope) -> MachinePoolInitialization:
    """status.initialization: how far the first start has come; a step once taken stays taken."""
    before = seen.pool.status.initialization or MachinePoolInitialization()
    return MachinePoolInitialization(
        infrastructure_provisioned=seen.provisioned,
        bootstrap_data_secret_created=bool(before.bootstrap_data_secret_created or _bootstrapped(seen)),
    )


def _flag(now: bool | None, before: bool | None) -> bool:
    return bool(before if now is None else now)


def _bootstrapped(seen: Scope) -> bool | None:
    """None: keep what was said. "" is data too: none is needed."""
    if seen.bootstrap.ref is None:
        return not seen.lacks_bootstrap
    config = seen.bootstrap.usable
    if config is None:
        return None
    return contract.data_secret_created(config) and bool(contract.data_secret_name(config))


def _provisioned(seen: Scope) -> bool | None:
    infra = seen.infra.usable
    return contract.provisioned(infra) if infra is not None else None


def phase_of(seen: Scope, start: MachinePoolInitialization, ready: int, *, has_nodes: bool) -> str:
    """Later rules win."""
    pool = seen.pool
    if pool.deleting:
        return "Deleting"
    wanted = desired(seen)
    if start.infrastructure_provisioned and wanted is not None:
        if wanted == ready:
            return "Running"
        if replicas_managed_elsewhere(seen):
            return "Scaling"
        return "ScalingUp" if wanted > ready else "ScalingDown"
    if has_nodes:
        return "Provisioned"
    if start.bootstrap_data_secret_created and not start.infrastructure_provisioned:
        return "Provisioning"
    return pool.status.phase or "Pending"


def replicas_managed_elsewhere(seen: Scope) -> bool:
    """An external autoscaler decides the replicas."""
    return seen.pool.metadata.annotations.get(annotations.REPLICAS_MANAGED_BY, "false") != "false"


def counters_of(seen: Scope, facts: Sequence[MachineFacts], counted: NodeCount | None) -> Counters:
    """Of Machines if the infrastructure has objects for them, else what the infrastructure says; as before while nobody says."""
    old, infra = seen.pool.status, seen.infra.obj
    replicas = _replicas(seen)
    if seen.surfaces_machines:
        return Counters(
            replicas,
            ready=sum(fact.ready is not None and fact.ready.status == "True" for fact in facts),
            available=sum(fact.available for fact in facts),
            up_to_date=sum(fact.up_to_date is not None and fact.up_to_date.status == "True" for fact in facts),
            versions=versions_of(fact.version for fact in facts),
        )
    if _has_gone(seen):
        return Counters(0, 0, 0, 0)
    if infra is None:
        return Counters(replicas, old.ready_replicas, old.available_replicas, old.up_to_date_replicas, old.versions)
    versions = old.versions if counted is None else versions_of(counted.versions)
    return Counters(replicas, replicas, replicas, seen.pool.spec.replicas, versions)


def _replicas(seen: Scope) -> int | None:
    if _has_gone(seen):
        return 0
    reported = contract.replicas(seen.infra.obj) if seen.infra.obj is not None else None
    return reported if reported is not None else seen.pool.status.replicas


def _has_gone(seen: Scope) -> bool:
    """The infrastructure of a pool that is going has gone, and the instances with it."""
    return seen.pool.deleting and seen.infra.gone


def versions_of(versions: Iterable[str]) -> tuple[StatusVersion, ...]:
    """Versions with how many run them, sorted."""
    counts = Counter(version for version in versions if version)
    return tuple(StatusVersion(version=v, replicas=n) for v, n in sorted(counts.items())[:MAX_VERSIONS])


def conditions_of(
    seen: Scope, facts: Sequence[MachineFacts], counters: Counters, ending: Ending | None, now: datetime
) -> tuple[Condition, ...]:
    """All v1beta2 conditions. Those about Machines only where the infrastructure has objects for them."""
    found = [
        available_condition(seen, counters),
        bootstrap_condition(seen),
        infrastructure_condition(seen),
        *scaling_conditions(seen, counters),
        true(types.DELETING, ending.reason, ending.message) if ending else false(types.DELETING, Reason.NOT_DELETING),
    ]
    if seen.surfaces_machines:
        found += machine_conditions(facts, now)
    return tuple(found)


def available_condition(seen: Scope, counters: Counters) -> Condition:
    """Available: as many Machines are available as are wanted."""
    if seen.pool.deleting:
        return false(types.AVAILABLE, Reason.NOT_AVAILABLE, "Deletion in progress")
    wanted = desired(seen)
    if wanted is None or counters.available is None:
        return unknown(types.AVAILABLE, Reason.WAITING_FOR_REPLICAS_SET, "Waiting for replicas to be reported")
    if counters.available >= wanted:
        return true(types.AVAILABLE, Reason.AVAILABLE)
    message = f"{counters.available} available replicas, at least {wanted} required"
    return false(types.AVAILABLE, Reason.NOT_AVAILABLE, message)


def desired(seen: Scope) -> int | None:
    """Wanted replicas; where nobody says, as many as there are."""
    spec = seen.pool.spec.replicas
    return spec if spec is not None else seen.pool.status.replicas


def bootstrap_condition(seen: Scope) -> Condition:
    """BootstrapConfigReady."""
    found = seen.bootstrap
    if found.ref is None:
        if seen.lacks_bootstrap:
            return false(types.BOOTSTRAP_CONFIG_READY, Reason.NOT_READY, NO_BOOTSTRAP)
        return true(types.BOOTSTRAP_CONFIG_READY, MachineReason.DATA_SECRET_PROVIDED)
    good = found.obj is not None and contract.data_secret_created(found.obj)
    return _external(types.BOOTSTRAP_CONFIG_READY, found, good, "status.initialization.dataSecretCreated", seen)


def infrastructure_condition(seen: Scope) -> Condition:
    """InfrastructureReady."""
    found = seen.infra
    good = found.obj is not None and contract.provisioned(found.obj)
    return _external(types.INFRASTRUCTURE_READY, found, good, "status.initialization.provisioned", seen)


def _external(type_: str, found: Found, good: bool, path: str, seen: Scope) -> Condition:
    kind = found.ref.kind if found.ref is not None else ""
    if found.error is not None:
        return unknown(type_, Reason.INTERNAL_ERROR, found.error.message)
    if found.obj is None:
        gone = seen.pool.deleting or _was(seen, type_)
        reason = Reason.OBJECT_DELETED if gone else Reason.OBJECT_DOES_NOT_EXIST
        return false(type_, reason, f"{found} {'has been deleted' if gone else 'does not exist'}")
    fallback = true(type_, Reason.READY) if good else false(type_, Reason.NOT_READY, f"{kind} {path} is false")
    return mirror(ready_of(contract.conditions(found.obj)), type_, fallback)


def _was(seen: Scope, type_: str) -> bool:
    start = seen.pool.status.initialization
    if start is None:
        return False
    flag = (
        start.infrastructure_provisioned if type_ == types.INFRASTRUCTURE_READY else start.bootstrap_data_secret_created
    )
    return bool(flag)


def scaling_conditions(seen: Scope, counters: Counters) -> tuple[Condition, Condition]:
    """ScalingUp and ScalingDown: wanted against existing instances."""
    up, down = types.SCALING_UP, types.SCALING_DOWN
    wanted, current = (0 if seen.pool.deleting else desired(seen)), counters.replicas
    if wanted is None or current is None:
        message = "Waiting for replicas to be reported"
        return (
            unknown(up, Reason.WAITING_FOR_REPLICAS_SET, message),
            unknown(down, Reason.WAITING_FOR_REPLICAS_SET, message),
        )
    return (
        true(up, Reason.SCALING_UP, f"Scaling up from {current} to {wanted} replicas")
        if wanted > current
        else false(up, Reason.NOT_SCALING_UP),
        true(down, Reason.SCALING_DOWN, f"Scaling down from {current} to {wanted} replicas")
        if wanted < current
        else false(down, Reason.NOT_SCALING_DOWN),
    )


def machine_conditions(facts: Sequence[MachineFacts], now: datetime) -> list[Condition]:
    """MachinesReady, MachinesUpToDate and Remediating."""
    remediating = [fact.name for fact in facts if fact.remediating]
    message = f"Machines {', '.join(remediating[:3])} are being remediated" if remediating else ""
    found = [
        true(types.REMEDIATING, Reason.REMEDIATING, message)
        if remediating
        else false(types.REMEDIATING, Reason.NOT_REMEDIATING)
    ]
    if not facts:
        return [
            *found,
            true(types.MACHINES_READY, Reason.NO_REPLICAS),
            true(types.MACHINES_UP_TO_DATE, Reason.NO_REPLICAS),
        ]
    ready = [(fact.name, fact.ready or _unreported(types.READY)) for fact in facts]
    fresh = [
        (fact.name, fact.up_to_date or _unreported(types.UP_TO_DATE))
        for fact in facts
        if fact.up_to_date is not None or not _young(fact, now)
    ]
    return [
        *found,
        aggregate(types.MACHINES_READY, _READY, "Machine", ready),
        aggregate(types.MACHINES_UP_TO_DATE, _UP_TO_DATE, "Machine", fresh),
    ]


def _unreported(type_: str) -> Condition:
    return unknown(type_, Reason.NOT_YET_REPORTED, f"Condition {type_} not yet reported")


def _young(fact: MachineFacts, now: datetime) -> bool:
    return fact.created is None or now - fact.created < NEW


def _next_look(facts: Sequence[MachineFacts], counted: NodeCount | None, now: datetime) -> timedelta | None:
    due = [fact.created + NEW for fact in facts if fact.up_to_date is None and fact.created and _young(fact, now)]
    if counted is not None and counted.next_available is not None:
        due.append(counted.next_available)
    return min(due) - now if due else None
