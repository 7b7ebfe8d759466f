"""How things go: in order, once begun nothing new comes, and a new start under the same name sees nothing of the old."""

from collections import Counter
from datetime import timedelta

import pytest

from capi.api.builtin import Node, Secret
from capi.api.controlplane.v1beta2 import DevControlPlane
from capi.api.core.v1beta2 import Cluster, Machine, MachinePool
from capi.api.infra.v1beta2 import DevCluster, DevMachine, DevMachinePool
from capi.kube.conditions import get
from tests.world import manifests
from tests.world.recording import recording
from tests.world.rig import world

pytestmark = pytest.mark.looptime

FAMILY = (Cluster, MachinePool, Machine, DevCluster, DevMachine, DevMachinePool, DevControlPlane)


async def test_pools_go_before_the_control_plane_before_the_infrastructure_and_the_cluster_goes_last() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        await w.apply(*manifests.pool("others", replicas=2))
        await w.settle()
        async with recording(w.client, *FAMILY) as seen:
            await w.client.delete(Cluster, "quickstart", "default")
            await w.settle()
        gone = seen.kinds("DELETED")
        of_each = {"Machine": 4, "DevMachine": 4, "MachinePool": 2, "DevMachinePool": 2}
        assert Counter(gone) == {**of_each, "DevControlPlane": 1, "DevCluster": 1, "Cluster": 1}
        assert gone[-3:] == ["DevControlPlane", "DevCluster", "Cluster"]
        for name in ("workers", "others"):
            order = [
                e.kind
                for e in seen
                if e.type == "DELETED" and (e.object.name == name or e.object.name.startswith(f"{name}-"))
            ]
            assert order[-2:] == ["DevMachinePool", "MachinePool"], "Machines first, then the pool's infrastructure"


async def test_a_machine_that_says_it_is_of_a_pool_that_does_not_exist_does_not_hold_a_cluster_back() -> None:
    """A pool was deleted with --cascade=orphan, say, or its controller reference was taken off."""
    async with world() as w:
        await w.cluster_with_pool(replicas=1)
        ref = {"apiGroup": manifests.INFRA, "kind": "DevMachine", "name": "stray"}
        spec = {"clusterName": "quickstart", "bootstrap": {"dataSecretName": ""}, "infrastructureRef": ref}
        marks = {"cluster.x-k8s.io/cluster-name": "quickstart", "cluster.x-k8s.io/pool-name": "past"}
        meta = {"name": "stray", "namespace": "default", "labels": marks}
        await w.client.create(Machine.resource, {"metadata": meta, "spec": spec})
        await w.settle()
        await w.client.delete(Cluster, "quickstart", "default")
        await w.settle()
        assert [o for kind in FAMILY for o in await w.client.list(kind)] == []


async def test_a_cluster_that_names_what_another_owns_says_so_and_its_end_harms_nothing() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=1)
        before = {o.metadata.uid: o.metadata.owner_references for kind in FAMILY for o in await w.client.list(kind)}
        [thief, _, _] = manifests.cluster("thief")
        for field in ("infrastructureRef", "controlPlaneRef"):
            thief["spec"][field]["name"] = "quickstart"
        await w.apply(thief)
        await w.advance(seconds=30)
        conditions = (await w.client.get(Cluster, "thief", "default")).status.conditions
        for type_ in ("InfrastructureReady", "ControlPlaneAvailable"):
            told = get(conditions, type_)
            assert told is not None and "belongs to Cluster quickstart" in told.message
        await w.client.delete(Cluster, "thief", "default")
        await w.advance(minutes=1)
        after = {o.metadata.uid: o.metadata.owner_references for kind in FAMILY for o in await w.client.list(kind)}
        assert after == before


async def test_a_machine_goes_after_its_infrastructure_and_its_node() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        victim = min(await w.machines())
        async with recording(w.client, Machine, DevMachine) as seen, recording(w.workload(), Node) as nodes:
            await w.client.delete(Machine, victim, "default")
            await w.settle()
        assert [e.kind for e in seen if e.type == "DELETED" and e.object.name == victim] == ["DevMachine", "Machine"]
        assert [e.object.name for e in nodes if e.type == "DELETED"] == [victim]


async def test_a_pool_that_is_going_makes_nothing_new() -> None:
    async with world() as w:
        await w.apply(*manifests.cluster(), *manifests.pool(replicas=3, vm="20s"))
        await w.settle()
        async with recording(w.client, Machine, DevMachine) as seen:
            await w.client.delete(MachinePool, "workers", "default")
            await w.advance(minutes=2)
        assert seen.kinds("ADDED") == []
        for kind in (MachinePool, Machine, DevMachine, DevMachinePool):
            assert await w.client.list(kind) == []


async def test_a_control_plane_waits_for_a_pool_that_cannot_go_and_the_cluster_says_so() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=1)
        [name] = await w.machines()
        hold = {"metadata": {"finalizers": ["machine.cluster.x-k8s.io", "example.com/hold"]}}
        await w.client.patch(Machine.resource, name, "default", hold)
        await w.client.delete(Cluster, "quickstart", "default")
        await w.advance(minutes=5)
        assert [c.deleting for c in await w.client.list(DevControlPlane)] == [False]
        cluster = await w.client.get(Cluster, "quickstart", "default")
        assert cluster.status is not None
        deleting = get(cluster.status.conditions, "Deleting")
        assert deleting is not None and "workers" in deleting.message
        await w.client.patch(Machine.resource, name, "default", {"metadata": {"finalizers": None}})
        await w.settle()
        assert [len(await w.client.list(kind)) for kind in FAMILY] == len(FAMILY) * [0]


async def test_a_deletion_goes_on_after_a_restart_of_the_controllers() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        [first, _] = await w.machines()
        hold = {"metadata": {"finalizers": ["machine.cluster.x-k8s.io", "example.com/hold"]}}
        await w.client.patch(Machine.resource, first, "default", hold)
        await w.client.delete(MachinePool, "workers", "default")
        await w.settle()
        await w.restart_controllers()
        await w.settle()
        assert set(await w.machines()) == {first}
        await w.client.patch(Machine.resource, first, "default", {"metadata": {"finalizers": None}})
        await w.settle()
        for kind in (MachinePool, Machine, DevMachine, DevMachinePool):
            assert await w.client.list(kind) == []


async def test_a_new_cluster_of_the_same_name_sees_nothing_of_the_old_one() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        old_nodes = {node.metadata.uid for node in await w.workload().list(Node)}
        old_kubeconfig = (await w.client.get(Secret, "quickstart-kubeconfig", "default")).data["value"]
        await w.client.delete(Cluster, "quickstart", "default")
        await w.settle()
        await w.cluster_with_pool(replicas=2)
        nodes = await w.workload().list(Node)
        assert {node.name for node in nodes} == set(await w.machines())
        assert not old_nodes & {node.metadata.uid for node in nodes}
        assert (await w.client.get(Secret, "quickstart-kubeconfig", "default")).data["value"] != old_kubeconfig


async def test_a_paused_pool_stays_until_it_is_resumed() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        note = {"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}}
        await w.client.patch(MachinePool.resource, "workers", "default", note)
        await w.client.delete(MachinePool, "workers", "default")
        await w.advance(seconds=timedelta(minutes=5).total_seconds())
        assert (await w.pool()).deleting and len(await w.machines()) == 2
        note["metadata"]["annotations"]["cluster.x-k8s.io/paused"] = None  # type: ignore[assignment] # null takes it away
        await w.client.patch(MachinePool.resource, "workers", "default", note)
        await w.settle()
        assert await w.client.list(MachinePool) == [] and await w.client.list(Machine) == []
