"""Managers that look after one namespace, or after what a label gives them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from capi.aio.clock import LoopClock
from capi.client.client import Client
from capi.client.inprocess import InProcessTransport
from capi.kube.types import Object, ResourceType
from capi.runtime.manager import Manager
from tests.virtual.runtime.embedded import a_server, a_user
from tests.virtual.runtime.rig import Flock, FlockReconciler, Sheep, a_flock, at_work, settle
from tests.virtual.runtime.test_workloads import C, a_farm

pytestmark = pytest.mark.looptime

NAMESPACES = ResourceType("", "v1", "Namespace", "namespaces", namespaced=False)
MINE: Object = {"metadata": {"labels": {"cluster.x-k8s.io/watch-filter": "mine"}}}


@asynccontextmanager
async def at(**options: Any) -> AsyncIterator[tuple[Client, Manager]]:
    async with a_server(Flock.resource, Sheep.resource) as handler:
        manager = Manager(InProcessTransport(handler), clock=LoopClock(), **options)
        manager.add(FlockReconciler())
        async with at_work(manager):
            yield a_user(handler), manager


async def test_objects_of_other_namespaces_are_left_alone() -> None:
    async with at(namespace="default") as (user, manager):
        await user.create(NAMESPACES, {"metadata": {"name": "other"}})
        other = a_flock("b")
        other["metadata"]["namespace"] = "other"
        for flock in (a_flock("a", 1), other):
            await user.create(Flock.resource, flock)
        await settle(manager)
        assert [sheep.name for sheep in await user.list(Sheep)] == ["a-0"]
        assert (await user.get(Flock, "b", "other")).metadata.finalizers == ()


async def test_only_what_has_the_label_is_looked_after_and_only_while_it_has() -> None:
    async with at(watch_filter="mine") as (user, manager):
        for name, value in (("a", "mine"), ("b", "theirs"), ("c", None)):
            flock = a_flock(name, 1)
            if value is not None:
                flock["metadata"]["labels"] = {"cluster.x-k8s.io/watch-filter": value}
            await user.create(Flock.resource, flock)
        await settle(manager)
        assert [sheep.name for sheep in await user.list(Sheep)] == ["a-0"]
        assert (await user.get(Flock, "b", "default")).metadata.finalizers == ()
        await user.patch(Flock.resource, "c", "default", MINE)
        await user.patch(Flock.resource, "a", "default", {"metadata": {"labels": None}, "spec": {"size": 5}})
        await settle(manager)
        assert [sheep.name for sheep in await user.list(Sheep)] == ["a-0", "c-0"]


async def test_only_clusters_with_the_label_are_connected() -> None:
    async with a_farm(watch_filter="mine") as farm:
        await farm.cluster()
        await settle(farm.manager)
        assert farm.connector.kubeconfigs == []
        await farm.user.patch(farm.counter.kind.resource, "c", "default", MINE)
        await settle(farm.manager)
        assert farm.last() == 0
        await farm.user.patch(farm.counter.kind.resource, "c", "default", {"metadata": {"labels": None}})
        await settle(farm.manager)
        assert farm.manager.connections is not None and farm.manager.connections.get(C) is None
