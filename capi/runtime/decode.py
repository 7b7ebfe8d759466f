"""From the bytes of a watch or list to cached objects: decoded once, trimmed, and shared where values repeat.

Caches keep, of `metadata.managedFields`, only the entries of this project's own managers (prefix `capi-`): they tell
whether an apply would change anything. Ten thousand Machines of one pool have the same labels, owners and field sets, so
equal ones are one Python object.
"""

import sys
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

import msgspec
import orjson

from capi.kube.objects import ManagedFieldsEntry, ObjectMeta, Resource, Unstructured
from capi.kube.types import Object, ResourceType

OUR_MANAGERS = "capi-"
_SHARED_LIMIT = 8192
"""Entries per table; it is emptied when full, which costs memory only."""

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
_set = msgspec.structs.force_setattr


class _Shared(Generic[K, V]):
    """One value for each of many equal ones."""

    def __init__(self) -> None:
        self._values: dict[K, V] = {}

    def get(self, key: K, value: V) -> V:
        if len(self._values) >= _SHARED_LIMIT:
            self._values.clear()
        return self._values.setdefault(key, value)


_fields: _Shared[bytes, dict[str, Any]] = _Shared()
_labels: _Shared[tuple[tuple[str, str], ...], dict[str, str]] = _Shared()
_owners: _Shared[Any, Any] = _Shared()


def share(metadata: ObjectMeta) -> None:
    """Trim and share the parts of freshly decoded metadata that nobody else has seen yet. Changes it in place."""
    _set(metadata, "namespace", sys.intern(metadata.namespace))
    if metadata.labels:
        _set(metadata, "labels", _labels.get(tuple(metadata.labels.items()), metadata.labels))
    if metadata.owner_references:
        _set(metadata, "owner_references", _owners.get(metadata.owner_references, metadata.owner_references))
    if metadata.managed_fields:
        ours = tuple(entry for entry in metadata.managed_fields if entry.manager.startswith(OUR_MANAGERS))
        for entry in ours:
            _share_fields(entry)
        _set(metadata, "managed_fields", ours)


def _share_fields(entry: ManagedFieldsEntry) -> None:
    _set(entry, "fields_v1", _fields.get(orjson.dumps(entry.fields_v1), entry.fields_v1))
    _set(entry, "manager", sys.intern(entry.manager))


def decoder(kind: type[Resource] | ResourceType) -> Callable[[Any], Any]:
    """A function from an object's JSON (bytes or Raw) to its cached form. It raises msgspec.DecodeError.

    Typed kinds become their struct, ResourceTypes become Unstructured.
    """
    if isinstance(kind, ResourceType):
        return _untyped(kind)
    decode = msgspec.json.Decoder(kind).decode

    def typed(data: Any) -> Resource:
        obj = decode(data)
        share(obj.metadata)
        return obj

    return typed


def _untyped(resource: ResourceType) -> Callable[[Any], Unstructured]:
    parse = msgspec.json.Decoder(dict[str, Any]).decode

    def untyped(data: Any) -> Unstructured:
        raw: Object = parse(data)
        wire = raw.get("metadata") or {}
        managed = wire.get("managedFields")
        if managed:
            ours = [entry for entry in managed if entry.get("manager", "").startswith(OUR_MANAGERS)]
            for entry in ours:
                fields = entry.get("fieldsV1") or {}
                entry["fieldsV1"] = _fields.get(orjson.dumps(fields), fields)
            wire["managedFields"] = ours
        metadata = msgspec.convert({k: v for k, v in wire.items() if k != "managedFields"}, ObjectMeta)
        share(metadata)
        if metadata.labels:
            wire["labels"] = metadata.labels
        return Unstructured(resource, metadata, raw)

    return untyped
