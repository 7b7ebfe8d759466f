"""The same Handler behind aiohttp's server: the second opinion on our own listener, and a way out should one be needed.

It keeps to what `messages` says and nothing more: no limits of its own but the body's, no pipelining promises.
"""

import asyncio
import ssl

from aiohttp import web

from capi.kube.messages import Handler, Request, Response, Stream
from capi.server.http import responses
from capi.server.http.incoming import Limits, Refusal, too_large
from capi.server.http.tls import peer_user

_QUEUED = 256 * 1024
"""Bytes of a stream that wait for aiohttp before its producer pauses."""


class _QueueSink:
    """A Sink that hands its lines to the task writing the response."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._open = True
        self.size = 0
        """Bytes that wait."""

    def write(self, data: bytes) -> bool:
        if self._open:
            self.size += len(data)
            self._queue.put_nowait(data)
        return self._open and self.size < _QUEUED

    def end(self) -> None:
        if self._open:
            self._open = False
            self._queue.put_nowait(None)

    async def next(self) -> bytes | None:
        return await self._queue.get()


class AiohttpListener:
    """A running aiohttp server."""

    def __init__(self, runner: web.ServerRunner, host: str, port: int) -> None:
        self._runner, self.host, self.port = runner, host, port

    async def close(self) -> None:
        """Cancels what still runs after a second."""
        await self._runner.cleanup()


async def serve(
    handler: Handler,
    host: str = "127.0.0.1",
    port: int = 0,
    tls: ssl.SSLContext | None = None,
    *,
    limits: Limits | None = None,
) -> AiohttpListener:
    """Listens with aiohttp on `host:port` (0 = the kernel picks one)."""
    bounds = limits or Limits()

    async def answer(incoming: web.BaseRequest) -> web.StreamResponse:
        return await _answer(handler, incoming, bounds)

    runner = web.ServerRunner(web.Server(answer), handle_signals=False, shutdown_timeout=1.0, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, host, port, ssl_context=tls)
    await site.start()
    return AiohttpListener(runner, host, runner.addresses[0][1])


async def _answer(handler: Handler, incoming: web.BaseRequest, limits: Limits) -> web.StreamResponse:
    body = await _body(incoming, limits)
    if isinstance(body, Refusal):
        return web.Response(status=body.status, text=body.text)
    answer = await handler.handle(_request(incoming, body))
    if isinstance(answer, Response):
        response = web.Response(status=answer.status, body=answer.body)
        _set_headers(response, answer.headers)
        return response
    return await _stream(answer, incoming)


async def _stream(answer: Stream, incoming: web.BaseRequest) -> web.StreamResponse:
    response = web.StreamResponse(status=answer.status)
    _set_headers(response, answer.headers)
    await response.prepare(incoming)
    sink = _QueueSink()
    try:
        answer.producer.start(sink)
        while (line := await sink.next()) is not None:
            await response.write(line)
            sink.size -= len(line)
            if not sink.size:
                answer.producer.resume()
        await response.write_eof()
    finally:
        answer.producer.stop()
    return response


async def _body(incoming: web.BaseRequest, limits: Limits) -> bytes | Refusal:
    if (incoming.content_length or 0) > limits.body:
        return too_large(limits)
    body = await incoming.content.read(limits.body + 1)
    while not incoming.content.at_eof() and len(body) <= limits.body:
        body += await incoming.content.read(limits.body + 1 - len(body))
    return too_large(limits) if len(body) > limits.body else body


def _request(incoming: web.BaseRequest, body: bytes) -> Request:
    headers: dict[str, str] = {}
    for name, value in incoming.headers.items():
        key = name.lower()
        joint = "\n" if key.startswith("impersonate-") else ", "
        headers[key] = f"{headers[key]}{joint}{value}" if key in headers else value
    url = incoming.rel_url
    user = peer_user(incoming.transport) if incoming.transport is not None else None
    return Request(incoming.method, url.raw_path, tuple(url.query.items()), headers, body, user)


def _set_headers(response: web.StreamResponse, headers: tuple[tuple[str, str], ...]) -> None:
    for name, value in headers:
        if name == responses.JSON[0]:
            response.headers[name] = value
        else:
            response.headers.add(name, value)
