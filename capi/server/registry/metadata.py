"""ObjectMeta: its form, what a write may set, and its rules.

Upstream: apimachinery pkg/api/validation/objectmeta.go, apiserver pkg/registry/rest/{create,update}.go.
"""

import random
import uuid
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

import msgspec

from capi.kube import times, validation
from capi.kube.errors import BadRequest, Cause
from capi.kube.types import Object
from capi.server.registry.schema import causes
from capi.server.registry.served import Served

MAX_ANNOTATIONS = 256 * 1024
_STANDARD_FINALIZERS = frozenset(("kubernetes", "orphan", "foregroundDeletion"))
_SYSTEM = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "resourceVersion")


class _Form(msgspec.Struct, forbid_unknown_fields=False):
    """Types of the members; JSON null stands for absent."""

    name: str | None = None
    generateName: str | None = None  # noqa: N815 - wire names
    namespace: str | None = None
    uid: str | None = None
    selfLink: str | None = None  # noqa: N815
    resourceVersion: str | None = None  # noqa: N815
    generation: int | None = None
    creationTimestamp: str | None = None  # noqa: N815
    deletionTimestamp: str | None = None  # noqa: N815
    deletionGracePeriodSeconds: int | None = None  # noqa: N815
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    ownerReferences: list[dict[str, Any]] | None = None  # noqa: N815
    finalizers: list[str] | None = None
    managedFields: list[dict[str, Any]] | None = None  # noqa: N815


_KNOWN = frozenset(_Form.__struct_fields__)


def normalised(served: Served, obj: Object, unknown: list[str]) -> Object:
    """`obj` with its type, and with metadata of the right form without nulls; unknown members are noted and dropped.

    Raises BadRequest for another type, and for metadata of the wrong form.
    """
    kind = served.type
    if not isinstance(obj, dict):
        raise BadRequest(f"the object provided is unrecognized (must be of type {kind.kind}): it is not a JSON object")
    if (sent := obj.get("apiVersion")) and sent != kind.api_version:
        raise BadRequest(
            f"the API version in the data ({sent}) does not match the expected API version ({kind.api_version})"
        )
    if (sent := obj.get("kind")) and sent != kind.kind:
        raise BadRequest(
            f'{sent} in version "{kind.version}" cannot be handled as a {kind.kind}: no kind "{sent}" is expected here'
        )
    meta = obj.get("metadata") or {}
    try:
        msgspec.convert(meta, _Form)
    except msgspec.ValidationError as error:
        what = str(error).replace("$.", "metadata.").replace("$", "metadata")
        raise BadRequest(
            f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: json: {what}'
        ) from None
    if not _KNOWN.issuperset(meta):
        unknown.extend(f"metadata.{name}" for name in meta if name not in _KNOWN)
    kept = {name: value for name, value in meta.items() if name in _KNOWN and value is not None}
    rest = {name: value for name, value in obj.items() if name not in ("apiVersion", "kind", "metadata")}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": kept, **rest}


def fresh(meta: Object, namespace: str, now: datetime, *, generation: bool) -> Object:
    """Metadata of a new object: what the system sets, whatever was sent."""
    kept = {name: value for name, value in meta.items() if name not in _SYSTEM}
    if namespace:
        kept["namespace"] = namespace
    else:
        kept.pop("namespace", None)
    kept["uid"] = str(uuid.UUID(int=random.getrandbits(128), version=4))  # unique, not secret
    kept["creationTimestamp"] = times.format(now)
    if generation:
        kept["generation"] = 1
    return _without_empty(kept)


def restored(meta: Object, old: Object) -> Object:
    """Metadata of an update: what only the system changes is taken from the old object."""
    merged = {**meta}
    for name in (*_SYSTEM, "name", "namespace", "generation", "generateName"):
        if name in old:
            merged[name] = old[name]
        else:
            merged.pop(name, None)
    return _without_empty(merged)


def _without_empty(meta: Object) -> Object:
    for name in ("labels", "annotations", "finalizers", "ownerReferences"):
        if name in meta and not meta[name]:
            del meta[name]
    return meta


def create_causes(served: Served, meta: Object) -> list[Cause]:
    """What is wrong with the metadata of a new object."""
    name = str(meta.get("name") or "")
    found: list[Cause] = []
    if not name:
        found.append(causes.required("metadata.name", "name or generateName is required"))
    else:
        found += (causes.invalid("metadata.name", name, text) for text in served.rules.name_errors(name))
    return [*found, *_common(served, meta, {})]


def update_causes(served: Served, sent: Object, meta: Object, old: Object) -> list[Cause]:
    """What is wrong with the metadata of an update; members that did not change are not looked at again."""
    found = [
        causes.invalid(f"metadata.{name}", sent[name], causes.IMMUTABLE)
        for name in ("deletionTimestamp", "deletionGracePeriodSeconds")
        if sent.get(name) is not None and sent[name] != old.get(name)
    ]
    if old.get("deletionTimestamp"):
        added = [f for f in meta.get("finalizers") or () if f not in (old.get("finalizers") or ())]
        if added:
            listed = ", ".join(f'"{name}"' for name in added)
            text = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{listed}}}"
            found.append(causes.forbidden("metadata.finalizers", text))
    return [*found, *_common(served, meta, old)]


def _common(served: Served, meta: Object, old: Object) -> Iterator[Cause]:
    if (labels := meta.get("labels")) and labels != old.get("labels"):
        yield from _label_causes(labels)
    if (annotations := meta.get("annotations")) and annotations != old.get("annotations"):
        yield from _annotation_causes(annotations)
    if (owners := meta.get("ownerReferences")) and owners != old.get("ownerReferences"):
        yield from _owner_causes(owners)
    if (finalizers := meta.get("finalizers")) and finalizers != old.get("finalizers"):
        yield from _finalizer_causes(served, finalizers)


def _label_causes(labels: Object) -> Iterator[Cause]:
    for key, value in labels.items():
        yield from (causes.invalid("metadata.labels", key, text) for text in validation.label_key(key))
        yield from (causes.invalid("metadata.labels", value, text) for text in validation.label_value(value))


def _annotation_causes(annotations: Object) -> Iterator[Cause]:
    for key in annotations:
        yield from (causes.invalid("metadata.annotations", key, text) for text in validation.label_key(key.lower()))
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > MAX_ANNOTATIONS:
        yield causes.too_long("metadata.annotations", MAX_ANNOTATIONS)


def _owner_causes(owners: Iterable[Object]) -> Iterator[Cause]:
    path, controllers = "metadata.ownerReferences", []
    for owner in owners:
        for member, text in (
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ):
            if not isinstance(owner.get(member), str) or not owner[member]:
                yield causes.invalid(f"{path}.{member}", owner.get(member) or "", text)
        if owner.get("kind") == "Event" and owner.get("apiVersion") in ("v1", "events.k8s.io/v1"):
            yield causes.invalid(path, owner, f"{owner['apiVersion']}, Kind=Event is disallowed from being an owner")
        if owner.get("controller"):
            controllers.append(owner)
    if len(controllers) > 1:
        first, second = (f"{owner.get('kind')}/{owner.get('name')}" for owner in controllers[:2])
        text = (
            f'Only one reference can have Controller set to true. Found "true" in references for {first} and {second}'
        )
        yield causes.invalid(path, list(owners), text)


def _finalizer_causes(served: Served, finalizers: list[str]) -> Iterator[Cause]:
    path = "metadata.finalizers"
    for name in finalizers:
        texts = validation.label_key(name)
        yield from (causes.invalid(path, name, text) for text in texts)
        if not texts and not served.custom and "/" not in name and name not in _STANDARD_FINALIZERS:
            yield causes.invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified")
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        yield causes.invalid(path, finalizers, "finalizer orphan and foregroundDeletion cannot be both set")


def warnings(served: Served, meta: Object, old: Object) -> Iterator[str]:
    """What is allowed but unwise."""
    if served.custom and (finalizers := meta.get("finalizers")) and finalizers != old.get("finalizers"):
        for name in finalizers:
            if "/" not in name and name not in _STANDARD_FINALIZERS:
                yield (
                    f'metadata.finalizers: "{name}": prefer a domain-qualified finalizer name including a path (/) to avoid'
                    " accidental conflicts with other finalizer writers"
                )


def deduplicated_owners(meta: Object) -> Object:
    """Equal owner references once."""
    owners = meta.get("ownerReferences")
    if not owners or len(owners) < 2:
        return meta
    kept: list[Object] = []
    for owner in owners:
        if owner not in kept:
            kept.append(owner)
    return meta if len(kept) == len(owners) else {**meta, "ownerReferences": kept}
