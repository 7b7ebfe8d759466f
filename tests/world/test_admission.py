"""What the served API takes, completes and refuses of pools and Machines, each refusal naming its field."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from capi.aio.clock import LoopClock
from capi.api.core.v1beta2 import Machine, MachinePool
from capi.app import embedded
from capi.client.client import Client
from capi.kube.errors import ApiError, Invalid
from capi.kube.types import Object
from capi.server.store.memory import MemoryStore
from tests.world import manifests

pytestmark = pytest.mark.looptime

MIN = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size"
MAX = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size"
INFRA = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachine", "name": "m"}


@asynccontextmanager
async def api() -> AsyncIterator[Client]:
    """The management API alone, no controllers."""
    async with embedded.embedded_api(MemoryStore(), LoopClock()) as served:
        serving = asyncio.ensure_future(served.registry.run())
        try:
            yield Client(served.transport("user"))
        finally:
            serving.cancel()
            await asyncio.wait([serving])


def a_pool(**options: Any) -> Object:
    return manifests.pool("p", cluster="c", **options)[0]


def changed(pool: Object, *path: str, to: Any) -> Object:
    """The pool with one value set; None takes it away."""
    inner = pool
    for name in path[:-1]:
        inner = inner.setdefault(name, {})
    inner[path[-1]] = to
    if to is None:
        del inner[path[-1]]
    return pool


def a_machine(bootstrap: Object, **metadata: Any) -> Object:
    spec = {"clusterName": "c", "bootstrap": bootstrap, "infrastructureRef": INFRA}
    return {"metadata": {"name": "m", "namespace": "default", **metadata}, "spec": spec}


TEMPLATE = ("spec", "template", "spec")


@pytest.mark.parametrize(
    ("given", "stored"), [("1.31.0", "v1.31.0"), ("v1.31.1", "v1.31.1"), ("v1.36.0-rc.1", "v1.36.0-rc.1")]
)
async def test_versions_get_their_v(given: str, stored: str) -> None:
    async with api() as client:
        made = await client.create(MachinePool.resource, changed(a_pool(), *TEMPLATE, "version", to=given))
        assert made["spec"]["template"]["spec"]["version"] == stored


@pytest.mark.parametrize(
    ("pool", "field"),
    [
        pytest.param(changed(a_pool(), *TEMPLATE, "version", to="v1.31"), "spec.template.spec.version", id="half a version"),
        pytest.param(changed(a_pool(), *TEMPLATE, "version", to="latest"), "spec.template.spec.version", id="a word"),
        pytest.param(changed(a_pool(), *TEMPLATE, "bootstrap", to={}), "spec.template.spec.bootstrap", id="empty bootstrap"),
        pytest.param(changed(a_pool(), *TEMPLATE, "bootstrap", to=None), "spec.template.spec.bootstrap", id="no bootstrap"),
        pytest.param(changed(a_pool(), *TEMPLATE, "clusterName", to="d"), "spec", id="two clusters"),
        pytest.param(changed(a_pool(), "spec", "template", "metadata", to={"labels": {"a b": "c"}}), "spec.template.metadata.labels", id="no label"),
        pytest.param(changed(a_pool(), *TEMPLATE, "taints", to=[{"key": "a", "effect": "NoSchedule", "propagation": "Always"}]), "spec.template.spec.taints", id="taints"),
        pytest.param(changed(a_pool(), "spec", "replicas", to=-1), "spec.replicas", id="negative"),
        pytest.param(a_pool(annotations={MIN: "two", MAX: "3"}), f"metadata.annotations[{MIN}]", id="a bound that is no number"),
        pytest.param(a_pool(annotations={MIN: "4", MAX: "3"}), f"metadata.annotations[{MAX}]", id="bounds the wrong way round"),
    ],
)  # fmt: skip
async def test_a_pool_is_refused_by_field(pool: Object, field: str) -> None:
    async with api() as client:
        with pytest.raises(Invalid) as refused:
            await client.create(MachinePool.resource, pool)
        assert any(cause.field.startswith(field) for cause in refused.value.causes), refused.value.causes
        assert await client.list(MachinePool) == []


async def test_an_empty_secret_name_is_bootstrap_data_enough() -> None:
    async with api() as client:
        made = await client.create(MachinePool.resource, a_pool())
        assert made["spec"]["template"]["spec"]["bootstrap"] == {"dataSecretName": ""}


async def test_the_cluster_of_a_pool_stays() -> None:
    async with api() as client:
        await client.create(MachinePool.resource, a_pool())
        with pytest.raises(Invalid, match="clusterName"):
            body = {"spec": {"clusterName": "d", "template": {"spec": {"clusterName": "d"}}}}
            await client.patch(MachinePool.resource, "p", "default", body)


@pytest.mark.parametrize(
    ("notes", "old", "new"),
    [
        pytest.param({}, 3, 1, id="without bounds: one"),
        pytest.param({MIN: "2", MAX: "5"}, 1, 2, id="below"),
        pytest.param({MIN: "2", MAX: "5"}, 9, 5, id="above"),
        pytest.param({MIN: "2", MAX: "5"}, 4, 4, id="within"),
    ],
)
async def test_replicas_that_are_cleared_are_set_again(notes: dict[str, str], old: int, new: int) -> None:
    async with api() as client:
        await client.create(MachinePool.resource, a_pool(replicas=old, annotations=notes))
        cleared = [{"op": "replace", "path": "/spec/replicas", "value": None}]
        found = await client.patch(MachinePool.resource, "p", "default", cleared, type_="json")
        assert found["spec"]["replicas"] == new


@pytest.mark.parametrize(
    ("machine", "taken"),
    [
        pytest.param(a_machine({}), False, id="nothing"),
        pytest.param(a_machine({"dataSecretName": ""}), True, id="an empty secret name"),
        pytest.param(a_machine({}, labels={"cluster.x-k8s.io/pool-name": "p"}), True, id="a pool's"),
    ],
)
async def test_machines_need_bootstrap_data_unless_they_are_a_pools(machine: Object, taken: bool) -> None:
    async with api() as client:
        try:
            await client.create(Machine.resource, machine)
            assert taken
        except ApiError as error:
            assert not taken and "spec.bootstrap" in error.message, error


async def test_the_scale_of_a_pool_is_not_negative() -> None:
    async with api() as client:
        await client.create(MachinePool.resource, a_pool(replicas=2))
        with pytest.raises(ApiError, match=r"spec\.replicas"):
            await client.scale(MachinePool, "p", "default", -1)
        assert (await client.get(MachinePool, "p", "default")).spec.replicas == 2
