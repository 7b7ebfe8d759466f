"""Time as a port: everything that waits or stamps takes a Clock, so tests can run on virtual time.

Both implementations sleep on the event loop; under `looptime` the loop's own time is virtual, and `LoopClock` derives
the wall clock from it, so that timers and timestamps agree.
"""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Wall clock, monotonic clock and sleep that belong together."""

    def now(self) -> datetime:
        """Aware UTC wall-clock time."""
        ...

    def monotonic(self) -> float:
        """Seconds; only differences mean anything."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class LoopClock:
    """Wall clock that follows the running loop's time: `start` + seconds since the first look. For virtual time."""

    def __init__(
        self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC), time: Callable[[], float] | None = None
    ) -> None:
        self._start = start
        self._time = time
        self._zero: float | None = None

    def now(self) -> datetime:
        elapsed = self.monotonic()
        if self._zero is None:
            self._zero = elapsed
        return self._start + timedelta(seconds=elapsed - self._zero)

    def monotonic(self) -> float:
        return self._time() if self._time else asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
