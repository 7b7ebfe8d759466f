"""Requests straight into a Handler in this process: no sockets, no copies, the same messages and errors as HTTP."""

import asyncio
import dataclasses
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from capi.client.answers import error_of
from capi.kube.errors import ServiceUnavailable, TransportError
from capi.kube.messages import ADMIN, Handler, Request, Response, UserInfo

SINK_LIMIT = 256 << 20
"""Bytes that may wait for a reader before its watch is dropped; the initial events of 10,000 objects are about 50 MiB."""


class _Lines:
    """A Sink whose lines are iterated by one reader."""

    __slots__ = ("_chunks", "_ended", "_lines", "_size", "_waiter")

    def __init__(self) -> None:
        self._chunks: deque[bytes] = deque()
        self._lines: list[bytes] = []
        """Lines of the oldest chunk, last first."""
        self._size = 0
        self._ended = False
        self._waiter: asyncio.Future[None] | None = None

    def write(self, data: bytes) -> bool:
        if self._ended or self._size > SINK_LIMIT:
            return False
        self._chunks.append(data)
        self._size += len(data)
        self._wake()
        return True

    def end(self) -> None:
        self._ended = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def __aiter__(self) -> "_Lines":
        return self

    async def __anext__(self) -> bytes:
        while True:
            while self._lines:
                line = self._lines.pop()
                if line:
                    return line
            if self._chunks:
                chunk = self._chunks.popleft()
                self._size -= len(chunk)
                self._lines = chunk.split(b"\n")
                self._lines.reverse()
                continue
            if self._ended:
                raise StopAsyncIteration
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter


class InProcessTransport:
    """A Transport into `handler`, as `user`, whom composition trusts without credentials."""

    def __init__(self, handler: Handler, user: UserInfo = ADMIN, user_agent: str = "capi") -> None:
        self._handler = handler
        self._user = user
        self._agent = user_agent
        self._closed = False

    def _ours(self, request: Request) -> Request:
        if self._closed:
            raise TransportError("this connection to the API server in the same process is closed")
        headers = request.headers
        if "user-agent" not in headers:
            headers = {**headers, "user-agent": self._agent}
        return dataclasses.replace(request, headers=headers, user=self._user)

    async def request(self, request: Request) -> Response:
        answer = await self._handler.handle(self._ours(request))
        if isinstance(answer, Response):
            return answer
        answer.producer.stop()
        raise TransportError(f"{request.method} {request.path} answered with a stream; use stream()")

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        answer = await self._handler.handle(self._ours(request))
        lines = _Lines()
        if isinstance(answer, Response):
            if not 200 <= answer.status < 300:
                raise error_of(answer)
            lines.write(answer.body)
            lines.end()
            yield lines
            return
        try:
            if not 200 <= answer.status < 300:
                raise ServiceUnavailable(f"the watch was answered with status {answer.status}")
            answer.producer.start(lines)
            yield lines
        finally:
            answer.producer.stop()

    async def close(self) -> None:
        self._closed = True
