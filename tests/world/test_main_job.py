"""The main job on virtual time: a pool becomes Machines, scales, heals, shrinks by the marked one, and goes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from capi.api.builtin import Node, Secret
from capi.api.core.v1beta2 import Cluster, Machine, MachinePool
from capi.api.infra.v1beta2 import DevCluster, DevMachine, DevMachinePool
from capi.kube.conditions import get, is_true
from tests.world import manifests
from tests.world.rig import World, world

pytestmark = pytest.mark.looptime


@asynccontextmanager
async def settled() -> AsyncIterator[World]:
    """A world in which a pool of three is as desired. (Not a fixture: async fixtures leak loops under virtual time.)"""
    async with world() as w:
        await w.cluster_with_pool(replicas=3)
        yield w


async def test_every_instance_becomes_a_running_machine_with_its_node() -> None:
    async with settled() as w:
        machines = await w.machines()
        assert len(machines) == 3
        nodes = {node.spec.provider_id: node.name for node in await w.workload().list(Node)}
        for machine in machines.values():
            assert machine.status is not None
            assert machine.status.phase == "Running"
            assert machine.status.node_ref is not None
            assert nodes[machine.spec.provider_id] == machine.status.node_ref.name
            assert is_true(machine.status.conditions, "Ready") and is_true(machine.status.conditions, "Available")
        assert len(nodes) == 3


async def test_the_pool_counts_its_machines() -> None:
    async with settled() as w:
        pool = await w.pool()
        assert pool.status is not None
        counters = (
            pool.status.replicas,
            pool.status.ready_replicas,
            pool.status.available_replicas,
            pool.status.up_to_date_replicas,
        )
        assert counters == (3, 3, 3, 3)
        assert pool.status.phase == "Running"
        machines = await w.machines()
        assert sorted(pool.spec.provider_id_list) == sorted(machine.spec.provider_id for machine in machines.values())
        assert {ref.name for ref in pool.status.node_refs} == {
            m.status.node_ref.name for m in machines.values() if m.status and m.status.node_ref
        }


async def test_the_cluster_is_available_with_a_kubeconfig() -> None:
    async with settled() as w:
        cluster = await w.client.get(Cluster, "quickstart", "default")
        assert cluster.status is not None
        assert cluster.status.phase == "Provisioned"
        assert is_true(cluster.status.conditions, "Available"), get(cluster.status.conditions, "Available")
        secret = await w.client.get(Secret, "quickstart-kubeconfig", "default")
        assert b"certificate-authority-data" in secret.data["value"]


async def test_scaling_up_keeps_the_machines_there_are() -> None:
    async with settled() as w:
        before = await w.machines()
        await w.client.scale(MachinePool, "workers", "default", 5)
        await w.settle()
        after = await w.machines()
        assert len(after) == 5
        assert {name: m.metadata.uid for name, m in before.items()}.items() <= {
            name: m.metadata.uid for name, m in after.items()
        }.items()
        assert all(m.status and m.status.phase == "Running" for m in after.values())


async def test_a_deleted_machine_is_replaced() -> None:
    async with settled() as w:
        victim = next(iter(await w.machines()))
        node = (await w.machines())[victim].status
        assert node is not None and node.node_ref is not None
        await w.client.delete(Machine, victim, "default")
        await w.settle()
        machines = await w.machines()
        assert len(machines) == 3 and victim not in machines
        assert node.node_ref.name not in {n.name for n in await w.workload().list(Node)}
        assert len(await w.workload().list(Node)) == 3
        assert len(await w.client.list(DevMachine, "default")) == 3


@pytest.mark.parametrize("nth", range(3))
async def test_the_marked_machine_goes_first(nth: int) -> None:
    async with settled() as w:
        names = sorted(await w.machines())
        marked = names[nth]
        body = {"metadata": {"annotations": {"cluster.x-k8s.io/delete-machine": ""}}}
        await w.client.patch(Machine.resource, marked, "default", body)
        await w.client.scale(MachinePool, "workers", "default", 2)
        await w.settle()
        assert sorted(await w.machines()) == [name for name in names if name != marked]


async def test_scaling_to_zero_and_back() -> None:
    async with settled() as w:
        await w.client.scale(MachinePool, "workers", "default", 0)
        await w.settle()
        pool = await w.pool()
        assert pool.status is not None and pool.status.phase == "Running"
        assert await w.machines() == {}
        assert await w.workload().list(Node) == []
        assert pool.spec.provider_id_list == ()
        await w.client.scale(MachinePool, "workers", "default", 2)
        await w.settle()
        assert len(await w.machines()) == 2


async def test_deleting_the_cluster_leaves_nothing() -> None:
    async with settled() as w:
        await w.client.delete(Cluster, "quickstart", "default")
        await w.settle()
        for kind in (Cluster, MachinePool, Machine, DevCluster, DevMachine, DevMachinePool):
            assert await w.client.list(kind) == [], kind
        assert [secret.name for secret in await w.client.list(Secret, "default")] == []


async def test_deleting_the_pool_leaves_the_cluster() -> None:
    async with settled() as w:
        await w.client.delete(MachinePool, "workers", "default")
        await w.settle()
        for kind in (MachinePool, Machine, DevMachine, DevMachinePool):
            assert await w.client.list(kind) == [], kind
        assert await w.workload().list(Node) == []
        cluster = await w.client.get(Cluster, "quickstart", "default")
        assert cluster.status is not None and is_true(cluster.status.conditions, "Available")


async def test_two_pools_do_not_mix() -> None:
    async with settled() as w:
        await w.apply(*manifests.pool("others", replicas=2))
        await w.settle()
        assert len(await w.machines("workers")) == 3
        assert len(await w.machines("others")) == 2
        await w.client.delete(MachinePool, "others", "default")
        await w.settle()
        assert len(await w.machines("workers")) == 3
        assert await w.machines("others") == {}


async def test_a_pool_written_before_its_cluster_and_infrastructure_comes_up() -> None:
    async with settled() as w:
        pool, infra_pool = manifests.pool("early", cluster="late", replicas=1)
        await w.apply(pool)
        await w.settle()
        assert await w.machines("early") == {}
        await w.apply(infra_pool)
        await w.settle()
        await w.apply(*manifests.cluster("late"))
        await w.settle()
        assert [m.status.phase for m in (await w.machines("early")).values() if m.status] == ["Running"]


async def test_a_paused_cluster_is_left_alone_until_it_is_resumed() -> None:
    async with settled() as w:
        await w.client.patch(Cluster.resource, "quickstart", "default", {"spec": {"paused": True}})
        await w.settle()
        pool = await w.pool()
        assert pool.status is not None and is_true(pool.status.conditions, "Paused")
        await w.client.scale(MachinePool, "workers", "default", 5)
        await w.advance(minutes=5)
        assert len(await w.machines()) == 3
        await w.client.patch(Cluster.resource, "quickstart", "default", {"spec": {"paused": None}})
        await w.settle()
        assert len(await w.machines()) == 5
        pool = await w.pool()
        assert pool.status is not None and not is_true(pool.status.conditions, "Paused")


async def test_a_long_pool_name_and_long_cluster_name_work() -> None:
    async with settled() as w:
        long = "a" * 70
        await w.apply(*manifests.pool(long, replicas=2))
        await w.settle()
        owned = [
            m
            for m in await w.client.list(Machine, "default")
            if m.metadata.controller and m.metadata.controller.name == long
        ]
        assert [m.status.phase for m in owned if m.status] == ["Running", "Running"]


async def test_min_ready_seconds_hold_availability_back() -> None:
    async with settled() as w:
        await w.apply(*manifests.pool("slow", replicas=1, template={"minReadySeconds": 60}))
        await w.settle()
        (machine,) = (await w.machines("slow")).values()
        assert machine.status is not None
        assert is_true(machine.status.conditions, "Ready") and not is_true(machine.status.conditions, "Available")
        await w.advance(seconds=61)
        (machine,) = (await w.machines("slow")).values()
        assert machine.status is not None and is_true(machine.status.conditions, "Available")
        pool = await w.pool("slow")
        assert pool.status is not None and pool.status.available_replicas == 1
