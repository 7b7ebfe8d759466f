"""One controller: events become keys, keys become passes, passes become Plans, Plans are executed.

A pass, in order: wait for own writes → fetch (gone: forget the key) → finalizer → pause → reconcile → execute → report.
Passes of one key never overlap. After a pass that wrote, the key's next pass starts when the caches have seen those
writes, or after `CONSISTENCY_TIMEOUT` without progress: a stale cache costs time, never a wrong decision.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeAlias

from capi.aio.backoff import Attempts, Backoff
from capi.aio.clock import Clock
from capi.client.client import Client
from capi.kube.errors import CapiError, TerminalError
from capi.kube.objects import Resource
from capi.kube.types import Key
from capi.runtime import sources
from capi.runtime.caches import ManagementReader
from capi.runtime.clusters import ClusterConnections
from capi.runtime.events import EventRecorder
from capi.runtime.execute import Executor
from capi.runtime.metrics import ControllerMetrics
from capi.runtime.outcome import Expectation, Outcome, newest
from capi.runtime.plan import Plan
from capi.runtime.queue import EARLY, Pace, WorkQueue
from capi.runtime.reconciler import Reconciler
from capi.runtime.watches import Feed, watched

logger = logging.getLogger(__name__)

CONSISTENCY_TIMEOUT = 5.0
"""Seconds a key waits for its own writes to show in a cache that does not move."""
CONSISTENCY_LIMIT = 60.0
"""Seconds it waits for a cache that is late but moves: deciding on what is known to be stale would only add work."""
PASS_TIMEOUT = 60.0
"""Seconds one pass may take."""
FEED_RETRY = Backoff(base=0.5, cap=30.0, jitter=0.2)

Uphold: TypeAlias = Callable[[Any, ManagementReader], Awaitable[None]]
Unclaimed: TypeAlias = Callable[[Any, ManagementReader], bool]


@dataclass(slots=True)
class _Hold:
    """A key's own writes that the caches have not shown when its last pass ended. Times by the monotonic clock."""

    expectations: list[Expectation]
    until: float
    limit: float
    progress: int
    """How far their caches were when this was last looked at."""
    watched: bool = False

    def moved(self) -> bool:
        """Whether a cache went on since the last look."""
        before, self.progress = self.progress, progress(self.expectations)
        return self.progress != before


class Controller:
    """Runs one reconciler. `pace` None: as its optional class attribute `spacing` (a timedelta) says.

    With a `watch_filter` only objects with that value of the watch-filter label are reconciled.
    """

    def __init__(  # noqa: PLR0913 - ports
        self,
        reconciler: Reconciler[Any],
        reader: ManagementReader,
        client: Client,
        clock: Clock,
        recorder: EventRecorder,
        metrics: ControllerMetrics,
        *,
        workers: int,
        pace: Pace | None = None,
        watch_filter: str = "",
        may_write: Callable[[], bool] = lambda: True,
    ) -> None:
        self.name = reconciler.manager
        self._reconciler = reconciler
        self._uphold: Uphold | None = getattr(reconciler, "uphold", None)
        self._unclaimed: Unclaimed | None = getattr(reconciler, "unclaimed", None)
        self._reader = reader
        self._clock = clock
        self._recorder = recorder
        self._metrics = metrics
        self._workers = workers
        self._watch_filter = watch_filter
        self._may_write = may_write
        self._executor = Executor(reconciler.manager, client, reader, metrics, may_write)
        self._holds: dict[Key, _Hold] = {}
        self._generations: dict[Key, int] = {}
        """Of keys whose last pass ended in a TerminalError: no retry until the generation changes."""
        self._costs: dict[Key, float] = {}
        """Seconds the decision of a running pass took."""
        self.queue = WorkQueue(clock, pace=pace or _own_pace(reconciler), observer=metrics)
        self._gathering = _gathering(reconciler)
        self._informer = reader.declare(reconciler.kind, {})
        self._feeds = [watch for watch in reconciler.watches if isinstance(watch, Feed)]

    def connect(self, connections: ClusterConnections | None) -> None:
        """Declare the reconciler's reads and subscribe to its events. Before the informers start."""
        sources.connect(self._reconciler, self._reader, connections, self._enqueue)

    def _enqueue(self, keys: Iterable[Key]) -> None:
        for key in keys:
            if self._gathering:
                self.queue.gather(key, self._gathering)
            else:
                self.queue.add(key)

    def idle(self, within: float = 0.0) -> bool:
        """True if no key is queued, in hand, held for its own writes, or due within that many seconds."""
        return self.queue.idle(within) and not any(hold.watched for hold in self._holds.values())

    async def run(self) -> None:
        """Work until `stop`; then the passes in hand are finished."""
        async with asyncio.TaskGroup() as group:
            feeds = [group.create_task(self._listen(feed), name=f"{self.name} feed") for feed in self._feeds]
            workers = [
                group.create_task(self._work(), name=f"{self.name} worker {number}") for number in range(self._workers)
            ]
            await asyncio.wait(workers)
            for task in feeds:
                task.cancel()

    def stop(self) -> None:
        self.queue.shut_down()

    async def _listen(self, feed: Feed) -> None:
        """Wake keys by a feed's news; a feed that breaks is opened again."""
        attempts = Attempts(FEED_RETRY)
        while True:
            events = feed.events()
            try:
                async for event in events:
                    attempts.succeeded()
                    self._enqueue(feed.keys(event, self._reader))
                return
            except Exception as error:
                self._log(Key("", "feed"), error)
            finally:
                if (close := getattr(events, "aclose", None)) is not None:
                    await close()
            await self._clock.sleep(attempts.failed())

    async def _work(self) -> None:
        while (key := await self.queue.get()) is not None:
            cost: float | None = None
            try:
                cost = await self._turn(key)
            finally:
                self.queue.done(key, cost)
            await asyncio.sleep(0)  # a pass in process may never have waited: caches and other controllers get a turn

    async def _turn(self, key: Key) -> float | None:
        """One key out of the queue; the seconds its decision took, None if it came to none. Errors are logged, and the key backs off."""
        if self._held(key):
            return None
        if not self._may_write():
            self.queue.retry(key)  # the lease is looked at first: passes touch infrastructure too, beside their Plans
            return None
        self._metrics.began()
        began = self._clock.monotonic()
        self._costs.pop(key, None)
        result = "error"
        try:
            async with asyncio.timeout(PASS_TIMEOUT):
                result = await self._pass(key)
        except TerminalError as error:
            self._log(key, error)
            self.queue.forget(key)
            result = "terminal"
        except Exception as error:
            self._log(key, error)
            self.queue.retry(key)
        finally:
            self._metrics.ended(result, self._clock.monotonic() - began)
        return self._costs.pop(key, None)

    async def _pass(self, key: Key) -> str:
        """The result for the metrics. Raises what went wrong."""
        obj: Any = self._informer.store.get(key)
        if obj is None:
            await self._gone(key)
            self.queue.drop(key)
            self._generations.pop(key, None)
            return "success"
        if not watched(obj, self._watch_filter):
            self.queue.forget(key)
            return "success"
        if self._generations.get(key) == obj.metadata.generation and not obj.deleting:
            return "success"
        self._generations.pop(key, None)
        finalizer = self._reconciler.finalizer
        if finalizer is not None and finalizer not in obj.metadata.finalizers:
            if obj.deleting:
                return "success"  # our part is done; others still hold the object
            if self._unclaimed is not None and self._unclaimed(obj, self._reader):
                self.queue.forget(key)
                return "success"
            return self._finish(key, obj, Plan(), await self._executor.add_finalizer(obj, finalizer))
        now = self._clock.now()
        causes = self._reconciler.paused(obj, self._reader)
        if causes:
            result = self._finish(key, obj, Plan(), await self._executor.pause(obj, causes, now))
            if self._uphold is not None:
                await self._uphold(obj, self._reader)
            return result
        plan = await self._decide(obj)
        return self._finish(key, obj, plan, await self._executor.execute(plan, obj, finalizer, now))

    async def _gone(self, key: Key) -> None:
        gone: Callable[[Key], Awaitable[None]] | None = getattr(self._reconciler, "gone", None)
        if gone is not None:
            await gone(key)

    async def _decide(self, obj: Any) -> Plan:
        began = self._clock.monotonic()
        try:
            return await self._reconciler.reconcile(obj, self._reader, self._clock.now())
        except TerminalError:
            self._generations[obj.key] = obj.metadata.generation
            raise
        finally:
            self._costs[obj.key] = self._clock.monotonic() - began

    def _finish(self, key: Key, obj: Resource, plan: Plan, outcome: Outcome) -> str:
        """Events, requeueing and the hold. Raises the pass's errors."""
        unseen = newest(expected for expected in outcome.expectations if not expected.met())
        if unseen:
            now = self._clock.monotonic()
            self._holds[key] = _Hold(unseen, now + CONSISTENCY_TIMEOUT, now + CONSISTENCY_LIMIT, progress(unseen))
        for event in outcome.events:
            self._recorder.record(self.name, obj, event)
        if outcome.errors:
            if all(isinstance(error, TerminalError) for error in outcome.errors):
                self._generations[key] = obj.metadata.generation
                raise outcome.errors[0]
            if plan.requeue_after is not None and plan.requeue_after > timedelta():
                self.queue.add_after(key, plan.requeue_after.total_seconds())  # however long the retry waits
            raise ExceptionGroup(f"reconciling {obj.resource.kind} {key}", outcome.errors)
        if outcome.conflicts:
            self.queue.retry(key)
            return "requeue"
        self.queue.forget(key)
        if plan.requeue_after is not None:
            self.queue.add_after(key, max(plan.requeue_after, timedelta()).total_seconds())
            return "requeue_after"
        return "success"

    def _held(self, key: Key) -> bool:
        """True if `key` has to wait for its own writes; it is queued again when they show, or time is up."""
        hold = self._holds.get(key)
        if hold is None:
            return False
        unseen = [expected for expected in hold.expectations if not expected.met()]
        now = self._clock.monotonic()
        if unseen and hold.until - EARLY <= now < hold.limit and hold.moved():
            hold.until = now + CONSISTENCY_TIMEOUT
        if not unseen or now >= hold.until - EARLY:
            del self._holds[key]
            for expected in unseen:
                expected.informer.on_suspicion()
            return False
        if not hold.watched:
            hold.watched = True
            for expected in unseen:
                expected.when_met(self._release(key, hold))
        self.queue.add_after(key, hold.until - now)
        return True

    def _release(self, key: Key, hold: _Hold) -> Callable[[], None]:
        def seen() -> None:
            if self._holds.get(key) is hold and all(expected.met() for expected in hold.expectations):
                del self._holds[key]
                self.queue.add(key)

        return seen

    def _log(self, key: Key, error: BaseException) -> None:
        extra = {"controller": self.name, "kind": self._informer.resource.kind, "object": str(key)}
        if _expected(error):
            logger.warning("Reconciling failed: %s", _words(error), extra=extra)
        else:
            logger.error("Reconciling failed", exc_info=error, extra=extra)


def progress(expectations: Iterable[Expectation]) -> int:
    """A number that grows with every change that the caches of these expectations see."""
    return sum(expected.informer.revision for expected in expectations)


def _gathering(reconciler: Reconciler[Any]) -> float:
    """Seconds by which the optional class attribute `gathering` (a timedelta) lets events of a key come together."""
    gathering: timedelta = getattr(reconciler, "gathering", timedelta())
    return gathering.total_seconds()


def _own_pace(reconciler: Reconciler[Any]) -> Pace | None:
    spacing: timedelta | None = getattr(reconciler, "spacing", None)
    return Pace(spacing) if spacing else None


def _expected(error: BaseException) -> bool:
    """False for bugs."""
    if isinstance(error, BaseExceptionGroup):
        return all(_expected(inner) for inner in error.exceptions)
    return isinstance(error, CapiError | TimeoutError)


def _words(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(_words(inner) for inner in error.exceptions)
    return str(error) or ("the pass took too long" if isinstance(error, TimeoutError) else type(error).__name__)
