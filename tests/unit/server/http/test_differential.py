"""Our listener and aiohttp's answer the same to everything a client may rightly send."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from capi.server.http import aiohttp_adapter
from capi.server.http.incoming import Incoming, Limits, Reader, Refusal
from tests.unit.server.http.rig import Echo, eventually, listening, peer

REQUESTS = [
    "GET /a HTTP/1.1\r\nHost: h\r\n\r\n",
    "GET /a?x=1&x=2&y=%2F%20+z&empty= HTTP/1.1\r\nHost: h\r\nX-One: 1\r\nX-Two:  spaced \r\n\r\n",
    "GET /name%2Fwith%3Aescapes HTTP/1.1\r\nHost: h\r\n\r\n",
    "GET http://h/absolute?q=1 HTTP/1.1\r\nHost: h\r\n\r\n",
    "POST /p HTTP/1.1\r\nHost: h\r\nContent-Type: text/x\r\nContent-Length: 5\r\n\r\nhello",
    "POST /p HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
    "PUT /p HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n",
    "DELETE /p HTTP/1.1\r\nHost: h\r\nX-A: 1\r\nX-A: 2\r\n\r\n",
    "PATCH /p HTTP/1.0\r\nContent-Length: 1\r\n\r\nx",
]


@pytest.mark.parametrize("text", REQUESTS)
async def test_both_servers_understand_the_same(text):
    oracle = await aiohttp_adapter.serve(Echo())
    try:
        async with listening() as (_, own), peer(own.port) as one, peer(oracle.port) as other:
            await one.send(text)
            await other.send(text)
            mine, theirs = await one.answer(), await other.answer()
        assert (mine[0], json.loads(mine[2])) == (theirs[0], json.loads(theirs[2]))
    finally:
        await oracle.close()


async def test_both_servers_stream_the_same_lines():
    handler = Echo()
    oracle = await aiohttp_adapter.serve(handler)
    try:
        async with listening(handler) as (_, own):
            for port in (own.port, oracle.port):
                async with peer(port) as p:
                    await p.send("GET /watch HTTP/1.1\r\nHost: h\r\n\r\n")
                    status, headers = await p.head()
                    await eventually(lambda: handler.tickers and handler.tickers[-1].sink)
                    sink = handler.tickers[-1].sink
                    assert sink.write(b"line\n")
                    assert (status, headers["transfer-encoding"], await p.chunk()) == (200, "chunked", b"line\n")
                    sink.end()
                    assert await p.chunk() == b""
    finally:
        await oracle.close()


def fed(pieces: list[bytes]) -> list[object]:
    reader = Reader(Limits())
    for piece in pieces:
        reader.feed(piece)
    return reader.ready


def shape(messages: list[object]) -> list[object]:
    return [
        m.status
        if isinstance(m, Refusal)
        else (m.request.method, m.request.path, m.request.query, dict(m.request.headers), m.request.body)
        for m in messages
    ]


token = st.text(
    st.characters(min_codepoint=33, max_codepoint=126, blacklist_characters=" #?%&=+"), min_size=1, max_size=8
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_how_bytes_are_cut_does_not_matter(data):
    requests = data.draw(
        st.lists(
            st.builds(
                lambda path, body, chunked: (
                    f"POST /{path} HTTP/1.1\r\nHost: h\r\n".encode()
                    + (
                        b"Transfer-Encoding: chunked\r\n\r\n"
                        + (b"%x\r\n%b\r\n" % (len(body), body) if body else b"")
                        + b"0\r\n\r\n"
                        if chunked
                        else b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
                    )
                ),
                token,
                st.binary(max_size=20),
                st.booleans(),
            ),
            max_size=4,
        )
    )
    stream = b"".join(requests)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    whole = fed([stream])
    assert shape(fed(pieces)) == shape(whole)
    assert len(whole) == len(requests) and all(isinstance(m, Incoming) for m in whole)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.binary(max_size=200), max_size=6))
def test_no_bytes_break_the_reader(pieces):
    messages = fed(pieces)
    assert all(isinstance(m, Incoming | Refusal) for m in messages)
    assert sum(isinstance(m, Refusal) for m in messages) <= 1


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_damaged_requests_are_requests_or_one_refusal(data):
    text = bytearray(data.draw(st.sampled_from(REQUESTS)).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text) - 1))
        text[at] = data.draw(st.integers(0, 255))
    messages = fed([bytes(text)])
    assert sum(isinstance(m, Refusal) for m in messages) <= 1
