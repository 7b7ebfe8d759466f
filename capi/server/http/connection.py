"""One HTTP/1.1 connection: requests in order, answers in order, streams straight to the transport.

A handler that can answer at once (`PromptHandler.begin`) is called without a task; otherwise one task runs at a time per
connection, and pipelined requests wait behind it. A small answer is one write. A watch writes chunks to the transport and
pauses while `Limits.unread` bytes wait there; a peer that reads nothing for `write_seconds` is cut.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Protocol, cast, runtime_checkable

from capi.kube.errors import ApiError, BadRequest, InternalError, RequestEntityTooLarge
from capi.kube.messages import Answer, Producer, Request, Response, Stream
from capi.server.http import responses, wire
from capi.server.http.incoming import Incoming, Limits, Message, Reader, Refusal
from capi.server.http.tls import peer_user

_log = logging.getLogger(__name__)


@runtime_checkable
class PromptHandler(Protocol):
    """A Handler that answers what needs no waiting at once."""

    def begin(self, request: Request) -> Answer | Awaitable[Answer]:
        """The answer, or something to await for it. Never raises."""
        ...


class Connections(Protocol):
    """What a connection needs of its listener."""

    begin: Callable[[Request], Answer | Awaitable[Answer]]
    """The handler: PromptHandler.begin or Handler.handle."""
    limits: Limits
    draining: bool

    def opened(self, connection: "Connection") -> bool:
        """False = one too many; the connection closes itself."""
        ...

    def closed(self, connection: "Connection") -> None: ...

    def spawn(self, work: Awaitable[Answer], connection: "Connection") -> None:
        """Await `work` in a task and hand its answer to `connection.answered`."""
        ...


class StreamSink:
    """The Sink of one watch: chunks onto the connection's transport."""

    def __init__(self, connection: "Connection", producer: Producer, *, chunked: bool, muted: bool) -> None:
        self._connection, self._producer = connection, producer
        self._chunked, self._muted = chunked, muted
        self.open = True

    def start(self) -> None:
        if self._muted:  # HEAD: headers are all there is
            self._producer.stop()
            self.end()
            return
        self._producer.start(self)

    def write(self, data: bytes) -> bool:
        if self.open and data:
            self._connection.transport.write(wire.chunk(data) if self._chunked else data)
        return self.open and not self._connection.full

    def resume(self) -> None:
        """The peer has read on."""
        if self.open:
            self._producer.resume()

    def end(self) -> None:
        if not self.open:
            return
        self.open = False
        last = b"" if self._muted or not self._chunked else wire.LAST_CHUNK
        self._connection.stream_ended(last)

    def abandon(self) -> None:
        """The peer has gone: release the producer, write no more."""
        if self.open:
            self.open = False
            self._producer.stop()

    def finish(self) -> None:
        """The server ends the stream."""
        if self.open:
            self._producer.stop()
            self.end()


class Connection(asyncio.Protocol):
    """See the module. States: `_current` is the request being answered, `_sink` the stream it turned into."""

    transport: asyncio.Transport

    def __init__(self, owner: Connections) -> None:
        self._owner = owner
        self._limits = owner.limits
        self._waiting: deque[Message] = deque()
        self._current: Incoming | None = None
        self._sink: StreamSink | None = None
        self._loop = asyncio.get_running_loop()
        self._reading = self._serving = True
        self._half_closed = self._lingering = self._working = self._head_timed = False
        self.full = False
        """The transport holds more than it should: the peer does not read."""
        self._unsent = 0
        self.deadline = 0.0
        """Loop time after which the listener's sweep calls `expired`."""

    # transport → us

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's transports have no common base
        self._reader = Reader(self._limits, peer_user(transport))
        self._touch()
        if not self._owner.opened(self):
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        if self._lingering:
            return
        self._reader.feed(data)
        if self._reader.ready:
            self._waiting.extend(self._reader.ready)
            self._reader.ready.clear()
        self._work()

    def eof_received(self) -> bool:
        self._half_closed = True
        self._reader.ended = True
        if self._sink is not None:  # as net/http: a watcher that closes its side has gone
            self._sink.abandon()
            return False
        return self._current is not None or bool(self._waiting)

    def connection_lost(self, exc: Exception | None) -> None:
        self._serving = False
        self._waiting.clear()
        if self._sink is not None:
            self._sink.abandon()
            self._sink = None
        self._owner.closed(self)

    def pause_writing(self) -> None:
        self.full = True

    def resume_writing(self) -> None:
        self.full = False
        if self._sink is not None:
            self._sink.resume()
        self._work()

    # listener → us

    @property
    def idle(self) -> bool:
        return self._current is None and not self._waiting

    def expired(self) -> None:
        """The deadline passed: an idle or unread connection is cut, a slow request refused."""
        if self._stuck() or self._lingering or not (self._serving or self._unsent):
            self.transport.abort()
        elif not self._serving:  # closing, and the peer still reads
            self.deadline = self._loop.time() + self._limits.write_seconds
        elif self._current is not None or self.full or self._half_closed:
            self._touch()
        elif self._reader.in_head or self._reader.in_body:
            self._waiting.append(Refusal(408, "request timeout"))
            self._reader.ended = True
            self._work()
        else:
            self._close()

    def drain(self) -> None:
        """Finish what was asked, ask for no more."""
        if self._sink is not None:
            self._sink.finish()
        elif self.idle:
            self.transport.close()

    # answering

    def _work(self) -> None:
        """Answers waiting messages until one needs time or the peer does not read. Not re-entrant: an answer given at once
        returns to this loop."""
        if self._working:
            return
        self._working = True
        try:
            while self._waiting and self._serving and self._current is None and not self.full:
                self._take(self._waiting.popleft())
        finally:
            self._working = False
        if self._serving:
            self._after_work()

    def _after_work(self) -> None:
        if self._current is None and self._reader.wants_continue:
            self._reader.wants_continue = False
            self.transport.write(wire.CONTINUE)
        self._pace_reading()
        self._touch()

    def _take(self, message: Message) -> None:
        if isinstance(message, Refusal):
            self._refuse(message)
            return
        self._current = message
        try:
            outcome = self._owner.begin(message.request)
        except Exception as error:
            outcome = crashed(error)
        if isinstance(outcome, Response | Stream):
            self.answered(outcome)
        else:
            self._owner.spawn(outcome, self)

    def answered(self, answer: Answer) -> None:
        """Takes the answer to the current request; called once per request."""
        message = self._current
        if message is None or not self._serving:
            if isinstance(answer, Stream):
                answer.producer.stop()
            return
        if isinstance(answer, Stream):
            self._start_stream(answer, message)
            return
        self._write(answer, message)
        self._done(self._keeps_alive(message))

    def _write(self, answer: Response, message: Incoming) -> None:
        extra = b"" if self._keeps_alive(message) else b"Connection: close\r\n"
        if answer.status not in wire.BODILESS:
            extra += b"Content-Length: %d\r\n" % len(answer.body)
        head = wire.head(answer.status, answer.headers, responses.date() + extra)
        self.transport.write(head if message.request.method == "HEAD" else head + answer.body)

    def _start_stream(self, answer: Stream, message: Incoming) -> None:
        chunked = not message.http10
        extra = b"Transfer-Encoding: chunked\r\n" if chunked else b"Connection: close\r\n"
        self.transport.write(wire.head(answer.status, answer.headers, responses.date() + extra))
        self._sink = StreamSink(self, answer.producer, chunked=chunked, muted=message.request.method == "HEAD")
        self._sink.start()

    def stream_ended(self, last: bytes) -> None:
        """The sink wrote its last line."""
        self._sink = None
        message = self._current
        if not self._serving or message is None:
            return
        if last:
            self.transport.write(last)
        self._done(self._keeps_alive(message) and not message.http10)

    def _stuck(self) -> bool:
        """Whether the peer has read nothing, or less than was added, since the last look."""
        size = self.transport.get_write_buffer_size() if self.full or not self._serving else 0
        before, self._unsent = self._unsent, size
        return 0 < before <= size

    def _keeps_alive(self, message: Incoming) -> bool:
        return message.keep_alive and not self._owner.draining and not (self._half_closed and not self._waiting)

    def _done(self, keep_alive: bool) -> None:
        self._current = None
        if not keep_alive:
            self._close()
            return
        self._work()

    def _refuse(self, refusal: Refusal) -> None:
        answer = _refusal_response(refusal)
        extra = responses.date() + b"Connection: close\r\nContent-Length: %d\r\n" % len(answer.body)
        self.transport.write(wire.head(answer.status, answer.headers, extra) + answer.body)
        self._linger()

    def _linger(self) -> None:
        """Reads and forgets for a while: closing on a sender would reset the connection before it reads the answer."""
        self._lingering = True
        self._serving = False
        if self._half_closed:
            self.transport.close()
            return
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.transport.resume_reading()
        self.deadline = self._loop.time() + self._limits.linger_seconds

    def _close(self) -> None:
        self._serving = False
        self._waiting.clear()
        self.deadline = self._loop.time() + self._limits.linger_seconds
        self.transport.close()

    def _pace_reading(self) -> None:
        wanted = len(self._waiting) < self._limits.pipeline
        if wanted != self._reading and not self._lingering:
            self._reading = wanted
            (self.transport.resume_reading if wanted else self.transport.pause_reading)()

    def _touch(self) -> None:
        if self._lingering:
            return
        limits = self._limits
        if self._current is not None or self.full:
            seconds = limits.write_seconds
        elif self._reader.in_head:
            if self._head_timed:
                return  # trickling headers do not buy time
            seconds = limits.head_seconds
        else:
            seconds = limits.body_seconds if self._reader.in_body else limits.idle_seconds
        self._head_timed = self._reader.in_head and self._current is None
        self.deadline = self._loop.time() + seconds


def _refusal_response(refusal: Refusal) -> Response:
    if refusal.status == 413:
        return responses.failure(RequestEntityTooLarge(refusal.text))
    if refusal.status == 400:
        return responses.failure(BadRequest(refusal.text))
    return responses.failure(ApiError(refusal.text, code=refusal.status))


def crashed(error: BaseException) -> Response:
    """The answer when a handler broke its promise and raised."""
    _log.error("Handler raised", exc_info=error)
    return responses.failure(InternalError("Internal error occurred: the handler failed"))
