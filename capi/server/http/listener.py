"""A listening socket in front of a Handler.

`serve` binds, `Listener.close` drains: no new connections, answers in flight get `Connection: close`, watches end with their
last chunk, and what is not done after the grace period is cut. One sweep every few seconds enforces all timeouts.
"""

import asyncio
import errno
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress

from capi.kube.errors import CapiError
from capi.kube.messages import Answer, Handler, Request
from capi.server.http.connection import Connection, PromptHandler, crashed
from capi.server.http.incoming import Limits

HANDSHAKE_SECONDS = 10.0


class ListenError(CapiError):
    """The address cannot be listened on; choose another address or port."""


async def serve(
    handler: Handler,
    host: str = "127.0.0.1",
    port: int = 0,
    tls: ssl.SSLContext | None = None,
    *,
    limits: Limits | None = None,
    sock: socket.socket | None = None,
) -> "Listener":
    """Listens on `host:port` (0 = the kernel picks one) or on the given bound `sock`. Raises ListenError."""
    listener = Listener(handler, limits or Limits())
    await listener._start(host, port, tls, sock)
    return listener


class Listener:
    """A running server."""

    def __init__(self, handler: Handler, limits: Limits) -> None:
        self.begin: Callable[[Request], Answer | Awaitable[Answer]]
        self.begin = handler.begin if isinstance(handler, PromptHandler) else handler.handle
        self.limits = limits
        self.draining = False
        self.host = ""
        self.port = 0
        self._connections: set[Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._sweeper: asyncio.TimerHandle | None = None
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def connections(self) -> int:
        return len(self._connections)

    async def _start(self, host: str, port: int, tls: ssl.SSLContext | None, sock: socket.socket | None) -> None:
        loop = asyncio.get_running_loop()
        timeout = HANDSHAKE_SECONDS if tls else None
        try:
            if sock is not None:
                self._server = await loop.create_server(
                    lambda: Connection(self), sock=sock, ssl=tls, ssl_handshake_timeout=timeout, backlog=1024
                )
            else:
                self._server = await loop.create_server(
                    lambda: Connection(self), host, port, ssl=tls, ssl_handshake_timeout=timeout, backlog=1024
                )
        except OSError as error:
            raise ListenError(_explain(error, host, port)) from error
        self.host, self.port = self._server.sockets[0].getsockname()[:2]

    async def close(self, grace: float = 5.0) -> None:
        """Stops listening and drains for at most `grace` seconds. Idempotent."""
        self.draining = True
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.drain()
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await self._empty.wait()
        for connection in list(self._connections):
            connection.transport.abort()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._empty.wait()
        if self._sweeper is not None:
            self._sweeper.cancel()

    # the Connections protocol

    def opened(self, connection: Connection) -> bool:
        if self.draining or len(self._connections) >= self.limits.connections:
            return False
        connection.transport.set_write_buffer_limits(high=self.limits.unread)
        raw = connection.transport.get_extra_info("socket")
        if raw is not None and raw.family in (socket.AF_INET, socket.AF_INET6):
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connections.add(connection)
        self._empty.clear()
        if self._sweeper is None:
            self._arm()
        return True

    def closed(self, connection: Connection) -> None:
        self._connections.discard(connection)
        if not self._connections:
            self._empty.set()

    def spawn(self, work: Awaitable[Answer], connection: Connection) -> None:
        task = asyncio.get_running_loop().create_task(self._answer(work, connection))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, work: Awaitable[Answer], connection: Connection) -> None:
        try:
            answer = await work
        except Exception as error:
            answer = crashed(error)
        connection.answered(answer)

    def _arm(self) -> None:
        limits = self.limits
        shortest = min(
            limits.head_seconds, limits.body_seconds, limits.idle_seconds, limits.linger_seconds, limits.write_seconds
        )
        self._sweeper = asyncio.get_running_loop().call_later(min(5.0, shortest / 2), self._sweep)

    def _sweep(self) -> None:
        now = asyncio.get_running_loop().time()
        for connection in [c for c in self._connections if c.deadline < now]:
            connection.expired()
        self._sweeper = None
        if self._connections:
            self._arm()


def _explain(error: OSError, host: str, port: int) -> str:
    where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    if error.errno == errno.EADDRINUSE:
        return f"{where} is in use by another process: stop it, choose another port, or choose port 0 to have a free one picked"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"no permission to listen on {where}: choose a port above 1023"
    if error.errno == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror):
        return f"{host} is not an address of this machine: choose one that is, such as 127.0.0.1"
    return f"cannot listen on {where}: {error.strerror or error}"
