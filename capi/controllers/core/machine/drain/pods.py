"""What happens to each Pod of a Node that is drained. Pure.

Upstream: internal/controllers/machine/drain/{filters,drain}.go.
Differs: each Pod has one verdict, so that no later filter undoes an earlier one; nothing is said about Pods without a
controller and about emptyDir volumes, whose loss is what a drain means.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum
from typing import NamedTuple

from capi.api.builtin import Node, Pod
from capi.api.core import labels
from capi.api.core.v1beta2 import MachineDrainRule
from capi.controllers.core.machine.drain.rules import rule_of
from capi.controllers.core.machine.drain.view import DrainView
from capi.kube.errors import ContractError

MIRROR = "kubernetes.io/config.mirror"
GRACE_UNREACHABLE = timedelta(seconds=1)
"""What Pods get on a Node whose kubelet does not answer: nobody there would end them in an orderly way."""
_FINISHED = ("Succeeded", "Failed")


class Behavior(Enum):
    """How a Pod is treated."""

    SKIP = "Skip"
    """It stays until the instance goes."""
    DRAIN = "Drain"
    WAIT = "WaitCompleted"
    DONE = ""
    """It was waited for, and has ended."""


class PodVerdict(NamedTuple):
    """One Pod's part in the drain."""

    pod: Pod
    behavior: Behavior
    order: int = 0


def unreachable(node: Node) -> bool:
    """The kubelet does not answer any more."""
    return any(c.type == "Ready" and c.status == "Unknown" for c in node.status.conditions)


def judge(view: DrainView, node: Node, now: datetime) -> list[PodVerdict]:
    """A verdict on each Pod, by namespace and name. Raises ContractError when a rule cannot be applied."""
    ordered = sorted(view.pods, key=lambda pod: pod.key)
    silent = unreachable(node)
    return [_verdict(pod, view, silent=silent, now=now) for pod in ordered]


def unfinished_daemon_pod(pod: Pod) -> bool:
    """Whether a DaemonSet, if it exists, would put this Pod back at once."""
    owner = pod.metadata.controller
    return owner is not None and owner.kind == "DaemonSet" and pod.status.phase not in _FINISHED


def _verdict(pod: Pod, view: DrainView, *, silent: bool, now: datetime) -> PodVerdict:
    if silent and _is_stale(pod, now):
        return PodVerdict(pod, Behavior.SKIP)
    owner = pod.metadata.controller
    if unfinished_daemon_pod(pod) and owner is not None and owner.uid in view.daemon_sets:
        return PodVerdict(pod, Behavior.SKIP)
    if MIRROR in pod.metadata.annotations:
        return PodVerdict(pod, Behavior.SKIP)
    behavior, order = _wanted(pod, view.namespaces, view.rules)
    if behavior is Behavior.WAIT and pod.status.phase in _FINISHED:
        return PodVerdict(pod, Behavior.DONE)
    return PodVerdict(pod, behavior, order)


def _is_stale(pod: Pod, now: datetime) -> bool:
    """It should have ended, and the kubelet that would say so does not answer."""
    end = pod.metadata.deletion_timestamp
    return end is not None and now - end > GRACE_UNREACHABLE


def _wanted(
    pod: Pod, namespaces: Mapping[str, Mapping[str, str]], rules: Sequence[MachineDrainRule]
) -> tuple[Behavior, int]:
    """By the Pod's own label, else by the first rule that selects it, else it is drained first."""
    said = pod.metadata.labels.get(labels.DRAIN, "").lower()
    if said == "skip":
        return Behavior.SKIP, 0
    if said == "wait-completed":
        return Behavior.WAIT, 0
    rule = rule_of(pod, namespaces.get(pod.namespace), rules)
    if rule is None:
        return Behavior.DRAIN, 0
    drain = rule.spec.drain
    if drain.behavior not in (Behavior.SKIP.value, Behavior.DRAIN.value, Behavior.WAIT.value):
        raise ContractError(f"MachineDrainRule {rule.name} has the unknown spec.drain.behavior {drain.behavior!r}")
    return Behavior(drain.behavior), drain.order or 0 if drain.behavior == Behavior.DRAIN.value else 0
