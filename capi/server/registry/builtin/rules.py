"""What a built-in kind does beyond storing its schema: the hooks the registry calls around a write.

All functions are pure: they take parsed objects, never change them and return new ones. Order on create:
`default`, `prepare_create`, `validate(obj, None)`; on update: `default`, `prepare_update`, `validate(obj, old)`;
on the status subresource `prepare_status` stands in for `prepare_update`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from capi.kube.errors import Cause
from capi.kube.types import Object, ResourceType
from capi.server.registry.builtin import fields, names
from capi.server.registry.interface import ResourceInfo


def unchanged(obj: Object) -> Object:
    return obj


def no_causes(obj: Object, old: Object | None) -> list[Cause]:
    return []


def keep_status(new: Object, old: Object) -> Object:
    """Main resource: the status is the old one, whatever was sent."""
    return fields.with_member(new, "status", old.get("status"))


def drop_status(obj: Object) -> Object:
    """Status is not taken at create."""
    return fields.with_member(obj, "status", None)


def only_status(new: Object, old: Object) -> Object:
    """Status subresource: everything but the status is the old object's."""
    kept = fields.with_member(old, "status", new.get("status"))
    managed = (new.get("metadata") or {}).get("managedFields")
    return {**kept, "metadata": fields.with_member(kept.get("metadata") or {}, "managedFields", managed)}


def status_and_metadata(new: Object, old: Object) -> Object:
    """Status subresource of kinds whose labels, annotations and finalizers may be written there too."""
    kept = fields.with_member(new, "spec", old.get("spec"))
    meta, before = new.get("metadata") or {}, old.get("metadata") or {}
    return {**kept, "metadata": fields.with_member(meta, "ownerReferences", before.get("ownerReferences"))}


def newest(new: Object, old: Object) -> Object:
    return new


@dataclass(frozen=True, slots=True, kw_only=True)
class KindRules:
    """One built-in kind in one version."""

    info: ResourceInfo
    generation: bool = False
    """metadata.generation counts changes of everything but metadata and status; other kinds have none."""
    unconditional_update: bool = True
    """A PUT without resourceVersion overwrites; otherwise it is refused."""
    create_on_update: bool = False
    """A PUT to a missing object creates it."""
    returns_deleted: bool = False
    """A completed DELETE answers with the object instead of a Status."""
    name_errors: Callable[[str], Sequence[str]] = names.subdomain
    """What is wrong with a metadata.name; empty = nothing."""
    default: Callable[[Object], Object] = unchanged
    """Canonical form and defaults."""
    prepare_create: Callable[[Object], Object] = unchanged
    prepare_update: Callable[[Object, Object], Object] = newest
    """(new, old): what an update through the main resource may not touch is taken from `old`."""
    prepare_status: Callable[[Object, Object], Object] = only_status
    """(new, old) of a write to /status."""
    validate: Callable[[Object, Object | None], list[Cause]] = no_causes
    field: Callable[[Object, str], str] = fields.text
    """Value of a field selector path."""
    view_of: ResourceType | None = None
    """The resource in whose form objects are stored, when it is not this one."""
    to_storage: Callable[[Object], Object] = unchanged
    from_storage: Callable[[Object], Object] = unchanged
    max_life: float | None = None
    """Seconds after which objects expire by themselves (Events)."""
