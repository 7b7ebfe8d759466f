"""The scale subresource: autoscaling/v1 Scale as a view of a custom resource or a workload kind.

Upstream: apiextensions-apiserver/pkg/registry/customresource/etcd.go (ScaleREST).
"""

from typing import Any

from capi.kube import selectors
from capi.kube.errors import BadRequest, InternalError, MethodNotAllowed
from capi.kube.types import Json, Object, ResourceType
from capi.server.registry import forms, refusals
from capi.server.registry.interface import ScalePaths
from capi.server.registry.schema import causes


def get(obj: Object, paths: ScalePaths | None) -> Object:
    """The Scale of an object. Raises InternalError when it does not say its replicas."""
    if paths is None:
        raise MethodNotAllowed()
    meta = obj["metadata"]
    replicas = _at(obj, paths.spec_replicas)
    if replicas is None:
        raise InternalError(f'the spec replicas field "{paths.spec_replicas}" does not exist')
    status: Object = {"replicas": _at(obj, paths.status_replicas) or 0}
    if paths.selector and (selector := _selector(_at(obj, paths.selector))):
        status["selector"] = selector
    kept = {k: meta[k] for k in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp") if k in meta}
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": kept,
        "spec": {"replicas": replicas},
        "status": status,
    }


def put(obj: Object, scale: Object, paths: ScalePaths | None) -> Object:
    """`obj` with the replicas of `scale`. Raises Invalid or BadRequest for replicas that are none."""
    if paths is None:
        raise MethodNotAllowed()
    forms.check(forms.Scale, scale, "v1")
    replicas = (scale.get("spec") or {}).get("replicas") or 0
    if replicas < 0:
        cause = causes.invalid("spec.replicas", replicas, "should be a non-negative integer")
        raise refusals.invalid(
            ResourceType("autoscaling", "v1", "Scale", "scales"), str(obj["metadata"]["name"]), [cause]
        )
    names = paths.spec_replicas.strip(".").split(".")
    changed: Object = _with(obj, names, replicas)
    return changed


def _with(obj: Json, names: list[str], value: int) -> Any:
    if not names:
        return value
    if obj is not None and not isinstance(obj, dict):
        raise BadRequest(f"the replicas cannot be set: the parent of {names[0]} is not an object")
    return {**(obj or {}), names[0]: _with((obj or {}).get(names[0]), names[1:], value)}


def _at(obj: Json, path: str) -> Any:
    for name in path.strip(".").split("."):
        obj = obj.get(name) if isinstance(obj, dict) else None
    return obj


def _selector(value: Json) -> str:
    """A selector as text: strings as they are, metav1.LabelSelector rendered."""
    if isinstance(value, dict):
        return str(selectors.labels_from_wire(value))
    return value if isinstance(value, str) else ""
