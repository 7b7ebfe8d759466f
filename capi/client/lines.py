"""A queue of bytes that one reader takes as lines. It is the Sink of in-process watches and the end of HTTP ones."""

import asyncio
from collections import deque
from collections.abc import Callable

from capi.kube.errors import TransportError


class Lines:
    """Implements messages.Sink, and is an asynchronous iterator of the non-empty lines.

    `limit` is how many bytes may wait before `write` asks to pause (0: no limit, the writer looks at `size` itself).
    """

    __slots__ = ("_chunks", "_ended", "_error", "_lines", "_waiter", "limit", "low", "on_low", "size")

    def __init__(self, limit: int = 0) -> None:
        self.limit = limit
        self.size = 0
        """Bytes in chunks that the reader has not begun."""
        self.low = 0
        self.on_low: Callable[[], None] | None = None
        """Called when `size` has sunk to `low`."""
        self._chunks: deque[bytes] = deque()
        self._lines: list[bytes] = []
        """Lines of the oldest chunk, last first."""
        self._ended = False
        self._error: TransportError | None = None
        self._waiter: asyncio.Future[None] | None = None

    def write(self, data: bytes) -> bool:
        """Take whole lines; False = ended, or enough is waiting."""
        if self._ended:
            return False
        self._chunks.append(data)
        self.size += len(data)
        self._wake()
        return not self.limit or self.size <= self.limit

    def end(self) -> None:
        self._ended = True
        self._wake()

    def fail(self, error: TransportError) -> None:
        """End with an error, which the reader gets after the lines that came before it."""
        if not self._ended:
            self._error = error
            self.end()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def __aiter__(self) -> "Lines":
        return self

    async def __anext__(self) -> bytes:
        while True:
            while self._lines:
                line = self._lines.pop()
                if line:
                    return line
            if self._chunks:
                self._next_chunk()
            elif self._ended:
                if self._error is not None:
                    raise self._error
                raise StopAsyncIteration
            else:
                self._waiter = asyncio.get_running_loop().create_future()
                await self._waiter

    def _next_chunk(self) -> None:
        chunk = self._chunks.popleft()
        self.size -= len(chunk)
        self._lines = chunk.split(b"\n")
        self._lines.reverse()
        if self.on_low is not None and self.size <= self.low:
            self.on_low()
