"""A world as it looks, without what differs between any two runs: uids, times, revisions, drawn names and addresses."""

import re
from typing import Any

from capi.api.builtin import Node, Pod, Secret
from capi.api.core.v1beta2 import MachineHealthCheck
from capi.kube.types import Object
from tests.world.rig import World
from tests.world.truth import KINDS

_VOLATILE = frozenset(
    {
        "uid", "resourceVersion", "creationTimestamp", "generation", "observedGeneration", "managedFields",
        "lastTransitionTime", "lastUpdated", "lastHeartbeatTime", "data", "machineID", "systemUUID", "bootID", "startTime",
    }
)  # fmt: skip
_DRAWN = (
    (re.compile(r"\bworkers-[a-z0-9]{5}\b"), "workers-*"),
    (re.compile(r"\b10\.\d+\.\d+\.\d+\b"), "10.*"),
)


async def picture(w: World) -> list[str]:
    """Every object, in an order that does not depend on names."""
    found: list[Object] = []
    for kind in (*KINDS, MachineHealthCheck, Secret):
        found += [{"kind": kind.__name__, **obj} for obj in await w.client.list(kind.resource)]
    if w.infra.workloads._hosted:
        for kind in (Node, Pod):
            found += [{"kind": kind.__name__, **obj} for obj in await w.workload().list(kind.resource)]
    return sorted(str(_still(obj)) for obj in found)


def _still(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        return {k: _still(v, k) for k, v in sorted(value.items()) if k not in _VOLATILE}
    if isinstance(value, list):
        return sorted((_still(v) for v in value), key=str)
    if name == "port":
        return "*"
    if isinstance(value, str):
        for pattern, instead in _DRAWN:
            value = pattern.sub(instead, value)
    return value
