"""A proxy in front of the engine's socket: it counts requests, and makes chosen ones fail in chosen ways.

Everything else passes through as it is, bytes in both directions: event streams, uploads, and connections that stop
being HTTP (exec and attach).
"""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any, Self

from tests.docker.faults import Action, Answer, Cut, Delay, Hold, Request, Rule
from tests.docker.framing import Head, Unframed, body, read_head

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
TIMEOUT = 20.0  # seconds a test waits for a request before it fails


class DockerProxy:
    """Listens on `socket`, passes on to `engine`. Use it as an async context manager, with DOCKER_HOST = `host`."""

    def __init__(self, engine: Path, socket: Path) -> None:
        self.engine = engine
        self.socket = socket
        self.requests: list[Request] = []
        self._rules: list[Rule] = []
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._open = 0
        self._changed = asyncio.Condition()

    async def __aenter__(self) -> Self:
        await self._listen()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._close()
        self.socket.unlink(missing_ok=True)

    @property
    def host(self) -> str:
        """DOCKER_HOST of clients."""
        return f"unix://{self.socket}"

    # What has happened

    def count(self, method: str, path: str) -> int:
        """Requests so far; `path` is a regular expression for the whole path without the version."""
        return sum(request.matches(method, path) for request in self.requests)

    def kinds(self) -> Counter[str]:
        """Requests so far by kind, like `POST /containers/{id}/start`."""
        return Counter(request.kind for request in self.requests)

    async def arrival(self, method: str, path: str, number: int = 1) -> None:
        """Until the proxy has seen that many such requests since it was made."""
        async with asyncio.timeout(TIMEOUT), self._changed:
            await self._changed.wait_for(lambda: self.count(method, path) >= number)

    @property
    def open_requests(self) -> int:
        """Requests on which the engine is working: event streams, waits, execs."""
        return self._open

    async def quiet(self) -> None:
        """Until the engine works on none."""
        async with asyncio.timeout(TIMEOUT), self._changed:
            await self._changed.wait_for(lambda: not self._open)

    # What shall happen

    def answer(
        self,
        method: str,
        path: str,
        status: int,
        message: str = "fault of the test",
        first: int = 1,
        times: int | None = 1,
    ) -> Rule:
        """Answer with an error of the engine's shape; the engine does not hear of the request."""
        return self._rule(Rule(method, path, Answer(status, message), first, times))

    def delay(self, method: str, path: str, seconds: float, first: int = 1, times: int | None = 1) -> Rule:
        """Pass on later."""
        return self._rule(Rule(method, path, Delay(seconds), first, times))

    def hold(self, method: str, path: str, first: int = 1) -> Hold:
        """Pass one request on when the test sets `released`; `reached` is set when it is there."""
        hold = Hold()
        self._rule(Rule(method, path, hold, first))
        return hold

    def cut(self, method: str, path: str, after: int | None, first: int = 1, times: int | None = 1) -> Rule:
        """End the connection: before the engine hears of the request (None), or after so many bytes of the body of its
        answer. With 0 not even the head of the answer is passed on."""
        return self._rule(Rule(method, path, Cut(after), first, times))

    @contextlib.asynccontextmanager
    async def down(self) -> AsyncIterator[None]:
        """The engine is gone meanwhile: all connections are cut, and new ones are refused."""
        await self._close()
        try:
            yield
        finally:
            await self._listen()

    def cut_all(self) -> None:
        """Cut every connection there is now; new ones are welcome."""
        for connection in self._connections:
            connection.cancel()

    # How it works

    def _rule(self, rule: Rule) -> Rule:
        self._rules.append(rule)
        return rule

    async def _listen(self) -> None:
        self._server = await asyncio.start_unix_server(self._serve, self.socket, limit=1 << 20)

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        self.cut_all()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            head: Head | None = await read_head(reader)
            while head is not None:
                head = await self._exchange(head, (reader, writer))
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            writer.transport.abort()  # what was not sent is lost, as it is when a connection breaks
        finally:
            self._connections.discard(task)
            await _closed(writer)

    async def _exchange(self, head: Head, client: Streams) -> Head | None:
        """One request and its answer; the head of the next request, or None when this was the connection's last."""
        request = Request.of(head.first[0], head.first[1])
        action = await self._note(request)
        match action:
            case Answer():
                async for _ in body(client[0], head.request_body()):
                    pass
                client[1].write(_error(action))
                await client[1].drain()
                return await read_head(client[0])
            case Delay():
                await asyncio.sleep(action.seconds)
            case Hold():
                action.reached.set()
                await action.released.wait()
            case Cut(None):
                raise ConnectionAbortedError
            case _:
                pass
        return await self._pass_on(head, client, action.bytes if isinstance(action, Cut) else None)

    async def _note(self, request: Request) -> Action | None:
        actions = [action for rule in self._rules if (action := rule.take(request)) is not None]
        async with self._changed:
            self.requests.append(request)
            self._changed.notify_all()
        return actions[0] if actions else None

    async def _pass_on(self, head: Head, client: Streams, cut: int | None) -> Head | None:
        """One request on a connection of its own to the engine."""
        engine = await asyncio.open_unix_connection(self.engine, limit=1 << 20)
        exchange = _Exchange(head, client, engine)
        self._open += 1
        try:
            following = await exchange.run(cut)
        finally:
            self._open -= 1
            await exchange.close()
            async with self._changed:
                self._changed.notify_all()
        return None if following is None else await following


class _Exchange:
    """A request and its answer between two connections."""

    def __init__(self, head: Head, client: Streams, engine: Streams) -> None:
        self.head = head
        self.client = client
        self.engine = engine
        self._tasks: list[asyncio.Task[None]] = []

    async def run(self, cut: int | None) -> "asyncio.Task[Head] | None":
        """Until the answer has been passed on; the reading of the client's next request, unless the connection is done.

        Raises when either end has gone, or after `cut` bytes of the answer.
        """
        self.engine[1].write(self.head.raw)
        sending = self._task(_copy(self.client[0], self.engine[1], self.head.request_body()))
        answer = await _final_head(self.engine[0], self.client[1])
        if cut == 0:
            raise ConnectionAbortedError
        self.client[1].write(answer.raw)
        framing = answer.response_body(self.head.first[0])
        if framing is Unframed.UNTIL_CLOSE:
            self._task(_copy_rest(sending, self.client[0], self.engine[1]))
            await _copy(self.engine[0], self.client[1], framing, cut)
            return None
        answering = self._task(_copy(self.engine[0], self.client[1], framing, cut))
        following = asyncio.create_task(_after(sending, self.client[0]))
        try:
            await asyncio.wait((answering, following), return_when=asyncio.FIRST_COMPLETED)
            if following.done() and not answering.done():
                following.result()  # raises if the client has gone: nobody reads the answer any more
            await answering
        except BaseException:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            raise
        return following

    async def close(self) -> None:
        """Ends what still runs and the connection to the engine."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await _closed(self.engine[1])

    def _task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.append(task)
        return task


async def _copy(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, framing: int | Unframed, cut: int | None = None
) -> None:
    """Pass a body on; the end of one without length is passed on too. Raises after `cut` bytes."""
    left = cut
    async for data in body(reader, framing):
        writer.write(data if left is None else data[:left])
        await writer.drain()
        if left is not None and (left := left - len(data)) <= 0:
            await _sent(writer)
            raise ConnectionAbortedError
    if framing is Unframed.UNTIL_CLOSE and writer.can_write_eof():
        writer.write_eof()


async def _copy_rest(sending: "asyncio.Task[None]", reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """What the client says after its request, on a connection that is no longer HTTP."""
    await asyncio.wait((sending,))
    await _copy(reader, writer, Unframed.UNTIL_CLOSE)


async def _sent(writer: asyncio.StreamWriter) -> None:
    """Until all is with the kernel, and the other end will get it."""
    writer.transport.set_write_buffer_limits(0)
    await writer.drain()


async def _final_head(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Head:
    """The head of the answer proper; `100 Continue` and the like are passed on."""
    while (answer := await read_head(reader)).status in range(102, 200) or answer.status == 100:
        writer.write(answer.raw)
    return answer


async def _after(sending: "asyncio.Task[None]", reader: asyncio.StreamReader) -> Head:
    """The client's next request, which begins where the body of this one ends."""
    await asyncio.wait((sending,))
    return await read_head(reader)


async def _closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


def _error(answer: Answer) -> bytes:
    content = json.dumps({"message": answer.message}).encode()
    head = f"HTTP/1.1 {answer.status} Fault\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    return head.encode() + content
