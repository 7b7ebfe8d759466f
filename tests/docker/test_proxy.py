"""The proxy itself: what passes through it unchanged, and how it makes requests fail."""

import asyncio
import contextlib
import io
import json
import tarfile
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest

from tests.docker.conftest import NAMESPACE_LABEL
from tests.docker.engine import Engine
from tests.docker.proxy import DockerProxy

VERSION = "/v1.41"


@pytest.fixture
async def http(proxy: DockerProxy) -> AsyncIterator[aiohttp.ClientSession]:
    """A client that keeps its connections, as clients do."""
    connector = aiohttp.UnixConnector(str(proxy.socket))
    async with aiohttp.ClientSession("http://docker", connector=connector) as session:
        yield session


@pytest.fixture
def node(engine: Engine, namespace: str) -> Any:
    """A running container."""
    container = engine.run(namespace, labels={NAMESPACE_LABEL: namespace})
    yield container
    engine.remove(container)


async def test_requests_pass_through_on_one_connection_and_are_counted(
    proxy: DockerProxy, http: aiohttp.ClientSession
) -> None:
    for _ in range(3):
        async with http.get(f"{VERSION}/version") as answer:
            assert (await answer.json())["ApiVersion"]
    async with http.head("/_ping") as answer:
        assert answer.status == 200
    async with http.get(f"{VERSION}/containers/nobody/json") as answer:
        assert answer.status == 404
    assert proxy.kinds() == {"GET /version": 3, "HEAD /_ping": 1, "GET /containers/{id}/json": 1}
    assert proxy.count("GET", "/containers/.*/json") == 1


async def test_an_error_is_answered_to_the_chosen_request_and_the_engine_does_not_hear_of_it(
    proxy: DockerProxy, http: aiohttp.ClientSession, engine: Engine, node: str
) -> None:
    rule = proxy.answer("DELETE", "/containers/.*", 500, "disk on fire", first=2)
    statuses = []
    for target in ("nobody", node, "nobody"):
        async with http.delete(f"{VERSION}/containers/{target}?force=true") as answer:
            statuses.append(answer.status)
            if answer.status == 500:
                assert await answer.json() == {"message": "disk on fire"}
    assert statuses == [404, 500, 404]
    assert engine.inspect(node)["State"]["Running"]
    assert rule.hits == 1


async def test_an_error_with_a_body_sent_leaves_the_connection_usable(
    proxy: DockerProxy, http: aiohttp.ClientSession
) -> None:
    proxy.answer("POST", "/containers/create", 409)
    async with http.post(f"{VERSION}/containers/create?name=x", json={"Image": "x" * 100_000}) as answer:
        assert answer.status == 409
    async with http.get("/_ping") as answer:
        assert await answer.text() == "OK"


async def test_a_request_cut_before_never_reaches_the_engine(
    proxy: DockerProxy, http: aiohttp.ClientSession, engine: Engine, node: str
) -> None:
    rule = proxy.cut("POST", "/containers/.*/pause", after=None)
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await http.post(f"{VERSION}/containers/{node}/pause")
    assert rule.hits == 1
    assert not engine.inspect(node)["State"]["Paused"]


async def test_a_request_whose_answer_is_lost_has_been_done(
    proxy: DockerProxy, http: aiohttp.ClientSession, engine: Engine, node: str
) -> None:
    proxy.cut("POST", "/containers/.*/pause", after=0)
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await http.post(f"{VERSION}/containers/{node}/pause")
    assert engine.inspect(node)["State"]["Paused"]
    engine.call("POST", f"/containers/{node}/unpause")


async def test_an_answer_is_cut_in_its_middle(proxy: DockerProxy, http: aiohttp.ClientSession) -> None:
    proxy.cut("GET", "/version", after=20)
    async with http.get(f"{VERSION}/version") as answer:
        assert answer.status == 200
        with pytest.raises(aiohttp.ClientPayloadError):
            await answer.read()
    async with http.get(f"{VERSION}/version") as answer:
        assert "ApiVersion" in await answer.json()


async def test_a_held_request_waits_for_the_test_and_others_overtake_it(
    proxy: DockerProxy, http: aiohttp.ClientSession, engine: Engine, node: str
) -> None:
    held = proxy.hold("POST", "/containers/.*/stop")
    stopping = asyncio.create_task(_status(http, "POST", f"{VERSION}/containers/{node}/stop?t=5"))
    await held.reached.wait()
    assert await _status(http, "GET", f"{VERSION}/containers/{node}/json") == 200
    assert engine.inspect(node)["State"]["Running"]
    held.released.set()
    assert await stopping == 204
    assert not engine.inspect(node)["State"]["Running"]


async def test_a_delayed_request_is_done_later(proxy: DockerProxy, http: aiohttp.ClientSession) -> None:
    proxy.delay("GET", "/_ping", 0.3)
    loop = asyncio.get_running_loop()
    began = loop.time()
    assert await _status(http, "GET", "/_ping") == 200
    assert loop.time() - began >= 0.3
    began = loop.time()
    assert await _status(http, "GET", "/_ping") == 200
    assert loop.time() - began < 0.3


async def test_while_the_engine_is_down_streams_end_and_connections_are_refused(
    proxy: DockerProxy, http: aiohttp.ClientSession
) -> None:
    async with http.get(f"{VERSION}/events") as events, proxy.down():
        with pytest.raises(aiohttp.ClientError):
            await events.content.readexactly(1)
        with pytest.raises(aiohttp.ClientConnectorError):
            await http.get("/_ping")
    assert await _status(http, "GET", "/_ping") == 200


async def test_events_pass_through_as_they_happen(
    proxy: DockerProxy, http: aiohttp.ClientSession, engine: Engine, node: str
) -> None:
    filters = json.dumps({"container": [node], "event": ["die", "start"]})
    async with http.get(f"{VERSION}/events", params={"filters": filters}) as events:
        for happens, expected in ((engine.kill, "die"), (engine.start, "start"), (engine.stop, "die")):
            await _do(happens, node)
            assert json.loads(await asyncio.wait_for(events.content.readline(), 10))["Action"] == expected


async def test_a_client_that_leaves_an_event_stream_leaves_the_engine_too(
    proxy: DockerProxy, http: aiohttp.ClientSession
) -> None:
    events = await http.get(f"{VERSION}/events")
    await proxy.arrival("GET", "/events")
    assert proxy.open_requests == 1
    events.close()
    await proxy.quiet()


async def test_an_exec_passes_through_with_input_of_any_length_its_end_and_its_output(
    proxy: DockerProxy, http: aiohttp.ClientSession, node: str
) -> None:
    body = {"Cmd": ["sh", "-c", "wc -c; echo done"], "AttachStdin": True, "AttachStdout": True, "AttachStderr": True}
    async with http.post(f"{VERSION}/containers/{node}/exec", json=body) as answer:
        exec_id = (await answer.json())["Id"]
    async with _upgraded(proxy, f"{VERSION}/exec/{exec_id}/start") as (reader, writer):
        writer.write(b"x" * 3_000_000)
        writer.write_eof()  # the exec ends because this end of input is passed on
        said = await asyncio.wait_for(reader.read(), 20)
    assert b"3000000\n" in said
    assert said.endswith(b"done\n")


async def test_an_upload_in_chunks_passes_through_and_its_connection_is_used_again(
    proxy: DockerProxy, http: aiohttp.ClientSession, engine: Engine, node: str
) -> None:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        entry = tarfile.TarInfo("upload")
        entry.size = 3_000_000
        tar.addfile(entry, io.BytesIO(b"x" * entry.size))

    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, content.tell(), 100_000):
            yield content.getvalue()[start : start + 100_000]

    for _ in range(2):
        async with http.put(f"{VERSION}/containers/{node}/archive?path=/", data=chunks()) as answer:
            assert answer.status == 200
    assert (await asyncio.to_thread(engine.exec, node, "wc", "-c", "/upload"))[1] == "3000000 /upload\n"


async def test_an_exec_that_waits_for_input_answers_line_by_line(
    proxy: DockerProxy, http: aiohttp.ClientSession, node: str
) -> None:
    body = {"Cmd": ["cat"], "AttachStdin": True, "AttachStdout": True, "Tty": False}
    async with http.post(f"{VERSION}/containers/{node}/exec", json=body) as answer:
        exec_id = (await answer.json())["Id"]
    async with _upgraded(proxy, f"{VERSION}/exec/{exec_id}/start") as (reader, writer):
        for line in (b"one\n", b"two\n"):
            writer.write(line)
            frame = await asyncio.wait_for(reader.readexactly(8 + len(line)), 10)
            assert frame[8:] == line
        writer.write_eof()
        assert await asyncio.wait_for(reader.read(), 10) == b""


@contextlib.asynccontextmanager
async def _upgraded(
    proxy: DockerProxy, target: str
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection that has stopped being HTTP."""
    reader, writer = await asyncio.open_unix_connection(proxy.socket)
    body = b'{"Detach":false,"Tty":false}'
    head = f"POST {target} HTTP/1.1\r\nHost: docker\r\nConnection: Upgrade\r\nUpgrade: tcp\r\nContent-Type: application/json\r\n"
    writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    try:
        assert b" 101 " in (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0]
        yield reader, writer
    finally:
        writer.close()
        await writer.wait_closed()


async def _status(http: aiohttp.ClientSession, method: str, target: str) -> int:
    async with http.request(method, target) as answer:
        return answer.status


async def _do(action: Callable[[str], None], container: str) -> None:
    """A synchronous call of the engine beside the loop that runs the proxy."""
    await asyncio.to_thread(action, container)
