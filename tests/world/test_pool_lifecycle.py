"""What happens to a pool's instances behind its back, and what a new version does; on virtual time."""

import asyncio

import pytest

from capi.api.builtin import Node
from capi.api.core.v1beta2 import Machine, MachinePool
from capi.api.infra.v1beta2 import DevMachine, DevMachinePool
from capi.kube.conditions import is_true
from tests.world.recording import recording
from tests.world.rig import World, world

pytestmark = pytest.mark.looptime

LOST = {"metadata": {"annotations": {"devmachine.infrastructure.cluster.x-k8s.io/simulated-failure": "InstanceLost"}}}


async def nodes(w: World) -> set[str]:
    return {node.name for node in await w.workload().list(Node)}


async def test_a_lost_instance_is_replaced_with_its_machine_and_node() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=3)
        victim = min(await w.machines())
        await w.client.patch(DevMachine.resource, victim, "default", LOST)
        await w.advance(seconds=30)
        machines = await w.machines()
        assert len(machines) == 3
        assert victim not in machines
        assert await nodes(w) == set(machines) == {m.name for m in await w.client.list(DevMachine, "default")}
        assert {m.status.phase for m in machines.values()} == {"Running"}


async def test_a_dev_machine_deleted_by_hand_takes_its_machine_along() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        victim = min(await w.machines())
        await w.client.delete(DevMachine, victim, "default")
        await w.advance(seconds=30)
        machines = await w.machines()
        assert len(machines) == 2
        assert victim not in machines
        assert await nodes(w) == set(machines)


async def test_a_new_version_replaces_every_instance_without_going_below_or_far_above() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=3)
        old = set(await w.machines())
        change = {"spec": {"template": {"spec": {"version": "v1.36.0"}}}}
        await w.client.patch(MachinePool.resource, "workers", "default", change)
        for _ in range(240):
            await asyncio.sleep(0.25)
            infra = await w.client.list(DevMachine, "default")
            assert len(infra) <= 4
            assert sum(is_true(m.status.conditions, "Ready") and not m.deleting for m in infra) >= 3
        machines = await w.machines()
        assert len(machines) == 3
        assert not old & set(machines)
        versions = {
            node.status.node_info.kubelet_version for node in await w.workload().list(Node) if node.status.node_info
        }
        assert versions == {"v1.36.0"}


async def test_up_to_date_replicas_fall_and_rise_during_a_rollout() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=3)
        change = {"spec": {"template": {"spec": {"version": "v1.36.0"}}}}
        async with recording(w.client, MachinePool) as seen:
            await w.client.patch(MachinePool.resource, "workers", "default", change)
            await w.advance(minutes=2)
        pools = [e.object for e in seen if isinstance(e.object, MachinePool)]
        counted = [pool.status.up_to_date_replicas for pool in pools]
        assert min(c for c in counted if c is not None) == 0 and counted[-1] == 3
        assert any(len(pool.status.versions) == 2 for pool in pools), "both versions are to be seen"
        assert [(v.version, v.replicas) for v in pools[-1].status.versions] == [("v1.36.0", 3)]


async def test_stripped_owners_come_back_and_nothing_is_made_twice() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        before = {m.name: m.metadata.uid for m in await w.client.list(Machine)}
        for kind in (Machine, DevMachine):
            name = min(before)
            await w.client.patch(kind.resource, name, "default", {"metadata": {"ownerReferences": None}})
        await w.advance(seconds=60)
        assert {m.name: m.metadata.uid for m in await w.client.list(Machine)} == before
        for infra in await w.client.list(DevMachine):
            owners = {(ref.kind, bool(ref.controller)) for ref in infra.metadata.owner_references}
            assert owners == {("Machine", True), ("DevMachinePool", False)}


async def test_a_pool_deleted_while_its_instances_boot_leaves_nothing() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=3, vm="60s")
        await w.client.delete(MachinePool, "workers", "default")
        await w.advance(seconds=60)
        for kind in (MachinePool, Machine, DevMachine, DevMachinePool):
            assert await w.client.list(kind) == []
        assert await nodes(w) == set()
