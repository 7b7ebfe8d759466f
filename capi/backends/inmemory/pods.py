"""What a simulated kubelet makes of the Pods of its Node, and what budgets say then. Pure.

A Pod that was bound to a Node runs and is ready at once; one that is deleted ends at once. Nothing is executed, so no Pod
fails or completes by itself.

Source: PodDisruptionBudget status as in Kubernetes pkg/controller/disruption; differs: Pods are counted, not the replicas
that their controllers ask for, since no such controllers run.
"""

import math
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Literal

from capi.api.builtin import Pod
from capi.kube import selectors, times
from capi.kube.objects import Unstructured
from capi.kube.types import Object, ResourceType

BUDGETS = ResourceType("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
FORGIVEN = timedelta(minutes=2)
"""How long an eviction that was allowed counts although its Pod is not being deleted yet."""
_FINISHED = ("Succeeded", "Failed")


def due(pod: Pod) -> Literal["", "run", "end"]:
    """What the kubelet of the Pod's Node has to do."""
    if not pod.spec.node_name:
        return ""
    if pod.deleting:
        return "end"
    return "run" if pod.status.phase in ("", "Pending") else ""


def running(now: datetime) -> Object:
    """Status of a Pod that has just started."""
    stamp = times.format(now)
    conditions = [
        {"type": type_, "status": "True", "lastTransitionTime": stamp}
        for type_ in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]
    return {"status": {"phase": "Running", "startTime": stamp, "conditions": conditions}}


def guards(budget: Unstructured, pod: Pod) -> bool:
    """Whether a Pod is one of those that a budget counts."""
    selector = selectors.labels_from_wire((budget.raw.get("spec") or {}).get("selector"))
    return pod.namespace == budget.namespace and selector.matches(pod.metadata.labels)


def budget_status(budget: Unstructured, pods: Iterable[Pod], now: datetime) -> Object:
    """The status of a budget in view of the Pods it guards. O(pods)."""
    old: Object = budget.raw.get("status") or {}
    counted = [pod for pod in pods if guards(budget, pod) and pod.status.phase not in _FINISHED]
    disrupted = _disrupted(old, counted, now)
    healthy = sum(_ready(pod) and not pod.deleting and pod.name not in disrupted for pod in counted)
    desired = _desired(budget.raw.get("spec") or {}, len(counted))
    allowed = max(0, healthy - desired) if counted else 0
    said = ("True", "SufficientPods") if allowed else ("False", "InsufficientPods")
    status: Object = {
        "observedGeneration": budget.metadata.generation,
        "expectedPods": len(counted),
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "disruptionsAllowed": allowed,
        "conditions": [_condition(old, *said, budget.metadata.generation, now)],
    }
    return {**status, "disruptedPods": disrupted} if disrupted else status


def recheck(status: Object, now: datetime) -> timedelta | None:
    """When the clock alone changes a status."""
    stamps = [times.parse(stamp) for stamp in (status.get("disruptedPods") or {}).values()]
    return min(stamps) + FORGIVEN - now if stamps else None


def _disrupted(old: Object, pods: Sequence[Pod], now: datetime) -> dict[str, str]:
    """Evictions that were allowed and have not begun."""
    known: dict[str, str] = old.get("disruptedPods") or {}
    waiting = {pod.name for pod in pods if not pod.deleting}
    return {name: stamp for name, stamp in known.items() if name in waiting and now - times.parse(stamp) < FORGIVEN}


def _ready(pod: Pod) -> bool:
    return any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions)


def _desired(spec: Object, count: int) -> int:
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if least is not None:
        return _scaled(least, count)
    return max(0, count - _scaled(most, count)) if most is not None else count


def _scaled(value: int | str, count: int) -> int:
    """A number, or a percentage rounded up."""
    if isinstance(value, int):
        return value
    return math.ceil(int(value.rstrip("%")) * count / 100)


def _condition(old: Object, status: str, reason: str, generation: int, now: datetime) -> Object:
    known: Object = next((c for c in old.get("conditions") or () if c.get("type") == "DisruptionAllowed"), {})
    since = known.get("lastTransitionTime") if known.get("status") == status else None
    return {
        "type": "DisruptionAllowed",
        "status": status,
        "reason": reason,
        "message": "",
        "observedGeneration": generation,
        "lastTransitionTime": since or times.format(now),
    }
