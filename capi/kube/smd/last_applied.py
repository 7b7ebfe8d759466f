"""The hand-over from `kubectl apply` to `kubectl apply --server-side`.

For the field manager `kubectl` alone: conflicts over fields that its last-applied annotation covers are its own, and the
annotation is kept in step as long as it exists.

Source: k8s.io/apimachinery/pkg/util/managedfields/internal (lastappliedmanager.go, lastappliedupdater.go).
"""

import orjson

import capi.kube.smd.fields as fields
import capi.kube.smd.typed as typed
from capi.kube.smd.compare import compare
from capi.kube.smd.fields import FieldSet
from capi.kube.smd.schema import Schema
from capi.kube.types import Object

ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
_MAX_ANNOTATIONS = 256 * 1024


def allowed(live: Object, schema: Schema, api_version: str) -> FieldSet | None:
    """Fields of the last applied configuration that still have their applied values; None without a usable annotation."""
    text = _annotations(live).get(ANNOTATION)
    if not text:
        return None
    try:
        applied = orjson.loads(text)
        if applied.get("apiVersion") != api_version:
            return None
        owned = typed.config_set(applied, schema.root)
    except (ValueError, AttributeError):
        return None
    changes = compare(applied, live, schema.root)
    for changed in changes:
        owned = fields.difference(owned, changed)
    return owned


def synchronized(obj: Object, config: Object) -> Object:
    """`obj` with the annotation set to `config`, if it has one; without it if annotations would become too large."""
    annotations = _annotations(obj)
    if not annotations.get(ANNOTATION):
        return obj
    said = {k: v for k, v in _annotations(config).items() if k != ANNOTATION}
    metadata = {**(config.get("metadata") or {}), "annotations": said}
    if not said:
        del metadata["annotations"]
    text = orjson.dumps({**config, "metadata": metadata}, option=orjson.OPT_SORT_KEYS).decode() + "\n"
    changed = {**annotations, ANNOTATION: text}
    if sum(len(k) + len(v.encode()) for k, v in changed.items()) > _MAX_ANNOTATIONS:
        del changed[ANNOTATION]
    return {**obj, "metadata": {**obj["metadata"], "annotations": changed}}


def _annotations(obj: Object) -> dict[str, str]:
    return (obj.get("metadata") or {}).get("annotations") or {}
