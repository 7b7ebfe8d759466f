"""Namespaces: those that always exist, admission of new content, and emptying on deletion.

Upstream: apiserver pkg/admission/plugin/namespace/lifecycle, kubernetes pkg/controller/namespace/deletion.
"""

from collections.abc import Iterable
from datetime import datetime

from capi.kube import times
from capi.kube.errors import Cause
from capi.kube.types import Key, Object, ResourceType
from capi.server.registry import refusals
from capi.server.registry.persist import NAMESPACES
from capi.server.store.interface import Store

FINALIZER = "kubernetes"
BOOTSTRAP = ("default", "kube-system", "kube-public", "kube-node-lease")
_TYPE = ResourceType("", "v1", "Namespace", "namespaces", namespaced=False)


def check_namespace(store: Store, kind: ResourceType, namespace: str, name: str) -> None:
    """New content needs a namespace that is there to stay. Raises NotFound or Forbidden."""
    entry = store.head(NAMESPACES, Key("", namespace))
    if entry is None:
        raise refusals.not_found(_TYPE, namespace)
    if entry.object["metadata"].get("deletionTimestamp"):
        cause = Cause("NamespaceTerminating", f"namespace {namespace} is being terminated", "metadata.namespace")
        text = f"unable to create new content in namespace {namespace} because it is being terminated"
        raise refusals.forbidden(kind, name, text, [cause])


def remaining_conditions(
    namespace: Object, remaining: Iterable[tuple[str, int]], finalizers: Iterable[tuple[str, int]], now: datetime
) -> Object:
    """A terminating namespace whose conditions say what it waits for.

    `remaining` counts objects by resource, `finalizers` by finalizer.
    """
    left = [f"{resource} has {count} resource instances" for resource, count in sorted(remaining)]
    held = [f"{name} in {count} resource instances" for name, count in sorted(finalizers)]
    wanted = [
        ("NamespaceDeletionDiscoveryFailure", "False", "ResourcesDiscovered", "All resources successfully discovered"),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            "False",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        (
            "NamespaceDeletionContentFailure",
            "False",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        ("NamespaceContentRemaining", "True", "SomeResourcesRemain", f"Some resources are remaining: {', '.join(left)}")
        if left
        else ("NamespaceContentRemaining", "False", "ContentRemoved", "All content successfully removed"),
        (
            "NamespaceFinalizersRemaining",
            "True",
            "SomeFinalizersRemain",
            f"Some content in the namespace has finalizers remaining: {', '.join(held)}",
        )
        if held
        else (
            "NamespaceFinalizersRemaining",
            "False",
            "ContentHasNoFinalizers",
            "All content-preserving finalizers finished",
        ),
    ]
    status = namespace.get("status") or {}
    before = {condition["type"]: condition for condition in status.get("conditions") or ()}
    conditions = [_condition(before.get(entry[0]), entry, now) for entry in wanted]
    return {**namespace, "status": {**status, "conditions": conditions}}


def _condition(old: Object | None, wanted: tuple[str, str, str, str], now: datetime) -> Object:
    kind, state, reason, message = wanted
    moved = old["lastTransitionTime"] if old is not None and old["status"] == state else times.format(now)
    return {"type": kind, "status": state, "lastTransitionTime": moved, "reason": reason, "message": message}


def finalized(namespace: Object) -> Object:
    """The namespace without the finalizer that waits for its content."""
    spec = namespace.get("spec") or {}
    left = [name for name in spec.get("finalizers") or () if name != FINALIZER]
    kept = {name: value for name, value in spec.items() if name != "finalizers"}
    return {**namespace, "spec": {**kept, "finalizers": left} if left else kept}
