"""Whoever waits for a condition after a change of the spec is answered: no condition lags behind its object."""

from typing import Any

import pytest

from capi.api.controlplane.v1beta2 import DevControlPlane
from capi.api.core.v1beta2 import Cluster, Machine, MachinePool
from capi.api.infra.v1beta2 import DevCluster, DevMachine, DevMachinePool
from tests.world.rig import World, world

pytestmark = pytest.mark.looptime

KINDS = (Cluster, MachinePool, Machine, DevCluster, DevMachine, DevMachinePool, DevControlPlane)


async def lagging(w: World) -> list[str]:
    """Conditions, and whole statuses, that were told of an earlier generation."""
    found: list[str] = []
    for kind in KINDS:
        objects: list[Any] = list(await w.client.list(kind))
        for obj in objects:
            generation = obj.metadata.generation
            told = {c.type: c.observed_generation for c in obj.status.conditions}
            told["status"] = getattr(obj.status, "observed_generation", generation)
            found += [f"{obj.resource.kind} {obj.name} {type_}" for type_, at in told.items() if at != generation]
    return found


async def test_every_condition_is_told_of_the_present_generation() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        assert await lagging(w) == []
        await w.client.scale(MachinePool, "workers", "default", 3)
        await w.client.patch(Cluster.resource, "quickstart", "default", {"spec": {"paused": True}})
        await w.settle()
        resumed = {"spec": {"paused": None}}
        await w.client.patch(Cluster.resource, "quickstart", "default", resumed)
        await w.settle()
        change = {"spec": {"template": {"spec": {"version": "v1.36.0"}}}}
        await w.client.patch(MachinePool.resource, "workers", "default", change)
        await w.advance(minutes=2)
        assert await lagging(w) == []


async def test_the_pause_itself_is_told_of_the_present_generation() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        await w.client.patch(Cluster.resource, "quickstart", "default", {"spec": {"paused": True}})
        await w.settle()
        await w.client.scale(MachinePool, "workers", "default", 4)
        await w.settle()
        pool = await w.pool()
        assert pool.status is not None
        [paused] = [c for c in pool.status.conditions if c.type == "Paused"]
        assert (paused.status, paused.observed_generation) == ("True", pool.metadata.generation)
