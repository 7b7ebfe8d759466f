"""A bad network between the controllers and the API, drawn from a seed; and a witness of every Machine they delete."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import orjson

from capi.client.transport import Transport
from capi.kube.errors import Expired, InternalError, ServiceUnavailable, TransportError
from capi.kube.messages import Request, Response

Witness = Callable[[str, str], Awaitable[None]]
"""Told namespace and name of a Machine that the controllers are about to delete."""


class Trouble:
    """Passes requests on, more or less. Everything arrives while `level` (0 to 1) is 0."""

    def __init__(self, inner: Transport, rng: random.Random, witness: Witness) -> None:
        self._inner = inner
        self._rng = rng
        self._witness = witness
        self.level = 0.0

    async def request(self, request: Request) -> Response:
        if "/leases" in request.path:
            return await self._inner.request(request)
        if request.method == "DELETE" and "/machines/" in request.path and "/cluster.x-k8s.io/" in request.path:
            parts = request.path.split("/")
            await self._witness(parts[parts.index("namespaces") + 1], parts[-1])
        if self._rng.random() >= 0.15 * self.level:
            return await self._inner.request(request)
        return await self._spoil(request)

    async def _spoil(self, request: Request) -> Response:
        match self._rng.choice(("refused", "busy", "unsent", "unanswered", "late", "twice")):
            case "refused":
                return Response(500, orjson.dumps(InternalError("refused on purpose").status))
            case "busy":
                return Response(503, orjson.dumps(ServiceUnavailable("busy on purpose").status))
            case "unsent":
                raise TransportError("not sent on purpose")
            case "unanswered":
                await self._inner.request(request)
                raise TransportError("the answer was lost on purpose")
            case "late":
                await asyncio.sleep(self._rng.uniform(0.1, 15))
            case _:
                await self._inner.request(request)
        return await self._inner.request(request)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        async with self._inner.stream(request) as lines:
            yield self._lines(lines)

    async def _lines(self, lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Watch events, some of them late, until the watch breaks."""
        async for line in lines:
            chance = self._rng.random()
            if chance < 0.05 * self.level:
                await asyncio.sleep(self._rng.uniform(0.1, 8))
            elif chance < 0.06 * self.level:
                raise TransportError("the watch was cut on purpose")
            elif chance < 0.07 * self.level:
                yield orjson.dumps({"type": "ERROR", "object": Expired("too old on purpose").status})
                return
            yield line

    async def close(self) -> None:
        await self._inner.close()
