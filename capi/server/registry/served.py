"""What is served: each resource in each version with its rules, schema and place in the store.

Objects are stored once, in the storage version, with `apiVersion` and `kind` first, so that another version of a
resource without conversion (and a list item without type) is a matter of slicing bytes.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property

import orjson

from capi.kube import smd
from capi.kube.errors import InternalError
from capi.kube.types import GroupKind, Object, ResourceType
from capi.server.registry.builtin.rules import KindRules
from capi.server.registry.interface import ResourceInfo
from capi.server.registry.schema import compiled as schemas
from capi.server.store.interface import Entry


class Served:
    """One resource in one version. Immutable apart from caches."""

    def __init__(
        self,
        rules: KindRules,
        storage: ResourceType,
        *,
        conversion: str = "None",
        convert: Callable[[Object, str], Object] | None = None,
        known_versions: Collection[str] | None = None,
    ) -> None:
        self.info: ResourceInfo = rules.info
        self.type: ResourceType = rules.info.type
        self.rules = rules
        self.storage = storage
        self.conversion = conversion
        self.convert = convert
        """Conversion in this process; None: as `conversion` says."""
        self.family: Family | None = None
        """All versions of this resource, this one among them."""
        self.known_versions = known_versions
        """API versions whose managedFields entries are kept; None = all."""
        self.table: str = storage.qualified_plural
        self.custom: bool = not rules.info.builtin
        self.has_status: bool = "status" in rules.info.subresources
        self.prefix = _prefix(self.type)
        self.storage_prefix = _prefix(storage)

    @cached_property
    def compiled(self) -> schemas.CompiledSchema | None:
        return schemas.compile(self.info.schema) if self.info.schema else None

    @cached_property
    def merge_schema(self) -> smd.Schema:
        """For managedFields and apply; without a schema, structure is deduced from the objects."""
        return smd.Schema.of(self.info.schema or {"type": "object", "x-kubernetes-preserve-unknown-fields": True})

    def present(self, entry: Entry) -> tuple[Object, bytes]:
        """A stored object in this version, and its JSON."""
        return self.from_storage(entry.object), self.encoded(entry)

    def encoded(self, entry: Entry) -> bytes:
        """JSON of a stored object in this version; does not look into it if it is stored in this version."""
        if entry.encoded.startswith(self.prefix):
            return entry.encoded
        stored = entry.object
        if self.rules.view_of is not None or self.convert is not None:
            return orjson.dumps(self.from_storage(stored))
        self._refuse_webhook(str(stored["apiVersion"]))
        return self.prefix + entry.encoded[len(_prefix_of(stored["apiVersion"], stored["kind"])) :]

    def from_storage(self, stored: Object) -> Object:
        """A stored object in this version."""
        if stored["apiVersion"] == self.type.api_version and self.rules.view_of is None:
            return stored
        if self.convert is not None:
            return self.convert(stored, self.type.api_version)
        self._refuse_webhook(str(stored["apiVersion"]))
        return {**self.rules.from_storage(stored), "apiVersion": self.type.api_version, "kind": self.type.kind}

    def to_storage(self, obj: Object) -> Object:
        """An object of this version as it is stored; `apiVersion` and `kind` come first."""
        if self.rules.view_of is not None:
            obj = self.rules.to_storage(obj)
        elif self.type.version != self.storage.version and self.convert is not None:
            obj = self.convert(obj, self.storage.api_version)
        elif self.type.version != self.storage.version:
            self._refuse_webhook(self.type.api_version)
        rest = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind")}
        return {"apiVersion": self.storage.api_version, "kind": self.storage.kind, **rest}

    def settled(self, obj: Object) -> Object:
        """An object of this version as it reads once it is stored."""
        return self.from_storage(self.to_storage(obj)) if self.convert is not None else obj

    def in_version(self, api_version: str) -> smd.View | None:
        """How an object of this version is seen in another one that is converted to, for the fields that are owned there."""
        if self.convert is None or self.family is None or api_version == self.type.api_version:
            return None
        other = next((s for s in self.family.versions if s.type.api_version == api_version), None)
        if other is None:
            return None
        seen = other
        return smd.View(
            lambda obj: seen.from_storage(self.to_storage(obj)),
            lambda obj: self.from_storage(seen.to_storage(obj)),
            seen.merge_schema,
        )

    def list_item(self, encoded: bytes) -> bytes:
        """JSON as an item of a list: built-in kinds leave their type out."""
        return encoded if self.custom else b"{" + encoded[len(self.prefix) :]

    def _refuse_webhook(self, stored: str) -> None:
        if self.conversion != "None":
            raise InternalError(
                f"Internal error occurred: conversion of {self.type.group_kind} between {stored} and {self.type.api_version} by"
                f" strategy {self.conversion} is not supported"
            )


def _prefix(kind: ResourceType) -> bytes:
    return _prefix_of(kind.api_version, kind.kind)


def _prefix_of(api_version: str, kind: str) -> bytes:
    return orjson.dumps({"apiVersion": api_version, "kind": kind})[:-1] + b","


class Family:
    """All served versions of one resource, preferred first."""

    def __init__(self, versions: Sequence[Served], *, owner: str = "", terminating: bool = False) -> None:
        self.versions = tuple(versions)
        for served in self.versions:
            served.family = self
        self.preferred = self.versions[0]
        self.owner = owner
        """Name of the CustomResourceDefinition; "" for built-in kinds."""
        self.terminating = terminating
        """The definition is being deleted: no new objects."""


class Catalog:
    """Everything that is served at this moment."""

    def __init__(self, builtin: Iterable[KindRules]) -> None:
        self._families: dict[tuple[str, str], Family] = {}
        self._by_kind: dict[GroupKind, Family] = {}
        self._by_table: dict[str, Served] = {}
        self._listeners: list[Callable[[], None]] = []
        self.generation = 1
        grouped: dict[tuple[str, str], list[KindRules]] = {}
        for rules in builtin:
            grouped.setdefault((rules.info.type.group, rules.info.type.plural), []).append(rules)
        for versions in grouped.values():
            self._add(Family([Served(rules, _storage_of(rules)) for rules in versions]))

    def find(self, group: str, version: str, plural: str) -> Served | None:
        family = self._families.get((group, plural))
        return next((s for s in family.versions if s.type.version == version), None) if family else None

    def family(self, group: str, plural: str) -> Family | None:
        return self._families.get((group, plural))

    def by_kind(self, kind: GroupKind) -> Served | None:
        family = self._by_kind.get(kind)
        return family.preferred if family else None

    def by_table(self, table: str) -> Served | None:
        """A version of the resource that is stored under `table`."""
        return self._by_table.get(table)

    def tables(self) -> list[Served]:
        """One entry for each kind of stored object (views of another kind's objects left out)."""
        return list(self._by_table.values())

    def all(self) -> list[Family]:
        return list(self._families.values())

    def replace(self, family: Family) -> None:
        """Serve a custom resource, in place of what was served under that name."""
        self._add(family)
        self._moved()

    def remove(self, group: str, plural: str) -> None:
        if (family := self._families.pop((group, plural), None)) is not None:
            self._by_kind.pop(family.preferred.type.group_kind, None)
            self._by_table.pop(family.preferred.table, None)
            self._moved()

    def on_change(self, listener: Callable[[], None]) -> None:
        self._listeners.append(listener)

    def _add(self, family: Family) -> None:
        kind = family.preferred.type
        self._families[kind.group, kind.plural] = family
        self._by_kind[kind.group_kind] = family
        if family.preferred.rules.view_of is None:
            self._by_table[family.preferred.table] = family.preferred

    def _moved(self) -> None:
        self.generation += 1
        for listener in self._listeners:
            listener()


def _storage_of(rules: KindRules) -> ResourceType:
    if rules.view_of is not None:
        return rules.view_of
    kind = rules.info.type
    version = rules.info.storage_version or kind.version
    return ResourceType(kind.group, version, kind.kind, kind.plural, kind.namespaced)
