"""Containers that are made: only so many at one time, and before all else that their machines need of the engine.

A container takes a while to boot, and looking whether it has costs the engine what it could make the next ones with.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

FIRST = 5.0
"""Seconds that a new container is left alone at most while others are made."""


class Creations:
    """Those of one engine."""

    def __init__(self, parallel: int) -> None:
        """`parallel`: how many are made at one time; an engine takes longer for each when it is asked for more."""
        self._slots = asyncio.Semaphore(parallel)
        self._wanted = 0
        """Being made, or waiting for their turn."""
        self._none = asyncio.Event()
        self._none.set()

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        """Held while a container is made; waits for its turn."""
        self._wanted += 1
        self._none.clear()
        try:
            async with self._slots:
                yield
        finally:
            self._wanted -= 1
            if not self._wanted:
                self._none.set()

    async def over(self) -> None:
        """Wait until none is made any more, but not long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST):
                await self._none.wait()
