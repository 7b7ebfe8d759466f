"""Requests and answers, apart from any socket.

The HTTP front, the in-process transport and every test speak these values to one `Handler`, so there is one semantics.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias


@dataclass(frozen=True, slots=True)
class UserInfo:
    """An authenticated identity."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


ADMIN = UserInfo("system:admin", ("system:masters", "system:authenticated"))
"""In-process callers that composition trusts."""


@dataclass(frozen=True, slots=True)
class Request:
    """One API request. `path` is percent-encoded as on the wire, without the query; header names are lower case."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    """Decoded pairs in wire order; a name may repeat."""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    user: UserInfo | None = None
    """Set by whoever authenticated the connection; None = anonymous or to be authenticated from the headers."""

    def option(self, name: str, default: str = "") -> str:
        """First value of query parameter `name`."""
        return next((value for key, value in self.query if key == name), default)


@dataclass(frozen=True, slots=True)
class Response:
    """A complete answer."""

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "application/json"),)


class Sink(Protocol):
    """Where a Stream's bytes go: a socket or an in-process queue."""

    def write(self, data: bytes) -> bool:
        """Take whole lines. Never blocks. False = taken, but write no more before `Producer.resume`."""
        ...

    def end(self) -> None:
        """No more data; idempotent."""
        ...


class Producer(Protocol):
    """The body of a Stream; a watch on the server side."""

    def start(self, sink: Sink) -> None:
        """Begin writing to `sink` from the event loop. Called once."""
        ...

    def resume(self) -> None:
        """The sink has room again; may be called when it always had."""
        ...

    def stop(self) -> None:
        """The reader has gone; release everything. Idempotent; may be called before `start`."""
        ...


@dataclass(frozen=True, slots=True)
class Stream:
    """An answer that goes on: a watch."""

    producer: Producer
    status: int = 200
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "application/json"),)


Answer: TypeAlias = Response | Stream


class Handler(Protocol):
    """An API server, seen from its front door. Never raises for a bad request: that is a Response with a Status."""

    async def handle(self, request: Request) -> Answer: ...
