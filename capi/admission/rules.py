"""Rules that several kinds share, over parsed JSON. All are pure; none changes its arguments.

What the schemas of the CRDs can say themselves (required fields, bounds, patterns, immutability) is not repeated here.
Source: the webhooks of the Cluster API book; upstream core/webhooks/admission, internal/webhooks.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

from capi.api.core import annotations, labels
from capi.kube import selectors, validation
from capi.kube.errors import BadRequest, Cause
from capi.kube.types import Object

NODE_DELETION_TIMEOUT_SECONDS = 10
ANNOTATIONS_LIMIT = 256 * 1024
"""Bytes of all annotations of an object together."""
_INT32 = re.compile(r"[-+]?[0-9]{1,10}")


def at(obj: Object | None, *path: str) -> Any:
    """The value at a path; None where anything on the way is absent or no object."""
    here: Any = obj
    for name in path:
        if not isinstance(here, dict):
            return None
        here = here.get(name)
    return here


def put(obj: Object, value: Any, *path: str) -> Object:
    """A copy of `obj` with `value` at a path; only what lies on the path is copied."""
    name, *rest = path
    inner = obj.get(name)
    return {**obj, name: put(inner if isinstance(inner, dict) else {}, value, *rest) if rest else value}


def fill(obj: Object, value: Any, *path: str) -> Object:
    """`obj` with `value` at a path if nothing is there. What is in the way and no object is left for the schema to name."""
    here: Any = obj
    for name in path:
        if not isinstance(here, dict):
            return obj
        here = here.get(name)
        if here is None:
            return put(obj, value, *path)
    return obj


def cluster_label(obj: Object) -> Object:
    """The cluster-name label says what spec.clusterName says."""
    name = at(obj, "spec", "clusterName")
    if not isinstance(name, str) or not name or at(obj, "metadata", "labels", labels.CLUSTER_NAME) == name:
        return obj
    return put(obj, name, "metadata", "labels", labels.CLUSTER_NAME)


def version_prefix(obj: Object, *path: str) -> Object:
    """A version gets its leading `v`."""
    version = at(obj, *path)
    return (
        put(obj, f"v{version}", *path) if isinstance(version, str) and version and not version.startswith("v") else obj
    )


def replicas(obj: Object, old: Object | None) -> Object:
    """spec.replicas: as set; else by the autoscaler's bounds (the least at first, later what was, within them); else 1."""
    if at(obj, "spec", "replicas") is not None:
        return obj
    low, high = (
        autoscaler_bound(obj, annotations.AUTOSCALER_MIN_SIZE),
        autoscaler_bound(obj, annotations.AUTOSCALER_MAX_SIZE),
    )
    if low is None or high is None:
        return put(obj, 1, "spec", "replicas")
    before = at(old, "spec", "replicas")
    return put(obj, low if before is None else max(low, min(high, before)), "spec", "replicas")


def autoscaler_bound(obj: Object, annotation: str) -> int | None:
    """An annotation of the autoscaler as a number; None if absent or no number."""
    text = at(obj, "metadata", "annotations", annotation)
    return int(text) if isinstance(text, str) and _INT32.fullmatch(text) and abs(int(text)) < 2**31 else None


def autoscaler_causes(obj: Object) -> list[Cause]:
    """The autoscaler's annotations must be numbers, the greatest not below the least: with other ones it stops serving all
    pools, not only this."""
    names = (annotations.AUTOSCALER_MIN_SIZE, annotations.AUTOSCALER_MAX_SIZE)
    causes = [
        invalid(f"metadata.annotations[{name}]", at(obj, "metadata", "annotations", name), "must be a 32 bit integer")
        for name in names
        if at(obj, "metadata", "annotations", name) is not None and autoscaler_bound(obj, name) is None
    ]
    low, high = (autoscaler_bound(obj, name) for name in names)
    if low is not None and high is not None and high < low:
        text = f"must not be less than {names[0]} ({low})"
        causes.append(invalid(f"metadata.annotations[{names[1]}]", str(high), text))
    return causes


def template_metadata(obj: Object, *path: str) -> list[Cause]:
    """Labels and annotations of a template by Kubernetes' rules."""
    metadata, where = at(obj, *path) or {}, ".".join(path)
    causes: list[Cause] = []
    for key, value in (at(metadata, "labels") or {}).items():
        causes += [invalid(f"{where}.labels", key, text) for text in validation.label_key(key)]
        causes += [invalid(f"{where}.labels", value, text) for text in validation.label_value(value)]
    notes = at(metadata, "annotations") or {}
    for key in notes:
        causes += [invalid(f"{where}.annotations", key, text) for text in validation.label_key(key.lower())]
    if sum(len(k.encode()) + len(v.encode()) for k, v in notes.items()) > ANNOTATIONS_LIMIT:
        text = f"Too long: may not be more than {ANNOTATIONS_LIMIT} bytes"
        causes.append(Cause("FieldValueTooLong", text, f"{where}.annotations"))
    return causes


def selector(obj: Object, *path: str) -> list[Cause]:
    """A label selector must be readable."""
    value = at(obj, *path)
    try:
        selectors.labels_from_wire(value)
    except BadRequest as error:
        return [invalid(".".join(path), value, error.message)]
    return []


def name_is_label_value(obj: Object) -> list[Cause]:
    """The name of the object goes into labels."""
    name = at(obj, "metadata", "name") or ""
    return [invalid("metadata.name", name, text) for text in validation.label_value(name)]


def int_or_percent(obj: Object, *path: str) -> list[Cause]:
    """A number, or a percentage like "40%"."""
    value = at(obj, *path)
    if not isinstance(value, str) or re.fullmatch(r"[0-9]+%", value):
        return []
    return [invalid(".".join(path), value, 'must be an integer or a percentage like "40%"')]


def unique(causes: Sequence[Cause]) -> list[Cause]:
    return list(dict.fromkeys(causes))


def invalid(field: str, value: Any, text: str) -> Cause:
    return Cause("FieldValueInvalid", f"Invalid value: {_shown(value)}: {text}", field)


def forbidden(field: str, text: str) -> Cause:
    return Cause("FieldValueForbidden", f"Forbidden: {text}", field)


def required(field: str, text: str) -> Cause:
    return Cause("FieldValueRequired", f"Required value: {text}", field)


def _shown(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


Default = Callable[[Object, Object | None], Object]
Validate = Callable[[Object, Object | None], list[Cause]]
