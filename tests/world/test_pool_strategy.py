"""How a pool's infrastructure replaces and places: how far a rollout goes at a time, who goes first, where new ones go."""

import asyncio
from typing import Any

import pytest

from capi.api.core.v1beta2 import MachinePool
from capi.api.infra.v1beta2 import DevMachine, DevMachinePool
from capi.app.inputs import BadManifest
from capi.kube.conditions import is_true
from tests.world import manifests
from tests.world.rig import World, world

pytestmark = pytest.mark.looptime

NEW_VERSION = {"spec": {"template": {"spec": {"version": "v1.36.0"}}}}


async def pool_with(w: World, strategy: dict[str, Any], replicas: int = 4) -> None:
    machine_pool, infra = manifests.pool(replicas=replicas, vm="5s")
    infra["spec"]["strategy"] = strategy
    await w.apply(*manifests.cluster(), machine_pool, infra)
    await w.advance(seconds=30)


async def watch_rollout(w: World) -> tuple[int, int, list[DevMachine]]:
    """Most instances and fewest ready ones seen in two minutes, and the instances at the end."""
    most, fewest = 0, 100
    infra: list[DevMachine] = []
    for _ in range(480):
        await asyncio.sleep(0.25)
        infra = await w.client.list(DevMachine, "default")
        most = max(most, len(infra))
        fewest = min(fewest, sum(is_true(m.status.conditions, "Ready") and not m.deleting for m in infra))
    return most, fewest, infra


@pytest.mark.parametrize(
    ("update", "most", "fewest"),
    [
        pytest.param({"maxSurge": 2}, 6, 4, id="two more at a time"),
        pytest.param({"maxSurge": 0, "maxUnavailable": 1}, 4, 3, id="none more, one fewer"),
        pytest.param({"maxSurge": "25%", "maxUnavailable": "50%"}, 5, 2, id="percentages"),
    ],
)
async def test_a_rollout_uses_what_it_may_and_no_more(update: dict[str, Any], most: int, fewest: int) -> None:
    async with world() as w:
        await pool_with(w, {"rollingUpdate": update})
        old = set(await w.machines())
        await w.client.patch(MachinePool.resource, "workers", "default", NEW_VERSION)
        seen_most, seen_fewest, infra = await watch_rollout(w)
        assert (seen_most, seen_fewest) == (most, fewest)
        assert len(infra) == 4 and not {m.name for m in infra} & old


async def test_on_delete_replaces_only_what_somebody_deletes() -> None:
    async with world() as w:
        await pool_with(w, {"type": "OnDelete"}, replicas=3)
        before = await w.machines()
        await w.client.patch(MachinePool.resource, "workers", "default", NEW_VERSION)
        await w.advance(minutes=5)
        assert set(await w.machines()) == set(before)
        victim = before[min(before)]
        await w.client.delete(type(victim), victim.name, "default")
        await w.advance(minutes=5)
        after = await w.machines()
        assert len(after) == 3 and set(before) - set(after) == {victim.name}
        [fresh] = set(after) - set(before)
        assert after[fresh].spec.version == "v1.36.0"


async def test_a_strategy_that_is_changed_in_the_middle_counts_at_once() -> None:
    async with world() as w:
        await pool_with(w, {"type": "OnDelete"}, replicas=3)
        before = set(await w.machines())
        await w.client.patch(MachinePool.resource, "workers", "default", NEW_VERSION)
        await w.advance(minutes=1)
        rolling = {"spec": {"strategy": {"type": "RollingUpdate"}}}
        await w.client.patch(DevMachinePool.resource, "workers", "default", rolling)
        await w.advance(minutes=2)
        assert len(await w.machines()) == 3 and not before & set(await w.machines())


async def test_the_newest_goes_first_if_the_policy_says_so() -> None:
    async with world() as w:
        await pool_with(w, {"rollingUpdate": {"deletePolicy": "Newest"}}, replicas=1)
        [first] = await w.machines()
        await w.advance(minutes=1)
        await w.client.scale(MachinePool, "workers", "default", 3)
        await w.settle()
        await w.client.scale(MachinePool, "workers", "default", 1)
        await w.settle()
        assert set(await w.machines()) == {first}


async def test_a_strategy_that_could_replace_nothing_is_refused_with_the_field() -> None:
    async with world() as w:
        with pytest.raises(BadManifest, match=r"spec\.strategy\.rollingUpdate\.maxUnavailable.*raise maxSurge"):
            await pool_with(w, {"rollingUpdate": {"maxSurge": 0}})


async def test_instances_are_spread_evenly_over_the_failure_domains_and_their_machines_say_where() -> None:
    async with world() as w:
        machine_pool, infra = manifests.pool(replicas=5)
        machine_pool["spec"]["failureDomains"] = ["fd1", "fd2", "fd3"]
        await w.apply(*manifests.cluster(), machine_pool, infra)
        await w.advance(seconds=30)
        assert sorted(m.status.failure_domain for m in await w.client.list(DevMachine)) == [
            "fd1",
            "fd1",
            "fd2",
            "fd2",
            "fd3",
        ]
        await w.client.scale(MachinePool, "workers", "default", 6)
        await w.advance(seconds=30)
        placed = {m.name: m.status.failure_domain for m in await w.client.list(DevMachine)}
        assert sorted(placed.values()) == ["fd1", "fd1", "fd2", "fd2", "fd3", "fd3"]
        machines = await w.machines()
        assert {name: machine.status.failure_domain for name, machine in machines.items()} == placed
