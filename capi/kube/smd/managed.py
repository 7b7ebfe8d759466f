"""metadata.managedFields: entries, their identity, order and limits.

Source: k8s.io/apimachinery/pkg/util/managedfields/internal (managedfields.go, capmanagers.go, stripmeta.go).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import capi.kube.smd.fields as fields
from capi.kube.smd.fields import MEMBER, FieldSet
from capi.kube.smd.schema import Node, Schema
from capi.kube.types import Json, Object

MAX_UPDATERS = 10
ANCIENT = "ancient-changes"
BEFORE_FIRST_APPLY = "before-first-apply"

_STRIP: FieldSet = {
    "f:apiVersion": MEMBER,
    "f:kind": MEMBER,
    "f:metadata": {
        ".": MEMBER,
        **{
            "f:" + name: MEMBER
            for name in (
                "name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "managedFields", "resourceVersion",
            )
        },
    },
}  # fmt: skip
_MAX_SETTLED = 4096


class Manager(NamedTuple):
    """Identity of an entry. An applier is the same in every version, an updater is not: its `api_version` counts."""

    name: str
    operation: str
    api_version: str
    subresource: str

    def __str__(self) -> str:
        """As conflicts name it."""
        text = f'"{self.name}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return f"{text} using {self.api_version}" if self.operation == "Update" else text


def applier(name: str, subresource: str) -> Manager:
    return Manager(name or "unknown", "Apply", "", subresource)


def updater(name: str, api_version: str, subresource: str) -> Manager:
    return Manager(name or "unknown", "Update", api_version, subresource)


@dataclass(frozen=True, slots=True)
class Entry:
    """One manager's fields. `wire` is the entry as it was read, kept while it is still true."""

    manager: Manager
    api_version: str
    fields: FieldSet
    time: str = ""
    wire: Object | None = None

    def having(self, owned: FieldSet) -> "Entry":
        return self if owned is self.fields else replace(self, fields=owned, wire=None)

    def encoded(self) -> Object:
        if self.wire is not None:
            return self.wire
        entry: Object = {
            "manager": self.manager.name,
            "operation": self.manager.operation,
            "apiVersion": self.api_version,
        }
        if self.time:
            entry["time"] = self.time
        entry["fieldsType"] = "FieldsV1"
        entry["fieldsV1"] = self.fields
        if self.manager.subresource:
            entry["subresource"] = self.manager.subresource
        return entry


Managed = dict[Manager, Entry]


def decode(entries: Iterable[Object], *, trusted: bool = True) -> Managed:
    """Entries by manager; sets that did not come from this module (`trusted` False) are brought into canonical spelling.

    Raises ValueError for entries that are not FieldsV1 sets of Apply or Update.
    """
    found: Managed = {}
    for entry in entries:
        operation, version = entry.get("operation"), entry.get("apiVersion")
        if operation not in ("Apply", "Update"):
            raise ValueError("operation must be `Apply` or `Update`")
        if not version:
            raise ValueError("apiVersion must not be empty")
        if entry.get("fieldsType") != "FieldsV1":
            raise ValueError(f"invalid fieldsType {entry.get('fieldsType')!r} in managed fields entry")
        owned = entry.get("fieldsV1") or {}
        name, subresource = str(entry.get("manager") or ""), str(entry.get("subresource") or "")
        manager = Manager(name, str(operation), "" if operation == "Apply" else str(version), subresource)
        if not trusted:
            owned = fields.normalized(owned)
        found[manager] = Entry(manager, str(version), owned, str(entry.get("time") or ""), entry if trusted else None)
    return found


def encode(managed: Managed) -> list[Object]:
    """The wire list: appliers first, then by time, manager, version, subresource."""
    return [entry.encoded() for entry in sorted(managed.values(), key=_position)]


def _position(entry: Entry) -> tuple[str, str, str, str, str]:
    manager = entry.manager
    return manager.operation, entry.time, manager.name, entry.api_version, manager.subresource


def attach(obj: Object, managed: Managed, before: Sequence[Json] | None) -> Object:
    """`obj` with the encoded entries; `obj` itself if its list stays as it is. `before` is the list it carries."""
    entries = encode(managed)
    if len(entries) == len(before or ()) and (entries or before is None) and entries == (before or []):
        return obj
    metadata = dict(obj.get("metadata") or {})
    if entries:
        metadata["managedFields"] = entries
    else:
        metadata.pop("managedFields", None)
    return {**obj, "metadata": metadata}


def stripped(owned: FieldSet) -> FieldSet:
    """Without the fields nobody owns."""
    return fields.difference(owned, _STRIP)


def capped(managed: Managed) -> Managed:
    """At most ten updaters: the oldest of one version are merged into `ancient-changes`."""
    updaters = sorted(
        (e for e in managed.values() if e.manager.operation == "Update"), key=lambda e: (e.time, str(e.manager))
    )
    excess = len(updaters) - MAX_UPDATERS
    if excess <= 0:
        return managed
    result = dict(managed)
    first: dict[str, Entry] = {}
    for entry in updaters:
        if excess <= 0:
            break
        oldest = first.get(entry.api_version)
        if oldest is None:
            first[entry.api_version] = entry
            continue
        bucket = updater(ANCIENT, entry.api_version, "")
        base = result.get(bucket) or result.pop(oldest.manager)
        merged = fields.union(entry.fields, base.fields)
        del result[entry.manager]
        result[bucket] = Entry(bucket, entry.api_version, merged, entry.time)
        excess -= 1
    return result


def settle(managed: Managed, schema_of: Callable[[Entry], Schema]) -> Managed:
    """Entries as today's schema of their version reads them: what became atomic since is owned as a whole."""
    result: Managed | None = None
    for manager, entry in managed.items():
        owned = _settled(entry.fields, schema_of(entry))
        if owned is not entry.fields:
            result = dict(managed) if result is None else result
            result[manager] = entry.having(owned)
    return managed if result is None else result


def _settled(owned: FieldSet, schema: Schema) -> FieldSet:
    known = schema.settled
    if known.get(id(owned)) is owned:
        return owned
    result = _settle(owned, schema.root)
    if len(known) >= _MAX_SETTLED:
        known.clear()
    known[id(result)] = result
    return result


def _settle(owned: FieldSet, node: Node) -> FieldSet:
    if not owned or node.deduced:
        return owned
    if node.is_map:
        if node.atomic_map:
            return MEMBER
    elif node.is_list and node.list_type == "atomic":
        return MEMBER
    result: FieldSet | None = None
    for name, below in owned.items():
        if not below:
            continue
        kind = (node.fields.get(name[2:]) or node.element) if node.is_map else node.items if node.is_list else None
        settled = below if kind is None else _settle(below, kind)
        if settled is not below:
            result = dict(owned) if result is None else result
            result[name] = settled
    return owned if result is None else result


def keep_times(old: Object, new: Object) -> Object:
    """`old` if `new` differs from it by the times of managedFields entries alone, else `new`: such a write is none."""
    if new is old:
        return old
    before, after = old.get("metadata") or {}, new.get("metadata") or {}
    if len(before) != len(after) or len(old) != len(new):
        return new
    if any(key != "metadata" and (key not in new or new[key] != value) for key, value in old.items()):
        return new
    if any(key != "managedFields" and (key not in after or after[key] != value) for key, value in before.items()):
        return new
    return old if _timeless(before) == _timeless(after) else new


def _timeless(metadata: Object) -> list[Object]:
    entries = [{k: v for k, v in entry.items() if k != "time"} for entry in metadata.get("managedFields") or ()]
    return sorted(
        entries, key=lambda e: (e["operation"], e.get("manager", ""), e["apiVersion"], e.get("subresource", ""))
    )
