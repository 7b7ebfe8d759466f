"""`capi chaos` against a running world: what it writes, and what comes of it."""

from datetime import timedelta
from typing import Any

import pytest

from capi.app import chaos
from capi.kube.errors import NotFound
from tests.world import manifests
from tests.world.rig import World, world
from tests.world.test_chaos import PREFIX, available, infra_pool, readiness

pytestmark = pytest.mark.looptime


async def order(w: World, kind: chaos.Kind, name: str, fault: str, value: str | None = None, **more: Any) -> list[str]:
    """As `capi chaos` does it."""
    notes = chaos.notes_of(kind, fault, value, more.pop("lasting", None), w.clock.now())
    changed = await chaos.inject(w.client, "default", kind, name, notes, members=more.pop("members", False))
    return [str(line) for line in changed]


async def test_the_command_sets_and_clears_faults_of_a_machine() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        name = min(await w.machines())
        assert await order(w, "machine", name, "not-ready") == [f"DevMachine default/{name}: failure=NotReady"]
        await w.settle()
        assert (await readiness(w, name))[0] == "False"
        cleared = await chaos.clear(w.client, "default", "machine", name, everything=False)
        assert [str(line) for line in cleared] == [f"DevMachine default/{name}: failure cleared"]
        await w.settle()
        assert (await readiness(w, name))[0] == "True"
        [nothing] = await chaos.clear(w.client, "default", "machine", name, everything=False)
        assert str(nothing) == f"DevMachine default/{name}: nothing to clear"
        await order(w, "machine", name, "lose")
        await w.settle()
        assert name not in await w.machines()


async def test_the_command_reaches_a_pools_machines_when_asked_and_clears_them_always() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        names = sorted(await w.machines())
        assert len(await order(w, "pool", "workers", "unreachable")) == 1
        await w.settle()
        assert {(await readiness(w, name))[0] for name in names} == {"True"}
        assert len(await order(w, "pool", "workers", "unreachable", members=True)) == 3
        assert len(await order(w, "pool", "workers", "capacity", "1", members=True)) == 1
        await w.settle()
        assert {(await readiness(w, name))[0] for name in names} == {"Unknown"}
        assert len(await chaos.clear(w.client, "default", "pool", "workers", everything=False)) == 3
        await w.settle()
        assert {(await readiness(w, name))[0] for name in names} == {"True"}
        assert not any(key.startswith(PREFIX) for key in (await infra_pool(w)).metadata.annotations)


async def test_the_command_takes_an_api_down_for_a_while_and_clears_a_whole_cluster() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        await order(w, "cluster", "quickstart", "api-down", lasting=timedelta(seconds=30))
        await w.advance(seconds=20)
        assert (await available(w)).status == "False"
        await w.advance(seconds=15)
        assert (await available(w)).status == "True"
        await order(w, "cluster", "quickstart", "capacity", "3")
        await order(w, "pool", "workers", "not-ready", members=True)
        assert len(await chaos.clear(w.client, "default", "cluster", "quickstart", everything=False)) == 1
        assert len(await chaos.clear(w.client, "default", "cluster", "quickstart", everything=True)) == 4
        await w.settle()
        assert {(await readiness(w, name))[0] for name in await w.machines()} == {"True"}


@pytest.mark.parametrize("kind, title", [("machine", "Machine"), ("pool", "MachinePool"), ("cluster", "Cluster")])
async def test_the_command_names_what_is_not_there(kind: chaos.Kind, title: str) -> None:
    async with world() as w:
        with pytest.raises(NotFound, match=f'{title} "none" not found in namespace "default"; -n names'):
            await order(w, kind, "none", "capacity" if kind != "machine" else "lose", "1")


async def test_the_command_refuses_what_is_not_simulated() -> None:
    async with world() as w:
        other = {"apiGroup": manifests.INFRA, "kind": "OtherMachine", "name": "real"}
        await w.apply(*manifests.cluster(), manifests.machine("real", infrastructureRef=other)[0])
        with pytest.raises(chaos.NotSimulated, match='Machine "real" is not simulated'):
            await order(w, "machine", "real", "lose")
