"""A third-party provider of the old contract: kinds that nothing here knows, and a controller that is the test."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from capi.api.builtin import Event, Node
from capi.api.core.v1beta2 import Cluster, Machine, MachinePool
from capi.kube.conditions import get, is_true
from capi.kube.types import Object, ResourceType
from tests.virtual.runtime.embedded import CRDS, a_crd
from tests.world import manifests
from tests.world.rig import World, world
from tests.world.test_nodes import counters

pytestmark = pytest.mark.looptime

POOL = ResourceType(manifests.INFRA, "v1beta1", "ExampleMachinePool", "examplemachinepools")
INSTANCE = ResourceType(manifests.INFRA, "v1alpha4", "ExampleMachine", "examplemachines")
CONTRACT = "cluster.x-k8s.io/v1beta1"
HOLD = "example.com/provider"


async def instance(w: World, name: str) -> None:
    """One more instance, with its Node."""
    labels = {"cluster.x-k8s.io/cluster-name": "quickstart", "cluster.x-k8s.io/pool-name": "workers"}
    meta: Object = {"name": name, "namespace": "default", "labels": labels, "finalizers": [HOLD]}
    await w.client.create(INSTANCE, {"metadata": meta, "spec": {"providerID": f"x://{name}"}})
    await w.client.patch(INSTANCE, name, "default", {"status": {"ready": True}}, subresource="status")
    await w.workload().create(Node.resource, {"metadata": {"name": name}, "spec": {"providerID": f"x://{name}"}})
    told = {"Ready": "True", "MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False"}
    conditions = [{"type": type_, "status": status, "reason": "Test"} for type_, status in told.items()]
    status = {"conditions": conditions, "nodeInfo": {"kubeletVersion": "v1.35.4"}}
    await w.workload().patch(Node.resource, name, "", {"status": status}, subresource="status")


async def report(w: World, *names: str) -> None:
    """The provider's pool has these."""
    body: Object = {"spec": {"providerIDList": [f"x://{name}" for name in names]}}
    await w.client.patch(POOL, "workers", "default", body)
    status = {"ready": True, "replicas": len(names), "infrastructureMachineKind": INSTANCE.kind}
    await w.client.patch(POOL, "workers", "default", {"status": status}, subresource="status")
    await w.settle()


async def let_go(w: World, resource: ResourceType, name: str) -> None:
    await w.client.patch(resource, name, "default", {"metadata": {"finalizers": None}})
    await w.settle()


@asynccontextmanager
async def of_two() -> AsyncIterator[World]:
    """A pool with instances a and b."""
    async with world() as w:
        await w.client.create(CRDS, a_crd(POOL, {CONTRACT: "v1alpha4_v1beta1"}))
        await w.client.create(CRDS, a_crd(INSTANCE, {CONTRACT: "v1alpha4"}))
        pool, _ = manifests.pool(replicas=2)
        pool["spec"]["template"]["spec"]["infrastructureRef"]["kind"] = POOL.kind
        await w.apply(*manifests.cluster(), pool)
        await w.client.create(POOL, {"metadata": {"name": "workers", "namespace": "default", "finalizers": [HOLD]}})
        await w.settle()
        for name in ("a", "b"):
            await instance(w, name)
        await report(w, "a", "b")
        yield w


async def test_instances_become_running_machines_each_kind_in_the_version_of_its_own_crd() -> None:
    async with of_two() as w:
        machines = await w.machines()
        assert {name: m.status.phase for name, m in machines.items()} == {"a": "Running", "b": "Running"}
        assert all(is_true(m.status.conditions, "Available") for m in machines.values())
        assert await counters(w) == ("Running", 2, 2, 2)
        for infra in await w.client.list(INSTANCE, "default"):
            [owner] = infra["metadata"]["ownerReferences"]
            assert (owner["kind"], owner["name"], owner["controller"]) == ("Machine", infra["metadata"]["name"], True)
        assert w.failures() == w.failures("capi-machine") == 0


async def test_scaling_down_is_the_deletion_of_a_machine() -> None:
    async with of_two() as w:
        await w.client.scale(MachinePool, "workers", "default", 1)
        await w.client.delete(Machine, "a", "default")
        await w.settle()
        going = await w.client.get(INSTANCE, "a", "default")
        assert going["metadata"]["deletionTimestamp"] and set(await w.machines()) == {"a", "b"}
        await let_go(w, INSTANCE, "a")
        await report(w, "b")
        assert set(await w.machines()) == {"b"}
        assert [node.name for node in await w.workload().list(Node)] == ["b"]
        assert await counters(w) == ("Running", 1, 1, 1)


async def test_a_machine_whose_instance_was_taken_away_is_left_to_the_provider_and_told_once() -> None:
    async with of_two() as w:
        await w.client.patch(INSTANCE, "a", "default", {"metadata": {"finalizers": None}})
        await w.client.delete(INSTANCE, "a", "default")
        await w.advance(minutes=30)
        machines = await w.machines()
        assert not machines["a"].deleting
        ready = get((await w.pool()).status.conditions, "MachinesReady")
        assert ready is not None and ready.status == "False" and "ExampleMachine a has been deleted" in ready.message
        told = [e for e in await w.client.list(Event, "default") if e.reason == "DanglingMachines"]
        assert len(told) == 1


async def test_a_provider_that_is_uninstalled_and_comes_back_is_taken_up_again() -> None:
    async with of_two() as w:
        before = {name: m.metadata.uid for name, m in (await w.machines()).items()}
        for infra in ("a", "b"):
            await w.client.patch(INSTANCE, infra, "default", {"metadata": {"finalizers": None}})
        await w.client.delete(CRDS, INSTANCE.qualified_plural)
        await w.advance(minutes=1)
        assert {name: m.metadata.uid for name, m in (await w.machines()).items()} == before, "nothing is deleted"
        ready = get((await w.pool()).status.conditions, "InfrastructureReady")
        assert ready is not None and "examplemachines" in ready.message
        newer = ResourceType(INSTANCE.group, "v1beta2", INSTANCE.kind, INSTANCE.plural)
        await w.client.create(CRDS, a_crd(newer, {"cluster.x-k8s.io/v1beta2": "v1beta2"}))
        labels = {"cluster.x-k8s.io/cluster-name": "quickstart", "cluster.x-k8s.io/pool-name": "workers"}
        for name in ("a", "b"):
            meta = {"name": name, "namespace": "default", "labels": labels}
            await w.client.create(newer, {"metadata": meta, "spec": {"providerID": f"x://{name}"}})
            said = {"status": {"initialization": {"provisioned": True}}}
            await w.client.patch(newer, name, "default", said, subresource="status")
        await w.advance(minutes=5)
        machines = await w.machines()
        assert {name: m.metadata.uid for name, m in machines.items()} == before
        assert all(is_true(m.status.conditions, "Ready") for m in machines.values())
        assert (await counters(w))[:2] == ("Running", 2)


async def test_what_a_provider_says_at_any_length_and_in_any_words_stops_nothing() -> None:
    async with of_two() as w:
        told = {"type": "Ready", "status": "False", "reason": "It broke (again)", "message": "x" * 100_000}
        flood: Object = {"status": {"conditions": [told], "failureReason": "Broken", "failureMessage": "y" * 100_000}}
        await w.client.patch(POOL, "workers", "default", flood, subresource="status")
        await w.client.patch(INSTANCE, "a", "default", flood, subresource="status")
        await w.settle()
        pool, machine = await w.pool(), (await w.machines())["a"]
        for found in (pool, machine):
            said = get(found.status.conditions, "InfrastructureReady")
            assert said is not None and (said.status, said.reason) == ("False", "Itbrokeagain")
        assert w.failures() == w.failures("capi-machine") == w.failures("capi-cluster") == 0
        before = await w.writes()
        await w.advance(hours=1)
        assert await w.writes() == before


async def test_everything_goes_with_the_cluster_in_order() -> None:
    async with of_two() as w:
        await w.client.delete(Cluster, "quickstart", "default")
        await w.settle()
        assert all(infra["metadata"].get("deletionTimestamp") for infra in await w.client.list(INSTANCE, "default"))
        assert not (await w.client.get(POOL, "workers", "default"))["metadata"].get("deletionTimestamp")
        for name in ("a", "b"):
            await let_go(w, INSTANCE, name)
        assert await w.machines() == {}
        await let_go(w, POOL, "workers")
        assert await w.client.list(MachinePool) == [] and await w.client.list(Cluster) == []
