"""What the system writes: within budget while it works, nothing when it is idle."""

import asyncio
from collections import Counter
from datetime import timedelta

import pytest

from capi.api.core.v1beta2 import Cluster, Machine
from tests.world import manifests
from tests.world.rig import world

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


async def test_a_pool_machine_costs_at_most_nine_management_writes() -> None:
    """Five on the core side, four on the infrastructure's; what is shared by the pool counts too, divided by its Machines."""
    async with world() as w:
        await w.apply(*manifests.cluster())
        await w.settle()
        before = await w.writes()
        await w.apply(*manifests.pool(replicas=N))
        await w.settle()
        spent = await w.writes() - before
        core = {k: v for k, v in spent.items() if k.split()[1].startswith(("machines/", "machinepools/"))}
        infra = {k: v for k, v in spent.items() if k.split()[1].startswith("dev")}
        owner = next(v for k, v in infra.items() if k.split()[1] == "devmachines/")
        assert sum(core.values()) / N <= 4.0, spent  # + 1 owner reference on the DevMachine, counted under devmachines
        assert owner / N <= 2.2, spent  # created by the pool, adopted by its Machine
        assert sum(infra.values()) / N <= 5.0, spent


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
