"""What is written about and for each target: the verdict, who is asked to act on it, requests to external remediators. Pure.

The conditions HealthCheckSucceeded, OwnerRemediated and ExternallyRemediated of a Machine are this controller's; the Machine
controller writes all others. Several checks may select one Machine: it is healthy when none of them finds it unhealthy, the
first by name of those that do says why, and each of them asks for remediation as its own limit allows. A mark of somebody's that says more (RemediationDeferred) is kept as it is.
Upstream: internal/controllers/machinehealthcheck/machinehealthcheck_controller.go (patchUnhealthyTargets, patchHealthyTargets).
Differs: checks that disagree do not write over each other; one target with a request does not keep the others from theirs; healthy targets are marked whether or not they had one;
a mark is taken back when the Machine is well again.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from capi.api.core import annotations, labels
from capi.api.core.conditions import EXTERNALLY_REMEDIATED, HEALTH_CHECK_SUCCEEDED, OWNER_REMEDIATED, MachineReason
from capi.controllers import owners
from capi.controllers.core.machinehealthcheck.scope import Scope, Target
from capi.controllers.core.machinehealthcheck.verdict import Health, Verdict
from capi.controllers.core.summary import false, true
from capi.kube import conditions
from capi.kube.conditions import Condition
from capi.kube.objects import Unstructured, to_wire
from capi.kube.types import Object, ResourceType
from capi.runtime.plan import Apply, Create, Delete, Event, Write
from capi.runtime.plan import Target as Address
from capi.runtime.plan import target as address

OURS = (HEALTH_CHECK_SUCCEEDED, OWNER_REMEDIATED, EXTERNALLY_REMEDIATED)


def target_writes(seen: Scope, target: Target, verdict: Verdict, *, allowed: bool, now: datetime) -> list[Write]:
    """Everything about one target."""
    if verdict.health is Health.HEALTHY and verdict.contested:
        return []
    wanted = _conditions(seen, target, verdict, allowed=allowed)
    writes: list[Write] = []
    if wanted is not None:
        conditions_of = [to_wire(c) for c in stamped(target, wanted, now)]
        writes.append(
            Apply(address(target.machine), {"status": {"conditions": conditions_of}}, "status", must_exist=True)
        )
    if verdict.health is Health.HEALTHY and target.request is not None and not target.request.deleting:
        writes.append(Delete(address(target.request)))
    template, kind = seen.template.obj, seen.request_kind
    if template is not None and kind is not None and allowed and _wants_request(target, verdict):
        writes.append(_request(seen, target, template, kind))
    return writes


def _conditions(seen: Scope, target: Target, verdict: Verdict, *, allowed: bool) -> list[Condition] | None:
    """The conditions that are wanted of the three; None: leave them as they are."""
    if verdict.health is Health.HEALTHY:
        return [true(HEALTH_CHECK_SUCCEEDED, MachineReason.HEALTH_CHECK_SUCCEEDED)]
    if verdict.health is not Health.UNHEALTHY:
        return None
    failed = false(HEALTH_CHECK_SUCCEEDED, verdict.reason, verdict.message)
    present = target.machine.status.conditions
    said = conditions.get(present, HEALTH_CHECK_SUCCEEDED)
    if verdict.contested and said is not None and said.status == "False":
        failed = said
    kept = [c for type_ in OURS[1:] if (c := conditions.get(present, type_)) is not None and c.status == "False"]
    if not allowed or target.machine.deleting:
        return [failed, *kept]
    if seen.template_ref is not None:
        asked = conditions.get(kept, EXTERNALLY_REMEDIATED) if verdict.contested else None
        return [failed, *(c for c in kept if c.type != EXTERNALLY_REMEDIATED), asked or _external(seen)]
    marked = conditions.get(kept, OWNER_REMEDIATED) or false(OWNER_REMEDIATED, MachineReason.WAITING_FOR_REMEDIATION)
    return [failed, marked, *(c for c in kept if c.type != OWNER_REMEDIATED)]


def _external(seen: Scope) -> Condition:
    template = seen.template
    if template.obj is None:
        why = template.error.message if template.error is not None else f"{template} does not exist"
        return false(EXTERNALLY_REMEDIATED, MachineReason.REMEDIATION_TEMPLATE_NOT_FOUND, why)
    return false(EXTERNALLY_REMEDIATED, MachineReason.WAITING_FOR_REMEDIATION)


def stamped(target: Target, wanted: list[Condition], now: datetime) -> list[Condition]:
    """With times, and with a generation only where something changed: a new generation alone is worth no write."""
    machine = target.machine
    before = {c.type: c for c in machine.status.conditions}
    fresh = [
        c if _says_the_same(before.get(c.type), c) else _of_generation(c, machine.metadata.generation) for c in wanted
    ]
    return list(conditions.merge(machine.status.conditions, fresh, now))


def _says_the_same(old: Condition | None, new: Condition) -> bool:
    return old is not None and (old.status, old.reason, old.message) == (new.status, new.reason, new.message)


def _of_generation(condition: Condition, generation: int | None) -> Condition:
    return msgspec.structs.replace(condition, observed_generation=generation)


def _wants_request(target: Target, verdict: Verdict) -> bool:
    """One per unhealthy Machine, none for one on its way out."""
    return verdict.health is Health.UNHEALTHY and target.request is None and not target.machine.deleting


def _request(seen: Scope, target: Target, template: Unstructured, kind: ResourceType) -> Create:
    """A request named like its Machine and owned by it, made from the template."""
    content: Mapping[str, Any] = (template.raw.get("spec") or {}).get("template") or {}
    metadata: Mapping[str, Any] = content.get("metadata") or {}
    made: Object = {
        **{key: value for key, value in content.items() if key not in ("metadata", "apiVersion", "kind", "status")},
        "metadata": {
            "labels": {**(metadata.get("labels") or {}), labels.CLUSTER_NAME: seen.check.spec.cluster_name},
            "annotations": {
                **(metadata.get("annotations") or {}),
                annotations.CLONED_FROM_NAME: template.name,
                annotations.CLONED_FROM_GROUP_KIND: f"{template.resource.kind}.{template.resource.group}",
            },
            "ownerReferences": [to_wire(owners.reference(target.machine))],
        },
    }
    return Create(Address(kind, target.machine.namespace, target.machine.name), made)


def is_marked(target: Target) -> bool:
    """It was told before that the Machine is unhealthy."""
    before = conditions.get(target.machine.status.conditions, HEALTH_CHECK_SUCCEEDED)
    return before is not None and before.status == "False"


def target_events(target: Target, verdict: Verdict, check: str) -> list[Event]:
    """One when a Machine turns unhealthy."""
    if verdict.health is not Health.UNHEALTHY or is_marked(target):
        return []
    name = target.machine.name
    message = f"Machine {name} has been marked as unhealthy by MachineHealthCheck {check}: {verdict.message}"
    return [Event("MachineMarkedUnhealthy", message, "Warning", target.machine)]
