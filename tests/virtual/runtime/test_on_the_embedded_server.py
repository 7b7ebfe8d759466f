"""The same lives on the embedded API server: real apply, real managedFields, real garbage collection."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from capi.aio.clock import LoopClock
from capi.client.client import Client
from capi.client.inprocess import InProcessTransport
from capi.kube.errors import NotFound
from capi.kube.types import Object, ResourceType
from capi.runtime.manager import Manager
from capi.server.http.app import ApiServer
from capi.server.registry.registry import ApiRegistry
from capi.server.store.memory import MemoryStore
from tests.virtual.runtime.rig import FINALIZER, Faults, Flock, FlockReconciler, Sheep, a_flock, settle

pytestmark = pytest.mark.looptime
CRDS = ResourceType(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)


def a_crd(resource: ResourceType) -> Object:
    conditions = {
        "type": "array",
        "items": {"type": "object", "required": ["type"], "x-kubernetes-preserve-unknown-fields": True,
                  "properties": {"type": {"type": "string"}}},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    }  # fmt: skip
    status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"conditions": conditions}}
    spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    version = {
        "name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}},
    }  # fmt: skip
    names = {"plural": resource.plural, "kind": resource.kind, "singular": resource.kind.lower()}
    return {
        "metadata": {"name": resource.qualified_plural},
        "spec": {"group": resource.group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


@asynccontextmanager
async def world(faults: Faults | None = None) -> AsyncIterator[tuple[Client, Manager]]:
    """A user's client and a running manager on a fresh server."""
    clock = LoopClock()
    registry = ApiRegistry(MemoryStore(), clock=clock)
    await registry.start()
    handler = ApiServer(registry, clock=clock)
    client = Client(InProcessTransport(handler), user_agent="user")
    for kind in (Flock, Sheep):
        await client.create(CRDS, a_crd(kind.resource))
    transport = InProcessTransport(handler)
    if faults is not None:
        faults.inner = transport
    manager = Manager(faults or transport, clock=clock)
    manager.add(FlockReconciler())
    async with asyncio.TaskGroup() as group:
        background, task = group.create_task(registry.run()), group.create_task(manager.run())
        try:
            yield client, manager
        finally:
            manager.stop()
            await asyncio.wait([task])
            background.cancel()
    await registry.close()


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
