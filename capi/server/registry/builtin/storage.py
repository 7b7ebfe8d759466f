"""Volumes, claims, storage classes, attachments, priority classes.

Claims and volumes are not guarded by protection finalizers: nothing here would ever remove them.

Source: pkg/apis/{core,storage,scheduling}/…/defaults.go and validation of Kubernetes.
"""

from capi.kube.errors import Cause
from capi.kube.types import Object
from capi.server.registry.builtin.fields import at, section, with_default
from capi.server.registry.schema import causes


def volume_default(obj: Object) -> Object:
    spec = with_default(section(obj, "spec"), "persistentVolumeReclaimPolicy", "Retain")
    spec = with_default(spec, "volumeMode", "Filesystem")
    return {**obj, "spec": spec, "status": with_default(section(obj, "status"), "phase", "Pending")}


def claim_default(obj: Object) -> Object:
    spec = with_default(section(obj, "spec"), "volumeMode", "Filesystem")
    return {**obj, "spec": spec, "status": with_default(section(obj, "status"), "phase", "Pending")}


def pending(obj: Object) -> Object:
    """A new volume or claim."""
    return {**obj, "status": {"phase": "Pending"}}


def claim_validate(obj: Object, old: Object | None) -> list[Cause]:
    spec, found = section(obj, "spec"), list[Cause]()
    if not spec.get("accessModes"):
        found.append(causes.required("spec.accessModes", "at least 1 access mode is required"))
    if at(spec, "resources", "requests", "storage") is None:
        found.append(causes.required("spec.resources[storage]"))
    if old is not None and at(old, "spec", "volumeName"):
        before = section(old, "spec")
        changed = {
            k for k in {*spec, *before} - {"resources", "volumeAttributesClassName"} if spec.get(k) != before.get(k)
        }
        if changed:
            text = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
            found.append(causes.forbidden("spec", text))
    return found


def volume_validate(obj: Object, old: Object | None) -> list[Cause]:
    spec, found = section(obj, "spec"), list[Cause]()
    if not spec.get("accessModes"):
        found.append(causes.required("spec.accessModes"))
    if not spec.get("capacity"):
        found.append(causes.required("spec.capacity"))
    return found


def class_default(obj: Object) -> Object:
    return with_default(with_default(obj, "reclaimPolicy", "Delete"), "volumeBindingMode", "Immediate")


def class_validate(obj: Object, old: Object | None) -> list[Cause]:
    found = [] if obj.get("provisioner") else [causes.required("provisioner")]
    if old is None:
        return found
    if section(obj, "parameters") != section(old, "parameters"):
        found.append(causes.forbidden("parameters", "updates to parameters are forbidden."))
    if obj.get("provisioner") != old.get("provisioner"):
        found.append(causes.forbidden("provisioner", "updates to provisioner are forbidden."))
    if obj.get("reclaimPolicy") != old.get("reclaimPolicy"):
        found.append(causes.forbidden("reclaimPolicy", "updates to reclaimPolicy are forbidden."))
    return found + causes.immutable("volumeBindingMode", obj.get("volumeBindingMode"), old.get("volumeBindingMode"))


def attachment_validate(obj: Object, old: Object | None) -> list[Cause]:
    spec, found = section(obj, "spec"), list[Cause]()
    for name in ("attacher", "nodeName"):
        if not spec.get(name):
            found.append(causes.required(f"spec.{name}"))
    if not section(spec, "source"):
        found.append(causes.required("spec.source", "must specify either inlineVolumeSpec and persistentVolumeName"))
    return found + (causes.immutable("spec", spec, section(old, "spec")) if old is not None else [])


def attachment_default(obj: Object) -> Object:
    return {**obj, "status": with_default(section(obj, "status"), "attached", False)}


def priority_default(obj: Object) -> Object:
    return with_default(with_default(obj, "value", 0), "preemptionPolicy", "PreemptLowerPriority")


def priority_validate(obj: Object, old: Object | None) -> list[Cause]:
    name, value = str(at(obj, "metadata", "name") or ""), int(obj.get("value") or 0)
    found: list[Cause] = []
    if name.startswith("system-"):
        text = "priority class names with 'system-' prefix are reserved for system use only"
        found.append(causes.forbidden("metadata.name", text))
    elif value > 1_000_000_000:
        text = f"maximum allowed value of a user defined priority is {1_000_000_000}"
        found.append(causes.forbidden("value", text))
    if old is not None and value != int(old.get("value") or 0):
        found.append(causes.forbidden("value", "may not be changed in an update."))
    return found
