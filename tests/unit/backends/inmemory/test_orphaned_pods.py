"""Pods of a machine that has gone."""

import asyncio

import pytest

from capi.backends.inmemory.controlplane import PODS
from capi.backends.inmemory.kubelet import QUARANTINE
from capi.client.client import Client
from tests.unit.backends.inmemory.rig import CLUSTER, a_rig

pytestmark = pytest.mark.looptime


async def a_pod(client: Client, name: str, node: str, **metadata: object) -> None:
    spec = {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}
    await client.create(PODS, {"metadata": {"name": name, "namespace": "default", **metadata}, "spec": spec})


async def names(client: Client) -> list[str]:
    return [pod["metadata"]["name"] for pod in await client.list(PODS)]


async def test_they_go_with_it_and_those_of_others_stay() -> None:
    async with a_rig() as rig:
        client = await rig.serve()
        for node in "ab":
            await rig.backend.ensure_running(rig.spec(node))
            await a_pod(client, f"on-{node}", node)
        await a_pod(client, "held", "a", finalizers=["example.com/hold"])
        await rig.backend.ensure_absent("in-memory:///ns/prod/a", "a", CLUSTER)
        await asyncio.sleep(QUARANTINE - 1)
        assert await names(client) == ["held", "on-a", "on-b"]
        await asyncio.sleep(2)
        assert await names(client) == ["held", "on-b"]
        assert (await client.get(PODS, "held", "default"))["metadata"]["deletionTimestamp"]


async def test_they_stay_if_there_is_a_node_of_that_name_again() -> None:
    async with a_rig() as rig:
        client = await rig.serve()
        await rig.backend.ensure_running(rig.spec("a"))
        await a_pod(client, "on-a", "a")
        await rig.backend.ensure_absent("in-memory:///ns/prod/a", "a", CLUSTER)
        await rig.backend.ensure_running(rig.spec("a", uid="another"))
        await asyncio.sleep(2 * QUARANTINE)
        assert await names(client) == ["on-a"]
