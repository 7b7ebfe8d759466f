"""Pools and the Nodes of their instances: whose they are, how they are, and what is written on them."""

from typing import Any

import pytest

from capi.api.builtin import Node
from capi.api.core.v1beta2 import Machine, MachinePool
from capi.kube.conditions import is_true
from capi.kube.types import Object
from tests.world import manifests
from tests.world.recording import recording
from tests.world.rig import World, world

pytestmark = pytest.mark.looptime

NODES = Node.resource


async def set_ready(w: World, name: str, status: str) -> None:
    """As a kubelet, or the one that judges kubelets."""
    body = {"status": {"conditions": [{"type": "Ready", "status": status, "reason": "Test"}]}}
    await w.workload().patch(NODES, name, "", body, type_="strategic", subresource="status")


async def counters(w: World) -> tuple[Any, ...]:
    status = (await w.pool()).status
    assert status is not None
    old = status.deprecated.v1beta1 if status.deprecated else None
    return status.phase, status.ready_replicas, status.available_replicas, old and old.ready_replicas


async def test_scaling_one_pool_leaves_the_nodes_of_another_alone() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        await w.apply(*manifests.pool("b", replicas=2))
        await w.settle()
        mine = {m.status.node_ref.name for m in (await w.machines("b")).values() if m.status and m.status.node_ref}
        before = {node.name: node.metadata.uid for node in await w.workload().list(Node) if node.name in mine}
        refs = (await w.pool("b")).status.node_refs  # type: ignore[union-attr] # settled
        assert len(before) == len(refs) == 2
        await w.client.scale(MachinePool, "workers", "default", 0)
        await w.settle()
        assert {node.name: node.metadata.uid for node in await w.workload().list(Node)} == before
        assert (await w.pool("b")).status.node_refs == refs  # type: ignore[union-attr]


async def test_a_node_with_only_the_same_last_segment_is_nobodys() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=1)
        [machine] = (await w.machines()).values()
        twin = {"metadata": {"name": "twin"}, "spec": {"providerID": f"other:///x/{machine.name}"}}
        await w.workload().create(NODES, twin)
        await w.settle()
        assert [ref.name for ref in (await w.pool()).status.node_refs] == [machine.name]  # type: ignore[union-attr]
        await w.client.scale(MachinePool, "workers", "default", 0)
        await w.settle()
        assert [node.name for node in await w.workload().list(Node)] == ["twin"]


async def test_the_list_of_instances_is_spelled_as_on_the_nodes() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=3)
        nodes = await w.workload().list(Node)
        assert sorted((await w.pool()).spec.provider_id_list) == sorted(node.spec.provider_id for node in nodes)
        for node in nodes:
            notes = node.metadata.annotations
            assert {name.removeprefix("cluster.x-k8s.io/"): value for name, value in notes.items()}.items() >= {
                "cluster-name": "quickstart",
                "cluster-namespace": "default",
                "machine": node.name,
                "owner-kind": "MachinePool",
                "owner-name": "workers",
            }.items()


async def test_a_node_that_came_back_under_its_name_gets_its_new_uid() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        name = min(await w.machines())
        old: Object = await w.workload().get(NODES, name)
        await w.workload().delete(Node, name)
        meta = {"name": name, "labels": old["metadata"].get("labels", {})}
        await w.workload().create(NODES, {"metadata": meta, "spec": old["spec"], "status": old["status"]})
        await w.advance(seconds=60)
        live = {node.name: node.metadata.uid for node in await w.workload().list(Node)}
        assert live[name] != old["metadata"]["uid"]
        assert {ref.name: ref.uid for ref in (await w.pool()).status.node_refs} == live  # type: ignore[union-attr]
        assert await counters(w) == ("Running", 2, 2, 2)


async def test_one_pass_marks_a_node_and_takes_its_taint_and_no_other() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=1)
        [name] = await w.machines()
        taints = [
            {"key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoSchedule"},
            {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"},
        ]
        notes = {"cluster.x-k8s.io/owner-name": None, "mine": "1"}
        await w.workload().patch(NODES, name, "", {"metadata": {"annotations": notes}, "spec": {"taints": taints}})
        async with recording(w.workload(), Node) as seen:
            await w.advance(seconds=30)
        node: Object = await w.workload().get(NODES, name)
        assert node["spec"]["taints"] == taints[1:]
        assert node["metadata"]["annotations"]["cluster.x-k8s.io/owner-name"] == "workers"
        assert node["metadata"]["annotations"]["mine"] == "1"
        assert len(seen.kinds("MODIFIED")) == 1


async def test_a_node_that_is_not_ready_counts_again_when_it_is() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=3)
        name = min(await w.machines())
        await set_ready(w, name, "False")
        await w.settle()
        assert await counters(w) == ("ScalingUp", 2, 2, 2)
        machine = (await w.machines())[name].status
        assert machine is not None and not is_true(machine.conditions, "Ready")
        await set_ready(w, name, "True")
        await w.settle()
        assert await counters(w) == ("Running", 3, 3, 3)


async def test_a_node_that_is_away_changes_no_spec() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        before = {name: (m.spec, m.metadata.generation) for name, m in (await w.machines()).items()}
        await w.workload().delete(Node, min(before))
        await w.advance(seconds=60)
        assert {name: (m.spec, m.metadata.generation) for name, m in (await w.machines()).items()} == before


async def test_machines_and_pool_show_the_versions_of_their_nodes() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        name = min(await w.machines())
        body = {"status": {"nodeInfo": {"kubeletVersion": "v1.35.9"}}}
        await w.workload().patch(NODES, name, "", body, subresource="status")
        await w.settle()
        machines = await w.machines()
        assert {n: m.spec.version for n, m in machines.items()} == {
            **dict.fromkeys(machines, "v1.35.4"),
            name: "v1.35.9",
        }
        status = (await w.pool()).status
        assert status is not None
        assert {v.version: v.replicas for v in status.versions} == {"v1.35.4": 1, "v1.35.9": 1}


async def test_the_taints_of_a_machine_outside_a_pool_are_kept_on_its_node() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=1)
        once = {"key": "starting", "effect": "NoSchedule", "propagation": "OnInitialization"}
        kept = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule", "propagation": "Always"}
        await w.apply(*manifests.machine("alone", taints=[once, kept]))
        await w.settle()

        async def taints() -> dict[str, str]:
            node: Object = await w.workload().get(NODES, "alone")
            return {taint["key"]: taint.get("value", "") for taint in node["spec"].get("taints", [])}

        assert await taints() == {"starting": "", "dedicated": "gpu"}
        await w.workload().patch(NODES, "alone", "", {"spec": {"taints": None}})
        await w.settle()
        assert await taints() == {"dedicated": "gpu"}
        await w.client.patch(Machine.resource, "alone", "default", {"spec": {"taints": [{**kept, "value": "tpu"}]}})
        await w.settle()
        assert await taints() == {"dedicated": "tpu"}
        await w.client.patch(Machine.resource, "alone", "default", {"spec": {"taints": None}})
        await w.settle()
        assert await taints() == {}
