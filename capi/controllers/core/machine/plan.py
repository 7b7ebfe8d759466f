"""What a pass over one Machine does. Pure.

Upstream: internal/controllers/machine/{machine_controller,machine_controller_phases,machine_controller_noderef}.go.
"""

from datetime import datetime, timedelta

from capi import contract
from capi.api.core import annotations, labels
from capi.api.core.conditions import DELETING, READY, MachineReason
from capi.api.core.v1beta2 import Cluster
from capi.controllers import owners
from capi.controllers.core.clusterless import waiting
from capi.controllers.core.machine import deletion
from capi.controllers.core.machine.scope import Scope
from capi.controllers.core.machine.stage import Stage
from capi.controllers.core.machine.status import certificates_expiry, certificates_expiry_text, status_of
from capi.controllers.core.nodes import machine_node_patch
from capi.kube import conditions
from capi.kube.types import Object
from capi.runtime.plan import Apply, Event, Failures, Plan, Told, Write, target

MANAGER = "capi-machine"
_USUAL = (MachineReason.WAITING_FOR_INFRASTRUCTURE_DELETION, MachineReason.WAITING_FOR_BOOTSTRAP_DELETION)


def plan(seen: Scope, now: datetime) -> Plan:
    """Adopt, inspect, tell; or, for a Machine being deleted, the next stage of its end."""
    if seen.machine.deleting:
        return _ending(seen, now)
    if seen.cluster is None:
        return waiting(seen.machine, seen.machine.spec.cluster_name, READY)
    writes: list[Write] = []
    problems = [found.error for found in (seen.infra, seen.bootstrap) if found.error is not None]
    for found in (seen.infra, seen.bootstrap):
        adopting, refused = owners.adopt(found.usable, seen.machine, seen.machine.spec.cluster_name, controller=True)
        writes += adopting
        problems += refused
    if not seen.in_pool:
        writes.append(Apply(target(seen.machine), own_fields(seen, seen.cluster), must_exist=True))
    writes += node_writes(seen, seen.cluster)
    observed = status_of(seen, None, now)
    return Plan(
        writes=writes,
        status=observed.status,
        events=_events(seen),
        requeue_after=observed.requeue_after,
        error=problems[0] if problems else None,
    )


def own_fields(seen: Scope, cluster: Cluster) -> Object:
    """What this controller owns of a Machine outside a pool: membership, and what its providers report."""
    machine = seen.machine
    adopted = machine.metadata.controller is not None or any(
        name in machine.metadata.labels for name in (labels.SET_NAME, labels.CONTROL_PLANE_NAME)
    )
    refs = () if adopted else (owners.reference(cluster),)
    body: Object = {"metadata": owners.membership(machine.spec.cluster_name, *refs)}
    spec = {**_reported(seen), **_data_secret(seen)}
    return {**body, "spec": spec} if spec else body


def _reported(seen: Scope) -> Object:
    """providerID and, of older providers, failureDomain as the infrastructure says; a providerID once set stays."""
    infra = seen.infra.usable if seen.provisioned_now else None
    value = (contract.provider_id(infra) if infra is not None else "") or seen.machine.spec.provider_id
    domain = contract.chosen_failure_domain(infra) if infra is not None else ""
    return {**({"providerID": value} if value else {}), **({"failureDomain": domain} if domain else {})}


def _data_secret(seen: Scope) -> Object:
    """The Secret that the bootstrap config made; once set it is never changed again."""
    bootstrap = seen.machine.spec.bootstrap
    if bootstrap.config_ref is None:
        return {}
    name = bootstrap.data_secret_name
    config = seen.bootstrap.usable
    if not name and config is not None and contract.data_secret_created(config):
        name = contract.data_secret_name(config)
    return {"bootstrap": {"dataSecretName": name}} if name else {}


def node_writes(seen: Scope, cluster: Cluster) -> list[Write]:
    """Everything the Node has to know, in one patch."""
    if seen.node is None:
        return []
    infra = seen.infra.obj
    interruptible = infra is not None and contract.interruptible(infra)
    patch = machine_node_patch(
        seen.node, cluster, seen.machine, seen.owner, interruptible=interruptible, more=seen.sync
    )
    return [patch] if patch is not None else []


def _ending(seen: Scope, now: datetime) -> Plan:
    stage = deletion.stage(seen, now)
    observed = status_of(seen, stage, now)
    due = [after for after in (stage.requeue_after, observed.requeue_after) if after is not None]
    hindsight = stage.hindsight

    def regrets(failures: Failures) -> Told:
        assert hindsight is not None
        actual = hindsight(failures)
        return Told(status_of(seen, actual, now).status, _stage_events(seen, actual))

    return Plan(
        writes=stage.writes,
        status=None if stage.silent else observed.status,
        hindsight=regrets if hindsight else None,
        finalized=stage.finalized,
        events=_stage_events(seen, stage),
        requeue_after=max(min(due), timedelta()) if due else None,
        error=stage.error,
    )


def _stage_events(seen: Scope, stage: Stage) -> tuple[Event, ...]:
    """An event when a stage begins that somebody outside may have to end. (Every Machine waits for its instance; an event
    for each would be one of six writes that a deletion costs, and tell nothing that the condition does not.)"""
    before = conditions.get(seen.machine.status.conditions, DELETING)
    if stage.finalized or stage.silent or stage.reason in _USUAL:
        return tuple(stage.events)
    if before is not None and before.status == "True" and before.reason == stage.reason:
        return tuple(stage.events)
    return (*stage.events, Event(stage.reason, stage.message or "Machine is being deleted"))


def _events(seen: Scope) -> tuple[Event, ...]:
    machine, node = seen.machine, seen.node
    found: list[Event] = []
    if node is not None and machine.status.node_ref is None:
        found.append(Event("SuccessfulSetNodeRef", node.name))
    if node is not None and _newly_interruptible(seen, node.metadata.labels):
        found.append(Event("SuccessfulSetInterruptibleNodeLabel", node.name))
    text = certificates_expiry_text(seen)
    if text and certificates_expiry(seen) is None:
        message = f'annotation {annotations.CERTIFICATES_EXPIRY} "{text}" is no time like 2026-01-31T12:00:00Z'
        found.append(Event("InvalidCertificatesExpiry", message, "Warning"))
    if len(seen.nodes) > 1:
        names = ", ".join(sorted(node.name for node in seen.nodes)[:3])
        found.append(Event("DuplicateProviderID", f"Nodes {names} have providerID {seen.provider_id}", "Warning"))
    return tuple(found)


def _newly_interruptible(seen: Scope, present: dict[str, str]) -> bool:
    infra = seen.infra.obj
    return infra is not None and contract.interruptible(infra) and labels.INTERRUPTIBLE not in present
