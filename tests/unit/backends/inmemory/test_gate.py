"""A gate before an API server: open, shut, and what was going on when it shut."""

import asyncio
from dataclasses import dataclass, field

import pytest

from capi.backends.inmemory.gate import Gate
from capi.backends.inmemory.nodes import NODES
from capi.client.client import Client
from capi.client.inprocess import InProcessTransport
from capi.kube.errors import ServiceUnavailable
from capi.kube.messages import Answer, Request, Response, Sink, Stream
from tests.unit.backends.inmemory.rig import CLUSTER, a_rig

pytestmark = pytest.mark.looptime


@dataclass
class Slow:
    """A Handler whose answers take a second."""

    answer: Answer

    async def handle(self, request: Request) -> Answer:
        await asyncio.sleep(1)
        return self.answer


@dataclass
class Body:
    """A Producer that notes what is done to it."""

    done: list[str] = field(default_factory=list)

    def start(self, sink: Sink) -> None:
        self.done.append("start")

    def resume(self) -> None:
        self.done.append("resume")

    def stop(self) -> None:
        self.done.append("stop")


async def test_an_answer_that_comes_when_the_gate_is_shut_is_lost() -> None:
    body = Body()
    for answer in (Response(200, b"{}"), Stream(body)):
        gate = Gate(Slow(answer), "ns/prod")
        asked = asyncio.ensure_future(gate.handle(Request("GET", "/")))
        await asyncio.sleep(0.5)
        gate.shut()
        found = await asked
        assert isinstance(found, Response) and found.status == 503 and b"ns/prod" in found.body
    assert body.done == ["stop"]


async def test_a_watch_that_was_cut_ends_once_and_is_left_alone() -> None:
    body = Body()
    gate = Gate(Slow(Stream(body)), "ns/prod")
    transport = InProcessTransport(gate)
    async with transport.stream(Request("GET", "/")) as lines:
        gate.shut()
        gate.shut()
        assert [line async for line in lines] == []
    assert body.done == ["start", "stop", "stop"], "its own reader's stop is the second one"
    gate.open()
    assert (await gate.handle(Request("GET", "/"))).status == 200


async def test_an_outage_ends_watches_refuses_requests_and_keeps_what_there_is() -> None:
    async with a_rig() as rig:
        client = await rig.serve()
        await rig.backend.ensure_running(rig.spec("a"))
        seen = []

        async def watch() -> None:
            async with client.watch(NODES) as events:
                seen.extend([event.type async for event in events])

        watching = asyncio.ensure_future(watch())
        await asyncio.sleep(1)
        await rig.workloads.interrupt(CLUSTER, down=True)
        await asyncio.wait_for(watching, 1)
        assert seen[0] == "ADDED"
        with pytest.raises(ServiceUnavailable, match="ns/prod does not answer"):
            await client.list(NODES)
        await rig.workloads.interrupt(CLUSTER, down=False)
        assert len(await client.list(NODES)) == 1


async def test_a_server_that_starts_in_an_outage_does_not_answer() -> None:
    async with a_rig() as rig:
        await rig.workloads.interrupt(CLUSTER, down=True)
        client: Client = await rig.serve()
        with pytest.raises(ServiceUnavailable):
            await client.list(NODES)
        waiting = await rig.backend.ensure_running(rig.spec("a"))
        assert waiting.waiting_for_control_plane
        await rig.workloads.interrupt(CLUSTER, down=False)
        assert await client.list(NODES) == []


async def test_a_cluster_that_is_forgotten_in_an_outage_starts_without_one() -> None:
    async with a_rig() as rig:
        await rig.serve()
        await rig.workloads.interrupt(CLUSTER, down=True)
        await rig.workloads.ensure_absent(CLUSTER)
        assert await (await rig.serve()).list(NODES) == []
