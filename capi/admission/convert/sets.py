"""MachinePool, MachineSet and MachineDeployment: replicas of a Machine template. Pure.

Upstream: api/core/v1beta1/conversion.go.
"""

from capi.admission.convert.machine import flags_up, template_down, template_up
from capi.admission.convert.values import ApiVersions, conditions_down, deprecated, kept, moved, true_or_none, without
from capi.kube.types import Object

_NEW_COUNTERS = ("readyReplicas", "availableReplicas", "upToDateReplicas")
_DEPRECATED = ("conditions", "failureReason", "failureMessage")


def pool_down(obj: Object, namespace: str, versions: ApiVersions) -> Object:
    """spec and status of a MachinePool in v1beta1."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    start = status.get("initialization") or {}
    least = ((spec.get("template") or {}).get("spec") or {}).get("minReadySeconds")
    found = {
        **moved(status, {name: name for name in ("nodeRefs", "phase", "observedGeneration", "versions")}),
        **_old_status(status, "readyReplicas", "availableReplicas", "unavailableReplicas"),
        "replicas": status.get("replicas") or 0,
        "bootstrapReady": bool(start.get("bootstrapDataSecretCreated")),
        "infrastructureReady": bool(start.get("infrastructureProvisioned")),
    }
    return {
        "spec": {
            **without(spec, "template"),
            "template": template_down(spec.get("template"), namespace, versions),
            **({} if least is None else {"minReadySeconds": least}),
        },
        "status": found,
    }


def pool_up(obj: Object) -> Object:
    """spec and status of a MachinePool in v1beta2."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    found = {
        **moved(status, {name: name for name in ("nodeRefs", "phase", "observedGeneration", "versions", "replicas")}),
        **_new_status(status, "readyReplicas", "availableReplicas", "unavailableReplicas"),
        **kept(initialization=flags_up(status)),
    }
    template = template_up(spec.get("template"), minReadySeconds=spec.get("minReadySeconds"))
    return {
        "spec": {**without(spec, "template", "minReadySeconds"), "template": template},
        **({"status": found} if status else {}),
    }


def set_down(obj: Object, namespace: str, versions: ApiVersions) -> Object:
    """spec and status of a MachineSet in v1beta1."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    old = deprecated(status)
    least = ((spec.get("template") or {}).get("spec") or {}).get("minReadySeconds")
    found = {
        **moved(status, {name: name for name in ("selector", "observedGeneration", "versions")}),
        **_old_status(status),
        "replicas": status.get("replicas") or 0,
        **{name: old.get(name) or 0 for name in ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")},
    }
    return {
        "spec": {
            **without(spec, "template", "deletion", "machineNaming"),
            "template": template_down(spec.get("template"), namespace, versions),
            **kept(
                deletePolicy=(spec.get("deletion") or {}).get("order"),
                machineNamingStrategy=spec.get("machineNaming"),
                minReadySeconds=least or None,
            ),
        },
        "status": found,
    }


def set_up(obj: Object) -> Object:
    """spec and status of a MachineSet in v1beta2."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    found = {
        **moved(status, {name: name for name in ("selector", "observedGeneration", "versions", "replicas")}),
        **_new_status(status, "fullyLabeledReplicas", "readyReplicas", "availableReplicas"),
    }
    return {
        "spec": {
            **without(spec, "template", "deletePolicy", "machineNamingStrategy", "minReadySeconds"),
            "template": template_up(spec.get("template"), minReadySeconds=spec.get("minReadySeconds") or None),
            **kept(deletion=kept(order=spec.get("deletePolicy")), machineNaming=spec.get("machineNamingStrategy")),
        },
        **({"status": found} if status else {}),
    }


def deployment_down(obj: Object, namespace: str, versions: ApiVersions) -> Object:
    """spec and status of a MachineDeployment in v1beta1."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    old, least = deprecated(status), ((spec.get("template") or {}).get("spec") or {}).get("minReadySeconds")
    rollout = spec.get("rollout") or {}
    strategy = rollout.get("strategy") or {}
    rolling = {**(strategy.get("rollingUpdate") or {}), **kept(deletePolicy=(spec.get("deletion") or {}).get("order"))}
    remediation = {k: v for k, v in (spec.get("remediation") or {}).items() if k == "maxInFlight"}
    counters = ("updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas")
    return {
        "spec": {
            **without(spec, "template", "deletion", "machineNaming", "rollout", "remediation", "paused"),
            "template": template_down(spec.get("template"), namespace, versions),
            **kept(
                strategy=kept(type=strategy.get("type"), rollingUpdate=rolling, remediation=remediation),
                machineNamingStrategy=spec.get("machineNaming"),
                rolloutAfter=rollout.get("after"),
                paused=true_or_none(spec.get("paused")),
            ),
            **({} if least is None else {"minReadySeconds": least}),
        },
        "status": {
            **moved(status, {name: name for name in ("selector", "observedGeneration", "phase", "versions")}),
            **_old_status(status),
            "replicas": status.get("replicas") or 0,
            **{name: old.get(name) or 0 for name in counters},
        },
    }


def deployment_up(obj: Object) -> Object:
    """spec and status of a MachineDeployment in v1beta2. revisionHistoryLimit and progressDeadlineSeconds are given up."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    strategy = spec.get("strategy") or {}
    rolling = strategy.get("rollingUpdate") or {}
    moves = kept(type=strategy.get("type"), rollingUpdate=without(rolling, "deletePolicy"))
    gone = ("strategy", "machineNamingStrategy", "rolloutAfter", "minReadySeconds", "paused", "revisionHistoryLimit")
    found = {
        **moved(status, {name: name for name in ("selector", "observedGeneration", "phase", "versions", "replicas")}),
        **_new_status(status, "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas"),
    }
    return {
        "spec": {
            **without(spec, "template", "progressDeadlineSeconds", *gone),
            "template": template_up(spec.get("template"), minReadySeconds=spec.get("minReadySeconds")),
            **kept(
                rollout=kept(after=spec.get("rolloutAfter"), strategy=moves),
                deletion=kept(order=rolling.get("deletePolicy")),
                remediation=strategy.get("remediation"),
                machineNaming=spec.get("machineNamingStrategy"),
                paused=true_or_none(spec.get("paused")),
            ),
        },
        **({"status": found} if status else {}),
    }


def _old_status(status: Object, *counters: str) -> Object:
    """Old conditions, failures and counters at the top; new conditions and counters in `v1beta2`."""
    old = deprecated(status)
    new = conditions_down(status, **{name: status.get(name) for name in _NEW_COUNTERS})
    return {**moved(old, {name: name for name in (*_DEPRECATED, *counters)}), **kept(v1beta2=new)}


def _new_status(status: Object, *counters: str) -> Object:
    new = status.get("v1beta2") or {}
    return {
        **moved(new, {name: name for name in ("conditions", *_NEW_COUNTERS)}),
        "deprecated": {"v1beta1": moved(status, {name: name for name in (*_DEPRECATED, *counters)})},
    }
