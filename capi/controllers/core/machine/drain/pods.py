"""What happens to each Pod of a Node that is drained. Pure.

Upstream: internal/controllers/machine/drain/{filters,drain}.go.
Differs: each Pod has one verdict, so that no later filter undoes an earlier one.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum
from typing import NamedTuple

from capi.api.builtin import Pod
from capi.api.core import labels
from capi.api.core.v1beta2 import MachineDrainRule
from capi.controllers.core.machine.drain.rules import rule_of
from capi.controllers.core.machine.drain.view import DrainView

MIRROR = "kubernetes.io/config.mirror"
GRACE_UNREACHABLE = timedelta(seconds=1)
"""What Pods get on a Node whose kubelet does not answer: nobody there would end them in an orderly way."""
_FINISHED = ("Succeeded", "Failed")


class Behavior(Enum):
    """How a Pod is treated."""

    SKIP = "Skip"
    DRAIN = "Drain"
    WAIT = "WaitCompleted"


class PodVerdict(NamedTuple):
    """One Pod's part in the drain."""

    pod: Pod
    behavior: Behavior
    order: int = 0
    remark: str = ""
    """What its eviction costs, in words."""


def judge(view: DrainView, rules: Sequence[MachineDrainRule], *, unreachable: bool, now: datetime) -> list[PodVerdict]:
    """A verdict on each Pod, by namespace and name. Raises ContractError for rules that cannot be read."""
    ordered = sorted(view.pods, key=lambda pod: (pod.namespace, pod.name))
    return [_verdict(pod, view, rules, unreachable=unreachable, now=now) for pod in ordered]


def _verdict(
    pod: Pod, view: DrainView, rules: Sequence[MachineDrainRule], *, unreachable: bool, now: datetime
) -> PodVerdict:
    if unreachable and _is_stale(pod, now):
        return PodVerdict(pod, Behavior.SKIP)
    owner = pod.metadata.controller
    finished = pod.status.phase in _FINISHED
    if owner is not None and owner.kind == "DaemonSet" and owner.uid in view.daemon_sets and not finished:
        return PodVerdict(pod, Behavior.SKIP)
    if MIRROR in pod.metadata.annotations:
        return PodVerdict(pod, Behavior.SKIP)
    behavior, order = _wanted(pod, view.namespaces, rules)
    if behavior is Behavior.WAIT and finished:
        return PodVerdict(pod, Behavior.SKIP)
    return PodVerdict(pod, behavior, order, _remark(pod))


def _is_stale(pod: Pod, now: datetime) -> bool:
    """It should have ended, and the kubelet that would say so does not answer."""
    began = pod.metadata.deletion_timestamp
    return began is not None and now - began > GRACE_UNREACHABLE


def _wanted(
    pod: Pod, namespaces: Mapping[str, Mapping[str, str]], rules: Sequence[MachineDrainRule]
) -> tuple[Behavior, int]:
    """By the Pod's own label, else by the first rule that selects it, else it is drained first."""
    said = pod.metadata.labels.get(labels.DRAIN, "").lower()
    if said == "skip":
        return Behavior.SKIP, 0
    if said == "wait-completed":
        return Behavior.WAIT, 0
    rule = rule_of(pod.metadata.labels, namespaces.get(pod.namespace, {}), rules)
    if rule is None:
        return Behavior.DRAIN, 0
    return Behavior(rule.spec.drain.behavior), rule.spec.drain.order or 0


def _remark(pod: Pod) -> str:
    found = []
    if any(volume.empty_dir is not None for volume in pod.spec.volumes):
        found.append("loses its emptyDir volumes")
    if pod.metadata.controller is None:
        found.append("has no controller that would replace it")
    return ", ".join(found)
