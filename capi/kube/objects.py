"""The base of typed API objects.

Typed objects are frozen msgspec structs in snake_case with the exact wire names (`wire_name`). Three laws:
(1) None means absent, and no default is a meaningful value, because defaults are not encoded;
(2) decoding drops unknown fields, so a typed object is never PUT: every write applies the fields its writer owns;
(3) dicts inside stay mutable to Python: build new ones, never change one that was read.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, TypeVar, dataclass_transform

import msgspec

from capi.kube.types import Key, Object, ResourceType

_ACRONYMS = {
    "id": "ID",
    "ip": "IP",
    "uid": "UID",
    "uuid": "UUID",
    "dns": "DNS",
    "ips": "IPs",
    "cidr": "CIDR",
    "cidrs": "CIDRs",
}


def wire_name(name: str) -> str:
    """JSON name of a field: camelCase with Go's acronyms (`provider_id_list` → `providerIDList`, `uid` → `uid`)."""
    first, *rest = name.rstrip("_").split("_")
    return first + "".join(_ACRONYMS.get(word, word[:1].upper() + word[1:]) for word in rest)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class ApiMeta(msgspec.StructMeta):
    """Makes subclasses keyword-only (msgspec does not inherit that), and tells type checkers that they are frozen too."""

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **config: Any) -> Any:
        return super().__new__(mcls, name, bases, namespace, **{"kw_only": True, **config})


class Api(msgspec.Struct, metaclass=ApiMeta, frozen=True, kw_only=True, omit_defaults=True, rename=wire_name, gc=False):
    """Base of every API value. `gc=False` is safe because Kubernetes objects hold no cycles."""


class OwnerReference(Api):
    """metav1.OwnerReference."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]


class ManagedFieldsEntry(Api):
    """metav1.ManagedFieldsEntry. Caches keep only the entries of this project's own field managers."""

    manager: str = ""
    operation: str = ""
    api_version: str = ""
    subresource: str = ""
    time: datetime | None = None
    fields_type: str = ""
    fields_v1: dict[str, Any] = msgspec.field(default_factory=dict, name="fieldsV1")


class ObjectMeta(Api):
    """metav1.ObjectMeta."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()
    managed_fields: tuple[ManagedFieldsEntry, ...] = ()

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that controls this object, if any."""
        return next((ref for ref in self.owner_references if ref.controller), None)


class Resource(Api):
    """A typed top-level object. Subclasses set `resource` and add `spec`/`status`."""

    resource: ClassVar[ResourceType]
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def key(self) -> Key:
        return Key(self.metadata.namespace, self.metadata.name)

    @property
    def deleting(self) -> bool:
        return self.metadata.deletion_timestamp is not None


@dataclass(frozen=True, slots=True)
class Unstructured:
    """An object of a kind this process has no type for: `raw` is its parsed JSON, `metadata` the typed view."""

    resource: ResourceType
    metadata: ObjectMeta
    raw: Object

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def key(self) -> Key:
        return Key(self.metadata.namespace, self.metadata.name)

    @property
    def deleting(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @classmethod
    def of(cls, resource: ResourceType, raw: Object) -> "Unstructured":
        return cls(resource, msgspec.convert(raw.get("metadata") or {}, ObjectMeta), raw)


R = TypeVar("R", bound=Resource)


def to_wire(value: Api) -> Object:
    """Parsed JSON of a typed value: wire names, defaults left out, times as RFC 3339 strings.

    A `Resource` gets `apiVersion` and `kind`.
    """
    body: Object = msgspec.json.decode(msgspec.json.encode(value))  # via JSON: to_builtins would keep tuples
    if isinstance(value, Resource):
        return {"apiVersion": value.resource.api_version, "kind": value.resource.kind, **body}
    return body


def from_wire(kind: type[R], raw: Mapping[str, Any]) -> R:
    """Typed view of a parsed object; unknown fields are dropped. Raises msgspec.ValidationError with a JSON path."""
    return msgspec.convert(raw, kind)
