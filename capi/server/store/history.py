"""The recent events of every resource: what watches resume from and what exact-revision lists are computed with.

Kept per resource: at least `MIN_EVENTS`, at most `MAX_EVENTS`, and between these whatever is younger than `MAX_AGE_SECONDS`.
Upstream: the watch cache's window (k8s.io/apiserver/pkg/storage/cacher/watch_cache.go).
"""

from collections import deque
from collections.abc import Callable

from capi.server.store.interface import Compacted, StoreEvent

MIN_EVENTS = 1_000
MAX_EVENTS = 10_000
MAX_AGE_SECONDS = 300.0


class _Log:
    __slots__ = ("compacted", "events")

    def __init__(self, compacted: int) -> None:
        self.events: deque[tuple[float, StoreEvent]] = deque()
        self.compacted = compacted


class History:
    """Bounded event logs. `monotonic` gives seconds; `start` is the revision before which nothing is known."""

    def __init__(self, monotonic: Callable[[], float], start: int = 0) -> None:
        self._monotonic = monotonic
        self._start = start
        self._logs: dict[str, _Log] = {}

    def add(self, event: StoreEvent) -> None:
        log = self._logs.get(event.resource)
        if log is None:
            log = self._logs[event.resource] = _Log(self._start)
        now = self._monotonic()
        log.events.append((now, event))
        self._trim(log, now)

    def after(self, resource: str, revision: int) -> list[StoreEvent]:
        """Events newer than `revision`, oldest first. O(result). Raises Compacted."""
        oldest = self.compacted(resource)
        if revision < oldest:
            raise Compacted(oldest)
        log = self._logs.get(resource)
        found: list[StoreEvent] = []
        for _, event in reversed(log.events) if log else ():
            if event.revision <= revision:
                break
            found.append(event)
        found.reverse()
        return found

    def compacted(self, resource: str) -> int:
        """The oldest revision after which this resource's events are complete."""
        log = self._logs.get(resource)
        return log.compacted if log else self._start

    def compact(self, revision: int) -> None:
        """Forget all events up to `revision`, in every resource."""
        self._start = max(self._start, revision)
        for log in self._logs.values():
            while log.events and log.events[0][1].revision <= revision:
                log.events.popleft()
            log.compacted = max(log.compacted, revision)

    @staticmethod
    def _trim(log: _Log, now: float) -> None:
        events = log.events
        while len(events) > MAX_EVENTS or (len(events) > MIN_EVENTS and now - events[0][0] > MAX_AGE_SECONDS):
            log.compacted = events.popleft()[1].revision
