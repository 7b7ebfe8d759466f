"""Raw sockets against a listener on loopback."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import orjson

from capi.kube.messages import Answer, Request, Response, Sink, Stream
from capi.server.http.incoming import Limits
from capi.server.http.listener import Listener, serve


class Ticker:
    """A producer whose lines the test writes."""

    def __init__(self) -> None:
        self.sink: Sink | None = None
        self.stopped = asyncio.Event()
        self.resumed = asyncio.Event()

    def resume(self) -> None:
        self.resumed.set()

    def start(self, sink: Sink) -> None:
        self.sink = sink

    def stop(self) -> None:
        self.stopped.set()


class Echo:
    """Answers what it was asked as JSON. /slow waits for `gate`; /watch streams `ticker`; /boom raises."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.tickers: list[Ticker] = []
        self.order: list[str] = []

    async def handle(self, request: Request) -> Answer:
        self.order.append(request.path)
        if request.path == "/slow":
            await self.gate.wait()
        if request.path == "/boom":
            raise RuntimeError("boom")
        if request.path == "/watch":
            self.tickers.append(Ticker())
            return Stream(self.tickers[-1])
        return Response(200, orjson.dumps(seen(request)))


class PromptEcho(Echo):
    """The same at once, where nothing has to be awaited."""

    def begin(self, request: Request):
        if request.path in ("/slow", "/watch"):
            return self.handle(request)
        self.order.append(request.path)
        if request.path == "/boom":
            raise RuntimeError("boom")
        if request.path == "/big":
            return Response(200, b"x" * 4_000_000)
        return Response(200, orjson.dumps(seen(request)))


def seen(request: Request) -> dict[str, object]:
    return {
        "method": request.method,
        "path": request.path,
        "query": request.query,
        "headers": {k: v for k, v in request.headers.items() if k.startswith("x-") or k == "content-type"},
        "body": request.body.decode("latin-1"),
        "user": [request.user.name, *request.user.groups] if request.user else None,
    }


@asynccontextmanager
async def listening(
    handler: Echo | None = None, limits: Limits | None = None, **options: object
) -> AsyncIterator[tuple[Echo, Listener]]:
    echo = handler or Echo()
    listener = await serve(echo, "127.0.0.1", 0, limits=limits, **options)
    try:
        yield echo, listener
    finally:
        echo.gate.set()
        await listener.close(1)


class Peer:
    """One raw connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def to(cls, port: int) -> "Peer":
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def send(self, data: bytes | str) -> None:
        self.writer.write(data.encode("latin-1") if isinstance(data, str) else data)
        await self.writer.drain()

    async def head(self) -> tuple[int, dict[str, str]]:
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        pairs = (line.split(": ", 1) for line in lines[1:] if line)
        return int(lines[0].split()[1]), {k.lower(): v for k, v in pairs}

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        status, headers = await self.head()
        return status, headers, await self.reader.readexactly(int(headers.get("content-length", 0)))

    async def chunk(self) -> bytes:
        size = int(await self.reader.readuntil(b"\r\n"), 16)
        return (await self.reader.readexactly(size + 2))[:-2]

    async def rest(self) -> bytes:
        return await asyncio.wait_for(self.reader.read(), 5)

    def close(self) -> None:
        self.writer.close()


@asynccontextmanager
async def peer(port: int) -> AsyncIterator[Peer]:
    one = await Peer.to(port)
    try:
        yield one
    finally:
        one.close()


async def eventually(check: Callable[[], object]) -> None:
    """Lets the loop turn until `check` holds."""
    async with asyncio.timeout(5):
        while not check():  # noqa: ASYNC110 - the condition is the server's state, nothing signals it
            await asyncio.sleep(0)
