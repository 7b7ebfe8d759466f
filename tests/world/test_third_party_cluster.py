"""Infrastructure and control plane of others below a Cluster, in the old contract; and references to what is neither."""

from typing import Any

import pytest

from capi.api.controlplane.v1beta2 import DevControlPlane
from capi.api.core.v1beta2 import APIEndpoint, Cluster, Machine, MachinePool
from capi.api.infra.v1beta2 import DevCluster, DevMachine, DevMachinePool
from capi.kube.conditions import get
from capi.kube.types import Object, ResourceType
from tests.virtual.runtime.embedded import CRDS, a_crd
from tests.world import manifests
from tests.world.rig import World, world

pytestmark = pytest.mark.looptime

INFRA = ResourceType(manifests.INFRA, "v1alpha4", "ExampleCluster", "exampleclusters")
PLANE = ResourceType(f"controlplane.{manifests.CORE}", "v1beta1", "ExampleControlPlane", "examplecontrolplanes")
HOLD = "example.com/provider"
CONTRACT = "cluster.x-k8s.io/v1beta1"


def a_cluster(**spec: Any) -> Object:
    meta = {"name": "theirs", "namespace": "default"}
    return {"apiVersion": f"{manifests.CORE}/v1beta2", "kind": "Cluster", "metadata": meta, "spec": spec}


def ref(resource: ResourceType, name: str = "theirs") -> Object:
    return {"apiGroup": resource.group, "kind": resource.kind, "name": name}


async def tell(w: World, resource: ResourceType, status: Object, **spec: Any) -> None:
    """The provider writes what it found out."""
    if spec:
        await w.client.patch(resource, "theirs", "default", {"spec": spec})
    await w.client.patch(resource, "theirs", "default", {"status": status}, subresource="status")
    await w.settle()


async def cluster(w: World) -> Cluster:
    return await w.client.get(Cluster, "theirs", "default")


async def install(w: World) -> None:
    for resource, label in ((INFRA, "v1alpha3_v1alpha4"), (PLANE, "v1beta1")):
        await w.client.create(CRDS, a_crd(resource, {CONTRACT: label}))


async def deploy(w: World) -> None:
    for resource in (INFRA, PLANE):
        meta = {"name": "theirs", "namespace": "default", "finalizers": [HOLD]}
        await w.client.create(resource, {"metadata": meta, "spec": {"replicas": 3}})
    await w.settle()


async def test_a_cluster_of_the_old_contract_comes_up_and_goes_in_order() -> None:
    async with world() as w:
        await install(w)
        await w.apply(a_cluster(infrastructureRef=ref(INFRA), controlPlaneRef=ref(PLANE)))
        await deploy(w)
        assert (await cluster(w)).status.phase == "Provisioning"
        domains = {"b": {"controlPlane": True}, "a": {"attributes": {"zone": "1"}}}
        await tell(w, INFRA, {"ready": True, "failureDomains": domains}, controlPlaneEndpoint={"host": "h", "port": 7})
        counts = {"replicas": 3, "readyReplicas": 3, "updatedReplicas": 2, "version": "v1.35.0"}
        await tell(w, PLANE, {"initialized": True, "ready": True, **counts})
        found = await cluster(w)
        assert (found.status.phase, found.spec.control_plane_endpoint) == ("Provisioned", APIEndpoint(host="h", port=7))
        assert [(d.name, d.control_plane) for d in found.status.failure_domains] == [("a", False), ("b", True)]
        said = found.status.control_plane
        assert said is not None
        assert (said.desired_replicas, said.up_to_date_replicas, said.available_replicas) == (3, 2, 3)
        for type_ in ("InfrastructureReady", "ControlPlaneInitialized", "ControlPlaneAvailable"):
            condition = get(found.status.conditions, type_)
            assert condition is not None and condition.status == "True"
        await w.client.delete(Cluster, "theirs", "default")
        for resource, other in ((PLANE, INFRA), (INFRA, None)):
            await w.settle()
            assert (await w.client.get(resource, "theirs", "default"))["metadata"].get("deletionTimestamp")
            if other is not None:
                kept = await w.client.get(other, "theirs", "default")
                assert not kept["metadata"].get("deletionTimestamp"), "the control plane goes first"
            await w.client.patch(resource, "theirs", "default", {"metadata": {"finalizers": None}})
        await w.settle()
        assert await w.client.list(Cluster) == []


async def test_a_provider_that_is_installed_after_its_cluster_is_taken_up_within_a_second() -> None:
    async with world() as w:
        await w.apply(a_cluster(infrastructureRef=ref(INFRA), controlPlaneRef=ref(PLANE)))
        await w.advance(minutes=30)
        told = get((await cluster(w)).status.conditions, "InfrastructureReady")
        assert told is not None and "install its provider" in told.message
        await install(w)
        await deploy(w)
        began = w.clock.monotonic()
        await w.client.patch(INFRA, "theirs", "default", {"status": {"ready": True}}, subresource="status")

        async def provisioned() -> bool:
            start = (await cluster(w)).status.initialization
            return start is not None and start.infrastructure_provisioned is True

        await w.until(provisioned)
        assert w.clock.monotonic() - began < 1


FAMILY = (Cluster, DevCluster, DevControlPlane, MachinePool, DevMachinePool, Machine, DevMachine)
WRONG = [
    pytest.param("infrastructureRef", ref(DevMachinePool.resource, "workers"), "InfrastructureReady", id="a pool's infrastructure"),
    pytest.param("infrastructureRef", ref(MachinePool.resource, "workers"), "InfrastructureReady", id="a MachinePool"),
    pytest.param("infrastructureRef", ref(Cluster.resource, "quickstart"), "InfrastructureReady", id="a Cluster"),
    pytest.param("controlPlaneRef", ref(DevCluster.resource, "quickstart"), "ControlPlaneAvailable", id="infrastructure as control plane"),
]  # fmt: skip


@pytest.mark.parametrize(("field", "wrong", "type_"), WRONG)
async def test_what_is_of_another_sort_is_neither_adopted_nor_deleted(field: str, wrong: Object, type_: str) -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=1)
        before = {o.metadata.uid: o.metadata for kind in FAMILY for o in await w.client.list(kind)}
        refs = {"infrastructureRef": ref(DevCluster.resource, "none"), field: wrong}
        await w.apply(a_cluster(**refs))
        await w.advance(seconds=30)
        told = get((await cluster(w)).status.conditions, type_)
        assert told is not None and f"{wrong['kind']}.{wrong['apiGroup']} cannot be used here" in told.message
        await w.client.delete(Cluster, "theirs", "default")
        await w.advance(minutes=1)
        after = {o.metadata.uid: o.metadata for kind in FAMILY for o in await w.client.list(kind)}
        assert {uid: (m.owner_references, m.deletion_timestamp) for uid, m in after.items()} == {
            uid: (m.owner_references, m.deletion_timestamp) for uid, m in before.items()
        }
