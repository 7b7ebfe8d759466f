"""The same lives on the embedded API server: real apply, real managedFields, real garbage collection."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from capi.aio.clock import LoopClock
from capi.client.client import Client
from capi.client.inprocess import InProcessTransport
from capi.kube.errors import NotFound
from capi.runtime.manager import Manager
from tests.virtual.runtime.embedded import a_server, a_user
from tests.virtual.runtime.rig import FINALIZER, Faults, Flock, FlockReconciler, Sheep, a_flock, at_work, settle

pytestmark = pytest.mark.looptime


@asynccontextmanager
async def world(faults: Faults | None = None) -> AsyncIterator[tuple[Client, Manager]]:
    """A user's client and a running manager on a fresh server."""
    async with a_server(Flock.resource, Sheep.resource) as handler:
        faults = faults or Faults()
        faults.inner = InProcessTransport(handler)
        manager = Manager(faults, clock=LoopClock())
        manager.add(FlockReconciler())
        async with at_work(manager):
            yield a_user(handler), manager


async def life(client: Client, manager: Manager) -> None:
    """Grow a flock of two, shrink it to one, delete it."""
    await client.create(Flock.resource, a_flock(size=2))
    await settle(manager)
    assert [sheep.name for sheep in await client.list(Sheep)] == ["a-0", "a-1"]
    found = await client.get(Flock, "a", "default")
    assert found.metadata.finalizers == (FINALIZER,)
    assert (found.status.sheep, found.status.observed_generation) == (2, 1)
    await client.patch(Flock.resource, "a", "default", {"spec": {"size": 1}})
    await settle(manager)
    assert [sheep.name for sheep in await client.list(Sheep)] == ["a-0"]
    assert (await client.get(Flock, "a", "default")).status.observed_generation == 2
    await client.delete(Flock, "a", "default")
    await settle(manager)
    assert await client.list(Sheep) == []
    with pytest.raises(NotFound):
        await client.get(Flock, "a", "default")


async def test_a_life() -> None:
    async with world() as (client, manager):
        await life(client, manager)


@pytest.mark.parametrize("number", range(12))
async def test_any_one_write_may_fail(number: int) -> None:
    async with world(Faults(fail={number})) as (client, manager):
        await life(client, manager)


@pytest.mark.parametrize("number", range(12))
async def test_any_one_answer_may_be_lost(number: int) -> None:
    async with world(Faults(fail_after={number})) as (client, manager):
        await life(client, manager)


async def test_settled_means_silent() -> None:
    faults = Faults()
    async with world(faults) as (client, manager):
        await client.create(Flock.resource, a_flock(size=3))
        await settle(manager)
        before = faults.count
        await client.patch(Flock.resource, "a", "default", {"metadata": {"annotations": {"poke": "1"}}})
        await settle(manager)
        assert faults.count == before


async def test_writes_are_few() -> None:
    faults = Faults()
    async with world(faults) as (client, manager):
        await client.create(Flock.resource, a_flock(size=2))
        await settle(manager)
    assert faults.count == 5  # finalizer, two sheep, status before and after
