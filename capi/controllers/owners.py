"""Owner references and the cluster-name label: who belongs to whom.

References are applied, each under its uid, so that several owners live side by side. What cannot be expressed as an
apply is a controller reference that outlived its owner (a restored backup, a moved cluster): it is replaced by a patch
of the whole list, guarded by the resourceVersion.
Upstream: util/{collections,patch}, internal/controllers/external.
"""

from typing import Any

from capi.api.core import labels
from capi.kube.errors import CapiError, ContractError
from capi.kube.objects import OwnerReference, Resource, Unstructured, to_wire
from capi.kube.types import Object
from capi.runtime.plan import Apply, Patch, Target, Write, target


class Foreign(ContractError):
    """A provider object has another controller: it is neither used nor deleted."""


def reference(owner: Resource | Unstructured, *, controller: bool = False) -> OwnerReference:
    """A reference to `owner`; a controller reference also blocks the owner's foreground deletion."""
    return OwnerReference(
        api_version=owner.resource.api_version,
        kind=owner.resource.kind,
        name=owner.name,
        uid=owner.metadata.uid,
        controller=True if controller else None,
        block_owner_deletion=True if controller else None,
    )


def controlled_by(obj: Resource | Unstructured, owner: Resource | Unstructured) -> bool:
    """`owner` is the controller of `obj`, by uid."""
    ref = obj.metadata.controller
    return ref is not None and ref.uid == owner.metadata.uid


def is_outlived(ref: OwnerReference, owner: Resource | Unstructured) -> bool:
    """`ref` names `owner`'s predecessor: same group, kind and name, another uid."""
    return (
        ref.uid != owner.metadata.uid
        and ref.name == owner.name
        and ref.kind == owner.resource.kind
        and ref.group == owner.resource.group
    )


def foreign_controller(obj: Resource | Unstructured, owner: Resource | Unstructured) -> OwnerReference | None:
    """The controller of `obj` if that is neither `owner` nor a predecessor of it."""
    ref = obj.metadata.controller
    if ref is None or ref.uid == owner.metadata.uid or is_outlived(ref, owner):
        return None
    return ref


def foreign_trouble(obj: Resource | Unstructured, owner: Resource | Unstructured) -> Foreign | None:
    """Why `owner` cannot use `obj`, if something else controls it."""
    foreign = foreign_controller(obj, owner)
    if foreign is None:
        return None
    return Foreign(
        f"{obj.resource.kind} {obj.name} is controlled by {foreign.kind} {foreign.name}, "
        f"so {owner.resource.kind} {owner.name} cannot use it; refer to another object"
    )


def replace_outlived(obj: Resource | Unstructured, owner: Resource | Unstructured) -> Patch | None:
    """A patch that puts `owner` in the place of its predecessor as controller of `obj`; None if there is none."""
    refs = obj.metadata.owner_references
    if not any(is_outlived(ref, owner) for ref in refs):
        return None
    kept = [ref for ref in refs if not is_outlived(ref, owner) and ref.uid != owner.metadata.uid]
    wire = [to_wire(ref) for ref in (*kept, reference(owner, controller=True))]
    body = {"metadata": {"resourceVersion": obj.metadata.resource_version, "ownerReferences": wire}}
    return Patch(target(obj), body)


def adoption(obj: Unstructured, owner: Resource, cluster_name: str, *, controller: bool) -> Write:
    """Make `owner` an owner of a provider object and label it with its cluster.

    Raises Foreign if `controller` is wanted and something else is the controller already: nothing is stolen.
    """
    if controller:
        foreign = foreign_trouble(obj, owner)
        if foreign is not None:
            raise foreign
        patch = replace_outlived(obj, owner)
        if patch is not None:
            return patch
    return Apply(
        target(obj), {"metadata": membership(cluster_name, reference(owner, controller=controller))}, must_exist=True
    )


def adopt(
    obj: Unstructured | None, owner: Resource, cluster_name: str, *, controller: bool
) -> tuple[list[Write], list[CapiError]]:
    """`adoption` as writes and problems; neither for an object that is not there or on its way out (None)."""
    if obj is None:
        return [], []
    try:
        return [adoption(obj, owner, cluster_name, controller=controller)], []
    except ContractError as error:
        return [], [error]


def membership(cluster_name: str, *refs: OwnerReference) -> Object:
    """`metadata` with the cluster-name label and owner references."""
    body: Object = {"labels": {labels.CLUSTER_NAME: cluster_name}}
    if refs:
        body["ownerReferences"] = [to_wire(ref) for ref in refs]
    return body


def owned_fields(obj: Resource | Unstructured, manager: str, *path: str) -> dict[str, Any] | None:
    """FieldsV1 below `path` that `manager` applied to `obj` (subresources aside); None if it owns nothing there."""
    for entry in obj.metadata.managed_fields:
        if entry.manager == manager and entry.operation == "Apply" and not entry.subresource:
            fields: Any = entry.fields_v1
            for name in path:
                fields = fields.get(f"f:{name}") if isinstance(fields, dict) else None
            return fields if isinstance(fields, dict) else None
    return None


__all__ = [
    "Foreign", "Target", "adoption", "controlled_by", "foreign_controller", "foreign_trouble", "is_outlived", "membership",
    "owned_fields", "reference", "replace_outlived",
]  # fmt: skip
