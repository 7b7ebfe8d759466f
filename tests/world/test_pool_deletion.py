"""The end of a pool in bad company: no Cluster, a workload cluster that does not answer, infrastructure of somebody else."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from capi.api.builtin import Node, Secret
from capi.api.controlplane.v1beta2 import DevControlPlane
from capi.api.core.v1beta2 import Cluster, Machine, MachinePool
from capi.api.infra.v1beta2 import DevCluster, DevMachine, DevMachinePool
from capi.kube.conditions import get
from capi.kube.objects import Resource
from capi.kube.types import Object
from tests.world import manifests
from tests.world.recording import recording
from tests.world.rig import World, world

pytestmark = pytest.mark.looptime

FAMILY: tuple[type[Resource], ...] = (MachinePool, Machine, DevMachine, DevMachinePool)


async def left(w: World) -> list[str]:
    """What there is of pools."""
    return [f"{o.resource.kind} {o.name}" for kind in FAMILY for o in await w.client.list(kind)]


async def why(w: World, pool: str = "workers") -> tuple[str, str]:
    """Reason and message of the Deleting condition."""
    found = get((await w.pool(pool)).status.conditions, "Deleting")
    assert found is not None and found.status == "True"
    return found.reason, found.message


async def pause_control_plane(w: World, value: str | None) -> None:
    note: Object = {"metadata": {"annotations": {"cluster.x-k8s.io/paused": value}}}
    await w.client.patch(DevControlPlane.resource, "quickstart", "default", note)


@asynccontextmanager
async def unreachable(**pool: object) -> AsyncIterator[World]:
    """A world with a pool whose workload cluster core cannot reach: its kubeconfig has gone, and nobody makes another."""
    async with world() as w:
        await w.cluster_with_pool(replicas=2, **pool)
        await pause_control_plane(w, "")
        await w.client.delete(Secret, "quickstart-kubeconfig", "default")
        await w.advance(seconds=30)
        yield w


async def test_a_workload_cluster_that_does_not_answer_holds_a_pool_back_no_longer_than_the_timeout() -> None:
    limits = {"nodeDrainTimeoutSeconds": 30, "nodeVolumeDetachTimeoutSeconds": 30, "nodeDeletionTimeoutSeconds": 10}
    async with unreachable(template={"deletion": limits}) as w:
        await w.client.delete(MachinePool, "workers", "default")
        await w.advance(minutes=2)
        assert await left(w) == []
        assert [c.deleting for c in await w.client.list(Cluster)] == [False]


async def test_without_a_timeout_it_says_what_it_waits_for_and_ends_when_that_comes() -> None:
    async with unreachable(template={"deletion": {"nodeDeletionTimeoutSeconds": 0}}) as w:
        names = sorted(await w.machines())
        await w.client.delete(MachinePool, "workers", "default")
        await w.advance(minutes=30)
        assert await why(w) == ("WaitingForMachinesDeletion", f"Waiting for Machines {', '.join(names)} to be deleted")
        for machine in (await w.machines()).values():
            found = get(machine.status.conditions, "Deleting")
            assert found is not None and "connection to the workload cluster" in found.message
        await pause_control_plane(w, None)
        await w.advance(minutes=2)
        assert await left(w) == []
        assert await w.workload().list(Node) == []


async def test_nodes_of_a_control_plane_that_goes_are_waited_for_no_longer() -> None:
    async with unreachable(template={"deletion": {"nodeDeletionTimeoutSeconds": 0}}) as w:
        await w.client.delete(MachinePool, "workers", "default")
        await w.advance(minutes=5)
        assert len(await w.machines()) == 2
        await w.client.delete(DevControlPlane, "quickstart", "default")
        await w.advance(seconds=10)
        assert (await w.client.get(DevControlPlane, "quickstart", "default")).deleting
        assert await w.machines() == {} and await w.client.list(DevMachine) == []


async def test_a_pool_whose_cluster_never_was_can_be_deleted() -> None:
    async with world() as w:
        await w.apply(*manifests.pool(cluster="nowhere", replicas=2))
        await w.settle()
        assert await w.machines() == {}
        await w.client.delete(MachinePool, "workers", "default")
        await w.advance(minutes=1)
        assert await left(w) == []


async def test_a_pool_that_names_another_pools_infrastructure_says_so_and_harms_nothing() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        before = {o.metadata.uid for kind in FAMILY for o in await w.client.list(kind)}
        thief, _ = manifests.pool("thief", replicas=2)
        thief["spec"]["template"]["spec"]["infrastructureRef"]["name"] = "workers"
        await w.apply(thief)
        await w.advance(seconds=30)
        pool = await w.pool("thief")
        ready = get(pool.status.conditions, "InfrastructureReady")
        assert ready is not None and "controlled by MachinePool workers" in ready.message
        assert (pool.spec.provider_id_list, pool.status.node_refs, await w.machines("thief")) == ((), (), {})
        await w.client.delete(MachinePool, "thief", "default")
        await w.advance(minutes=1)
        assert {o.metadata.uid for kind in FAMILY for o in await w.client.list(kind)} == before
        assert len(await w.workload().list(Node)) == 2
        status = (await w.pool()).status
        assert (status.phase, status.ready_replicas) == ("Running", 2)


async def test_of_two_pools_that_reach_for_one_infrastructure_one_gets_it_and_the_other_claims_nothing() -> None:
    async with world() as w:
        first, infra = manifests.pool("first", replicas=2)
        second, _ = manifests.pool("second", replicas=2)
        second["spec"]["template"]["spec"]["infrastructureRef"]["name"] = "first"
        await w.apply(*manifests.cluster(), first, second)
        await w.settle()
        await w.apply(infra)
        await w.advance(seconds=30)
        [owner] = (await w.client.get(DevMachinePool, "first", "default")).metadata.owner_references
        [loser] = {"first", "second"} - {owner.name}
        pool = await w.pool(loser)
        assert (pool.spec.provider_id_list, pool.status.node_refs, await w.machines(loser)) == ((), (), {})
        await w.client.delete(MachinePool, loser, "default")
        await w.advance(minutes=1)
        assert [pool.name for pool in await w.client.list(MachinePool)] == [owner.name]
        assert len(await w.client.list(DevMachinePool)) == 1


WRONG = [
    pytest.param("infrastructureRef", {"apiGroup": manifests.INFRA, "kind": "DevCluster", "name": "quickstart"}, id="a DevCluster"),
    pytest.param("infrastructureRef", {"apiGroup": manifests.CORE, "kind": "MachinePool", "name": "workers"}, id="a MachinePool"),
    pytest.param("infrastructureRef", {"apiGroup": manifests.CORE, "kind": "Cluster", "name": "quickstart"}, id="a Cluster"),
    pytest.param("configRef", {"apiGroup": f"controlplane.{manifests.CORE}", "kind": "DevControlPlane", "name": "quickstart"}, id="a DevControlPlane"),
]  # fmt: skip


@pytest.mark.parametrize(("field", "ref"), WRONG)
async def test_a_reference_to_something_of_another_sort_is_never_followed(field: str, ref: Object) -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=1)
        victims: tuple[type[Resource], ...] = (Cluster, DevCluster, DevControlPlane, *FAMILY)
        before = {o.metadata.uid: o.metadata.owner_references for kind in victims for o in await w.client.list(kind)}
        pool, _ = manifests.pool("wrong", replicas=1)
        template = pool["spec"]["template"]["spec"]
        template |= {"bootstrap": {"configRef": ref}} if field == "configRef" else {field: ref}
        await w.apply(pool)
        await w.advance(seconds=30)
        conditions = (await w.pool("wrong")).status.conditions
        told = get(conditions, "BootstrapConfigReady" if field == "configRef" else "InfrastructureReady")
        assert told is not None and told.status == "Unknown"
        assert f"{ref['kind']}.{ref['apiGroup']} cannot be used here" in told.message
        await w.client.delete(MachinePool, "wrong", "default")
        await w.advance(minutes=1)
        after = {o.metadata.uid: o.metadata.owner_references for kind in victims for o in await w.client.list(kind)}
        assert after == before


async def test_a_machine_that_lost_owner_and_label_goes_with_its_pool() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        lost = min(await w.machines())
        await w.stop_controllers()
        stripped: Object = {"metadata": {"ownerReferences": None, "labels": {"cluster.x-k8s.io/pool-name": None}}}
        await w.client.patch(Machine.resource, lost, "default", stripped)
        await w.client.delete(MachinePool, "workers", "default")
        await w.start_controllers()
        await w.advance(minutes=1)
        assert await left(w) == []


async def test_what_holds_the_infrastructure_is_named_and_its_end_wakes_a_pool_also_after_a_restart() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=1)
        own: list[str] = (await w.client.get(DevMachinePool.resource, "workers", "default"))["metadata"]["finalizers"]
        hold: Object = {"metadata": {"finalizers": [*own, "example.com/hold"]}}
        await w.client.patch(DevMachinePool.resource, "workers", "default", hold)
        await w.client.delete(MachinePool, "workers", "default")
        await w.advance(seconds=30)
        await w.restart_controllers()
        await w.advance(minutes=1)
        assert await why(w) == (
            "WaitingForInfrastructureDeletion",
            "Waiting for DevMachinePool workers to be deleted",
        )
        status = (await w.pool()).status
        assert (status.ready_replicas, status.available_replicas) == (0, 0)
        began = w.clock.monotonic()
        await w.client.patch(DevMachinePool.resource, "workers", "default", {"metadata": {"finalizers": None}})
        await w.settle()
        assert await left(w) == []
        assert w.clock.monotonic() - began < 5


async def test_a_pool_made_and_deleted_at_once_makes_nothing_after_that() -> None:
    async with world() as w:
        await w.apply(*manifests.cluster())
        await w.settle()
        async with recording(w.client, MachinePool, Machine, DevMachine) as seen:
            await w.apply(*manifests.pool(replicas=3, vm="20s"))
            await w.until(lambda: _some(w, DevMachine))
            await w.client.delete(MachinePool, "workers", "default")
            await w.advance(minutes=2)
        assert await left(w) == []
        deleted = next(e.revision for e in seen if isinstance(e.object, MachinePool) and e.object.deleting)
        late = [e for e in seen if e.type == "ADDED" and e.kind == "Machine" and e.revision > deleted]
        assert [e.object.name for e in late] == []


async def _some(w: World, kind: type[Resource]) -> bool:
    return bool(await w.client.list(kind))
