"""Where a drain is: who is evicted now, who is waited for, and why. Pure.

Upstream: internal/controllers/machine/drain/drain.go, internal/controllers/machine/machine_controller.go (drainNode).
Differs: looked at again after a second at first and twenty at last; a Pod's refusal is kept as a value, not searched for in text.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from capi.api.builtin import Node, Pod
from capi.controllers.core.machine.drain.pods import GRACE_UNREACHABLE, Behavior, PodVerdict
from capi.kube import times
from capi.runtime.plan import ClusterKey, Evict, Patch, Write, target

NAMED = 3
"""Pods that a line of the message spells out; the rest is counted."""
_SOONEST, _LATEST = timedelta(seconds=1), timedelta(seconds=20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The Pods that keep a drain from being complete, by what they wait for."""

    evicting: Sequence[PodVerdict] = ()
    """Their eviction is asked for now."""
    refused: Mapping[str, Sequence[Pod]] = field(default_factory=dict)
    """Those of them whose last eviction was refused, by why."""
    ending: Sequence[Pod] = ()
    """Evicted before, and not gone yet."""
    completing: Sequence[Pod] = ()
    """Run to their end by themselves."""
    later: Sequence[Pod] = ()
    """Of a higher order: evicted when those above are gone."""

    @property
    def complete(self) -> bool:
        return not (self.evicting or self.ending or self.completing or self.later)

    @property
    def causes(self) -> list[str]:
        """Why it may take long, for the Ready condition."""
        found = []
        if any("disruption budget" in why for why in self.refused):
            found.append("PodDisruptionBudgets")
        if self.ending:
            found.append("Pods not terminating")
        if any("disruption budget" not in why for why in self.refused):
            found.append("Pod eviction errors")
        if self.completing:
            found.append("Pods not completed yet")
        return found


def progress(verdicts: Iterable[PodVerdict], refused: Mapping[str, str]) -> Progress:
    """Those of the lowest order present are evicted; Pods that are waited for count as order 0."""
    present = [verdict for verdict in verdicts if verdict.behavior is not Behavior.SKIP]
    if not present:
        return Progress()
    first = min(verdict.order for verdict in present)
    due = [verdict for verdict in present if verdict.order == first]
    evicting = [v for v in due if v.behavior is Behavior.DRAIN and v.pod.metadata.deletion_timestamp is None]
    return Progress(
        evicting=evicting,
        refused=_by_reason(evicting, refused),
        ending=[v.pod for v in present if v.behavior is Behavior.DRAIN and v.pod.metadata.deletion_timestamp],
        completing=[v.pod for v in due if v.behavior is Behavior.WAIT],
        later=[v.pod for v in present if v.order != first and v.pod.metadata.deletion_timestamp is None],
    )


def _by_reason(evicting: Iterable[PodVerdict], refused: Mapping[str, str]) -> dict[str, list[Pod]]:
    found: dict[str, list[Pod]] = {}
    for verdict in evicting:
        why = refused.get(verdict.pod.metadata.uid)
        if why is not None:
            found.setdefault(why, []).append(verdict.pod)
    return found


def evictions(found: Progress, cluster: ClusterKey, *, unreachable: bool) -> list[Write]:
    """Evictions of the Pods whose turn it is."""
    grace = int(GRACE_UNREACHABLE.total_seconds()) if unreachable else None
    return [Evict(target(verdict.pod, cluster), grace) for verdict in found.evicting]


def cordon(node: Node, cluster: ClusterKey) -> Patch | None:
    """Keeps further Pods off the Node; None if nothing gets there any more."""
    if node.spec.unschedulable:
        return None
    return Patch(target(node, cluster), {"spec": {"unschedulable": True}})


def message(found: Progress, started: datetime) -> str:
    """What the Deleting condition says."""
    waiting = [pod for pods in found.refused.values() for pod in pods]
    asked = [v.pod for v in found.evicting if v.pod not in waiting]
    lines = [f"Drain not completed yet (started at {times.format(started)}):"]
    lines += _line(found.ending, "deletionTimestamp set, but still not removed from the Node")
    for why, pods in sorted(found.refused.items()):
        lines += _line(pods, why)
    lines += _line(asked, "eviction requested")
    lines += _line(found.completing, "waiting for completion")
    if found.later:
        lines.append(f"After above Pods have been removed from the Node, {_names(found.later)} will be evicted")
    return "\n".join(lines)


def _line(pods: Sequence[Pod], why: str) -> list[str]:
    return [f"* {_names(pods)}: {why}"] if pods else []


def _names(pods: Sequence[Pod]) -> str:
    names = sorted(f"{pod.namespace}/{pod.name}" for pod in pods)
    more = f", ... ({len(names) - NAMED} more)" if len(names) > NAMED else ""
    return f"{'Pod' if len(names) == 1 else 'Pods'} {', '.join(names[:NAMED])}{more}"


def next_look(started: datetime, now: datetime) -> timedelta:
    """A drain that has just begun is looked at often, one that takes long is not."""
    return max(_SOONEST, min(_LATEST, (now - started) / 4))
