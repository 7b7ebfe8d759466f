"""What a pool is given and what it passes on; hand-written infrastructure of either contract; what trouble leaves behind."""

from typing import Any

import pytest

from capi.api.builtin import Secret
from capi.api.controlplane.v1beta2 import DevControlPlane
from capi.api.core.v1beta2 import Cluster, Machine, MachinePool
from capi.api.infra.v1beta2 import DevMachine, DevMachinePool
from capi.kube.conditions import get, is_true
from capi.kube.types import Object
from tests.world import manifests
from tests.world.recording import recording
from tests.world.rig import World, world
from tests.world.test_nodes import counters

pytestmark = pytest.mark.looptime

PAUSED: Object = {"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}}


async def test_a_pool_gets_finalizer_label_owner_and_conditions_and_keeps_what_others_gave_it() -> None:
    async with world() as w:
        await w.apply(*manifests.cluster())
        await w.settle()
        pool, infra = manifests.pool(replicas=1)
        pool["metadata"] |= {
            "finalizers": ["example.com/other"],
            "labels": {"cluster.x-k8s.io/cluster-name": "wrong", "mine": "1"},
        }
        await w.apply(pool, infra)
        await w.settle()
        made = await w.pool()
        assert set(made.metadata.finalizers) == {"example.com/other", "machinepool.cluster.x-k8s.io"}
        assert made.metadata.labels == {"cluster.x-k8s.io/cluster-name": "quickstart", "mine": "1"}
        owner = {(ref.kind, ref.name, ref.api_version, ref.controller) for ref in made.metadata.owner_references}
        assert owner == {("Cluster", "quickstart", "cluster.x-k8s.io/v1beta2", None)}
        paused = get(made.status.conditions, "Paused")
        assert paused is not None and (paused.status, paused.reason) == ("False", "NotPaused")
        assert made.status.observed_generation == made.metadata.generation


async def test_a_new_pool_of_a_paused_cluster_touches_nothing_but_says_so() -> None:
    async with world() as w:
        await w.apply(*manifests.cluster())
        await w.settle()
        await w.client.patch(Cluster.resource, "quickstart", "default", {"spec": {"paused": True}})
        await w.apply(*manifests.pool(replicas=2))
        await w.advance(minutes=1)
        pool, infra = await w.pool(), await w.client.get(DevMachinePool, "workers", "default")
        paused = get(pool.status.conditions, "Paused")
        assert paused is not None and (paused.status, paused.reason) == ("True", "Paused")
        assert infra.metadata.owner_references == () and await w.machines() == {}


async def test_labels_and_annotations_of_the_template_come_and_go_on_all_machines() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=3)
        before = {name: m.metadata.uid for name, m in (await w.machines()).items()}
        foreign = {"metadata": {"labels": {"foreign": "1"}, "annotations": {"foreign": "1"}}}
        for name in before:
            await w.client.patch(Machine.resource, name, "default", foreign)
        for value in ("a", "b", None):
            meta = {"labels": {"team": value}, "annotations": {"note": value}}
            await w.client.patch(MachinePool.resource, "workers", "default", {"spec": {"template": {"metadata": meta}}})
            await w.settle()
            machines = await w.machines()
            assert {name: m.metadata.uid for name, m in machines.items()} == before
            assert {m.metadata.labels.get("team") for m in machines.values()} == {value}
            assert {m.metadata.annotations.get("note") for m in machines.values()} == {value}
            assert {m.metadata.labels["foreign"] for m in machines.values()} == {"1"}
            assert {m.metadata.annotations["foreign"] for m in machines.values()} == {"1"}


async def test_machines_are_made_before_the_workload_cluster_can_be_reached() -> None:
    async with world() as w:
        await w.apply(*manifests.cluster())
        await w.settle()
        await w.client.patch(DevControlPlane.resource, "quickstart", "default", PAUSED)
        await w.client.delete(Secret, "quickstart-kubeconfig", "default")
        await w.advance(seconds=30)
        await w.apply(*manifests.pool(replicas=2))
        await w.advance(seconds=30)
        machines = await w.machines()
        assert [m.status.node_ref for m in machines.values()] == [None, None], "nobody sees the Nodes"
        assert (await counters(w))[:2] == ("ScalingUp", 0) and w.failures() == 0
        resumed: Object = {"metadata": {"annotations": {"cluster.x-k8s.io/paused": None}}}
        await w.client.patch(DevControlPlane.resource, "quickstart", "default", resumed)
        await w.settle()
        assert (await counters(w))[:2] == ("Running", 2)
        assert set(await w.machines()) == set(machines)


async def test_owners_that_were_taken_while_nobody_looked_are_given_back() -> None:
    """As after a restored backup: one Machine lost owner and label, one InfraMachine its owners."""
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        before = {m.name: m.metadata.uid for m in await w.client.list(Machine)}
        [one, other] = sorted(before)
        await w.stop_controllers()
        stripped: Object = {"metadata": {"ownerReferences": None, "labels": {"cluster.x-k8s.io/pool-name": None}}}
        await w.client.patch(Machine.resource, one, "default", stripped)
        await w.client.patch(DevMachine.resource, other, "default", {"metadata": {"ownerReferences": None}})
        await w.start_controllers()
        await w.advance(minutes=1)
        machines = {m.name: m for m in await w.client.list(Machine)}
        assert {name: m.metadata.uid for name, m in machines.items()} == before
        pool = await w.pool()
        for machine in machines.values():
            [ref] = [ref for ref in machine.metadata.owner_references if ref.controller]
            assert ref.uid == pool.metadata.uid
            assert machine.metadata.labels["cluster.x-k8s.io/pool-name"] == "workers"
        for infra in await w.client.list(DevMachine):
            [ref] = [ref for ref in infra.metadata.owner_references if ref.controller]
            assert (ref.name, ref.uid) == (infra.name, before[infra.name])


async def said_of_itself(w: World, status: Object) -> None:
    """The infrastructure of the pool says `status`, and its controller says nothing."""
    await w.loosen(DevMachinePool.resource)
    await w.client.patch(DevMachinePool.resource, "workers", "default", PAUSED)
    await w.advance(seconds=5)
    await w.client.patch(DevMachinePool.resource, "workers", "default", {"status": status}, subresource="status")
    await w.advance(seconds=5)


@pytest.mark.parametrize(
    ("status", "provisioned"),
    [
        pytest.param({"initialization": {"provisioned": True}}, True, id="only the new field"),
        pytest.param({"initialization": None, "ready": True}, True, id="only the old field"),
        pytest.param({"initialization": {"provisioned": False}, "ready": True}, False, id="the new one wins"),
    ],
)
async def test_infrastructure_of_either_contract_is_understood(status: Any, provisioned: bool) -> None:
    async with world() as w:
        await w.apply(*manifests.cluster())
        pool, infra = manifests.pool(replicas=1)
        infra["metadata"]["annotations"] = {"cluster.x-k8s.io/paused": ""}
        await w.apply(pool, infra)
        await w.settle()
        await said_of_itself(w, status)
        start = (await w.pool()).status.initialization
        assert start is not None and start.infrastructure_provisioned is provisioned


async def test_a_failure_that_infrastructure_reports_stops_nobody_and_leaves_nothing_behind() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        await w.apply(*manifests.pool("others", replicas=1))
        await w.settle()
        await said_of_itself(w, {"failureReason": "CreateError", "failureMessage": "out of quota"})
        old = (await w.pool()).status.deprecated
        assert old is not None and old.v1beta1 is not None
        assert (old.v1beta1.failure_reason, "out of quota" in old.v1beta1.failure_message) == ("CreateError", True)
        assert w.failures() == 0
        await w.client.scale(MachinePool, "others", "default", 2)
        await w.settle()
        assert len(await w.machines("others")) == 2
        await said_of_itself(w, {"failureReason": None, "failureMessage": None})
        await w.client.patch(DevMachinePool.resource, "workers", "default", {"metadata": {"annotations": None}})
        await w.advance(seconds=10)
        status = (await w.pool()).status
        assert status.deprecated is not None and status.deprecated.v1beta1 is not None
        assert status.deprecated.v1beta1.failure_reason == ""
        assert (await counters(w))[:2] == ("Running", 2) and is_true(status.conditions, "InfrastructureReady")


async def test_a_pool_of_none_is_running_and_silent() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=0)
        status = (await w.pool()).status
        assert (status.phase, status.node_refs, status.replicas, status.ready_replicas) == ("Running", (), 0, 0)
        assert is_true(status.conditions, "Available") and w.failures() == 0
        async with recording(w.client, MachinePool) as seen:
            await w.advance(minutes=15)
        assert list(seen) == []
