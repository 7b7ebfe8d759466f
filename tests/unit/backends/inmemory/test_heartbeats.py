"""Node leases of simulated kubelets."""

import asyncio

import pytest

from capi.backends.inmemory.heartbeats import INTERVAL, LASTS, LEASES, NAMESPACE
from capi.backends.inmemory.nodes import NODES
from capi.client.client import Client
from capi.kube import times
from tests.unit.backends.inmemory.rig import CLUSTER, Rig, a_rig

pytestmark = pytest.mark.looptime


async def ages(rig: Rig, client: Client) -> dict[str, float]:
    """Seconds since each Node's last heartbeat."""
    found = await client.list(LEASES, NAMESPACE)
    return {
        lease["metadata"]["name"]: (rig.clock.now() - times.parse(lease["spec"]["renewTime"])).total_seconds()
        for lease in found
    }


async def test_every_node_has_a_lease_that_is_renewed_in_time() -> None:
    async with a_rig() as rig:
        client = await rig.serve()
        for name in "abc":
            await rig.backend.ensure_running(rig.spec(name))
        await asyncio.sleep(INTERVAL)
        for _ in range(10):
            await asyncio.sleep(7.3)
            found = await ages(rig, client)
            assert sorted(found) == ["a", "b", "c"] and max(found.values()) <= INTERVAL + 0.1
        [lease] = [lease for lease in await client.list(LEASES, NAMESPACE) if lease["metadata"]["name"] == "a"]
        assert (lease["spec"]["holderIdentity"], lease["spec"]["leaseDurationSeconds"]) == ("a", LASTS)
        node = await client.get(NODES, "a")
        [owner] = lease["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"]) == ("Node", node["metadata"]["uid"])


@pytest.mark.parametrize("ready", ["False", "Unknown"])
async def test_a_node_that_is_not_ready_beats_no_more_until_it_is(ready: str) -> None:
    async with a_rig() as rig:
        client = await rig.serve()
        await rig.backend.ensure_running(rig.spec("a"))
        await rig.backend.ensure_running(rig.spec("b"))
        await asyncio.sleep(INTERVAL)
        await rig.backend.ensure_running(rig.spec("a", ready=ready))
        await asyncio.sleep(60)
        found = await ages(rig, client)
        assert found["a"] > 50 and found["b"] <= INTERVAL + 0.1
        await rig.backend.ensure_running(rig.spec("a"))
        await asyncio.sleep(INTERVAL + 0.1)
        assert (await ages(rig, client))["a"] <= INTERVAL + 0.1


async def test_a_lost_machine_falls_silent_and_a_removed_one_takes_its_lease_along() -> None:
    async with a_rig() as rig:
        client = await rig.serve()
        for name in "ab":
            await rig.backend.ensure_running(rig.spec(name))
        await asyncio.sleep(INTERVAL)
        await rig.backend.lose("in-memory:///ns/prod/a")
        await rig.backend.ensure_absent("in-memory:///ns/prod/b", "b", CLUSTER)
        await asyncio.sleep(120)
        found = await ages(rig, client)
        assert list(found) == ["a"] and found["a"] > 100


async def test_a_node_that_is_gone_has_no_lease_and_its_successor_has_its_own() -> None:
    async with a_rig() as rig:
        client = await rig.serve()
        await rig.backend.ensure_running(rig.spec("a"))
        await asyncio.sleep(INTERVAL)
        await client.delete(NODES, "a")
        await asyncio.sleep(3 * INTERVAL)
        assert await client.list(LEASES, NAMESPACE) == []
        await rig.backend.ensure_running(rig.spec("a"))
        await asyncio.sleep(3 * INTERVAL)
        [lease] = await client.list(LEASES, NAMESPACE)
        assert lease["metadata"]["ownerReferences"][0]["uid"] == (await client.get(NODES, "a"))["metadata"]["uid"]


async def test_heartbeats_stop_in_an_outage_and_go_on_after_it() -> None:
    async with a_rig() as rig:
        client = await rig.serve()
        await rig.backend.ensure_running(rig.spec("a"))
        await asyncio.sleep(INTERVAL)
        await rig.workloads.interrupt(CLUSTER, down=True)
        await asyncio.sleep(120)
        await rig.workloads.interrupt(CLUSTER, down=False)
        assert (await ages(rig, client))["a"] > 100
        await asyncio.sleep(INTERVAL + 0.1)
        assert (await ages(rig, client))["a"] <= INTERVAL + 0.1


async def test_without_heartbeats_an_idle_cluster_is_not_written_to() -> None:
    async with a_rig(heartbeats=False) as rig:
        client = await rig.serve()
        await rig.backend.ensure_running(rig.spec("a"))
        before = (await client.page(NODES)).revision
        await asyncio.sleep(120)
        assert (await client.page(NODES)).revision == before
