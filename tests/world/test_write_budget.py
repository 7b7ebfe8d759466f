"""What the core controllers write for a pool of 50: few writes for each Machine, none when nothing happens."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from capi.api.builtin import Node
from capi.api.core.v1beta2 import Machine, MachinePool
from capi.kube.types import Object
from tests.world import manifests
from tests.world.ledger import Ledger
from tests.world.rig import World, world
from tests.world.test_health_checks import a_check

pytestmark = pytest.mark.looptime

N = 50
OF_ITS_OWN = ("machinepools", "machinepools/status", "clusters", "clusters/status")
"""What a pool costs by itself, however many Machines it has; passes over many Machines are taken together."""
POOL_EVENTS = 5
"""Events about the pool itself."""


@asynccontextmanager
async def budgeted() -> AsyncIterator[tuple[World, Ledger, Ledger]]:
    """A world with a cluster, and what its core writes in the management and in the workload cluster from now on."""
    management, workload = Ledger(), Ledger()
    async with world(management.wire, workload_wire=workload.wire) as w:
        await w.apply(*manifests.cluster())
        await w.settle()
        management.clear()
        workload.clear()
        yield w, management, workload


async def test_a_machine_whose_instance_exists_costs_five_management_writes_at_most_and_one_workload_write() -> None:
    """Events included. With an instance that boots at once it is one less."""
    async with budgeted() as (w, management, workload):
        await w.apply(*manifests.pool(replicas=N, vm="0s", node="0s"))
        await w.settle()
        await w.advance(seconds=30)
        assert {m.status.phase for m in (await w.machines()).values()} == {"Running"}
        spent = management.by_resource()
        assert spent.total() - management.count(*OF_ITS_OWN) <= 5 * N, spent
        assert (spent["machines"], spent["devmachines"]) == (N, N), "made complete, and adopted"
        assert workload.by_resource() == {"nodes": N}
        assert management.count(*OF_ITS_OWN) <= 40, spent


async def test_a_machine_that_is_seen_before_its_instance_exists_costs_one_more() -> None:
    """Its status says so: seen, provisioned, running."""
    async with budgeted() as (w, management, workload):
        await w.apply(*manifests.pool(replicas=N, vm="20s", node="10s"))
        await w.settle()
        assert management.by_resource()["machines/status"] == N, "seen"
        await w.advance(seconds=60)
        assert {m.status.phase for m in (await w.machines()).values()} == {"Running"}
        spent = management.by_resource()
        assert spent["machines/status"] == 3 * N, "and provisioned, and running"
        assert spent.total() - N - management.count(*OF_ITS_OWN) <= 5 * N + POOL_EVENTS, spent
        assert workload.by_resource() == {"nodes": N}


async def test_growing_costs_the_same_for_each_new_machine_and_nothing_for_the_old_ones() -> None:
    async with budgeted() as (w, management, workload):
        await w.apply(*manifests.pool(replicas=N, vm="0s", node="0s"))
        await w.settle()
        await w.advance(seconds=30)
        old = set(await w.machines())
        management.clear()
        workload.clear()
        await w.client.scale(MachinePool, "workers", "default", N + 10)
        await w.settle()
        await w.advance(seconds=30)
        assert management.count() - management.count(*OF_ITS_OWN) <= 5 * 10, management.by_resource()
        assert workload.count() == 10
        assert {e.name for e in management.entries + workload.entries} & old == set()


async def test_an_idle_system_writes_nothing_and_a_heartbeat_of_every_node_neither() -> None:
    async with budgeted() as (w, management, workload):
        await w.apply(*manifests.pool(replicas=N))
        await w.apply(a_check())
        await w.settle()
        await w.advance(seconds=30)
        management.clear()
        workload.clear()
        await asyncio.sleep(timedelta(hours=1).total_seconds())
        assert (management.entries, workload.entries) == ([], [])
        for _ in range(3):
            await beat(w)
            await w.advance(minutes=5)
        assert (management.entries, workload.entries) == ([], [])


async def beat(w: World) -> None:
    """As kubelets: the times of all conditions move."""
    stamp = w.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    for node in await w.workload().list(Node):
        body: Object = {
            "status": {"conditions": [{"type": c.type, "lastHeartbeatTime": stamp} for c in node.status.conditions]}
        }
        await w.workload().patch(Node.resource, node.name, "", body, type_="strategic", subresource="status")


async def test_a_deletion_costs_few_writes_for_each_machine() -> None:
    async with budgeted() as (w, management, workload):
        await w.apply(*manifests.pool(replicas=N))
        await w.settle()
        await w.advance(seconds=30)
        management.clear()
        workload.clear()
        await w.client.delete(MachinePool, "workers", "default")
        await w.settle()
        await w.advance(seconds=30)
        assert await w.client.list(Machine) == []
        spent = management.by_resource()
        each = spent.total() - management.count(*OF_ITS_OWN)
        assert each <= 3 * N + POOL_EVENTS, f"status, event, finalizer: {spent}"
        assert Counter(e.verb for e in workload.entries) == {"PATCH": N}, "cordoned; the provider takes its Nodes away"
