"""Conditions of the old API (`status.deprecated.v1beta1.conditions`), which clients of v1beta1 still read. Pure.

Upstream: util/conditions/deprecated/v1beta1.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from capi import contract
from capi.api.core.conditions import V1Beta1
from capi.api.core.v1beta2 import V1Beta1Condition
from capi.controllers.core.objects import Found
from capi.controllers.core.summary import ready_of

REASON, MESSAGE = 256, 10240
"""Characters that reason and message may have."""
_RANK = {"Error": 0, "Warning": 1, "Info": 2}


def true(type_: str) -> V1Beta1Condition:
    return V1Beta1Condition(type=type_, status="True")


def false(type_: str, reason: str, severity: str, message: str = "") -> V1Beta1Condition:
    return V1Beta1Condition(type=type_, status="False", severity=severity, reason=reason, message=message)


def mirrored(type_: str, found: Found, good: bool, waiting: str) -> V1Beta1Condition:
    """The Ready condition of a provider object under another type; by `good` if it reports none."""
    reported = ready_of(contract.conditions(found.obj)) if found.obj is not None else None
    if reported is None:
        return true(type_) if good else false(type_, waiting, "Info")
    if reported.status == "True":
        return true(type_)
    severity = "Info" if reported.status == "False" else ""
    return V1Beta1Condition(
        type=type_, status=reported.status, severity=severity, reason=reported.reason, message=reported.message
    )


def summary(parts: Sequence[V1Beta1Condition]) -> V1Beta1Condition:
    """Ready: what the worst part says."""
    bad = sorted((c for c in parts if c.status == "False"), key=lambda c: _RANK.get(c.severity, 2))
    worst = bad[0] if bad else next((c for c in parts if c.status != "True"), None)
    return true(V1Beta1.READY) if worst is None else msgspec.structs.replace(worst, type=V1Beta1.READY)


def stamped(
    old: Iterable[V1Beta1Condition], new: Iterable[V1Beta1Condition], now: datetime
) -> tuple[V1Beta1Condition, ...]:
    """`new` with the times of `old` where the status did not change, and cut to what is allowed."""
    before = {c.type: c for c in old}
    result = []
    for condition in new:
        known = before.get(condition.type)
        same = known is not None and known.status == condition.status and known.last_transition_time is not None
        time = known.last_transition_time if known is not None and same else now.replace(microsecond=0)
        words = {"reason": condition.reason[:REASON], "message": condition.message[:MESSAGE]}
        result.append(msgspec.structs.replace(condition, last_transition_time=time, **words))
    return tuple(result)
