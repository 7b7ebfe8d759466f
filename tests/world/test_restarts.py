"""Restarts on real files and real ports, in real time: whatever a crash interrupts is finished by the next process."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

import pytest

from capi.api.controlplane.v1beta2 import DevControlPlane
from capi.api.core.v1beta2 import Cluster
from capi.client.transport import Transport
from capi.kube import conditions
from capi.kube.conditions import Condition
from capi.kube.messages import Request, Response
from capi.server.store.sqlite import SqliteStore
from tests.world import manifests
from tests.world.rig import World, world
from tests.world.truth import check, check_nothing_left

WRITES = 32
"""About as many as it takes to bring the story's pool up; a moment beyond the last write is one of rest."""


@dataclass
class Interrupted:
    """Passes everything on, up to the `nth` write: that one arrives, and is never answered."""

    inner: Transport
    nth: int
    reached: asyncio.Event
    seen: int = 0

    async def request(self, request: Request) -> Response:
        if request.method == "GET" or "/events" in request.path:
            return await self.inner.request(request)
        self.seen += 1
        answer = await self.inner.request(request)
        if self.seen >= self.nth:
            self.reached.set()
            await asyncio.get_running_loop().create_future()
        return answer

    def stream(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self.inner.stream(request)

    async def close(self) -> None:
        await self.inner.close()


@pytest.mark.slow
@pytest.mark.parametrize("nth", range(1, WRITES, 5))
async def test_a_crash_at_any_write_is_made_good_by_the_next_process(nth: int, tmp_path: Path) -> None:
    reached = asyncio.Event()
    file, clusters = tmp_path / "management.db", tmp_path / "clusters"
    async with world(lambda t: Interrupted(t, nth, reached), store=SqliteStore.open(file), directory=clusters) as w:
        await w.apply(*manifests.cluster(), *manifests.pool(replicas=2, vm="0s", node="0s"))
        await w.until(lambda: _either(reached, w))
        w.crash_controllers()
    async with world(store=SqliteStore.open(file), directory=clusters) as w:
        await w.settle()
        await check(w)
        await w.client.delete(Cluster, "quickstart", "default")
        await w.settle()
        await check_nothing_left(w)
    assert list(clusters.iterdir()) == []


async def _either(reached: asyncio.Event, w: World) -> bool:
    """The write came, or there are fewer writes than that."""
    return reached.is_set() or (w.manager.idle(within=3.0) and bool(await w.machines()))


async def available(w: World) -> Condition | None:
    plane = await w.client.get(DevControlPlane, "quickstart", "default")
    return conditions.get(plane.status.conditions, "Available")


async def test_a_port_that_is_taken_at_a_restart_is_told_and_used_again_when_it_is_free() -> None:
    async with world(sockets=True) as w:
        await w.cluster_with_pool(replicas=1, vm="0s", node="0s")
        cluster = await w.client.get(Cluster, "quickstart", "default")
        assert cluster.spec.control_plane_endpoint is not None
        port = cluster.spec.control_plane_endpoint.port
        await w.stop_controllers()
        with socket.create_server(("127.0.0.1", port)):
            await w.start_controllers()

            async def told() -> bool:
                said = await available(w)
                return said is not None and said.reason == "PortTaken" and str(port) in said.message

            await w.until(told)

        async def served() -> bool:
            said = await available(w)
            return said is not None and said.status == "True"

        await w.until(served)
        await w.settle()
        await check(w)
