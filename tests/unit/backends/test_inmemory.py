"""Simulated machines against a hosted workload API, on virtual time."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from capi.aio.clock import LoopClock
from capi.backends.inmemory.backend import InMemoryBackend
from capi.backends.inmemory.nodes import NODES
from capi.backends.inmemory.workload import WorkloadClusters
from capi.backends.port import Delay, InstanceGone, InstanceSpec, Simulation, Stage
from capi.client import pki
from capi.client.client import Client
from capi.kube.errors import Expired
from capi.runtime.plan import ClusterKey

pytestmark = pytest.mark.looptime

CLUSTER = ClusterKey("ns", "prod")
SLOW = Simulation(vm=Delay(timedelta(seconds=10)), node=Delay(timedelta(seconds=2)))


class Rig:
    def __init__(self, clock: LoopClock, workloads: WorkloadClusters) -> None:
        self.clock, self.workloads = clock, workloads
        self.authority = pki.new_ca("prod", clock.now())
        self.backend = InMemoryBackend(workloads, clock)

    async def serve(self) -> Client:
        await self.workloads.ensure_running(CLUSTER, 20000, self.authority, "v1.35.4")
        client = self.workloads.client(CLUSTER)
        assert client is not None
        return client

    def spec(self, name: str = "a", **more: Any) -> InstanceSpec:
        given = {"created": self.clock.now(), "version": "v1.35.4", "pool": "workers", **more}
        return InstanceSpec(id=f"in-memory:///ns/prod/{name}", name=name, uid=f"uid-{name}", cluster=CLUSTER, **given)


@contextlib.asynccontextmanager
async def a_rig() -> AsyncIterator[Rig]:
    clock = LoopClock()
    async with WorkloadClusters(clock, sockets=False) as workloads:
        yield Rig(clock, workloads)


async def test_a_machine_boots_then_joins_as_a_complete_node() -> None:
    async with a_rig() as rig:
        client = await rig.serve()
        spec = rig.spec(simulation=SLOW)
        first = await rig.backend.ensure_running(spec)
        assert (first.stage, first.next_change) == (Stage.STARTING, rig.clock.now() + timedelta(seconds=10))
        await asyncio.sleep(10)
        second = await rig.backend.ensure_running(spec)
        assert (second.stage, second.next_change) == (Stage.RUNNING, rig.clock.now() + timedelta(seconds=2))
        assert await client.list(NODES) == []
        await asyncio.sleep(2)
        assert (await rig.backend.ensure_running(spec)).stage == Stage.JOINED
        [node] = await client.list(NODES)
        assert node["spec"]["providerID"] == spec.id
        assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "a"
        assert node["status"]["nodeInfo"]["kubeletVersion"] == "v1.35.4"
        assert node["status"]["allocatable"]["pods"] == "110"
        assert {c["type"]: c["status"] for c in node["status"]["conditions"]}["Ready"] == "True"
        assert {a["type"]: a["address"] for a in node["status"]["addresses"]} == {
            a.type: a.address for a in second.addresses
        }


async def test_asking_again_changes_nothing() -> None:
    async with a_rig() as rig:
        client = await rig.serve()
        spec = rig.spec()
        await rig.backend.ensure_running(spec)
        [before] = await client.list(NODES)
        assert (await rig.backend.ensure_running(spec)).stage == Stage.JOINED
        assert await client.list(NODES) == [before]


async def test_a_restarted_backend_goes_on_where_the_first_one_was() -> None:
    async with a_rig() as rig:
        client = await rig.serve()
        created = rig.clock.now()
        await rig.backend.ensure_running(rig.spec(simulation=SLOW))
        await asyncio.sleep(60)
        again = InMemoryBackend(rig.workloads, rig.clock)
        spec = rig.spec(simulation=SLOW, created=created, running_since=created + timedelta(seconds=10))
        assert (await again.ensure_running(spec)).stage == Stage.JOINED
        [node] = await client.list(NODES)
        assert (await InMemoryBackend(rig.workloads, rig.clock).ensure_running(spec)).stage == Stage.JOINED
        assert [n["metadata"]["uid"] for n in await client.list(NODES)] == [node["metadata"]["uid"]]


async def test_a_machine_waits_for_its_clusters_api() -> None:
    async with a_rig() as rig:
        instance = await rig.backend.ensure_running(rig.spec())
        assert (instance.stage, instance.waiting_for_control_plane) == (Stage.RUNNING, True)
        await rig.serve()
        assert (await rig.backend.ensure_running(rig.spec())).stage == Stage.JOINED


async def test_a_machine_joins_again_when_another_server_takes_its_clusters_address() -> None:
    """Told by the backend itself: a connection that merely broke tells nobody that the Nodes are gone."""
    async with a_rig() as rig:
        await rig.serve()
        booting = rig.spec("b", simulation=SLOW)
        for spec in (rig.spec(), booting):
            await rig.backend.ensure_running(spec)
        await rig.workloads.close()
        assert (await rig.backend.ensure_running(rig.spec())).waiting_for_control_plane
        async with contextlib.aclosing(rig.backend.events()) as events:
            client = await rig.serve()
            event = await anext(events)
            assert (event.cluster, event.name, event.pool) == (CLUSTER, "a", "workers")
        assert await client.list(NODES) == [], "the new server's memory is its own"
        assert (await rig.backend.ensure_running(rig.spec())).stage == Stage.JOINED
        assert [n["metadata"]["name"] for n in await client.list(NODES)] == ["a"]


async def test_a_watch_of_a_server_that_has_ended_is_not_resumed_at_its_successor() -> None:
    async with a_rig() as rig:
        before = (await (await rig.serve()).page(NODES)).revision
        await rig.workloads.close()
        client = await rig.serve()
        await rig.backend.ensure_running(rig.spec())
        with pytest.raises(Expired):
            async with client.watch(NODES, None, (("resourceVersion", before),)) as events:
                await anext(events)


async def test_a_removed_machine_takes_its_node_along_and_nobody_elses() -> None:
    async with a_rig() as rig:
        client = await rig.serve()
        for name in "ab":
            await rig.backend.ensure_running(rig.spec(name))
        await rig.backend.ensure_absent("in-memory:///ns/prod/a", "b", CLUSTER)
        await rig.backend.ensure_absent("in-memory:///ns/prod/a", "a", CLUSTER)
        await rig.backend.ensure_absent("in-memory:///ns/prod/a", "a", CLUSTER)
        assert [n["metadata"]["name"] for n in await client.list(NODES)] == ["b"]
        assert [i.name for i in await rig.backend.list(CLUSTER, "workers")] == ["b"]


async def test_a_lost_machine_is_told_of_and_does_not_come_back() -> None:
    async with a_rig() as rig:
        client = await rig.serve()
        spec = rig.spec()
        await rig.backend.ensure_running(spec)
        async with contextlib.aclosing(rig.backend.events()) as events:
            await rig.backend.lose(spec.id)
            event = await anext(events)
        assert (event.cluster, event.name, event.pool) == (CLUSTER, "a", "workers")
        with pytest.raises(InstanceGone):
            await rig.backend.ensure_running(spec)
        [node] = await client.list(NODES)
        assert {c["type"]: c["status"] for c in node["status"]["conditions"]}["Ready"] == "Unknown"
        with pytest.raises(InstanceGone):
            await InMemoryBackend(rig.workloads, rig.clock).ensure_running(rig.spec(simulation=Simulation(lost=True)))


async def test_a_namesake_that_another_machine_left_is_replaced() -> None:
    async with a_rig() as rig:
        client = await rig.serve()
        await client.create(NODES, {"metadata": {"name": "a"}, "spec": {"providerID": "in-memory:///elsewhere"}})
        await rig.backend.ensure_running(rig.spec())
        [node] = await client.list(NODES)
        assert node["spec"]["providerID"] == "in-memory:///ns/prod/a"
