"""What an autoscaler does to a pool, and what it finds."""

from typing import Any

import pytest

from capi.api.builtin import Node
from capi.api.core.v1beta2 import Machine, MachinePool
from capi.api.infra.v1beta2 import DevMachine, DevMachinePool
from capi.kube.errors import Conflict
from capi.kube.types import Object
from tests.world import manifests
from tests.world.rig import World, world

pytestmark = pytest.mark.looptime

MIN = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size"
MAX = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size"
MARK = {"metadata": {"annotations": {"cluster.x-k8s.io/delete-machine": "yes"}}}
MANAGED = {"cluster.x-k8s.io/replicas-managed-by": "external-autoscaler"}


async def scale_of(w: World) -> Object:
    return await w.client.get(MachinePool.resource, "workers", "default", subresource="scale")


async def test_of_three_who_shrink_at_once_stale_ones_are_refused_and_the_marked_go() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=6)
        names = sorted(await w.machines())
        marked = names[1::2]
        refused = 0
        scale: Any = await scale_of(w)
        for name in marked:
            await w.client.patch(Machine.resource, name, "default", MARK)
            wanted = {**scale, "spec": {"replicas": scale["spec"]["replicas"] - 1}}
            try:
                await w.client.update_raw(MachinePool.resource, wanted, subresource="scale")
            except Conflict:
                refused += 1
                scale = await scale_of(w)
                wanted = {**scale, "spec": {"replicas": scale["spec"]["replicas"] - 1}}
                await w.client.update_raw(MachinePool.resource, wanted, subresource="scale")
        await w.settle()
        assert refused >= 1
        assert sorted(await w.machines()) == [name for name in names if name not in marked]
        assert (await w.pool()).spec.replicas == 3


async def test_two_marks_and_two_steps_down_in_quick_succession_take_those_two() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=4)
        names = sorted(await w.machines())
        for step, name in enumerate((names[2], names[0]), start=1):
            await w.client.patch(Machine.resource, name, "default", MARK)
            await w.client.scale(MachinePool, "workers", "default", 4 - step)
        await w.settle()
        assert sorted(await w.machines()) == [names[1], names[3]]


async def test_a_mark_without_a_surplus_deletes_nothing() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        before = {name: m.metadata.uid for name, m in (await w.machines()).items()}
        await w.client.patch(Machine.resource, min(before), "default", MARK)
        await w.advance(minutes=10)
        assert {name: m.metadata.uid for name, m in (await w.machines()).items()} == before


async def test_a_pool_of_none_keeps_its_annotations_and_grows() -> None:
    async with world() as w:
        notes = {MIN: "0", MAX: "3", "capacity.cluster-autoscaler.kubernetes.io/cpu": "4"}
        await w.apply(*manifests.cluster(), *manifests.pool(replicas=0, annotations=notes))
        await w.advance(minutes=10)
        pool = await w.pool()
        assert pool.spec.replicas == 0
        assert pool.metadata.annotations.items() >= notes.items()
        assert pool.status is not None and pool.status.phase == "Running"
        await w.client.scale(MachinePool, "workers", "default", 1)
        await w.settle()
        assert [m.status.phase for m in (await w.machines()).values() if m.status] == ["Running"]


async def test_an_empty_pool_says_what_its_machines_would_be_like() -> None:
    """Scaling from zero without annotations: the same numbers that its Nodes will report."""
    async with world() as w:
        await w.cluster_with_pool(replicas=0)
        status = (await w.client.get(DevMachinePool, "workers", "default")).status
        assert status.capacity == {"cpu": "4", "memory": "16Gi", "ephemeral-storage": "100Gi", "pods": "110"}
        info = status.node_info
        assert info is not None and (info.architecture, info.operating_system) == ("amd64", "linux")
        await w.client.scale(MachinePool, "workers", "default", 1)
        await w.settle()
        [node] = await w.workload().list(Node)
        assert node.status.capacity == status.capacity
        assert node.status.node_info is not None and node.status.node_info.architecture == info.architecture


async def test_unset_replicas_follow_the_bounds() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=None, annotations={MIN: "2", MAX: "4"})
        assert (await w.pool()).spec.replicas == 2
        assert len(await w.machines()) == 2


async def test_a_pool_that_somebody_else_scales_is_never_shrunk_and_reports_what_there_is() -> None:
    """Instances that come from outside (here: labelled DevMachines) stay, and are counted in spec.replicas."""
    async with world() as w:
        await w.cluster_with_pool(replicas=2, annotations=MANAGED)
        [model, *_] = await w.client.list(DevMachine.resource, "default")
        for name in ("workers-outside-1", "workers-outside-2"):
            meta = {key: model["metadata"][key] for key in ("labels", "annotations", "ownerReferences", "namespace")}
            spec = {**model["spec"], "providerID": model["spec"]["providerID"].replace(model["metadata"]["name"], name)}
            meta["ownerReferences"] = [ref for ref in meta["ownerReferences"] if ref["kind"] == "DevMachinePool"]
            await w.client.create(DevMachine.resource, {"metadata": {**meta, "name": name}, "spec": spec})
        await w.advance(minutes=30)
        assert (await w.pool()).spec.replicas == 4
        assert len(await w.machines()) == 4
