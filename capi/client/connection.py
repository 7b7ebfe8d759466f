"""One HTTP/1.1 connection as a client: one exchange at a time, kept alive between them.

Parsing is llhttp's (httptools). An answer is either collected whole or, for a stream, handed on as lines, with the socket
paused while the reader is behind.
"""

import asyncio
import socket
from collections.abc import Callable
from typing import Any, cast

import httptools

from capi.client.lines import Lines
from capi.kube.errors import TransportError
from capi.kube.messages import Response

_HIGH = 4 << 20
"""Bytes of a stream that may wait before the socket is paused."""
_LOW = 1 << 20
MAX_LINE = 32 << 20
"""Bytes of one event of a stream; an object has a few megabytes at most."""
MAX_BODY = 1 << 30
"""Bytes of one answer, headers included: a list of a hundred thousand large objects."""
_KEEPALIVE = (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 30_000))
"""A peer that vanished is noticed within half a minute (seconds, seconds, probes, milliseconds)."""


class Dropped(TransportError):
    """The connection was closed before the answer began."""


class Connection(asyncio.Protocol):
    """Use `exchange` or `begin_stream`; both need that no other exchange is under way."""

    def __init__(self, on_lost: Callable[["Connection"], None]) -> None:
        self._on_lost = on_lost
        self._transport: asyncio.Transport | None = None
        self._parser: Any = None
        self._done: asyncio.Future[Response] | None = None
        self._lines: Lines | None = None
        self._headers: list[tuple[str, str]] = []
        self._body: list[bytes] = []
        self._partial: list[bytes] = []
        self._size = 0
        """Bytes of the answer, or of the event, that have been kept."""
        self._status = 0
        self._answered = False
        self._streaming = False
        self.certificate: bytes | None = None
        """The client certificate it was opened with."""
        self.used = False
        """It has carried an exchange before."""
        self.open = False
        self.reusable = True

    # The caller's side.

    async def exchange(self, request: bytes) -> Response:
        """Send a request, return its whole answer. Raises Dropped or TransportError."""
        return await self._begin(request)

    async def begin_stream(self, request: bytes, lines: Lines) -> Response:
        """Send a request; return as soon as a 2xx answer begins (its body goes to `lines`), else the whole answer."""
        self._lines = lines
        lines.low, lines.on_low = _LOW, self._resume
        return await self._begin(request)

    def _begin(self, request: bytes) -> "asyncio.Future[Response]":
        if self._transport is None or not self.open:
            raise Dropped
        self._headers, self._body, self._answered, self._size = [], [], False, 0
        self._done = asyncio.get_running_loop().create_future()
        self._parser = httptools.HttpResponseParser(self)
        self._transport.write(request)
        return self._done

    def close(self) -> None:
        self.open = False
        if self._transport is not None:
            self._transport.abort()

    # asyncio.Protocol.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not an isinstance check: uvloop's TLS transport has the methods but not the base class.
        self._transport, self.open = cast(asyncio.Transport, transport), True
        sock = transport.get_extra_info("socket")
        if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name, value in _KEEPALIVE:
                if hasattr(socket, name):  # not on every platform
                    sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

    def data_received(self, data: bytes) -> None:
        if self._parser is None:
            self.close()  # an answer nobody asked for
            return
        self._answered = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(TransportError(f"the answer is not HTTP: {error}"))
            self.close()
        if self._size > (MAX_LINE if self._streaming else MAX_BODY):
            self._fail(TransportError("the answer is too large"))
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.open = False
        reason = str(exc) if exc is not None else "closed by the server"
        kind = TransportError if self._answered else Dropped
        self._fail(kind(f"the connection was lost: {reason}"))
        self._on_lost(self)

    def _fail(self, error: TransportError) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_exception(error)
        if self._lines is not None:
            self._lines.fail(error)

    # httptools callbacks.

    def on_header(self, name: bytes, value: bytes) -> None:
        self._size += len(name) + len(value)
        self._headers.append((name.decode("latin-1"), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        self._status = self._parser.get_status_code()
        if self._lines is not None and 200 <= self._status < 300:
            self._streaming = True
            self._answer(b"")

    def on_body(self, body: bytes) -> None:
        self._size += len(body)
        if not self._streaming:
            self._body.append(body)
            return
        assert self._lines is not None
        head, newline, tail = body.rpartition(b"\n")
        if not newline:
            self._partial.append(body)
            return
        self._lines.write(b"".join((*self._partial, head)) if self._partial else head)
        self._partial, self._size = [tail] if tail else [], len(tail)
        if self._lines.size > _HIGH and self._transport is not None:
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        self.reusable = bool(self._parser.should_keep_alive())
        self._parser = None
        self.used = True
        if self._streaming:
            assert self._lines is not None
            if self._partial:
                self._lines.write(b"".join(self._partial))
            self._lines.end()
        else:
            self._answer(self._body[0] if len(self._body) == 1 else b"".join(self._body))

    def _answer(self, body: bytes) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_result(Response(self._status, body, tuple(self._headers)))

    def _resume(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
