"""metav1.Condition lists: pure functions over frozen values. Only `merge` touches times.

Source: Kubernetes API conventions; upstream util/conditions.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from capi.kube.objects import Api

MESSAGE = 32768
"""Characters that a message may have. Messages are made of what others say, of any length."""


class Condition(Api):
    """metav1.Condition. Plans leave `last_transition_time` and `observed_generation` None; `merge` fills them in."""

    type: str
    status: str
    """True, False or Unknown."""
    reason: str
    message: str = msgspec.field(default_factory=str)
    """May be empty, but is required on the wire: the factory keeps msgspec from leaving it out."""
    last_transition_time: datetime | None = None
    observed_generation: int | None = None


def get(conditions: Iterable[Condition], type_: str) -> Condition | None:
    return next((c for c in conditions if c.type == type_), None)


def is_true(conditions: Iterable[Condition], type_: str) -> bool:
    found = get(conditions, type_)
    return found is not None and found.status == "True"


def merge(
    old: Iterable[Condition], new: Sequence[Condition], now: datetime, generation: int | None = None
) -> tuple[Condition, ...]:
    """`new` with the times of `old` where the status did not change; order by the fixed table, then by name.

    A condition that already carries a transition time (mirrored from elsewhere) keeps it when its status changed.
    observedGeneration says of which generation the condition was told; `kubectl wait` believes none that lags behind. The
    write costs nothing: status.observedGeneration moves with it.
    """
    before = {c.type: c for c in old}
    merged = [_merged(before.get(c.type), c, now, generation) for c in new]
    return tuple(sorted(merged, key=_order))


def _merged(old: Condition | None, new: Condition, now: datetime, generation: int | None) -> Condition:
    observed = new.observed_generation or generation
    if len(new.message) > MESSAGE:
        new = msgspec.structs.replace(new, message=f"{new.message[: MESSAGE - 3]}...")
    if old is not None and (old.status, old.reason, old.message) == (new.status, new.reason, new.message):
        same = observed is None or observed == old.observed_generation
        return old if same else msgspec.structs.replace(old, observed_generation=observed)
    changed = old is None or old.status != new.status
    time = (new.last_transition_time or now) if changed or old is None else old.last_transition_time
    return Condition(
        type=new.type,
        status=new.status,
        reason=new.reason,
        message=new.message,
        last_transition_time=(time or now).replace(microsecond=0),
        observed_generation=observed,
    )


_FIRST = (
    "Available", "Ready", "UpToDate", "RemoteConnectionProbe", "BootstrapConfigReady", "InfrastructureReady",
    "ControlPlaneInitialized", "ControlPlaneAvailable", "WorkersAvailable", "NodeHealthy", "NodeReady",
    "HealthCheckSucceeded", "OwnerRemediated", "Updating", "RollingOut", "Remediating", "ScalingDown", "ScalingUp",
    "MachinesReady", "MachinesUpToDate",
)  # fmt: skip
_LAST = ("Paused", "Deleting")


def _order(condition: Condition) -> tuple[int, int, str]:
    if condition.type in _FIRST:
        return 0, _FIRST.index(condition.type), ""
    if condition.type in _LAST:
        return 2, _LAST.index(condition.type), ""
    return 1, 0, condition.type
