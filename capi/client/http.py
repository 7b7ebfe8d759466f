"""Transport over HTTP/1.1: a pool of kept-alive connections for requests, one connection per watch.

Retried here is only what certainly was not done: a GET whose idle connection turned out to be closed, and one request
after a 401 if a newer credential can be had. What else fails is a TransportError, and its outcome is unknown.
"""

import asyncio
import contextlib
import ssl
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import lru_cache
from urllib.parse import urlencode, urlsplit

from capi.client.answers import error_of
from capi.client.config import ClusterConfig
from capi.client.connection import Connection, Dropped
from capi.client.credentials import Credential, Credentials, headers
from capi.client.lines import Lines
from capi.client.tls import client_context
from capi.kube.errors import TransportError
from capi.kube.messages import Request, Response

CONNECT_TIMEOUT = 10.0
REQUEST_TIMEOUT = 60.0
"""Seconds from sending a request to its whole answer, or to the beginning of a stream; an API server gives up after 60."""
MAX_CONNECTIONS = 64
"""For requests; watches come on top."""


def connect(config: ClusterConfig) -> "HttpTransport":
    """A transport to the cluster of a kubeconfig; nothing is sent yet. Raises KubeconfigError for unusable certificates."""
    transport = HttpTransport(config)
    if config.plugin is None and config.token_file is None:
        client_context(config, Credential(config.token, config.certificate, config.key))
    return transport


def _now() -> datetime:
    return datetime.now(UTC)


class HttpTransport:
    """A Transport to the API server of one cluster configuration."""

    def __init__(
        self, config: ClusterConfig, *, now: Callable[[], datetime] = _now, max_connections: int = MAX_CONNECTIONS
    ) -> None:
        self._config = config
        self._credentials = Credentials(config, now)
        url = urlsplit(config.server)
        self._host = url.hostname or ""
        self._port = url.port or (443 if url.scheme == "https" else 80)
        self._prefix = url.path.rstrip("/")
        self._fixed = f" HTTP/1.1\r\nHost: {url.netloc.rpartition('@')[2]}\r\n"
        self._max = max_connections
        self._idle: list[Connection] = []
        self._all: set[Connection] = set()
        self._count = 0
        """Connections of the pool, those being opened included."""
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._tls: tuple[bytes | None, ssl.SSLContext | None] | None = None
        self._auth: tuple[Credential, str] | None = None
        self._closed = False

    async def request(self, request: Request) -> Response:
        refused = False
        while True:
            credential = await self._credentials.current()
            response = await self._attempt(request, credential)
            if response.status != 401 or refused or not self._credentials.renewable:
                return response
            refused = True
            self._credentials.refused(credential)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        credential = await self._credentials.current()
        connection, lines = await self._open(credential), Lines()
        try:
            with self._explained():
                async with asyncio.timeout(REQUEST_TIMEOUT):
                    response = await connection.begin_stream(self._encode(request, credential), lines)
            if not 200 <= response.status < 300:
                if response.status == 401:
                    self._credentials.refused(credential)
                raise error_of(response)
            yield lines
        finally:
            connection.close()

    async def close(self) -> None:
        self._closed = True
        for connection in list(self._all):
            connection.close()
        while self._waiting:
            self._free()

    async def _attempt(self, request: Request, credential: Credential) -> Response:
        """One request, sent again only if that is certainly safe."""
        data = self._encode(request, credential)
        while True:
            connection = await self._acquire(credential)
            used, finished = connection.used, False
            try:
                with self._explained():
                    async with asyncio.timeout(REQUEST_TIMEOUT):
                        response = await connection.exchange(data)
                finished = True
                return response
            except Dropped:
                if not used or request.method != "GET":
                    raise
            finally:
                self._release(connection, keep=finished and connection.reusable)

    async def _acquire(self, credential: Credential) -> Connection:
        while True:
            if self._closed:
                raise TransportError(f"{self._config.server}: this client is closed")
            while self._idle:
                connection = self._idle.pop()
                if connection.open and connection.certificate == credential.certificate:
                    return connection
                self._release(connection, keep=False)
            if self._count < self._max:
                self._count += 1
                try:
                    return await self._open(credential)
                except BaseException:
                    self._count -= 1
                    self._free()
                    raise
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._free()
                raise

    def _release(self, connection: Connection, *, keep: bool) -> None:
        if keep and connection.open and not self._closed:
            self._idle.append(connection)
        else:
            self._count -= 1
            connection.close()
        self._free()

    def _free(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    def _lost(self, connection: Connection) -> None:
        """A connection closed; if it was idle, forget it."""
        self._all.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
            self._count -= 1

    async def _open(self, credential: Credential) -> Connection:
        if self._tls is None or self._tls[0] != credential.certificate:
            self._tls = credential.certificate, client_context(self._config, credential)
        context = self._tls[1]
        name = (self._config.tls_server_name or self._host) if context is not None else None
        loop = asyncio.get_running_loop()
        with self._explained():
            async with asyncio.timeout(CONNECT_TIMEOUT):
                _, connection = await loop.create_connection(
                    lambda: Connection(self._lost), self._host, self._port, ssl=context, server_hostname=name
                )
        connection.certificate = credential.certificate
        self._all.add(connection)
        return connection

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn what the network raises into TransportErrors that name the server."""
        server = self._config.server
        try:
            yield
        except TimeoutError as error:
            raise TransportError(f"{server} did not answer in time") from error
        except ssl.SSLCertVerificationError as error:
            raise TransportError(f"{server}: its certificate is not trusted: {error.verify_message}") from error
        except TransportError as error:
            raise type(error)(f"{server}: {error.message}") from error
        except ConnectionRefusedError as error:
            raise TransportError(f"{server}: connection refused; does the API server run?") from error
        except OSError as error:
            raise TransportError(f"{server}: {error.strerror or error}") from error

    def _encode(self, request: Request, credential: Credential) -> bytes:
        query = _query(request.query) if request.query else ""
        head = [request.method, " ", self._prefix, request.path, query, self._fixed]
        for name, value in request.headers.items():
            head += (name, ": ", value, "\r\n")
        head.append(self._authentication(credential))
        if request.body or request.method != "GET":
            head.append(f"content-length: {len(request.body)}\r\n")
        head.append("\r\n")
        return "".join(head).encode("latin-1") + request.body

    def _authentication(self, credential: Credential) -> str:
        if self._auth is None or self._auth[0] is not credential:
            lines = (f"{name}: {value}\r\n" for name, value in headers(self._config, credential))
            self._auth = credential, "".join(lines)
        return self._auth[1]


@lru_cache(maxsize=1024)
def _query(pairs: tuple[tuple[str, str], ...]) -> str:
    return "?" + urlencode(pairs)
