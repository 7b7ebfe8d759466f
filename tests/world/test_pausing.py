"""Paused objects change nothing, say so, and go on when they are resumed."""

from typing import Any

import pytest

from capi.api.controlplane.v1beta2 import DevControlPlane
from capi.api.core.v1beta2 import Cluster, Machine, MachinePool
from capi.api.infra.v1beta2 import DevCluster, DevMachine, DevMachinePool
from capi.kube.conditions import is_true
from tests.world.rig import World, world

pytestmark = pytest.mark.looptime

FAMILY = (Cluster, MachinePool, Machine, DevCluster, DevMachine, DevMachinePool, DevControlPlane)
MARK = {"metadata": {"annotations": {"cluster.x-k8s.io/delete-machine": ""}}}


def paused(value: str | None) -> dict[str, Any]:
    return {"metadata": {"annotations": {"cluster.x-k8s.io/paused": value}}}


async def instances(w: World) -> dict[str, str]:
    return {m.name: m.metadata.uid for m in await w.client.list(DevMachine)}


async def test_every_object_of_a_paused_cluster_says_so_and_says_when_it_is_over() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        for value in (True, None):
            await w.client.patch(Cluster.resource, "quickstart", "default", {"spec": {"paused": value}})
            await w.settle()
            for kind in FAMILY:
                objects: list[Any] = list(await w.client.list(kind))
                assert objects
                for obj in objects:
                    assert is_true(obj.status.conditions, "Paused") is bool(value), f"{kind.__name__} {obj.name}"


async def test_scale_mark_and_version_wait_until_a_cluster_is_resumed() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=3)
        before = await instances(w)
        await w.client.patch(Cluster.resource, "quickstart", "default", {"spec": {"paused": True}})
        await w.settle()
        marked = min(before)
        change = {"spec": {"replicas": 2, "template": {"spec": {"version": "v1.36.0"}}}}
        await w.client.patch(MachinePool.resource, "workers", "default", change)
        await w.client.patch(Machine.resource, marked, "default", MARK)
        await w.advance(minutes=2)
        assert await instances(w) == before
        await w.client.patch(Cluster.resource, "quickstart", "default", {"spec": {"paused": None}})
        await w.advance(minutes=2)
        machines = await w.machines()
        assert len(machines) == 2 and marked not in machines
        assert {m.spec.version for m in machines.values()} == {"v1.36.0"}


async def test_paused_infrastructure_of_a_pool_makes_and_takes_nothing() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        before = await instances(w)
        await w.client.patch(DevMachinePool.resource, "workers", "default", paused(""))
        for replicas in (4, 1):
            await w.client.scale(MachinePool, "workers", "default", replicas)
            await w.advance(minutes=2)
            assert await instances(w) == before
        await w.client.scale(MachinePool, "workers", "default", 4)
        await w.client.patch(DevMachinePool.resource, "workers", "default", paused(None))
        await w.settle()
        assert len(await instances(w)) == 4
        assert before.items() <= (await instances(w)).items()


async def test_a_paused_machine_stays_until_it_is_resumed() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        name = min(await w.machines())
        await w.client.patch(Machine.resource, name, "default", paused(""))
        await w.settle()
        await w.client.delete(Machine, name, "default")
        await w.advance(minutes=2)
        assert name in await w.machines() and name in await instances(w)
        await w.client.patch(Machine.resource, name, "default", paused(None))
        await w.settle()
        assert name not in await w.machines() and len(await w.machines()) == 2
