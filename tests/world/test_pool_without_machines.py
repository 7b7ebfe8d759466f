"""A pool whose infrastructure shows no single instances: a kind of a third party, whose controller is the test."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from capi.api.builtin import Node, Secret
from capi.api.controlplane.v1beta2 import DevControlPlane
from capi.api.core.v1beta2 import Machine, MachinePool
from capi.kube.conditions import get
from capi.kube.types import Object, ResourceType
from tests.virtual.runtime.embedded import CRDS, a_crd
from tests.world import manifests
from tests.world.recording import recording
from tests.world.rig import World, world
from tests.world.test_nodes import set_ready

pytestmark = pytest.mark.looptime

INFRA = ResourceType(manifests.INFRA, "v1", "ExampleMachinePool", "examplemachinepools")
NODES = Node.resource


async def report(w: World, ids: Sequence[str], replicas: int | None = None, **status: Any) -> None:
    """The provider has these instances."""
    await w.client.patch(INFRA, "workers", "default", {"spec": {"providerIDList": list(ids)}})
    said = {"ready": True, "replicas": len(ids) if replicas is None else replicas, **status}
    await w.client.patch(INFRA, "workers", "default", {"status": said}, subresource="status")
    await w.settle()


async def join(w: World, name: str, provider_id: str, *, ready: str = "True", version: str = "v1.35.4") -> None:
    """An instance registers its Node."""
    taints = [
        {"key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoSchedule"},
        {"key": "dedicated", "effect": "NoSchedule"},
    ]
    meta = {"name": name, "annotations": {"mine": "1"}}
    await w.workload().create(NODES, {"metadata": meta, "spec": {"providerID": provider_id, "taints": taints}})
    now = datetime.fromtimestamp(w.clock.now().timestamp(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    condition = {"type": "Ready", "status": ready, "reason": "Test", "lastTransitionTime": now}
    status = {"conditions": [condition], "nodeInfo": {"kubeletVersion": version}}
    await w.workload().patch(NODES, name, "", {"status": status}, subresource="status")


async def end(w: World) -> None:
    """The provider finishes the deletion of its object."""
    await w.client.patch(INFRA, "workers", "default", {"metadata": {"finalizers": None}})


@asynccontextmanager
async def of_two(**template: Any) -> AsyncIterator[World]:
    """A pool of two instances, x://a/0 and x://a/1, on Nodes a and b."""
    async with world() as w:
        await w.client.create(CRDS, a_crd(INFRA, {"cluster.x-k8s.io/v1beta1": "v1"}))
        pool, _ = manifests.pool(replicas=2, template=template)
        pool["spec"]["template"]["spec"]["infrastructureRef"]["kind"] = INFRA.kind
        meta = {"name": "workers", "namespace": "default", "finalizers": ["example.com/provider"]}
        await w.apply(*manifests.cluster(), pool)
        await w.client.create(INFRA, {"metadata": meta, "spec": {}})
        await w.settle()
        await join(w, "a", "x://a/0")
        await join(w, "b", "x://a/1")
        await report(w, ["x://a/0", "x://a/1"])
        yield w


async def counted(w: World) -> tuple[Any, ...]:
    """Phase; replicas, ready, available, up to date; Nodes that are ready and available; names referred to."""
    status = (await w.pool()).status
    assert status.deprecated is not None and status.deprecated.v1beta1 is not None
    old = status.deprecated.v1beta1
    counters = (status.replicas, status.ready_replicas, status.available_replicas, status.up_to_date_replicas)
    return status.phase, counters, (old.ready_replicas, old.available_replicas), [ref.name for ref in status.node_refs]


async def test_nodes_are_referred_to_marked_and_counted() -> None:
    async with of_two() as w:
        assert await counted(w) == ("Running", (2, 2, 2, 2), (2, 2), ["a", "b"])
        for node in await w.workload().list(NODES):
            assert [taint["key"] for taint in node["spec"]["taints"]] == ["dedicated"]
            marks = node["metadata"]["annotations"]
            assert marks == {
                "mine": "1",
                "cluster.x-k8s.io/cluster-name": "quickstart",
                "cluster.x-k8s.io/cluster-namespace": "default",
                "cluster.x-k8s.io/owner-kind": "MachinePool",
                "cluster.x-k8s.io/owner-name": "workers",
            }
        assert await w.client.list(Machine) == [] and w.failures() == 0
        status = (await w.pool()).status
        assert [(v.version, v.replicas) for v in status.versions] == [("v1.35.4", 2)]


async def test_one_that_is_not_ready_is_counted_out_and_in_again_without_a_poll() -> None:
    async with of_two() as w:
        await set_ready(w, "b", "False")
        await w.settle()
        assert (await counted(w))[0] == "ScalingUp" and (await counted(w))[2] == (1, 1)
        async with recording(w.client, MachinePool) as seen:
            await w.advance(minutes=10)
        assert list(seen) == []
        await set_ready(w, "b", "True")
        await w.settle()
        assert (await counted(w))[0] == "Running" and (await counted(w))[2] == (2, 2)


async def test_min_ready_seconds_have_a_timer() -> None:
    async with of_two(minReadySeconds=600) as w:
        assert (await counted(w))[2] == (2, 0)
        await w.advance(seconds=601)
        assert (await counted(w))[2] == (2, 2)


async def test_a_new_instance_is_scaling_up_until_its_node_is_ready() -> None:
    async with of_two() as w:
        await w.client.scale(MachinePool, "workers", "default", 3)
        await report(w, ["x://a/0", "x://a/1", "x://a/2"])
        assert await counted(w) == ("ScalingUp", (3, 3, 3, 3), (2, 2), ["a", "b"])
        await join(w, "c", "x://a/2", version="v1.36.0")
        await w.settle()
        assert await counted(w) == ("Running", (3, 3, 3, 3), (3, 3), ["a", "b", "c"])
        versions = {v.version: v.replicas for v in (await w.pool()).status.versions}
        assert versions == {"v1.35.4": 2, "v1.36.0": 1}


async def test_the_node_of_an_instance_that_left_is_deleted_and_no_other() -> None:
    async with of_two() as w:
        await join(w, "foreign", "y://a/0")
        await w.client.scale(MachinePool, "workers", "default", 1)
        await report(w, ["x://a/1"])
        assert sorted(node.name for node in await w.workload().list(Node)) == ["b", "foreign"]
        assert await counted(w) == ("Running", (1, 1, 1, 1), (1, 1), ["b"])


async def test_at_zero_nothing_is_left_and_an_empty_list_beside_replicas_means_not_yet() -> None:
    async with of_two() as w:
        await report(w, [], replicas=2)
        assert (await w.pool()).spec.provider_id_list == ("x://a/0", "x://a/1")
        assert len(await w.workload().list(Node)) == 2
        await w.client.scale(MachinePool, "workers", "default", 0)
        await report(w, [])
        assert await counted(w) == ("Running", (0, 0, 0, 0), (0, 0), [])
        assert await w.workload().list(Node) == [] and w.failures() == 0


async def test_its_nodes_go_with_it_when_its_infrastructure_has_gone() -> None:
    async with of_two() as w:
        await join(w, "foreign", "y://a/0")
        await w.client.delete(MachinePool, "workers", "default")
        await w.settle()
        assert len(await w.workload().list(Node)) == 3
        await end(w)
        await w.settle()
        assert [node.name for node in await w.workload().list(Node)] == ["foreign"]
        assert await w.client.list(MachinePool) == []


async def test_it_waits_for_the_connection_says_so_and_goes_on_when_there_is_one() -> None:
    async with of_two(deletion={"nodeDeletionTimeoutSeconds": 0}) as w:
        note: Object = {"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}}
        await w.client.patch(DevControlPlane.resource, "quickstart", "default", note)
        await w.client.delete(Secret, "quickstart-kubeconfig", "default")
        await w.advance(seconds=30)
        await w.client.delete(MachinePool, "workers", "default")
        await w.settle()
        await end(w)
        await w.advance(hours=1)
        await w.restart_controllers()
        await w.advance(hours=1)
        why = get((await w.pool()).status.conditions, "Deleting")
        assert why is not None and why.reason == "DeletingNode"
        assert why.message == "Waiting for the connection to the workload cluster to delete Nodes"
        note["metadata"]["annotations"]["cluster.x-k8s.io/paused"] = None
        await w.client.patch(DevControlPlane.resource, "quickstart", "default", note)
        await w.advance(minutes=1)
        assert await w.client.list(MachinePool) == [] and await w.workload().list(Node) == []


async def test_the_timeout_ends_the_wait_for_the_connection() -> None:
    async with of_two(deletion={"nodeDeletionTimeoutSeconds": 300}) as w:
        note: Object = {"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}}
        await w.client.patch(DevControlPlane.resource, "quickstart", "default", note)
        await w.client.delete(Secret, "quickstart-kubeconfig", "default")
        await w.advance(seconds=30)
        await w.client.delete(MachinePool, "workers", "default")
        await w.settle()
        await end(w)
        await w.advance(seconds=200)
        assert len(await w.client.list(MachinePool)) == 1
        await w.advance(seconds=101)
        assert await w.client.list(MachinePool) == []
