"""pods/binding: put a Pod on a node.

Upstream: kubernetes pkg/registry/core/pod/storage/storage.go (BindingREST).
"""

from capi.aio.clock import Clock
from capi.kube import times
from capi.kube.errors import Conflict, Invalid
from capi.kube.types import Object
from capi.server.registry import forms, persist, refusals
from capi.server.registry.eviction import SUCCESS
from capi.server.registry.schema import causes
from capi.server.registry.target import Outcome, Target
from capi.server.store.interface import Store


def bind(target: Target, binding: Object, store: Store, clock: Clock) -> Outcome:
    """Binding: put the Pod on a node, once."""
    forms.check(forms.Binding, binding, "v1")
    entry = store.head(target.table, target.key)
    if entry is None:
        raise refusals.not_found(target.served.type, target.name)
    goal = binding.get("target") or {}
    if goal.get("kind") not in (None, "", "Node") or not goal.get("name"):
        cause = causes.not_supported("target.kind", goal.get("kind") or "", ("Node", "<empty>"))
        if goal.get("kind") in (None, "", "Node"):
            cause = causes.required("target.name")
        raise Invalid(
            f'Binding "{target.name}" is invalid: {cause.field}: {cause.message}',
            name=target.name,
            kind="Binding",
            causes=[cause],
        )
    pod, node = entry.object, str(goal["name"])
    text = ""
    if pod["metadata"].get("deletionTimestamp"):
        text = f"pod {target.name} is being deleted, cannot be assigned to a host"
    elif assigned := (pod.get("spec") or {}).get("nodeName"):
        text = f'pod {target.name} is already assigned to node "{assigned}"'
    if text:
        message = f'Operation cannot be fulfilled on pods/binding "{target.name}": {text}'
        raise Conflict(message, name=target.name, kind="pods/binding")
    if target.options.dry_run:
        return Outcome(SUCCESS, entry.revision, created=True)
    stored = persist.replace(store, target.table, target.key, _bound(pod, binding, node, times.format(clock.now())))
    return Outcome(SUCCESS, stored.revision, created=True)


def _bound(pod: Object, binding: Object, node: str, now: str) -> Object:
    meta, status = pod["metadata"], pod.get("status") or {}
    annotations = {**(meta.get("annotations") or {}), **((binding.get("metadata") or {}).get("annotations") or {})}
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    conditions = [c for c in status.get("conditions") or () if c.get("type") != "PodScheduled"]
    return {
        **pod,
        "metadata": {**meta, "annotations": annotations} if annotations else meta,
        "spec": {**pod["spec"], "nodeName": node},
        "status": {**status, "conditions": [*conditions, scheduled]},
    }
