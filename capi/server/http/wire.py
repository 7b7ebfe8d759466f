"""Bytes of HTTP/1.1 answers: status lines, heads, chunks. Pure."""

from collections.abc import Iterable
from http import HTTPStatus

_STATUS_LINES = {int(status): f"HTTP/1.1 {int(status)} {status.phrase}\r\n".encode("ascii") for status in HTTPStatus}

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"
BODILESS = frozenset({204, 304})
"""Statuses that never have a body, nor a Content-Length."""


def head(status: int, headers: Iterable[tuple[str, str]], extra: bytes = b"") -> bytes:
    """Status line and header block; `extra` are ready header lines. Line breaks in values become blanks."""
    line = _STATUS_LINES.get(status) or f"HTTP/1.1 {status} Unknown\r\n".encode("ascii")
    block = "".join([f"{name}: {_clean(value)}\r\n" for name, value in headers])
    return line + block.encode("utf-8") + extra + b"\r\n"


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body; `data` must not be empty, as an empty chunk ends the body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def _clean(value: str) -> str:
    return value.replace("\r", " ").replace("\n", " ") if "\n" in value or "\r" in value else value
