"""Filling in what reconcilers leave to the runtime: condition times, Paused, observedGeneration. Pure."""

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec

from capi.kube import conditions
from capi.kube.conditions import Condition
from capi.kube.objects import Api, Resource, to_wire
from capi.kube.types import Object

PAUSED = "Paused"
_NOT_PAUSED = Condition(type=PAUSED, status="False", reason="NotPaused")


@lru_cache(maxsize=256)
def _members(kind: type[Any]) -> frozenset[str]:
    return frozenset(kind.__struct_fields__)


def completed(obj: Resource, status: Api, now: datetime, *, succeeded: bool) -> Api:
    """`status` with its conditions' times, the Paused condition, and observedGeneration.

    observedGeneration moves only if the pass succeeded; else it stays what `obj` says.
    """
    members = _members(type(status))
    old = getattr(obj, "status", None)
    generation = obj.metadata.generation
    changes: dict[str, Any] = {}
    if "conditions" in members:
        wanted = [*(c for c in status.conditions if c.type != PAUSED), _NOT_PAUSED]  # type: ignore[attr-defined] # member checked
        changes["conditions"] = conditions.merge(getattr(old, "conditions", ()), wanted, now, generation)
    if "observed_generation" in members:
        changes["observed_generation"] = generation if succeeded else getattr(old, "observed_generation", None)
    return msgspec.structs.replace(status, **changes) if changes else status


def has_conditions(obj: Resource) -> bool:
    """True if the kind's status has a list of conditions."""
    return hasattr(getattr(obj, "status", None), "conditions")


def paused_conditions(obj: Resource, causes: Sequence[str], now: datetime) -> list[Object] | None:
    """All conditions of a paused object in wire form; None if it says so already or its status has no conditions."""
    if not has_conditions(obj):
        return None
    present: Sequence[Condition] = getattr(obj, "status").conditions  # noqa: B009 - not every Resource has it
    wanted = Condition(type=PAUSED, status="True", reason="Paused", message=", ".join(causes))
    [paused] = conditions.merge(present, [wanted], now, obj.metadata.generation)
    if paused in present:
        return None
    others = [c for c in present if c.type != PAUSED]
    return [to_wire(c) for c in (*others, paused)]
