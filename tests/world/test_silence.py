"""What the system writes: within budget while it works, nothing when it is idle."""

import asyncio
from collections import Counter
from datetime import timedelta

import pytest

from capi.api.builtin import Event
from capi.api.core.v1beta2 import Cluster, Machine, MachineHealthCheck
from capi.kube.conditions import get, is_true
from tests.world import manifests
from tests.world.rig import world
from tests.world.test_health_checks import a_check

pytestmark = pytest.mark.looptime

N = 40


async def test_five_idle_minutes_write_nothing_but_leases() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=3)
        await w.advance(seconds=30)  # the last events of the start-up are flushed
        before = await w.writes()
        assert before.total() > 20, "the counters count"
        await asyncio.sleep(timedelta(minutes=5).total_seconds())
        assert await w.writes() - before == Counter()


async def test_a_pool_machine_costs_few_management_writes_and_one_workload_write() -> None:
    """What grows with the pool is exact; what the pool itself costs does not depend on its size."""
    async with world() as w:
        await w.apply(*manifests.cluster())
        await w.settle()
        before = await w.writes()
        await w.apply(*manifests.pool(replicas=N))
        await w.settle()
        spent: dict[str, int] = {}
        for key, count in (await w.writes() - before).items():
            resource = key.split()[1]
            spent[resource] = spent.get(resource, 0) + count
        assert spent["machines/"] == N, "a Machine is created complete"
        assert spent["machines/status"] <= 3 * N, "a status write per stage: seen, provisioned, running"
        assert spent["devmachines/"] == 2 * N, "made by its pool, adopted by its Machine"
        assert spent["devmachines/status"] <= 2 * N, "booted, joined"
        assert spent["events/"] <= 2 * N
        pool = sum(
            count for key, count in spent.items() if key.startswith(("machinepools", "devmachinepools", "clusters"))
        )
        assert pool <= 60, f"independent of the pool's size: {spent}"


async def test_settled_means_silent_even_when_everything_is_looked_at_again() -> None:
    """A new manager over the same objects (a restart) reads everything and writes nothing."""
    async with world() as w:
        await w.cluster_with_pool(replicas=3)
        await w.advance(seconds=30)
        uids = {m.metadata.uid for m in await w.client.list(Machine)} | {
            c.metadata.uid for c in await w.client.list(Cluster)
        }
        before = await w.writes()
        await w.restart_controllers()
        await w.settle()
        await w.advance(minutes=1)
        assert await w.writes() - before == Counter()
        assert {m.metadata.uid for m in await w.client.list(Machine)} | {
            c.metadata.uid for c in await w.client.list(Cluster)
        } == uids


async def test_what_waits_for_its_cluster_says_so_once_and_goes_on_when_it_is_there() -> None:
    async with world() as w:
        await w.apply(*manifests.pool(replicas=2), *manifests.machine("alone"), a_check())
        await w.advance(seconds=30)
        ready = get((await w.client.get(Machine, "alone", "default")).status.conditions, "Ready")
        available = get((await w.pool()).status.conditions, "Available")
        check = (await w.client.get(MachineHealthCheck, "mhc", "default")).status.conditions
        for told in (ready, available, get(check, "RemediationAllowed")):
            assert told is not None
            assert (told.status, told.message) == ("Unknown", "Cluster quickstart does not exist")
        before = await w.writes()
        await w.restart_controllers()
        await w.advance(minutes=1)
        assert await w.writes() - before == Counter()
        events = [e for e in await w.client.list(Event, "default") if e.reason == "ClusterNotFound"]
        assert len(events) == 3
        await w.apply(*manifests.cluster())
        await w.advance(minutes=1)
        assert {m.status.phase for m in await w.client.list(Machine)} == {"Running"}
        assert len(await w.machines()) == 2
        assert is_true(
            (await w.client.get(MachineHealthCheck, "mhc", "default")).status.conditions, "RemediationAllowed"
        )
