"""Any single write may fail, be lost after it was done, be late or be done twice: the world ends up the same."""

import asyncio
import itertools
import os
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

import orjson
import pytest

from capi.api.builtin import Node
from capi.api.core.v1beta2 import Cluster, Machine, MachinePool
from capi.api.infra.v1beta2 import DevMachine
from capi.client.transport import Transport
from capi.kube.errors import InternalError, TransportError
from capi.kube.messages import Request, Response
from tests.world.rig import World, world

pytestmark = pytest.mark.looptime

FAULTS = ("refused", "unanswered", "late", "twice")
LEAST = 100
"""Writes that the story makes at least; how many exactly depends on what is taken together."""


@dataclass
class Faulty:
    """Passes everything on but the `nth` write, which suffers `fault`."""

    inner: Transport
    fault: str
    nth: int
    seen: int = 0

    async def request(self, request: Request) -> Response:
        if request.method == "GET" or "/leases" in request.path or "/events" in request.path:
            return await self.inner.request(request)
        self.seen += 1
        if self.seen != self.nth:
            return await self.inner.request(request)
        match self.fault:
            case "refused":
                return Response(500, orjson.dumps(InternalError("this write was refused on purpose").status))
            case "unanswered":
                await self.inner.request(request)
                raise TransportError("the answer to this write was lost on purpose")
            case "late":
                await asyncio.sleep(20)
                return await self.inner.request(request)
            case _:
                await self.inner.request(request)
                return await self.inner.request(request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self.inner.stream(request)

    async def close(self) -> None:
        await self.inner.close()


async def story(w: World) -> None:
    """Create, grow, lose one, shrink."""
    await w.cluster_with_pool(replicas=2)
    await w.advance(seconds=30)
    await w.client.scale(MachinePool, "workers", "default", 3)
    await w.advance(seconds=30)
    await w.client.delete(Machine, min(await w.machines()), "default")
    await w.advance(seconds=30)
    await w.client.scale(MachinePool, "workers", "default", 1)
    await w.advance(seconds=60)


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("chunk", range(0, 4, 1 if os.environ.get("CAPI_ALL_FAULTS") else 2))
async def test_one_bad_write_changes_nothing_in_the_end(fault: str, chunk: int) -> None:
    """Every write of the story suffers one of the faults: write n the fault n modulo 4; the last runs see none in time."""
    seen = nth = 0
    for nth in itertools.count(1 + FAULTS.index(fault) + 4 * chunk, 4 * 4):
        wires: list[Faulty] = []

        def wire(transport: Transport, nth: int = nth, wires: list[Faulty] = wires) -> Transport:
            wires.append(Faulty(transport, fault, nth))
            return wires[-1]

        async with world(wire) as w:
            await story(w)
            seen = wires[0].seen
            at = f"{fault} write {nth} of {seen}"
            (machine,) = (await w.machines()).values()
            assert machine.status is not None and machine.status.phase == "Running", at
            assert [m.name for m in await w.client.list(DevMachine)] == [machine.name], at
            assert [n.spec.provider_id for n in await w.workload().list(Node)] == [machine.spec.provider_id], at
            pool = await w.pool()
            assert pool.status is not None and (pool.status.replicas, pool.status.ready_replicas) == (1, 1), at
            await w.client.delete(Cluster, "quickstart", "default")
            await w.advance(seconds=60)
            for kind in (Cluster, MachinePool, Machine, DevMachine):
                assert await w.client.list(kind) == [], at
        if seen < nth:
            break
    assert nth > LEAST, f"the story made {seen} writes only: it tests nothing"
