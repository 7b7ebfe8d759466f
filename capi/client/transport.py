"""How requests reach an API server: over HTTP, or straight into a server in this process. Same messages, same errors."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from capi.kube.messages import Request, Response


class Transport(Protocol):
    """One API server. Implementations: `client.http.HttpTransport`, `client.inprocess.InProcessTransport`."""

    async def request(self, request: Request) -> Response:
        """The complete answer, whatever its status code. Raises TransportError when there is none."""
        ...

    def stream(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """The answer's lines (no newline), one per watch event, until the server ends it.

        Raises the ApiError of a non-2xx answer on entering, TransportError when the connection breaks.
        """
        ...

    async def close(self) -> None: ...
