"""What is said of an object whose Cluster does not exist: it waits, and its summary condition says for what. Pure."""

from typing import Any

import msgspec

from capi.api.core.conditions import (
    EXTERNALLY_REMEDIATED,
    HEALTH_CHECK_SUCCEEDED,
    OWNER_REMEDIATED,
    PAUSED,
    Reason,
)
from capi.controllers.core.summary import unknown
from capi.kube import conditions
from capi.runtime.plan import Event, Plan

_OF_OTHERS = frozenset({PAUSED, HEALTH_CHECK_SUCCEEDED, OWNER_REMEDIATED, EXTERNALLY_REMEDIATED})
"""Conditions that the runtime or another controller writes."""


def waiting(obj: Any, cluster: str, summary: str) -> Plan:
    """Condition `summary` of a MachinePool, Machine or MachineHealthCheck is Unknown; an Event tells when that begins.

    The condition is what a new process knows by that it was told.
    """
    message = f"Cluster {cluster} does not exist"
    before = obj.status.conditions
    told = conditions.get(before, summary)
    kept = tuple(c for c in before if c.type != summary and c.type not in _OF_OTHERS)
    status = msgspec.structs.replace(obj.status, conditions=(unknown(summary, Reason.INTERNAL_ERROR, message), *kept))
    news = () if told is not None and told.message == message else (Event("ClusterNotFound", message, "Warning"),)
    return Plan(status=status, events=news)
