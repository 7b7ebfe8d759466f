"""What random histories have brought to light, each as short as it could be made."""

import asyncio
import contextlib

import pytest

from capi.api.builtin import Node, Secret
from capi.api.controlplane.v1beta2 import DevControlPlane
from capi.api.core.v1beta2 import Cluster, Machine, MachinePool
from capi.api.infra.v1beta2 import DevMachine
from capi.app.embedded import CRD
from capi.kube import conditions
from capi.kube.conditions import is_true
from capi.kube.errors import NotFound
from capi.kube.types import Object, ResourceType
from tests.world import manifests
from tests.world.rig import world
from tests.world.truth import KINDS, check, check_nothing_left

pytestmark = pytest.mark.looptime

NAMESPACE = ResourceType("", "v1", "Namespace", "namespaces", namespaced=False)
PAUSED: Object = {"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}}
RESUMED: Object = {"metadata": {"annotations": {"cluster.x-k8s.io/paused": None}}}


async def test_a_node_deleted_by_hand_joins_again() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        before = {m.name: m.metadata.uid for m in await w.client.list(Machine)}
        node = min(n.name for n in await w.workload().list(Node))
        await w.workload().delete(Node, node)
        await w.advance(seconds=10)
        assert {n.name for n in await w.workload().list(Node)} == set(before)
        machines = await w.client.list(Machine)
        assert {m.name: m.metadata.uid for m in machines} == before
        assert all(is_true(m.status.conditions, "Ready") for m in machines)


async def test_a_machine_without_its_labels_goes_with_its_instance() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        victim = min(await w.machines())
        await w.client.patch(MachinePool.resource, "workers", "default", PAUSED)
        await w.client.patch(Machine.resource, victim, "default", {"metadata": {"labels": None}})
        await w.client.delete(DevMachine, victim, "default")
        await w.advance(seconds=5)
        await w.client.patch(MachinePool.resource, "workers", "default", RESUMED)
        await w.advance(seconds=60)
        assert victim not in await w.machines()
        await check(w)


@pytest.mark.parametrize("plural", ["devmachinepools", "devmachines"])
async def test_a_cluster_whose_provider_is_uninstalled_can_be_deleted(plural: str) -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        await w.client.delete(CRD, f"{plural}.infrastructure.cluster.x-k8s.io")
        await w.advance(seconds=60)
        ready = conditions.get((await w.pool()).status.conditions, "InfrastructureReady")
        assert ready is not None and f"{plural}.infrastructure.cluster.x-k8s.io" in ready.message
        await w.client.delete(Cluster, "quickstart", "default")
        await asyncio.sleep(120)
        for kind in (Cluster, MachinePool, Machine, Secret):
            assert await w.client.list(kind) == []


async def test_the_longest_names_work_to_the_end() -> None:
    async with world() as w:
        name = "c" * 63
        await w.apply(
            *manifests.cluster(name),
            *manifests.pool("p" * 200, cluster=name, replicas=2),
            *manifests.pool("p" * 201, cluster=name, replicas=1),
        )
        await w.advance(seconds=30)
        await check(w)
        await w.client.delete(Cluster, name, "default")
        await w.advance(seconds=60)
        await check_nothing_left(w)


async def test_a_namespace_takes_its_clusters_along_and_no_others() -> None:
    async with world() as w:
        await w.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "second"}})
        for namespace in ("default", "second"):
            await w.apply(*manifests.cluster(namespace=namespace), *manifests.pool(namespace=namespace, replicas=2))
        await w.advance(seconds=20)
        await check(w)
        before = {m.name: m.metadata.uid for m in (await w.machines()).values()}
        await w.client.delete(NAMESPACE, "second")
        await w.advance(seconds=120)
        assert "second" not in {n["metadata"]["name"] for n in await w.client.list(NAMESPACE)}
        assert {m.name: m.metadata.uid for m in await w.client.list(Machine)} == before
        await check(w)


async def test_a_cluster_removed_by_force_does_not_hold_its_pool_back() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        await w.client.patch(Cluster.resource, "quickstart", "default", {"spec": {"paused": True}})
        await w.advance(seconds=5)
        await w.client.delete(Cluster, "quickstart", "default")
        await w.client.patch(Cluster.resource, "quickstart", "default", {"metadata": {"finalizers": None}})
        await w.advance(seconds=60)
        for pool in await w.client.list(MachinePool):
            await w.client.delete(MachinePool, pool.name, pool.namespace)
        await w.advance(seconds=60)
        await check_nothing_left(w)


BROKEN = [
    pytest.param("DevMachinePool", {"spec": {"providerIDList": "no list"}}, "spec.providerIDList", id="pool"),
    pytest.param("DevMachine", {"status": {"addresses": "nowhere"}}, "status.addresses", id="machine"),
    pytest.param("DevCluster", {"status": {"failureDomains": 7}}, "status.failureDomains", id="cluster"),
    pytest.param("DevControlPlane", {"status": {"version": 135}}, "status.version", id="control plane"),
]


@pytest.mark.parametrize(("kind", "body", "path"), BROKEN)
async def test_a_malformed_provider_field_is_told_and_does_not_hold_a_deletion_back(
    kind: str, body: Object, path: str
) -> None:
    """The provider's own schema lets everything pass; the status of whoever refers to the object names the path."""
    async with world() as w:
        await w.cluster_with_pool(replicas=1)
        (resource,) = [k.resource for k in KINDS if k.resource.kind == kind]
        await w.loosen(resource)
        name = {"DevMachinePool": "workers", "DevMachine": min(await w.machines())}.get(kind, "quickstart")
        await w.client.patch(resource, name, "default", PAUSED)
        await w.client.patch(resource, name, "default", body, subresource="status" if "status" in body else "")
        await w.advance(seconds=30)
        said = [
            *(c.message for obj in await w.client.list(Cluster) for c in obj.status.conditions),
            *(c.message for obj in await w.client.list(MachinePool) for c in obj.status.conditions),
            *(c.message for obj in await w.client.list(Machine) for c in obj.status.conditions),
        ]
        assert any(f"{kind} default/{name}: {path}" in message for message in said), said
        await w.client.delete(Cluster, "quickstart", "default")
        for _ in range(12):
            await asyncio.sleep(10)
            with contextlib.suppress(NotFound):  # gone: its provider was able to let go
                broken = await w.client.get(resource, name, "default")
                if broken["metadata"].get("deletionTimestamp"):
                    await w.client.patch(resource, name, "default", {"metadata": {"finalizers": None}})
        for left in (Machine, MachinePool, Cluster):
            assert await w.client.list(left) == []


@pytest.mark.parametrize(
    ("resource", "body"),
    [
        pytest.param(Cluster.resource, {"spec": {"paused": True}}, id="cluster"),
        pytest.param(DevControlPlane.resource, PAUSED, id="control plane"),
    ],
)
async def test_a_paused_cluster_is_served_after_a_restart(resource: ResourceType, body: Object) -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        await w.client.patch(resource, "quickstart", "default", body)
        await w.advance(seconds=30)
        before = await w.writes()
        await w.restart_controllers()
        await w.advance(seconds=60)
        assert len(await w.workload().list(Node)) == 2
        assert await w.writes() == before


@pytest.mark.parametrize("replicas", [0, 2])
async def test_a_provider_id_list_written_by_hand_is_put_right(replicas: int) -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        await w.client.scale(MachinePool, "workers", "default", replicas)
        await w.advance(seconds=30)
        scrawl = {"spec": {"providerIDList": ["in-memory:///nowhere"]}}
        await w.client.patch(MachinePool.resource, "workers", "default", scrawl)
        await w.advance(seconds=30)
        await check(w)


async def test_an_instance_goes_with_its_devmachine_even_if_the_finalizer_was_taken_off_by_force() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        victim = min(await w.machines())
        await w.client.patch(DevMachine.resource, victim, "default", PAUSED)
        await w.advance(seconds=5)
        await w.client.patch(DevMachine.resource, victim, "default", {"metadata": {"finalizers": None}})
        await w.client.delete(DevMachine, victim, "default")
        await w.advance(seconds=90)
        assert victim not in {node.name for node in await w.workload().list(Node)}
        await check(w)
