"""Two managers on one API server: one works at a time, and the other ends what the first one began.

The leader is struck after some write of a scenario. However that happens, its successor works within the term of the lease,
nothing of the first one arrives after the first write of the second, and the world ends as it does undisturbed.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime

import pytest

from capi.aio.clock import Clock
from capi.api.core.v1beta2 import Machine, MachinePool
from capi.app import compose
from capi.client.transport import Transport
from capi.kube.errors import TransportError
from capi.kube.messages import Request, Response
from capi.runtime.election import Election, LeadershipLost
from capi.runtime.manager import Manager
from tests.world.picture import picture
from tests.world.rig import WiredInfrastructure, World, world
from tests.world.scenarios import SCENARIOS, Scenario, uids

pytestmark = [pytest.mark.looptime, pytest.mark.slow]

WAYS = ("stopped", "killed", "frozen", "cut off", "deaf")
TERM = 15.0
"""Seconds of the lease."""
LOOKS = 2.5
"""Seconds between two looks of a waiting manager, at most."""
FIRST, EVERY = 2, 7


@dataclass(slots=True)
class Records:
    """Who wrote what, in the order of arrival; leases and Events left out."""

    nth: int
    """The write of the first manager that is its last in good health."""
    arrived: list[tuple[str, str]] = field(default_factory=list)
    armed: bool = False
    struck: asyncio.Event = field(default_factory=asyncio.Event)

    def note(self, who: str, request: Request) -> None:
        if not self.armed or request.method == "GET" or "/leases" in request.path or "/events" in request.path:
            return
        self.arrived.append((who, f"{request.method} {request.path}"))
        if len(self.arrived) == self.nth:
            self.struck.set()


@dataclass
class Process:
    """One manager, and what can befall it."""

    name: str
    records: Records
    clock: Clock
    awake: asyncio.Event = field(default_factory=asyncio.Event)
    hears: bool = True
    reaches: bool = True
    manager: Manager = field(init=False)
    task: "asyncio.Future[None]" = field(init=False)

    def __post_init__(self) -> None:
        self.awake.set()

    def start(self, w: World) -> None:
        infra = WiredInfrastructure(w.infra.workloads, w.infra.backend, wire=self.wire)
        election = Election(namespace="default", name="capi", identity=self.name, lease_duration=TERM)
        clock = Drowsy(self.clock, self.awake)
        self.manager = compose.manager(self.wire(w.api.transport()), clock, infra, election=election)
        self.task = asyncio.ensure_future(self.manager.run())

    def wire(self, transport: Transport) -> Transport:
        return Line(transport, self)

    def strike(self, way: str) -> None:
        match way:
            case "stopped":
                self.manager.stop()
            case "killed":
                self.task.cancel()
            case "frozen":
                self.awake.clear()
            case "cut off":
                self.reaches = False
            case "deaf":
                self.hears = False

    async def end(self) -> None:
        """It wakes up if it was frozen, and is stopped. Raises what it ended by."""
        self.awake.set()
        await asyncio.sleep(30)
        self.manager.stop()
        with suppress(asyncio.CancelledError):
            await self.task


@dataclass(frozen=True, slots=True)
class Drowsy:
    """The clock of a process that may be frozen: its timers then ring late, all at once."""

    inner: Clock
    awake: asyncio.Event

    def now(self) -> datetime:
        return self.inner.now()

    def monotonic(self) -> float:
        return self.inner.monotonic()

    async def sleep(self, seconds: float) -> None:
        await self.inner.sleep(seconds)
        await self.awake.wait()


@dataclass(frozen=True, slots=True)
class Line:
    """A connection of a process."""

    inner: Transport
    process: Process

    async def request(self, request: Request) -> Response:
        process = self.process
        if not process.awake.is_set():
            await process.awake.wait()
            raise TransportError("the server has hung up meanwhile")
        if not process.reaches:
            raise TransportError("cut off on purpose")
        answer = await self.inner.request(request)
        process.records.note(process.name, request)
        await process.awake.wait()
        if not process.hears:
            raise TransportError("the answer was lost on purpose")
        return answer

    @asynccontextmanager
    async def _stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        async with self.inner.stream(request) as lines:
            yield self._lines(lines)

    def stream(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self._stream(request)

    async def _lines(self, lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for line in lines:
            await self.process.awake.wait()
            if not self.process.reaches:
                raise TransportError("cut off on purpose")
            yield line

    async def close(self) -> None:
        await self.inner.close()


async def run(scenario: Scenario, way: str, records: Records) -> list[str]:
    """The picture of the world after the scenario, and after the struck manager has come back to its senses."""
    async with world() as w:
        await w.stop_manager()
        one, two = Process("one", records, w.clock), Process("two", records, w.clock)
        one.start(w)
        w.manager = one.manager
        await w.settle()
        two.start(w)
        await scenario.prepare(w)
        memory = await uids(w)
        records.armed = True
        succession = asyncio.ensure_future(_succession(w, one, two, way))
        try:
            await scenario.act(w, memory)
            await w.advance(seconds=90)
            if records.struck.is_set():
                await succession
                await _leaves(one, way)
                await w.settle()
            await scenario.holds(w, memory)
            return await picture(w)
        finally:
            succession.cancel()
            for process in (one, two):
                with suppress(LeadershipLost):
                    await process.end()


async def _succession(w: World, one: Process, two: Process, way: str) -> None:
    """Strike, and see the other lead in time."""
    await one.records.struck.wait()
    assert one.manager.leading and not two.manager.leading
    struck = w.clock.monotonic()
    one.strike(way)
    w.manager = two.manager
    while not two.manager.leading:
        await asyncio.sleep(0.1)
        waited = w.clock.monotonic() - struck
        limit = {"stopped": 0.0, "deaf": 10.0 + TERM}.get(way, TERM) + LOOKS
        assert waited < limit, f"{way}: nobody leads after {waited} s"


async def _leaves(one: Process, way: str) -> None:
    """Whoever may have lost the lease ends, and says so."""
    if way in ("stopped", "killed"):
        await one.end()
        return
    with pytest.raises(LeadershipLost):
        await one.end()


@pytest.mark.parametrize("scenario", [s for s in SCENARIOS if s.settles], ids=lambda scenario: scenario.name)
async def test_another_manager_ends_what_was_begun_and_never_do_two_act(scenario: Scenario) -> None:
    wanted = await run(scenario, "", Records(nth=0))
    struck, first = 0, SCENARIOS.index(scenario)
    while True:
        way, records = WAYS[(first + struck) % len(WAYS)], Records(nth=FIRST + EVERY * struck)
        found = await run(scenario, way, records)
        if not records.struck.is_set():
            break
        at = f"{way} after write {records.nth}, {records.arrived[records.nth - 1][1]}"
        who = [name for name, _ in records.arrived]
        assert who == sorted(who), f"{at}: the first wrote after the second: {records.arrived[records.nth :]}"
        assert found == wanted, at
        struck += 1
    assert struck >= 2, "the scenario writes next to nothing: it tests nothing"


async def test_a_leader_that_wakes_up_late_with_much_to_do_touches_nothing() -> None:
    """Changes of the meantime reach both; only the one that leads acts, on the API and on infrastructure."""
    records = Records(nth=0, armed=True)
    async with world() as w:
        await w.stop_manager()
        one, two = Process("one", records, w.clock), Process("two", records, w.clock)
        one.start(w)
        w.manager = one.manager
        await w.cluster_with_pool(replicas=2)
        two.start(w)
        await w.settle()
        one.strike("frozen")
        w.manager = two.manager
        await w.settle()
        assert {who for who, _ in records.arrived} == {"one"}
        records.arrived.clear()
        began = passes(one)
        await w.client.scale(MachinePool, "workers", "default", 4)
        await w.client.delete(Machine, min(await w.machines()), "default")
        await _leaves(one, "frozen")
        await w.settle()
        assert {who for who, _ in records.arrived} == {"two"}
        assert passes(one) == began
        assert len(await w.machines()) == 4
        await two.end()


def passes(process: Process) -> float:
    """How often its controllers have looked at an object."""
    [family] = [f for f in process.manager.metrics.registry.collect() if f.name == "controller_runtime_reconcile"]
    return sum(sample.value for sample in family.samples if sample.name.endswith("_total"))
