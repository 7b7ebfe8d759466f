"""MachineHealthCheck. Pure.

Upstream: api/core/v1beta1/conversion.go.
"""

from collections.abc import Iterable

from capi.admission.convert.values import (
    ApiVersions,
    conditions_down,
    deprecated,
    duration_down,
    duration_up,
    kept,
    moved,
    without,
)
from capi.kube.types import Object

_COUNTERS = ("expectedMachines", "currentHealthy", "remediationsAllowed")


def down(obj: Object, namespace: str, versions: ApiVersions) -> Object:
    """spec and status in v1beta1."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    checks, remediation = spec.get("checks") or {}, spec.get("remediation") or {}
    trigger, template = remediation.get("triggerIf") or {}, remediation.get("templateRef")
    return {
        "spec": {
            **without(spec, "checks", "remediation"),
            **kept(
                unhealthyConditions=_timed(checks.get("unhealthyNodeConditions") or ()),
                unhealthyMachineConditions=_timed(checks.get("unhealthyMachineConditions") or ()),
                nodeStartupTimeout=duration_down(checks.get("nodeStartupTimeoutSeconds")),
                maxUnhealthy=trigger.get("unhealthyLessThanOrEqualTo"),
                unhealthyRange=trigger.get("unhealthyInRange"),
                remediationTemplate={**template, **kept(namespace=namespace)} if template else None,
            ),
        },
        "status": {
            **moved(status, {name: name for name in ("targets", "observedGeneration")}),
            **kept(conditions=deprecated(status).get("conditions"), v1beta2=conditions_down(status)),
            **{name: status.get(name) or 0 for name in _COUNTERS},
        },
    }


def up(obj: Object) -> Object:
    """spec and status in v1beta2."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    template = spec.get("remediationTemplate") or {}
    startup = duration_up(spec.get("nodeStartupTimeout"))
    checks = {
        **kept(
            unhealthyNodeConditions=_counted(spec.get("unhealthyConditions") or ()),
            unhealthyMachineConditions=_counted(spec.get("unhealthyMachineConditions") or ()),
        ),
        **({} if startup is None else {"nodeStartupTimeoutSeconds": startup}),
    }
    trigger = kept(unhealthyLessThanOrEqualTo=spec.get("maxUnhealthy"), unhealthyInRange=spec.get("unhealthyRange"))
    old = kept(conditions=status.get("conditions"))
    found = {
        **moved(status, {name: name for name in ("targets", "observedGeneration")}),
        **{name: status[name] for name in _COUNTERS if status.get(name)},
        **kept(
            conditions=(status.get("v1beta2") or {}).get("conditions"), deprecated={"v1beta1": old} if old else None
        ),
    }
    gone = ("unhealthyConditions", "unhealthyMachineConditions", "nodeStartupTimeout", "maxUnhealthy", "unhealthyRange")
    reference = {name: template[name] for name in ("apiVersion", "kind", "name") if template.get(name)}
    return {
        "spec": {
            **without(spec, "remediationTemplate", *gone),
            **kept(checks=checks, remediation=kept(triggerIf=trigger, templateRef=reference)),
        },
        **kept(status=found),
    }


def _timed(conditions: Iterable[Object]) -> list[Object]:
    return [
        {**without(c, "timeoutSeconds"), "timeout": duration_down(c.get("timeoutSeconds") or 0)} for c in conditions
    ]


def _counted(conditions: Iterable[Object]) -> list[Object]:
    return [{**without(c, "timeout"), "timeoutSeconds": duration_up(c.get("timeout")) or 0} for c in conditions]
