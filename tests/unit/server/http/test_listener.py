"""The HTTP/1.1 front, byte by byte, on a real socket."""

import asyncio
import http.client
import json
import socket

import pytest
import uvloop

from capi.server.http.incoming import Limits
from capi.server.http.listener import ListenError, serve
from tests.unit.server.http.rig import Echo, PromptEcho, eventually, listening, peer

GET = "GET {} HTTP/1.1\r\nHost: h\r\n\r\n"


@pytest.fixture(params=[Echo, PromptEcho], ids=["awaited", "prompt"])
async def echo(request):
    async with listening(request.param()) as pair:
        yield pair


async def test_pipelined_requests_are_answered_in_order(echo):
    handler, listener = echo
    async with peer(listener.port) as p:
        await p.send(GET.format("/slow") + GET.format("/a?x=1&x=2") + GET.format("/b"))
        await eventually(lambda: handler.order)
        handler.gate.set()
        paths = [json.loads((await p.answer())[2])["path"] for _ in range(3)]
    assert paths == handler.order == ["/slow", "/a", "/b"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param(
            "POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc",
            {"method": "POST", "body": "abc"},
            id="content length",
        ),
        pytest.param(
            "POST /p HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x=y\r\nc\r\n0\r\nX-Trailer: t\r\n\r\n",
            {"body": "abc", "headers": {}},
            id="chunks, extensions and trailers",
        ),
        pytest.param(
            "GET http://other/p%2Fq?a=%20b&c HTTP/1.1\r\nHost: h\r\n\r\n",
            {"path": "/p%2Fq", "query": [["a", " b"], ["c", ""]]},
            id="absolute form",
        ),
        pytest.param("GET //x/y?z HTTP/1.1\r\nHost: h\r\n\r\n", {"path": "//x/y"}, id="double slash"),
        pytest.param("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", {"path": "*"}, id="asterisk"),
        pytest.param(
            "GET /p HTTP/1.1\r\nHost: h\r\nX-A: 1\r\nx-a: 2\r\n\r\n", {"headers": {"x-a": "1, 2"}}, id="repeated header"
        ),
        pytest.param("\r\n\r\nGET /p HTTP/1.1\r\nHost: h\r\n\r\n", {"path": "/p"}, id="leading line breaks"),
    ],
)
@pytest.mark.parametrize("step", [1000, 1], ids=["at once", "byte by byte"])
async def test_requests_are_understood(echo, text, wanted, step):
    async with peer(echo[1].port) as p:
        for at in range(0, len(text), step):
            await p.send(text[at : at + step])
        status, headers, body = await p.answer()
    answer = json.loads(body)
    assert status == 200 and "date" in headers
    assert {k: answer[k] for k in wanted} == wanted


@pytest.mark.parametrize(
    ("text", "status"),
    [
        pytest.param("GET / HTTP/1.1\r\n\r\n", 400, id="no host"),
        pytest.param("rubbish\r\n\r\n", 400, id="no request"),
        pytest.param("GET / HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\n\r\n", 400, id="bad length"),
        pytest.param(
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            400,
            id="length and chunked",
        ),
        pytest.param("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400, id="bad chunk"),
        pytest.param("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4000000\r\n\r\n", 413, id="announced too large"),
        pytest.param(
            "POST / HTTP/1.1\r\nHost: h\r\nExpect: tea\r\nContent-Length: 1\r\n\r\n", 417, id="unknown expectation"
        ),
        pytest.param("GET / HTTP/1.1\r\nHost: h\r\nX: " + "x" * 70_000 + "\r\n\r\n", 431, id="huge header"),
        pytest.param("GET / HTTP/1.1\r\nHost: h\r\n" + "X: y\r\n" * 12_000 + "\r\n", 431, id="many headers"),
        pytest.param("GET /" + "x" * 70_000, 431, id="endless target"),
        pytest.param("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, id="HTTP/2 preface"),
    ],
)
async def test_bad_requests_are_refused_in_turn_and_end_the_connection(echo, text, status):
    async with peer(echo[1].port) as p:
        await p.send(GET.format("/first") + text)
        assert (await p.answer())[0] == 200
        refused, headers, body = await p.answer()
        p.writer.write_eof()
        assert (refused, headers["connection"], await p.rest()) == (status, "close", b"")
        assert (json.loads(body)["kind"], json.loads(body)["code"]) == ("Status", status)


async def test_a_body_that_grows_too_large_is_refused_while_it_is_sent(echo):
    async with peer(echo[1].port) as p:
        await p.send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(5):
            await p.send(b"100000\r\n" + b"x" * 0x100000 + b"\r\n")
        status, _, body = await p.answer()
    assert (status, json.loads(body)["message"]) == (413, "Request entity too large: limit is 3145728")


async def test_continue_is_sent_when_the_body_is_wanted_and_in_turn(echo):
    handler, listener = echo
    async with peer(listener.port) as p:
        await p.send(
            GET.format("/slow") + "POST /p HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
        )
        await eventually(lambda: handler.order)
        handler.gate.set()
        assert (await p.answer())[0] == 200
        assert (await p.head())[0] == 100
        await p.send("ok")
        assert json.loads((await p.answer())[2])["body"] == "ok"


async def test_head_has_the_length_but_no_body(echo):
    async with peer(echo[1].port) as p:
        await p.send("HEAD /x HTTP/1.1\r\nHost: h\r\n\r\n" + GET.format("/y"))
        status, headers = await p.head()
        assert (status, int(headers["content-length"]) > 0) == (200, True)
        assert json.loads((await p.answer())[2])["path"] == "/y"


@pytest.mark.parametrize(
    "text", ["GET /x HTTP/1.0\r\n\r\n", "GET /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"], ids=["1.0", "close"]
)
async def test_a_connection_ends_when_the_client_wants_it(echo, text):
    async with peer(echo[1].port) as p:
        await p.send(text)
        assert (await p.answer())[1]["connection"] == "close"
        assert await p.rest() == b""


async def test_an_upgrade_is_not_followed(echo):
    async with peer(echo[1].port) as p:
        await p.send("GET /x HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\nspdy")
        assert ((await p.answer())[0], await p.rest()) == (200, b"")


async def test_a_peer_that_closes_its_side_still_gets_its_answer(echo):
    handler, listener = echo
    async with peer(listener.port) as p:
        await p.send(GET.format("/slow") + GET.format("/after"))
        p.writer.write_eof()
        await eventually(lambda: handler.order)
        handler.gate.set()
        assert [(await p.answer())[0] for _ in range(2)] == [200, 200]
        assert await p.rest() == b""


async def test_a_stream_is_chunked_and_ends_cleanly(echo):
    handler, listener = echo
    async with peer(listener.port) as p:
        await p.send(GET.format("/watch") + GET.format("/next"))
        assert (await p.head())[1]["transfer-encoding"] == "chunked"
        sink = handler.tickers[0].sink
        assert sink.write(b"one\n") and sink.write(b"two\n")
        assert [await p.chunk(), await p.chunk()] == [b"one\n", b"two\n"]
        sink.end()
        assert await p.chunk() == b""
        assert not sink.write(b"late\n")
        assert json.loads((await p.answer())[2])["path"] == "/next"


async def test_a_watcher_that_leaves_stops_its_producer(echo):
    handler, listener = echo
    async with peer(listener.port) as p:
        await p.send(GET.format("/watch"))
        await p.head()
    async with asyncio.timeout(5):
        await handler.tickers[0].stopped.wait()
    await eventually(lambda: listener.connections == 0)


async def fill(ticker) -> int:
    """Write until the peer's side is full; how many times 100 kB."""
    sent = 1
    while ticker.sink.write(b"x" * 100_000):
        sent += 1
        await asyncio.sleep(0)
        assert sent < 1000
    return sent


async def test_a_watcher_that_does_not_read_is_dropped(echo):
    async with listening(limits=Limits(write_seconds=0.1)) as (handler, listener), peer(listener.port) as p:
        await p.send(GET.format("/watch"))
        await p.head()
        await fill(handler.tickers[0])
        async with asyncio.timeout(5):
            await handler.tickers[0].stopped.wait()


async def test_a_watcher_that_reads_on_is_written_to_again(echo):
    handler, listener = echo
    async with peer(listener.port) as p:
        await p.send(GET.format("/watch"))
        await p.head()
        ticker = handler.tickers[0]
        sent = await fill(ticker)
        assert not ticker.resumed.is_set()
        for _ in range(sent):
            await p.chunk()
        async with asyncio.timeout(5):
            await ticker.resumed.wait()
        assert ticker.sink.write(b"more")
        assert await p.chunk() == b"more"


async def test_a_peer_that_does_not_read_its_answers_is_not_served_more_and_cut():
    limits = Limits(write_seconds=0.1)
    async with listening(PromptEcho(), limits) as (handler, listener), peer(listener.port) as p:
        p.writer.transport.pause_reading()
        await p.send(GET.format("/big") * 50)
        await eventually(lambda: listener.connections == 0)
    assert 0 < len(handler.order) < 10


async def test_a_slow_reader_of_a_last_answer_gets_all_of_it():
    limits = Limits(write_seconds=0.05, linger_seconds=0.05)
    async with listening(PromptEcho(), limits) as (_, listener), peer(listener.port) as p:
        await p.send("GET /big HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        _, headers = await p.head()
        for _ in range(40):
            await p.reader.readexactly(100_000)
            await asyncio.sleep(0)
        assert (int(headers["content-length"]), await p.rest()) == (4_000_000, b"")


async def test_unread_answers_are_given_once_they_are_read():
    async with listening(PromptEcho()) as (handler, listener), peer(listener.port) as p:
        await p.send(GET.format("/big") * 20)
        assert [len((await p.answer())[2]) for _ in range(20)] == [4_000_000] * 20
    assert len(handler.order) == 20


async def test_a_raising_handler_is_an_internal_error(echo, caplog):
    async with peer(echo[1].port) as p:
        await p.send(GET.format("/boom"))
        status, _, body = await p.answer()
    assert (status, json.loads(body)["reason"]) == (500, "InternalError")


@pytest.mark.parametrize(
    ("text", "status"),
    [("GET / HT", 408), ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab", 408), ("", None)],
    ids=["slow head", "slow body", "idle"],
)
async def test_slow_and_idle_peers_are_let_go(text, status):
    limits = Limits(head_seconds=0.05, body_seconds=0.05, idle_seconds=0.05, linger_seconds=0.05)
    async with listening(limits=limits) as (_, listener), peer(listener.port) as p:
        await p.send(text)
        if status:
            assert (await p.answer())[0] == status
        assert await p.rest() == b""
        await eventually(lambda: listener.connections == 0)


async def test_too_many_connections_are_turned_away():
    async with listening(limits=Limits(connections=1)) as (_, listener), peer(listener.port) as first:
        await first.send(GET.format("/"))
        await first.answer()
        async with peer(listener.port) as second:
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await second.send(GET.format("/"))
                await second.answer()


async def test_draining_finishes_what_was_asked_and_ends_streams():
    handler = Echo()
    listener = await serve(handler)
    async with peer(listener.port) as busy, peer(listener.port) as idle, peer(listener.port) as watcher:
        await busy.send(GET.format("/slow"))
        await watcher.send(GET.format("/watch"))
        await watcher.head()
        await eventually(lambda: len(handler.order) == 2 and listener.connections == 3)
        closing = asyncio.ensure_future(listener.close(5))
        assert (await watcher.chunk(), await watcher.rest()) == (b"", b"")
        assert await idle.rest() == b""
        handler.gate.set()
        assert (await busy.answer())[1]["connection"] == "close"
        await closing
    assert handler.tickers[0].stopped.is_set()


async def test_a_taken_port_names_address_port_and_the_way_out():
    async with listening() as (echo, listener):
        with pytest.raises(ListenError, match=rf"127\.0\.0\.1:{listener.port} is in use .* port 0"):
            await serve(echo, "127.0.0.1", listener.port)
    with pytest.raises(ListenError, match=r"192\.0\.2\.1"):
        await serve(echo, "192.0.2.1", 0)


async def test_small_answers_do_not_wait_for_acknowledgements():
    async with listening(PromptEcho()) as (_, listener):

        def ask() -> bool:
            connection = http.client.HTTPConnection("127.0.0.1", listener.port)
            for _ in range(100):
                connection.request("GET", "/x")
                connection.getresponse().read()
            connection.close()
            return True

        loop = asyncio.get_running_loop()
        start = loop.time()
        assert await asyncio.to_thread(ask)
        assert loop.time() - start < 2  # 100 delayed acknowledgements would take 4 s


async def test_nodelay_is_set():
    async with listening() as (_, listener), peer(listener.port) as p:
        await p.send(GET.format("/"))
        await p.answer()
        raw = next(iter(listener._connections)).transport.get_extra_info("socket")
        assert raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize("handler", [Echo, PromptEcho])
@pytest.mark.parametrize(
    "story",
    [
        test_pipelined_requests_are_answered_in_order,
        test_continue_is_sent_when_the_body_is_wanted_and_in_turn,
        test_a_body_that_grows_too_large_is_refused_while_it_is_sent,
        test_a_peer_that_closes_its_side_still_gets_its_answer,
        test_a_stream_is_chunked_and_ends_cleanly,
        test_a_watcher_that_leaves_stops_its_producer,
        test_a_watcher_that_does_not_read_is_dropped,
        test_a_watcher_that_reads_on_is_written_to_again,
        test_head_has_the_length_but_no_body,
    ],
)
def test_uvloop_keeps_the_same_promises(story, handler):
    async def tell() -> None:
        async with listening(handler()) as pair:
            await story(pair)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(tell())
