"""pods/eviction: delete a Pod if its PodDisruptionBudget allows.

Upstream: kubernetes pkg/registry/core/pod/storage/eviction.go.
"""

from collections.abc import Mapping

from capi.aio.clock import Clock
from capi.kube import selectors, times
from capi.kube.errors import BadRequest, Cause, TooManyRequests
from capi.kube.types import Key, Object
from capi.server.registry import forms, refusals
from capi.server.registry.deletes import Deleter
from capi.server.registry.interface import DeleteOptions
from capi.server.registry.target import Outcome, Target
from capi.server.store.interface import Entry, Store

BUDGETS = "poddisruptionbudgets.policy"
SUCCESS: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
_REFUSAL = "Cannot evict pod as it would violate the pod's disruption budget."
_RETRY_SECONDS = 10


def evict(target: Target, eviction: Object, store: Store, deleter: Deleter, clock: Clock) -> Outcome:
    """policy/v1 Eviction: delete the Pod with its deleteOptions. Raises TooManyRequests when its budget is used up."""
    forms.check(forms.Eviction, eviction, "v1")
    name = (eviction.get("metadata") or {}).get("name")
    if name and name != target.name:
        raise BadRequest(f"name in URL does not match name in Eviction object: {target.name} vs {name}")
    options = _options(target, eviction.get("deleteOptions") or {})
    entry = store.head(target.table, target.key)
    if entry is not None and (budget := _budget(store, target, entry.object)) is not None:
        _spend(store, *budget, entry.object, clock, dry_run=options.dry_run)
    outcome = deleter.delete(target.served, target.key, options)
    return Outcome(SUCCESS, outcome.revision, created=True)


def _options(target: Target, sent: Object) -> DeleteOptions:
    preconditions = sent.get("preconditions") or {}
    return DeleteOptions(
        propagation=sent.get("propagationPolicy") or "",
        grace_period_seconds=sent.get("gracePeriodSeconds"),
        uid=str(preconditions.get("uid") or ""),
        resource_version=str(preconditions.get("resourceVersion") or ""),
        dry_run=target.options.dry_run or bool(sent.get("dryRun")),
    )


def _budget(store: Store, target: Target, pod: Object) -> tuple[Key, Entry] | None:
    """The budget that this eviction is charged to; None if it is free."""
    phase = (pod.get("status") or {}).get("phase")
    if phase in ("Succeeded", "Failed", "Pending") or pod["metadata"].get("deletionTimestamp"):
        return None
    labels: Mapping[str, str] = pod["metadata"].get("labels") or {}
    found = []
    for key in store.head_keys(BUDGETS, target.namespace):
        entry = store.head(BUDGETS, key)
        if entry is not None and selectors.labels_from_wire(entry.object["spec"].get("selector")).matches(labels):
            found.append((key, entry))
    if len(found) > 1:
        raise refusals.plain(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
    if not found or _unhealthy_is_free(found[0][1].object, pod):
        return None
    return found[0]


def _unhealthy_is_free(budget: Object, pod: Object) -> bool:
    """A Pod that is not ready does not count, under the budget's policy for such Pods."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    if any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions):
        return False
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    wanted = int(status.get("desiredHealthy") or 0)
    return wanted > 0 and int(status.get("currentHealthy") or 0) >= wanted


def _spend(store: Store, key: Key, entry: Entry, pod: Object, clock: Clock, *, dry_run: bool) -> None:
    budget, status = entry.object, entry.object.get("status") or {}
    if int(status.get("observedGeneration") or 0) < int(budget["metadata"].get("generation") or 0):
        text = f"The disruption budget {key.name} is still being processed by the server."
        raise TooManyRequests(_REFUSAL, causes=[Cause("DisruptionBudget", text)], retry_after=_RETRY_SECONDS)
    allowed = int(status.get("disruptionsAllowed") or 0)
    if allowed <= 0:
        text = (
            f"The disruption budget {key.name} needs {status.get('desiredHealthy') or 0} healthy pods"
            f" and has {status.get('currentHealthy') or 0} currently"
        )
        raise TooManyRequests(_REFUSAL, causes=[Cause("DisruptionBudget", text)])
    if not dry_run:
        disrupted = {**(status.get("disruptedPods") or {}), pod["metadata"]["name"]: times.format(clock.now())}
        spent = {**status, "disruptionsAllowed": allowed - 1, "disruptedPods": disrupted}
        store.put(BUDGETS, key, {**budget, "status": spent})
