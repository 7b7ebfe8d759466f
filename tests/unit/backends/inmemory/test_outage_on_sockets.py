"""A simulated outage as the rest of the world sees it: real sockets, real time."""

import asyncio
import socket
from pathlib import Path

import pytest

from capi.aio.clock import SystemClock
from capi.backends.inmemory import ports
from capi.backends.inmemory.nodes import NODES
from capi.backends.inmemory.stores import FileStores
from capi.backends.inmemory.workload import WorkloadClusters
from capi.backends.port import PortTaken
from capi.client import pki
from capi.client.client import Client
from tests.unit.backends.inmemory.rig import CLUSTER
from tests.unit.backends.test_workload import NODE, access

CLOCK = SystemClock()


async def answers(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except ConnectionRefusedError:
        return False
    writer.close()
    return True


async def test_nobody_listens_meanwhile_and_after_it_everything_is_there_on_the_same_port(tmp_path: Path) -> None:
    authority = pki.new_ca("prod", CLOCK.now())
    port = ports.choose(str(tmp_path), "127.0.0.1", ())
    async with WorkloadClusters(CLOCK, stores=FileStores(tmp_path)) as workloads:
        await workloads.ensure_running(CLUSTER, port, authority, "v1.35.4")
        client = Client(access(authority, port))
        await client.create(NODES, NODE)
        async with client.watch(NODES) as events:
            assert (await anext(events)).type == "ADDED"
            await workloads.interrupt(CLUSTER, down=True)
            async with asyncio.timeout(10):
                rest = [event.type async for event in events]
        assert rest == [] and not await answers(port)
        await workloads.interrupt(CLUSTER, down=False)
        assert [node["metadata"]["name"] for node in await client.list(NODES)] == ["a"]
        await client.transport.close()


async def test_a_port_that_was_taken_meanwhile_is_named_and_the_outage_goes_on_until_it_is_free(tmp_path: Path) -> None:
    authority = pki.new_ca("prod", CLOCK.now())
    port = ports.choose(str(tmp_path), "127.0.0.1", ())
    async with WorkloadClusters(CLOCK, stores=FileStores(tmp_path)) as workloads:
        await workloads.interrupt(CLUSTER, down=True)
        await workloads.ensure_running(CLUSTER, port, authority, "v1.35.4")
        with socket.create_server(("127.0.0.1", port)):
            with pytest.raises(PortTaken, match=str(port)):
                await workloads.interrupt(CLUSTER, down=False)
            assert workloads.is_shut(CLUSTER)
        await workloads.interrupt(CLUSTER, down=False)
        assert await answers(port) and not workloads.is_shut(CLUSTER)
