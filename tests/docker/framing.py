"""HTTP/1.1 messages as they pass by: heads that are read, bodies that are only measured."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import Enum, auto

CHUNK = 64 * 1024


class Unframed(Enum):
    """Bodies without a length."""

    CHUNKED = auto()
    UNTIL_CLOSE = auto()


@dataclass(frozen=True, slots=True)
class Head:
    """First line and headers of a request or response."""

    raw: bytes
    first: tuple[str, str, str]
    """Method, target, version; or version, status, reason."""
    headers: dict[str, str]

    @property
    def status(self) -> int:
        """Of a response."""
        return int(self.first[1])

    def request_body(self) -> int | Unframed:
        """How long the body of this request is: it has none unless it says so."""
        return self._framing(default=0)

    def response_body(self, method: str) -> int | Unframed:
        """How long the body of this response to `method` is. An upgrade has no end but the connection's."""
        if self.status == 101:
            return Unframed.UNTIL_CLOSE
        if method == "HEAD" or self.status in (204, 304):
            return 0
        return self._framing(default=Unframed.UNTIL_CLOSE)

    def _framing(self, default: int | Unframed) -> int | Unframed:
        if "chunked" in self.headers.get("transfer-encoding", "").lower():
            return Unframed.CHUNKED
        length = self.headers.get("content-length")
        return default if length is None else int(length)


async def read_head(reader: asyncio.StreamReader) -> Head:
    """The next message's head. Raises IncompleteReadError when the other end has closed."""
    raw = await reader.readuntil(b"\r\n\r\n")
    first, *lines = raw.decode("latin-1").rstrip("\r\n").split("\r\n")
    parts = [*first.split(" ", 2), "", ""]
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return Head(raw, (parts[0], parts[1], parts[2]), headers)


async def body(reader: asyncio.StreamReader, framing: int | Unframed) -> AsyncIterator[bytes]:
    """The bytes of a body as they come, chunk sizes and trailers included."""
    match framing:
        case Unframed.UNTIL_CLOSE:
            while data := await reader.read(CHUNK):
                yield data
        case Unframed.CHUNKED:
            async for data in _chunked(reader):
                yield data
        case _:
            left = framing
            while left:
                data = await reader.read(min(CHUNK, left))
                if not data:
                    raise asyncio.IncompleteReadError(data, left)
                left -= len(data)
                yield data


async def _chunked(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while size := int((line := await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        yield line + await reader.readexactly(size + 2)
    while line:
        yield line
        if line == b"\r\n":
            return
        line = await reader.readuntil(b"\r\n")
