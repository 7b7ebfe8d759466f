"""Instances of a pool: how many go, which stay, what the pool's infrastructure says of them."""

from typing import Any

import pytest

from capi.api.builtin import Node
from capi.api.core.v1beta2 import Machine, MachinePool
from capi.api.infra.v1beta2 import DevMachine, DevMachinePool
from capi.kube.conditions import get
from capi.kube.types import ResourceType
from tests.world import manifests
from tests.world.rig import World, world

pytestmark = pytest.mark.looptime

NAMESPACES = ResourceType("", "v1", "Namespace", "namespaces", namespaced=False)
HOLD = {"metadata": {"finalizers": ["machine.cluster.x-k8s.io", "example.com/hold"]}}


async def infra_pool(w: World) -> DevMachinePool:
    return await w.client.get(DevMachinePool, "workers", "default")


async def old_ready(w: World) -> Any:
    status = (await w.pool()).status
    assert status is not None and status.deprecated is not None and status.deprecated.v1beta1 is not None
    return status.deprecated.v1beta1.ready_replicas


async def test_two_three_one_none_and_back_count_the_same_in_old_and_new_counters() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        for replicas in (3, 1, 0, 2):
            await w.client.scale(MachinePool, "workers", "default", replicas)
            await w.settle()
            pool = await w.pool()
            assert pool.status is not None
            assert (pool.status.replicas, pool.status.ready_replicas) == (replicas, replicas)
            assert await old_ready(w) == replicas
            assert len(pool.spec.provider_id_list) == len(pool.status.node_refs) == replicas
            infra = (await infra_pool(w)).status
            assert (infra.replicas, infra.ready, len(infra.instances)) == (replicas, True, replicas)


async def test_many_passes_during_a_long_deletion_take_one_machine_only() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=3)
        for name in await w.machines():
            await w.client.patch(Machine.resource, name, "default", HOLD)
        await w.client.scale(MachinePool, "workers", "default", 2)
        for n in range(10):
            poke = {"metadata": {"annotations": {"poke": str(n)}}}
            await w.client.patch(DevMachinePool.resource, "workers", "default", poke)
            await w.client.patch(MachinePool.resource, "workers", "default", poke)
            await w.advance(seconds=6)
        assert [m.deleting for m in (await w.machines()).values()].count(True) == 1
        assert len(await w.client.list(DevMachine)) in (2, 3)


async def test_an_old_instance_that_is_slow_to_go_holds_up_the_next_new_one() -> None:
    """A rollout never has more instances than desired and one, those that are leaving counted too."""
    async with world() as w:
        await w.cluster_with_pool(replicas=3)
        old = await w.client.list(DevMachine)
        for infra in old:
            held = {"metadata": {"finalizers": [*infra.metadata.finalizers, "example.com/hold"]}}
            await w.client.patch(DevMachine.resource, infra.name, "default", held)
        change = {"spec": {"template": {"spec": {"version": "v1.36.0"}}}}
        await w.client.patch(MachinePool.resource, "workers", "default", change)
        for gone in range(3):
            await w.advance(minutes=5)
            there = await w.client.list(DevMachine)
            [leaving] = [m for m in there if m.deleting]
            assert len(there) == 4, f"after {gone} have gone"
            await w.client.patch(DevMachine.resource, leaving.name, "default", {"metadata": {"finalizers": None}})
        await w.settle()
        machines = await w.machines()
        assert len(machines) == 3 and not {infra.name for infra in old} & set(machines)


async def test_the_pool_s_own_provider_id_is_set_once() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=1)
        before = (await infra_pool(w)).spec.provider_id
        assert before.startswith("dev:////")
        await w.client.scale(MachinePool, "workers", "default", 3)
        await w.settle()
        assert (await infra_pool(w)).spec.provider_id == before


async def test_every_instance_is_listed_with_what_it_is() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        for instance in (await infra_pool(w)).status.instances:
            infra = await w.client.get(DevMachine, instance.instance_name, "default")
            assert instance.provider_id == infra.spec.provider_id
            assert instance.addresses == infra.status.addresses != ()
            assert (instance.version, instance.ready) == ("v1.35.4", True)


async def test_a_pool_without_a_version_runs_and_upsets_nobody() -> None:
    async with world() as w:
        await w.apply(*manifests.cluster())
        pool, infra = manifests.pool(replicas=2)
        del pool["spec"]["template"]["spec"]["version"]
        await w.apply(pool, infra)
        await w.settle()
        found = await w.pool()
        assert found.status is not None
        assert (found.status.phase, found.status.ready_replicas) == ("Running", 2), get(
            found.status.conditions, "Available"
        )
        assert w.manager.trouble() == {}


async def test_machines_of_one_pool_are_never_anothers() -> None:
    """Even where the name of one pool begins with the name of the other, or with the cluster's."""
    async with world() as w:
        await w.apply(*manifests.cluster("worker"))
        for name in ("worker", "worker-a"):
            await w.apply(*manifests.pool(name, cluster="worker", replicas=2))
        await w.settle()
        await w.client.scale(MachinePool, "worker", "default", 0)
        await w.settle()
        assert len(await w.machines("worker-a")) == 2 and await w.machines("worker") == {}
        assert len(await w.workload("worker").list(Node)) == 2


async def test_clusters_of_one_name_in_two_namespaces_do_not_meet() -> None:
    async with world() as w:
        await w.client.create(NAMESPACES, {"metadata": {"name": "other"}})
        for namespace in ("default", "other"):
            await w.apply(*manifests.cluster(namespace=namespace), *manifests.pool(namespace=namespace, replicas=2))
        await w.settle()
        machines = await w.client.list(Machine)
        assert sorted(m.namespace for m in machines) == ["default"] * 2 + ["other"] * 2
        assert len({m.spec.provider_id for m in machines}) == 4
        here = {m.name for m in machines if m.namespace == "default"}
        assert {node.name for node in await w.workload().list(Node)} == here
        await w.client.delete(MachinePool, "workers", "other")
        await w.settle()
        assert {m.name for m in await w.client.list(Machine)} == here
        assert {node.name for node in await w.workload().list(Node)} == here
