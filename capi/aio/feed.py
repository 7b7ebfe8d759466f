"""News for whoever listens: each reader has its own queue, in which equal news are kept once."""

import asyncio
from typing import Generic, TypeVar

T = TypeVar("T")


class Feeds(Generic[T]):
    """The open readers of one source."""

    def __init__(self) -> None:
        self._open: set[Feed[T]] = set()

    def open(self) -> "Feed[T]":
        """A reader of everything from now on."""
        feed = Feed(self._open)
        self._open.add(feed)
        return feed

    def publish(self, news: T) -> None:
        """Never blocks. `news` must be hashable."""
        for feed in self._open:
            feed.push(news)


class Feed(Generic[T]):
    """An asynchronous iterator that ends when it is closed."""

    def __init__(self, siblings: "set[Feed[T]]") -> None:
        self._pending: dict[T, None] = {}
        self._wake = asyncio.Event()
        self._siblings = siblings

    def push(self, news: T) -> None:
        self._pending[news] = None
        self._wake.set()

    def __aiter__(self) -> "Feed[T]":
        return self

    async def __anext__(self) -> T:
        while not self._pending:
            if self not in self._siblings:
                raise StopAsyncIteration
            self._wake.clear()
            await self._wake.wait()
        news = next(iter(self._pending))
        del self._pending[news]
        return news

    async def aclose(self) -> None:
        """The reader has gone."""
        self._siblings.discard(self)
        self._wake.set()
