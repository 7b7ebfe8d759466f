"""Control plane machines of a cluster without a hosted control plane: they make up its API themselves."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest

from capi.backends.inmemory import controlplane
from capi.backends.inmemory.backend import InMemoryBackend
from capi.backends.inmemory.controlplane import CLUSTER_ID, LEADER_FROM, MEMBER_ID, NAMESPACE, PODS
from capi.backends.inmemory.nodes import NODES
from capi.backends.port import ControlPlaneProgress, ControlPlaneSpec, Delay, Instance, InstanceSpec, Stage
from capi.client.client import Client
from capi.kube.errors import ServiceUnavailable
from tests.unit.backends.inmemory.rig import CLUSTER, Rig, a_rig

pytestmark = pytest.mark.looptime

NONE, ETCD, ALL = ControlPlaneProgress(), ControlPlaneProgress(etcd=True), ControlPlaneProgress(True, True)
COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")


def plane(rig: Rig, *, etcd: int = 0, api_server: int = 0, node_since: datetime | None = None) -> ControlPlaneSpec:
    first, second = (Delay(timedelta(seconds=seconds)) for seconds in (etcd, api_server))
    return ControlPlaneSpec(20000, rig.authority, first, second, node_since)


def a_spec(rig: Rig, name: str, **more: Any) -> InstanceSpec:
    return rig.spec(name, pool="", control_plane=plane(rig, **more))


async def run(rig: Rig, name: str, **more: Any) -> Instance:
    return await rig.backend.ensure_running(a_spec(rig, name, **more))


def client_of(rig: Rig) -> Client:
    client = rig.workloads.client(CLUSTER)
    assert client is not None
    return client


async def pods(rig: Rig) -> dict[str, dict[str, str]]:
    inside = rig.workloads.inside(CLUSTER)
    assert inside is not None
    return {pod["metadata"]["name"]: pod["metadata"].get("annotations") or {} for pod in await inside.list(PODS)}


async def served(rig: Rig) -> bool:
    try:
        await client_of(rig).list(NODES)
    except ServiceUnavailable:
        return False
    return True


async def test_etcd_and_api_server_come_after_the_node_each_in_its_time() -> None:
    async with a_rig() as rig:
        spec = a_spec(rig, "cp-1", etcd=2, api_server=5)
        began = rig.clock.now()
        first = await rig.backend.ensure_running(spec)
        assert (first.stage, first.control_plane) == (Stage.JOINED, NONE)
        assert first.next_change == began + timedelta(seconds=2)
        assert await pods(rig) == {} and not await served(rig)
        await asyncio.sleep(2)
        second = await rig.backend.ensure_running(spec)
        assert (second.control_plane, second.next_change) == (ETCD, began + timedelta(seconds=5))
        assert list(await pods(rig)) == ["etcd-cp-1"] and not await served(rig)
        await asyncio.sleep(3)
        third = await rig.backend.ensure_running(spec)
        assert (third.control_plane, third.next_change) == (ALL, None)
        assert sorted(await pods(rig)) == [f"{component}-cp-1" for component in COMPONENTS]
        assert await served(rig)


async def test_a_machine_whose_node_has_not_joined_has_neither() -> None:
    async with a_rig() as rig:
        spec = rig.spec("cp-1", node=Delay(timedelta(seconds=60)), control_plane=plane(rig))
        instance = await rig.backend.ensure_running(spec)
        assert (instance.stage, instance.control_plane) == (Stage.RUNNING, None)
        assert rig.workloads.client(CLUSTER) is None


async def test_its_node_says_what_it_is_and_that_of_a_worker_does_not() -> None:
    async with a_rig() as rig:
        await run(rig, "cp-1")
        await rig.backend.ensure_running(rig.spec("w-1"))
        found = {node["metadata"]["name"]: node for node in await client_of(rig).list(NODES)}
        assert found["cp-1"]["metadata"]["labels"][controlplane.ROLE] == ""
        assert found["cp-1"]["spec"]["taints"] == [{"key": controlplane.ROLE, "effect": "NoSchedule"}]
        assert controlplane.ROLE not in found["w-1"]["metadata"]["labels"] and "taints" not in found["w-1"]["spec"]
        assert (await rig.backend.ensure_running(rig.spec("w-1"))).control_plane is None


async def test_static_pods_run_on_their_node_and_kubeadm_was_there() -> None:
    async with a_rig() as rig:
        await run(rig, "cp-1")
        client = client_of(rig)
        for pod in await client.list(PODS, NAMESPACE):
            assert (pod["spec"]["nodeName"], pod["status"]["phase"]) == ("cp-1", "Running")
            assert {"type": "Ready", "status": "True"}.items() <= pod["status"]["conditions"][1].items()
            assert pod["metadata"]["labels"]["tier"] == "control-plane"
        proxy = await client.get(controlplane.DAEMON_SETS, "kube-proxy", NAMESPACE)
        assert proxy["spec"]["template"]["spec"]["containers"][0]["image"].endswith(":v1.35.4")
        for resource, body in controlplane.kubeadm("v1.35.4"):
            name, namespace = body["metadata"]["name"], body["metadata"].get("namespace", "")
            assert (await client.get(resource, name, namespace))["metadata"]["uid"]


async def test_the_first_etcd_member_makes_the_cluster_and_leads() -> None:
    async with a_rig() as rig:
        for name in ("cp-1", "cp-2", "cp-3"):
            await run(rig, name)
            await asyncio.sleep(1)
        notes = [(await pods(rig))[f"etcd-cp-{n}"] for n in (1, 2, 3)]
        assert len({note[CLUSTER_ID] for note in notes}) == 1
        assert len({note[MEMBER_ID] for note in notes}) == 3
        assert [LEADER_FROM in note for note in notes] == [True, False, False]
        assert all(0 < int(note[key]) < 2**32 for note in notes for key in (CLUSTER_ID, MEMBER_ID))


async def test_members_that_start_together_make_one_cluster() -> None:
    async with a_rig() as rig:
        await asyncio.gather(*(run(rig, f"cp-{n}") for n in range(5)))
        notes = [(await pods(rig))[f"etcd-cp-{n}"] for n in range(5)]
        assert len({note[CLUSTER_ID] for note in notes}) == 1
        assert sum(LEADER_FROM in note for note in notes) == 1


async def test_when_the_leader_goes_another_member_leads() -> None:
    async with a_rig() as rig:
        for name in ("cp-1", "cp-2", "cp-3"):
            await run(rig, name)
            await asyncio.sleep(1)
        await rig.backend.ensure_absent("in-memory:///ns/prod/cp-1", "cp-1", CLUSTER)
        left = await client_of(rig).list(PODS, NAMESPACE, labels=controlplane.selector("etcd"))
        found = controlplane.leader(left)
        assert found is not None and found["metadata"]["name"] == "etcd-cp-2"
        await rig.backend.ensure_absent("in-memory:///ns/prod/cp-3", "cp-3", CLUSTER)
        assert controlplane.leader(await client_of(rig).list(PODS, NAMESPACE, labels=controlplane.selector("etcd")))


async def test_the_api_goes_with_its_last_member_and_comes_back_with_the_next() -> None:
    async with a_rig() as rig:
        for name in ("cp-1", "cp-2"):
            await run(rig, name)
        async with client_of(rig).watch(NODES) as events:
            await rig.backend.ensure_absent("in-memory:///ns/prod/cp-1", "cp-1", CLUSTER)
            assert await served(rig)
            await rig.backend.ensure_absent("in-memory:///ns/prod/cp-2", "cp-2", CLUSTER)
            assert [event.type async for event in events][-1] == "DELETED", "and the watch has ended"
        assert not await served(rig)
        assert await pods(rig) == {}
        waiting = await rig.backend.ensure_running(rig.spec("w-1"))
        assert waiting.waiting_for_control_plane
        await run(rig, "cp-3")
        assert await served(rig)
        assert (await rig.backend.ensure_running(rig.spec("w-1"))).stage == Stage.JOINED
        assert sorted(node["metadata"]["name"] for node in await client_of(rig).list(NODES)) == ["cp-3", "w-1"]


async def test_a_restarted_process_waits_for_nothing_again() -> None:
    async with a_rig() as rig:
        spec = a_spec(rig, "cp-1", etcd=30, api_server=30)
        joined = rig.clock.now()
        await rig.backend.ensure_running(spec)
        await asyncio.sleep(31)
        assert (await rig.backend.ensure_running(spec)).control_plane == ALL
        before = await pods(rig)
        again = InMemoryBackend(rig.workloads, rig.clock)
        known = a_spec(rig, "cp-1", etcd=30, api_server=30, node_since=joined)
        assert (await again.ensure_running(known)).control_plane == ALL
        assert await pods(rig) == before


async def test_a_server_that_lost_everything_gets_its_machines_again() -> None:
    """In memory, after the server has failed or another authority has come."""
    async with a_rig() as rig:
        for name in ("cp-1", "cp-2"):
            await run(rig, name)
        await rig.workloads.close()
        await run(rig, "cp-1")
        assert await served(rig) and len(await pods(rig)) == 4
        assert (await run(rig, "cp-2")).control_plane == ALL
        assert len(await pods(rig)) == 8
        assert await served(rig)


async def test_a_lost_machine_takes_the_api_along_if_it_was_the_last() -> None:
    async with a_rig() as rig:
        for name in ("cp-1", "cp-2"):
            await run(rig, name)
        await rig.backend.lose("in-memory:///ns/prod/cp-1")
        assert await served(rig)
        await rig.backend.lose("in-memory:///ns/prod/cp-2")
        assert not await served(rig)


async def test_an_outage_does_not_end_because_a_member_comes_and_the_other_way_round() -> None:
    async with a_rig() as rig:
        await run(rig, "cp-1")
        await rig.workloads.interrupt(CLUSTER, down=True)
        assert (await run(rig, "cp-2")).control_plane == ALL
        assert not await served(rig)
        await rig.workloads.interrupt(CLUSTER, down=False)
        assert await served(rig)
