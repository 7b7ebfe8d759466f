"""The keys a controller has to look at: each at most once in the queue, and never in two hands.

A key that is added while a worker holds it is handed out again afterwards. Delays live on a heap; per key only the
earliest counts, and taking a key cancels its delay, because every pass decides anew when it wants to be woken.

Upstream: client-go util/workqueue.
"""

import asyncio
import heapq
from collections import deque
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from capi.aio.backoff import Backoff
from capi.aio.clock import Clock
from capi.kube.types import Key

RETRY = Backoff(base=0.005, cap=60.0, jitter=0.1)
"""Per key and failure in a row. The cap is what a healed outage may cost in the worst case."""

EARLY = 1e-5
"""Seconds by which a timer may fire too early: the resolution of the loop's clock, generously."""


@dataclass(frozen=True, slots=True)
class Pace:
    """The least time between two passes over one key; what comes in between is coalesced into the next pass.

    The larger of `at_least` and `times_last_pass` × the time the key's last decision took: a pass that costs O(objects)
    then uses at most 1/`times_last_pass` of the processor, however many events there are. Never above `at_most`.
    """

    at_least: timedelta
    times_last_pass: float = 10.0
    at_most: timedelta = timedelta(seconds=2)

    def interval(self, cost: float) -> float:
        """Seconds, after a pass whose decision took `cost` seconds."""
        return min(self.at_most.total_seconds(), max(self.at_least.total_seconds(), self.times_last_pass * cost))


class QueueObserver(Protocol):
    """Metrics of a queue."""

    def added(self, depth: int) -> None: ...
    def taken(self, waited: float, depth: int) -> None: ...
    def retried(self) -> None: ...


class WorkQueue:
    """Use from one event loop. `get` gives keys until `shut_down`; every key got must be given back with `done`."""

    def __init__(
        self, clock: Clock, *, pace: Pace | None = None, retry: Backoff = RETRY, observer: QueueObserver | None = None
    ) -> None:
        self._clock = clock
        self._pace = pace
        self._retry = retry
        self._observer = observer
        self._ready: deque[Key] = deque()
        self._dirty: dict[Key, float] = {}
        """Keys to hand out, with the time they were added."""
        self._held: set[Key] = set()
        """Keys in a worker's hands."""
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._failures: dict[Key, int] = {}
        self._not_before: dict[Key, float] = {}
        self._due: dict[Key, float] = {}
        self._heap: list[tuple[float, Key]] = []
        self._paced: set[Key] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def __len__(self) -> int:
        return len(self._ready)

    def add(self, key: Key) -> None:
        """Hand `key` out as soon as it may be."""
        if self._closed or key in self._dirty:
            return
        if self._pace is not None:
            begin = self._not_before.get(key, 0.0)
            if begin > self._clock.monotonic() + EARLY:
                self._paced.add(key)
                self._at(key, begin)
                return
        self._dirty[key] = self._clock.monotonic()
        if key not in self._held:
            self._enqueue(key)

    def gather(self, key: Key, seconds: float) -> None:
        """Hand `key` out that long after the first of the events that come together."""
        if not self._closed and key not in self._dirty:
            self._paced.add(key)
            self._at(key, self._clock.monotonic() + seconds)

    def add_after(self, key: Key, seconds: float) -> None:
        """Hand `key` out after that time at the latest."""
        if seconds <= 0:
            self.add(key)
        elif not self._closed:
            self._at(key, self._clock.monotonic() + seconds)

    def retry(self, key: Key) -> None:
        """Hand `key` out again after its back-off."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        if self._observer is not None:
            self._observer.retried()
        self.add_after(key, self._retry.delay(failures))

    def forget(self, key: Key) -> None:
        """The key's last pass went well: its next failure is the first again."""
        self._failures.pop(key, None)

    def hurry(self) -> None:
        """End all back-offs: what failed before may go well now."""
        for key in list(self._failures):
            self.add(key)

    def drop(self, key: Key) -> None:
        """The object has gone: remember nothing about its key."""
        self._failures.pop(key, None)
        self._not_before.pop(key, None)
        self._due.pop(key, None)
        self._paced.discard(key)

    async def get(self) -> Key | None:
        """The next key; None once the queue is shut down."""
        while not self._closed:
            if self._ready:
                return self._take()
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter in self._waiters:
                    self._waiters.remove(waiter)
                elif self._ready:
                    self._wake()  # the wake-up was meant for a worker; pass it on
                raise
        return None

    def done(self, key: Key, cost: float | None = 0.0) -> None:
        """Give a key back, with the seconds its decision took (None: nothing was decided, so its pace does not apply).

        If it was added meanwhile it is queued again.
        """
        self._held.remove(key)
        if self._pace is not None and cost is not None:
            self._not_before[key] = self._clock.monotonic() + self._pace.interval(cost)
        if key in self._dirty:
            if self._pace is not None:
                del self._dirty[key]
                self.add(key)
            else:
                self._enqueue(key)

    def shut_down(self) -> None:
        """Hand out no more keys; those in hand may be finished."""
        self._closed = True
        self._ready.clear()
        if self._timer is not None:
            self._timer.cancel()
        while self._waiters:
            self._wake()

    def idle(self, within: float = 0.0) -> bool:
        """True if no key is queued, in hand, held back by its pace, or due within that many seconds."""
        if self._dirty or self._held or self._paced:
            return False
        horizon = self._clock.monotonic() + within
        return all(due > horizon for due in self._due.values())

    def _take(self) -> Key:
        key = self._ready.popleft()
        now = self._clock.monotonic()
        added = self._dirty.pop(key)
        self._held.add(key)
        self._due.pop(key, None)
        self._paced.discard(key)
        if self._observer is not None:
            self._observer.taken(now - added, len(self._ready))
        return key

    def _enqueue(self, key: Key) -> None:
        self._ready.append(key)
        if self._observer is not None:
            self._observer.added(len(self._ready))
        self._wake()

    def _wake(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def _at(self, key: Key, due: float) -> None:
        if due >= self._due.get(key, float("inf")):
            return
        self._due[key] = due
        heapq.heappush(self._heap, (due, key))
        if self._heap[0][0] == due:
            self._schedule()

    def _schedule(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._heap:
            delay = max(0.0, self._heap[0][0] - self._clock.monotonic())
            self._timer = asyncio.get_running_loop().call_later(delay, self._release)

    def _release(self) -> None:
        """Queue every key whose time has come."""
        now = self._clock.monotonic() + EARLY
        while self._heap and self._heap[0][0] <= now:
            due, key = heapq.heappop(self._heap)
            if self._due.get(key) == due:
                del self._due[key]
                self._paced.discard(key)
                if self._not_before.get(key, now) <= now:
                    self._not_before.pop(key, None)
                self.add(key)
        self._schedule()
