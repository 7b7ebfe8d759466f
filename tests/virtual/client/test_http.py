"""The HTTP transport against a real listener, and against servers that misbehave. Real sockets, so real time."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest

from capi.client.client import Client
from capi.client.config import ClusterConfig
from capi.client.http import HttpTransport, connect
from capi.kube.errors import NotFound, TransportError
from capi.kube.messages import Request
from capi.kube.types import ResourceType
from capi.server.http.listener import serve
from tests.virtual.fake_api import FakeApi

FLOCKS = ResourceType("farm.io", "v1", "Flock", "flocks")
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def http(api: FakeApi) -> AsyncIterator[HttpTransport]:
    """A transport to `api` behind the real HTTP front."""
    listener = await serve(api)
    transport = connect(ClusterConfig(server=f"http://127.0.0.1:{listener.port}"))
    try:
        yield transport
    finally:
        await transport.close()
        await listener.close(0)


@asynccontextmanager
async def raw(behaviour: Serve, token_file: Path | None = None) -> AsyncIterator[HttpTransport]:
    """A transport to a server made of one function per connection."""
    writers = []

    async def serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await behaviour(reader, writer)

    server = await asyncio.start_server(serve_one, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    transport = HttpTransport(ClusterConfig(server=url, token_file=token_file))
    try:
        yield transport
    finally:
        await transport.close()
        server.close()
        for writer in writers:
            writer.transport.abort()
        await asyncio.sleep(0.01)  # real sockets close in real time


def a_flock(name: str) -> dict[str, object]:
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"size": 1}}


async def test_calls_travel_over_http() -> None:
    async with http(FakeApi()) as transport:
        client = Client(transport)
        await client.create(FLOCKS, a_flock("a"))
        await client.patch(FLOCKS, "a", "default", {"spec": {"size": 2}})
        assert (await client.get(FLOCKS, "a", "default"))["spec"]["size"] == 2
        assert [item["metadata"]["name"] for item in await client.list(FLOCKS)] == ["a"]
        await client.delete(FLOCKS, "a", "default")
        with pytest.raises(NotFound):
            await client.get(FLOCKS, "a", "default")


async def test_lists_are_read_in_pages() -> None:
    api = FakeApi()
    for number in range(1201):
        api.create("farm.io/v1/flocks", a_flock(f"f{number:04}"))
    async with http(api) as transport:
        assert len(await Client(transport).list(FLOCKS)) == 1201
    assert len(api.log) == 3


async def test_many_requests_share_few_connections() -> None:
    api = FakeApi()
    api.create("farm.io/v1/flocks", a_flock("a"))
    listener = await serve(api)
    transport = HttpTransport(ClusterConfig(server=f"http://127.0.0.1:{listener.port}"), max_connections=4)
    client = Client(transport)
    try:
        found = await asyncio.gather(*(client.get(FLOCKS, "a", "default") for _ in range(100)))
        assert len(found) == 100 and len(transport._all) <= 4
    finally:
        await transport.close()
        await listener.close(0)


async def test_a_watch_streams_events_as_they_happen() -> None:
    api = FakeApi()
    async with http(api) as transport, Client(transport).watch(FLOCKS, query=(("resourceVersion", "100"),)) as events:
        api.create("farm.io/v1/flocks", a_flock("a"))
        first = await anext(events)
        api.edit("farm.io/v1/flocks", "default", "a", {"spec": {"size": 5}})
        second = await anext(events)
        assert (first.type, second.type) == ("ADDED", "MODIFIED")
        assert second.object["spec"]["size"] == 5
        api.drop_watches()
        assert [event async for event in events] == []


async def test_a_get_on_a_connection_that_closed_is_sent_again() -> None:
    answers = 0

    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers one request, then hangs up at the next one without a word."""
        nonlocal answers
        await reader.readuntil(b"\r\n\r\n")
        answers += 1
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
        await writer.drain()
        await reader.readuntil(b"\r\n\r\n")
        writer.transport.abort()

    async with raw(once) as transport:
        await transport.request(Request("GET", "/version"))
        response = await transport.request(Request("GET", "/version"))
        assert (response.status, answers) == (200, 2)
        with pytest.raises(TransportError):
            await transport.request(Request("PATCH", "/version", body=b"{}"))
        assert answers == 2


async def test_a_refused_token_is_read_again_once(tmp_path: Path) -> None:
    file, seen = tmp_path / "token", []
    file.write_text("old")

    async def guard(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Knows only the new token, which is there once the old one was refused."""
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            seen.append(head.split(b"Authorization: Bearer ")[1].split(b"\r\n")[0])
            file.write_text("new")
            status = b"200 OK" if seen[-1] == b"new" else b"401 Unauthorized"
            writer.write(b"HTTP/1.1 " + status + b"\r\ncontent-length: 2\r\n\r\n{}")

    async with raw(guard, file) as transport:
        response = await transport.request(Request("GET", "/version"))
    assert (response.status, seen) == (200, [b"old", b"new"])


async def test_a_broken_stream_is_a_transport_error() -> None:
    async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        line = orjson.dumps({"type": "BOOKMARK", "object": {}}) + b"\n"
        size = f"{len(line):x}".encode()
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + size + b"\r\n" + line + b"\r\n")
        await writer.drain()
        writer.close()

    async with raw(half) as transport, transport.stream(Request("GET", "/watch")) as lines:
        assert b"BOOKMARK" in await anext(lines)
        with pytest.raises(TransportError):
            await anext(lines)


async def test_a_server_that_is_not_there_is_named() -> None:
    transport = HttpTransport(ClusterConfig(server="http://127.0.0.1:1"))
    with pytest.raises(TransportError, match="connection refused"):
        await transport.request(Request("GET", "/version"))
    await transport.close()


@pytest.mark.parametrize("head", ["Transfer-Encoding: chunked", "X: y"])
async def test_an_event_without_end_is_given_up(head: str) -> None:
    piece = b"x" * (1 << 20)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 200 OK\r\n{head}\r\n\r\n".encode())
        with contextlib.suppress(ConnectionError):
            for _ in range(200):
                writer.write(b"%x\r\n%b\r\n" % (len(piece), piece) if "chunked" in head else piece)
                await writer.drain()
        writer.close()

    async with raw(serve) as transport, transport.stream(Request("GET", "/api/v1/pods")) as lines:
        with pytest.raises(TransportError, match="too large"):
            await anext(aiter(lines))
