"""Requests out of bytes: httptools' callbacks, limits and header folding. No socket, no loop.

A message that breaks a limit becomes a `Refusal`; after one the connection cannot be read any further, because where the
next message begins is unknown. Order is kept: a refusal stands in line behind the requests before it.
"""

from dataclasses import dataclass, field
from typing import TypeAlias
from urllib.parse import parse_qsl

import httptools

from capi.kube.messages import Request, UserInfo

_HEADER_SIGNS = 4
"""A colon, a blank and a line break: many tiny headers are a large head too."""
_REPEATABLE = ("impersonate-",)
"""Header names whose repetitions are joined by a line break, because their values may hold commas."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one connection may ask for; times in seconds."""

    body: int = 3 * 1024 * 1024
    """kube-apiserver's limit of a request body."""
    head: int = 64 * 1024
    """Request line and headers together."""
    pipeline: int = 16
    """Complete requests that wait behind the current one before reading stops."""
    head_seconds: float = 32.0
    """From the first byte of a request to the end of its headers."""
    body_seconds: float = 60.0
    """Between two pieces of a body."""
    idle_seconds: float = 180.0
    """Keep-alive without a request."""
    linger_seconds: float = 5.0
    """How long a refused sender may go on sending before it is cut; lets it read the answer."""
    write_seconds: float = 30.0
    """How long a peer may go on without reading while more than the transport's high-water mark waits for it."""
    unread: int = 256 * 1024
    """Unsent bytes from which a peer counts as not reading: streams pause, further requests wait."""
    connections: int = 10_000


@dataclass(frozen=True, slots=True)
class Incoming:
    """A complete request and what its connection must do after it."""

    request: Request
    keep_alive: bool
    http10: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer to something that is no request; the connection ends with it."""

    status: int
    text: str


Message: TypeAlias = Incoming | Refusal


class _Refused(Exception):
    """Stops the parser from within a callback."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.text)
        self.refusal = refusal


@dataclass(slots=True)
class _Draft:
    """The message being read."""

    url: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    size: int = 0
    body: list[bytes] = field(default_factory=list)
    body_size: int = 0
    method: str = ""
    keep_alive: bool = True
    http10: bool = False


class Reader:
    """Feed it bytes; complete messages appear in `ready`.

    `in_head` and `in_body` tell what is being waited for. `wants_continue` is set while the sender of the current
    message waits for "100 Continue"; whoever sends it clears the flag. After a refusal `ended` is set and `feed` does nothing.
    """

    def __init__(self, limits: Limits, user: UserInfo | None = None) -> None:
        self.limits, self.user = limits, user
        self.ready: list[Message] = []
        self.in_body = False
        self.wants_continue = False
        self.ended = False
        self._draft = _Draft()
        self._begun = False
        self._unfinished = 0
        self._parser = httptools.HttpRequestParser(self)

    @property
    def in_head(self) -> bool:
        return self._unfinished > 0 and not self.in_body

    def feed(self, data: bytes) -> None:
        if self.ended:
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self.ended = True  # what follows is another protocol; the request itself is answered as if it had not asked
        except httptools.HttpParserError as error:
            self._refuse(_refusal_of(error))
            return
        self._count_head(len(data))

    def _count_head(self, size: int) -> None:
        """Bounds heads that never end: the parser reports headers only when they are complete."""
        self._unfinished = 0 if self.in_body or not self._begun else self._unfinished + size
        if self._unfinished > self.limits.head:
            self._refuse(Refusal(431, "request header fields too large"))

    def _refuse(self, refusal: Refusal) -> None:
        self.ended = True
        self.in_body = False
        self.wants_continue = False
        self._unfinished = 0
        self.ready.append(refusal)

    # httptools callbacks

    def on_message_begin(self) -> None:
        self._begun = True
        self._draft = _Draft()

    def on_url(self, url: bytes) -> None:
        self._grow(len(url))
        self._draft.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.in_body:
            return  # trailers are not headers
        self._grow(len(name) + len(value) + _HEADER_SIGNS)
        headers, key, text = self._draft.headers, name.decode("latin-1").lower(), value.decode("latin-1").strip()
        if key in headers:
            joint = "\n" if key.startswith(_REPEATABLE) else ", "
            text = f"{headers[key]}{joint}{text}"
        headers[key] = text

    def on_headers_complete(self) -> None:
        draft, parser = self._draft, self._parser
        draft.method = parser.get_method().decode("ascii")
        draft.http10 = parser.get_http_version() == "1.0"
        draft.keep_alive = parser.should_keep_alive()
        self.in_body = True
        self._check_head(draft)

    def on_body(self, data: bytes) -> None:
        draft = self._draft
        draft.body_size += len(data)
        if draft.body_size > self.limits.body:
            raise _Refused(too_large(self.limits))
        draft.body.append(data)
        self.wants_continue = False

    def on_message_complete(self) -> None:
        self.in_body = self._begun = self.wants_continue = False
        self.ready.append(_incoming(self._draft, self.user, upgrade=self._parser.should_upgrade()))
        self._draft = _Draft()

    def _grow(self, size: int) -> None:
        self._draft.size += size
        if self._draft.size > self.limits.head:
            raise _Refused(Refusal(431, "request header fields too large"))

    def _check_head(self, draft: _Draft) -> None:
        if not draft.http10 and "host" not in draft.headers:
            raise _Refused(Refusal(400, "missing required Host header"))
        if int(draft.headers.get("content-length") or 0) > self.limits.body:
            raise _Refused(too_large(self.limits))
        expect = draft.headers.get("expect")
        if expect and not draft.http10:
            if expect.lower() != "100-continue":
                raise _Refused(Refusal(417, f"unknown expectation {expect!r}"))
            self.wants_continue = True


def too_large(limits: Limits) -> Refusal:
    """The refusal of a body over the limit."""
    return Refusal(413, f"Request entity too large: limit is {limits.body}")


def _incoming(draft: _Draft, user: UserInfo | None, *, upgrade: bool) -> Message:
    try:
        path, query = _target(draft.url)
    except (httptools.HttpParserError, ValueError):
        return Refusal(400, "malformed request target")
    request = Request(draft.method, path, query, draft.headers, b"".join(draft.body), user)
    return Incoming(request, draft.keep_alive and not upgrade, draft.http10)


def _target(url: bytes) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Path and query of an origin-form, absolute-form or asterisk-form target."""
    if url == b"*":
        return "*", ()
    if url.startswith(b"/"):  # httptools would take "//host/…" for a network path
        path, _, query = url.partition(b"#")[0].partition(b"?")
    else:
        parts = httptools.parse_url(url)
        path, query = parts.path or b"/", parts.query or b""
    pairs = parse_qsl(query.decode("utf-8", "replace"), keep_blank_values=True) if query else ()
    return path.decode("utf-8", "replace"), tuple(pairs)


def _refusal_of(error: Exception) -> Refusal:
    cause: BaseException | None = error.__context__
    if isinstance(cause, _Refused):
        return cause.refusal
    return Refusal(400, f"malformed request: {error}")
