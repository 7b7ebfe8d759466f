"""Requests straight into a Handler in this process: no sockets, no copies, the same messages and errors as HTTP."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from capi.client.answers import error_of
from capi.client.lines import Lines
from capi.kube.errors import ServiceUnavailable, TransportError
from capi.kube.messages import ADMIN, Handler, Request, Response, UserInfo

SINK_LIMIT = 4 << 20
"""Bytes that may wait for a reader before its watch pauses."""


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
        return Request(request.method, request.path, request.query, headers, request.body, self._user)

    async def request(self, request: Request) -> Response:
        await asyncio.sleep(0)  # as a socket would: whoever sends thousands of requests must not starve the rest
        answer = await self._handler.handle(self._ours(request))
        if isinstance(answer, Response):
            return answer
        answer.producer.stop()
        raise TransportError(f"{request.method} {request.path} answered with a stream; use stream()")

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        answer = await self._handler.handle(self._ours(request))
        lines = Lines(SINK_LIMIT)
        lines.low = SINK_LIMIT // 4
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
            lines.on_low = answer.producer.resume
            answer.producer.start(lines)
            yield lines
        finally:
            answer.producer.stop()

    async def close(self) -> None:
        self._closed = True
