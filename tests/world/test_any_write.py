"""Any one write may fail, be late, be done twice, lose its answer or be the last of its process: the world ends up the same.

Writes of all controllers count, to the management API and to the workload cluster. Every third write of a scenario suffers one of
the faults; with `CAPI_ALL_FAULTS=1` each write suffers all of them, one run each.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field

import orjson
import pytest

from capi.client.transport import Transport
from capi.kube.errors import InternalError, TransportError
from capi.kube.messages import Request, Response
from tests.world.picture import picture
from tests.world.rig import World, world
from tests.world.scenarios import SCENARIOS, Scenario, uids

pytestmark = [pytest.mark.looptime, pytest.mark.slow]

FAULTS = ("refused", "unanswered", "late", "twice", "crash")
ALL = bool(os.environ.get("CAPI_ALL_FAULTS"))
SHIFTS = range(len(FAULTS) if ALL else 1)
EVERY = 1 if ALL else 3
"""No divisor of the number of faults: each of them has its turn."""
RESTART = 5.0
"""Seconds within which a new process ends what an old one began, where nothing but that is waited for."""
STEP = 0.1


@dataclass
class Plug:
    """Every write passes here; while armed, the `nth` suffers the fault."""

    fault: str = ""
    nth: int = 0
    armed: bool = False
    seen: int = 0
    what: str = ""
    struck: asyncio.Event = field(default_factory=asyncio.Event)

    def wire(self, transport: Transport) -> Transport:
        return Plugged(transport, self)

    def strikes(self, request: Request) -> bool:
        if not self.armed or request.method == "GET" or "/leases" in request.path or "/events" in request.path:
            return False
        self.seen += 1
        if self.seen == self.nth:
            self.what = f"{request.method} {request.path}"
            self.struck.set()
        return self.seen == self.nth


@dataclass
class Plugged:
    """One connection."""

    inner: Transport
    plug: Plug

    async def request(self, request: Request) -> Response:
        if not self.plug.strikes(request):
            return await self.inner.request(request)
        match self.plug.fault:
            case "refused":
                return Response(500, orjson.dumps(InternalError("this write was refused on purpose").status))
            case "unanswered":
                await self.inner.request(request)
                raise TransportError("the answer to this write was lost on purpose")
            case "late":
                await asyncio.sleep(20)
            case "twice":
                await self.inner.request(request)
            case "crash":
                await self.inner.request(request)
                await asyncio.get_running_loop().create_future()
        return await self.inner.request(request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self.inner.stream(request)

    async def close(self) -> None:
        await self.inner.close()


@asynccontextmanager
async def reviving(w: World, plug: Plug) -> AsyncIterator[None]:
    """A process that crashes is followed by another."""

    async def revive() -> None:
        await plug.struck.wait()
        w.crash_controllers()
        await w.restart_controllers()

    if plug.fault != "crash":
        yield
        return
    task = asyncio.ensure_future(revive())
    try:
        yield
    finally:
        if not plug.struck.is_set():
            task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.result()


async def run(scenario: Scenario, plug: Plug) -> list[str]:
    """The picture of the world after the scenario, disturbed or not."""
    async with world(plug.wire, workload_wire=plug.wire) as w:
        await scenario.prepare(w)
        memory = await uids(w)
        plug.armed = bool(plug.nth)
        async with reviving(w, plug):
            await scenario.act(w, memory)
            await w.advance(seconds=90)
        await scenario.holds(w, memory)
        return await picture(w)


@pytest.mark.parametrize("shift", SHIFTS)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
async def test_one_bad_write_changes_nothing_in_the_end(scenario: Scenario, shift: int) -> None:
    wanted = await run(scenario, Plug())
    nth = 0
    while True:
        nth += EVERY
        plug = Plug(FAULTS[(nth + shift) % len(FAULTS)], nth)
        try:
            found = await run(scenario, plug)
        except AssertionError as error:
            raise AssertionError(f"{plug.fault} write {nth}, {plug.what}: {error}") from error
        if not plug.struck.is_set():
            break
        assert found == wanted, f"{plug.fault} write {nth}, {plug.what}"
    assert nth > 5, "the scenario writes next to nothing: it tests nothing"


_QUICK = [scenario for scenario in SCENARIOS if scenario.settles]


@pytest.mark.parametrize("scenario", _QUICK, ids=lambda scenario: scenario.name)
async def test_a_restart_ends_within_seconds_what_was_begun(scenario: Scenario) -> None:
    wanted = await run(scenario, Plug())
    nth = 0
    while True:
        nth += 3
        plug = Plug("crash", nth)
        async with world(plug.wire, workload_wire=plug.wire) as w:
            await scenario.prepare(w)
            memory = await uids(w)
            plug.armed = True
            await scenario.act(w, memory)
            try:
                async with asyncio.timeout(30):
                    await plug.struck.wait()
            except TimeoutError:
                break
            w.crash_controllers()
            await w.restart_controllers()
            began = w.clock.monotonic()
            while await picture(w) != wanted:
                await asyncio.sleep(STEP)
                assert w.clock.monotonic() - began < RESTART, f"after write {nth}, {plug.what}"
    assert nth > 3, "the scenario writes next to nothing: it tests nothing"
