"""Any single write may fail, be lost after it was done, be late or be done twice: the world ends up the same."""

import asyncio
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
WRITES = 46
"""At least as many as the story makes; the last parameters fail nothing, and say so."""


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
@pytest.mark.parametrize("chunk", range(4))
async def test_one_bad_write_changes_nothing_in_the_end(fault: str, chunk: int) -> None:
    for nth in range(1 + chunk, WRITES + 1, 4):
        wires: list[Faulty] = []

        def wire(transport: Transport, nth: int = nth, wires: list[Faulty] = wires) -> Transport:
            wires.append(Faulty(transport, fault, nth))
            return wires[-1]

        async with world(wire) as w:
            await story(w)
            at = f"{fault} write {nth} of {wires[0].seen}"
            assert wires[0].seen >= nth or nth > 30, at
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
