"""A pool and its bootstrap config: a kind of a third party, whose controller is the test."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from capi.api.core.v1beta2 import MachinePool
from capi.kube.conditions import get
from capi.kube.types import Object, ResourceType
from tests.virtual.runtime.embedded import CRDS, a_crd
from tests.world import manifests
from tests.world.rig import World, world

pytestmark = pytest.mark.looptime

GROUP = "bootstrap.cluster.x-k8s.io"
CONFIG = ResourceType(GROUP, "v1alpha1", "ExampleConfig", "exampleconfigs")


def ref(name: str) -> Object:
    return {"apiGroup": GROUP, "kind": "ExampleConfig", "name": name}


async def config(w: World, name: str, status: Object | None = None) -> None:
    """Make a config, and let it report."""
    await w.client.create(CONFIG, {"metadata": {"name": name, "namespace": "default"}, "spec": {}})
    if status is not None:
        await w.client.patch(CONFIG, name, "default", {"status": status}, subresource="status")


async def bootstrap(w: World, changes: Any) -> None:
    """As a user: change the template's bootstrap."""
    body = {"spec": {"template": {"spec": {"bootstrap": changes}}}}
    await w.client.patch(MachinePool.resource, "workers", "default", body)
    await w.settle()


async def said(w: World) -> tuple[str | None, bool | None, str, str]:
    """The Secret, the flag, the condition, the phase."""
    pool = await w.pool()
    start, ready = pool.status.initialization, get(pool.status.conditions, "BootstrapConfigReady")
    assert ready is not None
    flag = start.bootstrap_data_secret_created if start is not None else None
    return pool.spec.template.spec.bootstrap.data_secret_name, flag, ready.status, pool.status.phase


def created(secret: str) -> Object:
    return {"initialization": {"dataSecretCreated": True}, "dataSecretName": secret}


@asynccontextmanager
async def waiting(contract: str = "v1beta2") -> AsyncIterator[World]:
    """A pool that refers to config `one`, which does not exist yet."""
    async with world() as w:
        await w.client.create(CRDS, a_crd(CONFIG, {f"cluster.x-k8s.io/{contract}": "v1alpha1"}))
        pool, infra = manifests.pool(replicas=1, template={"bootstrap": {"configRef": ref("one")}})
        await w.apply(*manifests.cluster(), pool, infra)
        await w.settle()
        yield w


async def test_a_config_is_waited_for_adopted_and_its_secret_taken() -> None:
    async with waiting() as w:
        assert (await said(w))[:3] == (None, False, "False")
        assert w.failures() == 0
        await config(w, "one")
        await w.settle()
        assert (await said(w))[:3] == (None, False, "False")
        made = await w.client.get(CONFIG, "one", "default")
        assert made["metadata"]["labels"] == {"cluster.x-k8s.io/cluster-name": "quickstart"}
        [owner] = made["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["controller"]) == ("MachinePool", "workers", True)
        await w.client.patch(CONFIG, "one", "default", {"status": created("first")}, subresource="status")
        await w.settle()
        assert await said(w) == ("first", True, "True", "Running")


async def test_a_config_of_the_old_contract_is_ready_by_its_old_field() -> None:
    async with waiting("v1beta1") as w:
        await config(w, "one", {"ready": True, "dataSecretName": "first"})
        await w.settle()
        assert await said(w) == ("first", True, "True", "Running")


async def test_another_config_takes_over_when_it_is_ready_and_not_before() -> None:
    async with waiting() as w:
        await config(w, "one", created("first"))
        await config(w, "two")
        await w.settle()
        await bootstrap(w, {"configRef": ref("two")})
        assert await said(w) == ("first", True, "False", "Running")
        await w.client.patch(CONFIG, "two", "default", {"status": created("second")}, subresource="status")
        await w.settle()
        assert await said(w) == ("second", True, "True", "Running")


async def test_a_secret_stays_when_the_reference_to_its_config_goes() -> None:
    async with waiting() as w:
        await config(w, "one", created("first"))
        await w.settle()
        await bootstrap(w, {"configRef": None})
        await w.advance(minutes=1)
        assert await said(w) == ("first", True, "True", "Running")
        assert w.failures() == 0, "nobody tries to take it away"
        await bootstrap(w, {"dataSecretName": "mine"})
        await w.advance(minutes=1)
        assert await said(w) == ("mine", True, "True", "Running")
        assert w.failures() == 0


async def test_a_config_goes_with_its_pool_and_one_of_somebody_else_stays() -> None:
    async with waiting() as w:
        await config(w, "one", created("first"))
        await w.settle()
        other, infra = manifests.pool("other", replicas=1, template={"bootstrap": {"configRef": ref("one")}})
        await w.apply(other, infra)
        await w.settle()
        ready = get((await w.pool("other")).status.conditions, "BootstrapConfigReady")
        assert ready is not None and "controlled by MachinePool workers" in ready.message
        await w.client.delete(MachinePool, "other", "default")
        await w.advance(minutes=1)
        assert [pool.name for pool in await w.client.list(MachinePool)] == ["workers"]
        assert len(await w.client.list(CONFIG, "default")) == 1
        await w.client.delete(MachinePool, "workers", "default")
        await w.advance(minutes=1)
        assert await w.client.list(MachinePool) == [] and await w.client.list(CONFIG, "default") == []
