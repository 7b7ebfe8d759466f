"""The two stages of a Machine's deletion that empty its Node: the drain, and the wait for volumes. Pure.

Both are passed over when the Node will not be deleted, when an annotation says so, when the instance has gone or goes anyway,
when pre-terminate hooks have begun, and when their timeout (from the start that the status notes) is over.
Upstream: internal/controllers/machine/machine_controller.go (isNodeDrainAllowed, drainNode, isNodeVolumeDetachingAllowed).
Differs: the Node is cordoned in a pass of its own, so that the Pods read after it are all there will be.
"""

from dataclasses import replace
from datetime import datetime, timedelta

import msgspec

from capi.api.builtin import Node
from capi.api.core import annotations
from capi.api.core.conditions import DELETING, MachineReason
from capi.api.core.v1beta2 import MachineDeletion
from capi.controllers.core.machine.drain import progress, volumes
from capi.controllers.core.machine.drain.pods import PodVerdict, judge, unreachable
from capi.controllers.core.machine.drain.progress import Progress
from capi.controllers.core.machine.scope import Scope
from capi.controllers.core.machine.stage import Stage, hooks, kept, node_of, refusal, second, time_left, times
from capi.kube import conditions
from capi.kube.errors import CapiError, ContractError
from capi.runtime.plan import ClusterKey, Event, Failures, Patch

_DRAINING, _DETACHING = MachineReason.DRAINING_NODE, MachineReason.WAITING_FOR_VOLUME_DETACH


def drain_due(seen: Scope, now: datetime) -> bool:
    """The Node has to be drained before the deletion goes on."""
    skipped = annotations.EXCLUDE_NODE_DRAINING in seen.machine.metadata.annotations
    started, limit = times(seen).node_drain_start_time, _timeouts(seen).node_drain_timeout_seconds
    return not skipped and not _over(time_left(limit, started, now)) and _node_matters(seen)


def volumes_due(seen: Scope, now: datetime) -> bool:
    """The Node's volumes have to be detached before the deletion goes on."""
    skipped = annotations.EXCLUDE_WAIT_FOR_NODE_VOLUME_DETACH in seen.machine.metadata.annotations
    started, limit = (
        times(seen).wait_for_node_volume_detach_start_time,
        _timeouts(seen).node_volume_detach_timeout_seconds,
    )
    return not skipped and not _over(time_left(limit, started, now)) and _node_matters(seen)


def _node_matters(seen: Scope) -> bool:
    """The deletion has come to the Node, and not gone on to the instance yet."""
    infra = seen.infra
    stands = infra.obscure is not None or (infra.present is not None and not infra.present.deleting)
    begun = times(seen).wait_for_pre_terminate_hook_start_time is not None
    held = hooks(seen, annotations.PRE_DRAIN_HOOK_PREFIX)
    return stands and not begun and not held and not refusal(seen)


def drain(seen: Scope, now: datetime) -> Stage | None:
    """Cordon the Node, then evict its Pods, then wait until they have gone."""
    if not drain_due(seen, now):
        return None
    node, cluster = node_of(seen), _cluster(seen)
    if not seen.connected:
        return _draining(seen, now, "Waiting for the connection to the workload cluster to drain the Node")
    if node is None:
        return None
    patch = progress.cordon(node, cluster)
    if patch is not None:
        return _cordoning(seen, now, patch)
    view = seen.drain
    assert view is not None, "read whenever a drain is due"
    if view.error is not None:
        return _failed(_draining(seen, now, ""), seen, view.error, "FailedDrainNode")
    try:
        found = progress.progress(judge(view, node, now))
    except ContractError as error:
        return _failed(_draining(seen, now, ""), seen, error, "FailedDrainNode")
    return None if found.complete else _evicting(seen, now, node, found)


def _cordoning(seen: Scope, now: datetime, patch: Patch) -> Stage:
    def failed(failures: Failures) -> Stage:
        why = f"Failed to cordon Node {patch.target.name}: {'; '.join(error.message for error in failures.values())}"
        return replace(_draining(seen, now, why), events=(Event("FailedDrainNode", why, "Warning"),))

    return Stage(
        reason=_DRAINING,
        writes=(patch,),
        requeue_after=timedelta(),
        times=kept(seen, now),
        silent=True,
        hindsight=failed,
    )


def _evicting(seen: Scope, now: datetime, node: Node, found: Progress) -> Stage:
    """Told as if every eviction were accepted, and in hindsight as they were."""
    cluster, started = _cluster(seen), _drain_started(seen, now)

    def told(failures: Failures) -> Stage:
        refused = progress.refusals(found, cluster, failures)
        stage = _draining(seen, now, progress.message(found, refused, started))
        return replace(stage, delays=progress.delays(found, refused))

    return replace(
        told({}),
        writes=progress.evictions(found, cluster, unreachable=unreachable(node)),
        hindsight=told,
        requeue_after=_sooner(progress.next_look(found, started, now), _drain_time_left(seen, started, now)),
    )


def _draining(seen: Scope, now: datetime, message: str) -> Stage:
    """Since when is noted; its timeout starts a pass."""
    started = _drain_started(seen, now)
    return Stage(
        reason=_DRAINING,
        message=message,
        times=msgspec.structs.replace(times(seen), node_drain_start_time=started),
        requeue_after=_drain_time_left(seen, started, now),
    )


def _drain_started(seen: Scope, now: datetime) -> datetime:
    return times(seen).node_drain_start_time or second(now)


def _drain_time_left(seen: Scope, started: datetime, now: datetime) -> timedelta | None:
    return time_left(_timeouts(seen).node_drain_timeout_seconds, started, now)


def volume_detach(seen: Scope, now: datetime) -> Stage | None:
    """Wait until nothing is attached to the Node that somebody will detach."""
    if not volumes_due(seen, now):
        return None
    node = node_of(seen)
    if not seen.connected:
        return _detaching(seen, now, "Waiting for the connection to the workload cluster to see the Node's volumes")
    if node is None or unreachable(node):
        return None
    view = seen.volumes
    assert view is not None, "read whenever the wait for volumes is due"
    problem = view.error or (seen.drain.error if seen.drain is not None else None)
    if problem is not None:
        return _failed(_detaching(seen, now, ""), seen, problem, "FailedWaitForVolumeDetach")
    try:
        left = volumes.waiting_for(node, view, _verdicts(seen, node, now))
    except ContractError as error:
        return _failed(_detaching(seen, now, ""), seen, error, "FailedWaitForVolumeDetach")
    if left.nothing:
        return None
    started = _detach_started(seen, now)
    stage = _detaching(seen, now, volumes.message(left, started))
    look = progress.next_look(Progress(), started, now)
    return replace(stage, requeue_after=_sooner(look, stage.requeue_after))


def _detaching(seen: Scope, now: datetime, message: str) -> Stage:
    """Since when is noted; its timeout starts a pass."""
    started = _detach_started(seen, now)
    noted = kept(seen, now) or times(seen)
    return Stage(
        reason=_DETACHING,
        message=message,
        times=msgspec.structs.replace(noted, wait_for_node_volume_detach_start_time=started),
        requeue_after=time_left(_timeouts(seen).node_volume_detach_timeout_seconds, started, now),
    )


def _detach_started(seen: Scope, now: datetime) -> datetime:
    return times(seen).wait_for_node_volume_detach_start_time or second(now)


def _failed(stage: Stage, seen: Scope, error: CapiError, reason: str) -> Stage:
    """Facts are missing: nothing is done, everything is told, and the pass is repeated."""
    event = Event(reason, error.message, "Warning")
    known = conditions.get(seen.machine.status.conditions, DELETING)
    repeated = known is not None and known.message == error.message
    return replace(stage, message=error.message, error=error, events=() if repeated else (event,))


def passed(seen: Scope, reason: str, now: datetime) -> list[Event]:
    """What ended well since the last pass, if the deletion is in another stage now, the one of `reason`."""
    before = conditions.get(seen.machine.status.conditions, DELETING)
    node = node_of(seen)
    if before is None or node is None or before.reason == reason:
        return []
    if before.reason == _DRAINING and seen.drain is not None and drain_due(seen, now):
        return [Event("SuccessfulDrainNode", f"Node {node.name} has been drained")]
    if before.reason == _DETACHING and seen.volumes is not None and volumes_due(seen, now):
        return [Event("NodeVolumesDetached", f"All volumes of Node {node.name} have been detached")]
    return []


def _verdicts(seen: Scope, node: Node, now: datetime) -> list[PodVerdict]:
    """Read only while something is attached."""
    return judge(seen.drain, node, now) if seen.drain is not None else []


def _timeouts(seen: Scope) -> MachineDeletion:
    return seen.machine.spec.deletion or MachineDeletion()


def _over(left: timedelta | None) -> bool:
    return left is not None and left <= timedelta()


def _sooner(one: timedelta, other: timedelta | None) -> timedelta:
    return one if other is None else min(one, other)


def _cluster(seen: Scope) -> ClusterKey:
    return ClusterKey(seen.machine.namespace, seen.machine.spec.cluster_name)
