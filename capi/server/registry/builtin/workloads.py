"""Deployments, ReplicaSets, StatefulSets, DaemonSets, PodDisruptionBudgets: defaults, selectors, templates.

Source: pkg/apis/{apps,policy}/v1/defaults.go and validation/validation.go of Kubernetes.
"""

from collections.abc import Callable
from typing import Any

from capi.kube import selectors
from capi.kube.errors import BadRequest, Cause
from capi.kube.types import Object
from capi.server.registry.builtin import pods
from capi.server.registry.builtin.fields import at, section, thawed
from capi.server.registry.schema import causes

_QUARTER = {"maxUnavailable": "25%", "maxSurge": "25%"}
_DEFAULTS: dict[str, Object] = {
    "Deployment": {
        "replicas": 1,
        "strategy": {"type": "RollingUpdate"},
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
    },
    "ReplicaSet": {"replicas": 1},
    "StatefulSet": {
        "replicas": 1,
        "podManagementPolicy": "OrderedReady",
        "updateStrategy": {"type": "RollingUpdate"},
        "revisionHistoryLimit": 10,
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
    },
    "DaemonSet": {"updateStrategy": {"type": "RollingUpdate"}, "revisionHistoryLimit": 10},
}
_ROLLING: dict[str, tuple[str, Object]] = {
    "Deployment": ("strategy", _QUARTER),
    "StatefulSet": ("updateStrategy", {"partition": 0}),
    "DaemonSet": ("updateStrategy", {"maxUnavailable": 1, "maxSurge": 0}),
}


def default(kind: str) -> Callable[[Object], Object]:
    """The defaulting function of a kind with a pod template."""

    def fill(obj: Object) -> Object:
        copy = thawed(obj)
        spec = copy.setdefault("spec", {})
        for name, value in _DEFAULTS[kind].items():
            if spec.get(name) is None:
                spec[name] = dict(value) if isinstance(value, dict) else value
        if kind in _ROLLING:
            _default_rollout(spec[_ROLLING[kind][0]], _ROLLING[kind][1])
        template = spec.setdefault("template", {})
        pods.default_spec(template.setdefault("spec", {}))
        copy.setdefault("status", {})
        return copy

    return fill


def _default_rollout(strategy: Object, rolling: Object) -> None:
    strategy["type"] = strategy.get("type") or "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        strategy["rollingUpdate"] = {**rolling, **section(strategy, "rollingUpdate")}


def validate(obj: Object, old: Object | None) -> list[Cause]:
    """Selector given, matching the template and fixed; a sound template."""
    spec = section(obj, "spec")
    found = _negative(spec, "replicas", "revisionHistoryLimit", "minReadySeconds", "progressDeadlineSeconds")
    selector = spec.get("selector")
    labels = at(spec, "template", "metadata", "labels") or {}
    if not selector:
        found.append(causes.required("spec.selector"))
    else:
        found += selector_causes(selector, "spec.selector")
        if not found and not selectors.labels_from_wire(selector).matches(labels):
            text = "`selector` does not match template `labels`"
            found.append(causes.invalid("spec.template.metadata.labels", labels, text))
    found += pods.spec_causes(at(spec, "template", "spec") or {}, "spec.template.spec")
    policy = at(spec, "template", "spec", "restartPolicy")
    if policy in ("Never", "OnFailure"):
        found.append(causes.not_supported("spec.template.spec.restartPolicy", policy, ("Always",)))
    if old is not None:
        found += causes.immutable("spec.selector", selector, at(old, "spec", "selector"))
    return found


def _negative(spec: Object, *names: str) -> list[Cause]:
    text = "must be greater than or equal to 0"
    values = ((name, spec.get(name)) for name in names)
    return [causes.invalid(f"spec.{name}", value, text) for name, value in values if value is not None and value < 0]


def selector_causes(selector: Object, path: str) -> list[Cause]:
    """What is wrong with a LabelSelector."""
    try:
        selectors.labels_from_wire(selector)
    except BadRequest as error:
        return [causes.invalid(path, selector, error.message)]
    return []


def budget_default(obj: Object) -> Object:
    """The counters of a PodDisruptionBudget are always there, as Go encodes them."""
    zero = {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0}
    return {**obj, "status": {**zero, **section(obj, "status")}}


def budget_validate(obj: Object, old: Object | None) -> list[Cause]:
    spec = section(obj, "spec")
    found: list[Cause] = []
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        found.append(causes.invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set"))
    for name in ("minAvailable", "maxUnavailable"):
        found += _amount(spec.get(name), f"spec.{name}")
    if (policy := spec.get("unhealthyPodEvictionPolicy")) not in (None, "IfHealthyBudget", "AlwaysAllow"):
        path = "spec.unhealthyPodEvictionPolicy"
        found.append(causes.not_supported(path, policy, ("AlwaysAllow", "IfHealthyBudget")))
    return found + selector_causes(section(spec, "selector"), "spec.selector")


def _amount(value: Any, path: str) -> list[Cause]:
    """A count or a percentage."""
    if isinstance(value, int) and value < 0:
        return [causes.invalid(path, value, "must be greater than or equal to 0")]
    if not isinstance(value, str):
        return []
    if not (value.endswith("%") and value[:-1].isdigit()):
        text = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
        return [causes.invalid(path, value, text)]
    return [causes.invalid(path, value, "must not be greater than 100%")] if int(value[:-1]) > 100 else []
