"""A pool of 1,000 machines that take as long as real ones do: all run, they do not come all at once, nothing goes wrong.

On virtual time, so only the work counts: `CPU` is what one core may take for it, and one is all it uses.
"""

import asyncio
import statistics
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime

import pytest

from capi.api.builtin import Node
from capi.api.core.v1beta2 import Machine
from capi.api.infra.v1beta2 import DevMachine
from capi.kube import conditions
from capi.kube.types import Object
from tests.world import manifests
from tests.world.rig import World, world

pytestmark = [pytest.mark.looptime, pytest.mark.slow]

N = 1000
CPU = 60.0
"""Seconds. It takes about 20 of an idle core, and more of one that is shared."""
VM, NODE = "8s", "1600ms"
"""With a jitter of a half: 10 s and 2 s, 20 % more or less."""
JITTER = "0.5"


def a_pool() -> list[Object]:
    pool, infra = manifests.pool(replicas=N, vm=VM, node=NODE)
    for step in infra["spec"]["backend"]["inMemory"].values():
        step["provisioning"]["startupJitter"] = JITTER
    return [infra, pool]


@asynccontextmanager
async def arrivals(w: World) -> AsyncIterator[dict[str, datetime]]:
    """When each Node came, from now on."""
    seen: dict[str, datetime] = {}

    async def watch() -> None:
        async with w.workload().watch(Node.resource) as events:
            async for event in events:
                seen.setdefault(event.object["metadata"]["name"], w.clock.now())

    watching = asyncio.ensure_future(watch())
    try:
        yield seen
    finally:
        watching.cancel()
        await asyncio.wait([watching])


async def test_a_thousand_machines_run_within_their_own_times() -> None:
    began = time.process_time()
    async with world() as w:
        await w.apply(*manifests.cluster())
        await w.settle()
        async with arrivals(w) as seen:
            asked = w.clock.now()
            await w.apply(*a_pool())
            await w.advance(seconds=20)
        machines = await w.machines()
        pool = await w.pool()
        infra = await w.client.list(DevMachine)
        failures = [w.failures(f"capi-{name}") for name in ("machinepool", "machine", "devmachine", "devmachinepool")]
        assert w.manager.trouble() == {}
    assert failures == [0, 0, 0, 0]
    assert len(machines) == len(infra) == N and set(seen) == set(machines)
    assert {m.status.phase for m in machines.values()} == {"Running"}
    assert pool.status.phase == "Running"
    assert (pool.status.replicas, pool.status.ready_replicas, pool.status.available_replicas) == (N, N, N)
    assert_spread([(seen[m.name] - asked).total_seconds() for m in infra])
    assert_drawn_once(infra, machines)
    assert time.process_time() - began < CPU


def assert_spread(seconds: list[float]) -> None:
    """Sums of two uniform times: from 9.6 s to 14.4 s around 12 s, here with what making 1,000 objects takes."""
    assert 9.6 <= min(seconds) < 10.5
    assert 13.5 < max(seconds) < 16.0
    assert 11.7 < statistics.mean(seconds) < 12.7
    assert 1.0 < statistics.pstdev(seconds) < 1.5
    [(_, busiest)] = Counter(round(moment, 1) for moment in seconds).most_common(1)
    assert busiest < N / 10, f"{busiest} machines came in the same tenth of a second"


def assert_drawn_once(infra: list[DevMachine], machines: dict[str, Machine]) -> None:
    """Every machine has its own address and its own Node."""
    addresses = {next(a.address for a in m.status.addresses if a.type == "InternalIP") for m in infra}
    assert len(addresses) > N - 3
    assert all(conditions.is_true(m.status.conditions, "Ready") for m in infra)
    assert {m.status.node_ref.name for m in machines.values() if m.status.node_ref} == set(machines)
