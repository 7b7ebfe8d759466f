"""Where a drain is: who is evicted now, who is waited for, and why. Pure.

Upstream: internal/controllers/machine/drain/drain.go (EvictPods, EvictionResult).
Differs: looked at again after a second at first and after twenty at last, counted from the last thing that happened; why a
Pod could not be evicted is kept as a value, not searched for in a text.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

from capi.api.builtin import Node, Pod
from capi.controllers.core.machine.drain.pods import GRACE_UNREACHABLE, Behavior, PodVerdict
from capi.kube import times
from capi.kube.errors import ApiError, CapiError, TooManyRequests
from capi.runtime.plan import ClusterKey, Evict, Failures, Patch, Write, target

NAMED = 3
"""Pods that a line of the message spells out; the rest is counted."""
REASONS = 5
"""Reasons of refusals that the message spells out; the rest is counted."""
_SOONEST, _LATEST = timedelta(seconds=1), timedelta(seconds=20)
_TERMINATING = "NamespaceTerminating"
_BUDGET = "DisruptionBudget"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The Pods that keep a drain from being complete, by what they wait for."""

    evicting: Sequence[Pod] = ()
    """Their eviction is asked for now."""
    ending: Sequence[Pod] = ()
    """Evicted before, and not gone yet."""
    completing: Sequence[Pod] = ()
    """Run to their end by themselves."""
    evicted_later: Sequence[Pod] = ()
    """Their turn comes when those above are gone."""
    completing_later: Sequence[Pod] = ()

    @property
    def complete(self) -> bool:
        return not (self.evicting or self.ending or self.completing or self.evicted_later or self.completing_later)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why Pods could not be evicted."""

    text: str
    by_budget: bool = False
    """A PodDisruptionBudget forbids it for now."""


Refusals: TypeAlias = Mapping[Refusal, Sequence[Pod]]
"""The Pods that could not be evicted, by why."""


def progress(verdicts: Iterable[PodVerdict]) -> Progress:
    """Those of the lowest order present are evicted; Pods that are waited for count as order 0."""
    present = [verdict for verdict in verdicts if verdict.behavior in (Behavior.DRAIN, Behavior.WAIT)]
    if not present:
        return Progress()
    first = min(verdict.order for verdict in present)
    drained = [(v.pod, v.order == first) for v in present if v.behavior is Behavior.DRAIN]
    awaited = [(v.pod, v.order == first) for v in present if v.behavior is Behavior.WAIT]
    return Progress(
        evicting=[pod for pod, due in drained if due and not pod.deleting],
        ending=[pod for pod, _ in drained if pod.deleting],
        completing=[pod for pod, due in awaited if due],
        evicted_later=[pod for pod, due in drained if not due and not pod.deleting],
        completing_later=[pod for pod, due in awaited if not due],
    )


def evictions(found: Progress, cluster: ClusterKey, *, unreachable: bool) -> list[Write]:
    """Evictions of the Pods whose turn it is."""
    grace = int(GRACE_UNREACHABLE.total_seconds()) if unreachable else None
    return [Evict(target(pod, cluster), grace) for pod in found.evicting]


def cordon(node: Node, cluster: ClusterKey) -> Patch | None:
    """Keeps further Pods off the Node; None if nothing gets there any more."""
    if node.spec.unschedulable:
        return None
    return Patch(target(node, cluster), {"spec": {"unschedulable": True}})


def refusals(found: Progress, cluster: ClusterKey, failures: Failures) -> Refusals:
    """The Pods that could not be evicted, by why."""
    by_reason: dict[Refusal, list[Pod]] = {}
    for pod in found.evicting:
        error = failures.get(target(pod, cluster))
        if error is not None:
            by_reason.setdefault(_refusal(error), []).append(pod)
    return by_reason


def _refusal(error: CapiError) -> Refusal:
    """A budget's causes are part of the text; any other error is said to be one."""
    causes = error.causes if isinstance(error, ApiError) else ()
    if isinstance(error, TooManyRequests) and any(cause.reason == _BUDGET for cause in causes):
        said = " ".join([error.message, ", ".join(cause.message for cause in causes)])
        return Refusal(said[:1].lower() + said[1:], by_budget=True)
    if any(cause.reason == _TERMINATING for cause in causes):
        return Refusal("failed to evict Pod, its Namespace is terminating: deleted with it")
    return Refusal(f"failed to evict Pod, {error.message}")


def delays(found: Progress, refused: Refusals) -> list[str]:
    """What a drain that takes long is likely due to, for the Ready condition."""
    ending = found.ending or len(found.evicting) > sum(len(pods) for pods in refused.values())
    likely = (
        (any(why.by_budget for why in refused), "PodDisruptionBudgets"),
        (ending, "Pods not terminating"),
        (any(not why.by_budget for why in refused), "Pod eviction errors"),
        (found.completing, "Pods not completed yet"),
    )
    return [text for holds, text in likely if holds]


def message(found: Progress, refused: Refusals, started: datetime) -> str:
    """What the Deleting condition says, after the evictions."""
    waiting = {pod.metadata.uid for pods in refused.values() for pod in pods}
    ending = [*found.ending, *(pod for pod in found.evicting if pod.metadata.uid not in waiting)]
    lines = [f"Drain not completed yet (started at {times.format(started)}):"]
    lines += _line(ending, "deletionTimestamp set, but still not removed from the Node")
    reasons = sorted(refused, key=lambda why: why.text)
    for why in reasons[:REASONS]:
        lines += _line(refused[why], why.text)
    others = [pod for why in reasons[REASONS:] for pod in refused[why]]
    if others:
        lines.append(f"* {len(others)} {_kind(others)} with other issues")
    lines += _line(found.completing, "waiting for completion")
    after = "After above Pods have been removed from the Node, "
    if found.evicted_later:
        lines.append(f"{after}the following Pods will be evicted: {_names(found.evicted_later)}")
    if found.completing_later:
        lines.append(f"{after}the following Pods will be waited for to complete: {_names(found.completing_later)}")
    return "\n".join(lines)


def _line(pods: Sequence[Pod], why: str) -> list[str]:
    return [f"* {_kind(pods)} {_names(pods)}: {why}"] if pods else []


def _kind(pods: Sequence[Pod]) -> str:
    return "Pod" if len(pods) == 1 else "Pods"


def _names(pods: Sequence[Pod]) -> str:
    names = sorted(f"{pod.namespace}/{pod.name}" for pod in pods)
    more = f", ... ({len(names) - NAMED} more)" if len(names) > NAMED else ""
    return f"{', '.join(names[:NAMED])}{more}"


def next_look(found: Progress, started: datetime, now: datetime) -> timedelta:
    """Soon after something happened, rarely while nothing does."""
    newest = max([started, *map(_asked, found.ending)])
    return max(_SOONEST, min(_LATEST, (now - newest) / 4))


def _asked(pod: Pod) -> datetime:
    """When a Pod's deletion was asked for: its deletionTimestamp is when it should have ended."""
    end = pod.metadata.deletion_timestamp
    assert end is not None
    return end - timedelta(seconds=pod.metadata.deletion_grace_period_seconds or 0)
