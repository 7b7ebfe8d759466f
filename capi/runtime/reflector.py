"""Keeps an informer equal to the server: one watch that begins with the current state, and goes on.

The stream is a WatchList (initial objects, a bookmark, then changes); servers that refuse it get a list in pages and a
watch from its revision. After any break the watch resumes from the last revision seen; a revision the server has
forgotten (410) means listing again, and objects that are missing then are deletions.
A dead connection gives neither events nor errors, so a watch has a bounded life, and whoever misses an expected event may
voice a suspicion, which renews the watch at once.

Upstream: client-go tools/cache/reflector.go; KEP-3157 (watch-list).
"""

import asyncio
import logging
import random
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import orjson

from capi.aio.backoff import Attempts, Backoff
from capi.aio.clock import Clock
from capi.client.client import METADATA_ONLY, Client, Query, decode_event
from capi.kube.errors import ApiError, CapiError, Expired, Timeout, TransportError, from_status
from capi.kube.objects import ObjectMeta
from capi.kube.types import Key
from capi.runtime.informer import Informer

logger = logging.getLogger(__name__)

LIFETIME = (240, 480)
"""Seconds a watch is asked to last; random, so that watches do not end together."""
GRACE = 30.0
"""Seconds after its lifetime, or without progress before the first sync, when a watch counts as dead."""
BACKOFF = Backoff(base=0.1, cap=30.0, jitter=0.5)
SUSPICION_INTERVAL = 10.0
"""Seconds between two renewals by suspicion."""
_SHORT_WATCH = 1.0
"""Seconds; a watch that ends sooner without an event is a failure, lest it becomes a busy loop."""
_BURST = 64
"""Events handled before other tasks get a turn."""
_NO_WATCH_LIST = frozenset((400, 405, 406, 415, 422, 501))
"""Refusals of a WatchList that mean the server does not know it."""
_INITIAL_END = "k8s.io/initial-events-end"


class _Bookmark(msgspec.Struct, gc=False):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


_decode_bookmark = msgspec.json.Decoder(_Bookmark).decode


def number(revision: str) -> int:
    """A resourceVersion as a number (they are comparable decimal integers since Kubernetes 1.35); 0 if it is none."""
    return int(revision) if revision.isdigit() else 0


class Reflector:
    """Feeds one informer until cancelled."""

    def __init__(
        self,
        client: Client,
        informer: Informer,
        clock: Clock,
        namespace: str | None = None,
        metadata_only: bool = False,
    ) -> None:
        self._client = client
        self._informer = informer
        self._clock = clock
        self._path = informer.resource.path(namespace)
        self._namespace = namespace
        self._accept = METADATA_ONLY if metadata_only else ""
        self._attempts = Attempts(BACKOFF)
        self._revision = ""
        self._watch_list = True
        self._doubtful = False
        """The connection was lost: is the server still the same?"""
        self._deadline: asyncio.Timeout | None = None
        self._doubted = -SUSPICION_INTERVAL
        self.connected = False
        self.last_contact = clock.monotonic()
        """Monotonic seconds of the last sign of life."""
        self.error: CapiError | None = None
        """Why it is not connected, if it is not."""
        informer.on_suspicion = self.suspect

    def silent_for(self) -> float:
        """Seconds since contact was lost; 0 while connected."""
        return 0.0 if self.connected else self._clock.monotonic() - self.last_contact

    def suspect(self) -> None:
        """Someone misses an event: renew the watch, unless that was done a moment ago."""
        now = self._clock.monotonic()
        if self._deadline is not None and now - self._doubted >= SUSPICION_INTERVAL:
            self._doubted = now
            self._extend(0.0)

    def _extend(self, seconds: float) -> None:
        """Let the current watch be silent for that long from now. One that has just run out ends as such: a busy loop may be late."""
        if self._deadline is not None and not self._deadline.expired():
            self._deadline.reschedule(asyncio.get_running_loop().time() + seconds)

    async def run(self) -> None:
        """List and watch for ever."""
        while True:
            try:
                await self._follow()
            except (ApiError, TransportError) as error:
                self._lost(error)
                await self._clock.sleep(self._attempts.failed())

    def _lost(self, error: CapiError) -> None:
        if isinstance(error, Expired | Timeout):
            self._revision = ""
        elif isinstance(error, TransportError):
            self._doubtful = bool(self._revision)
        level = logging.DEBUG if self.error is None else logging.INFO
        logger.log(level, "Watching again", extra={"kind": self._informer.resource.kind, "error": error.message})
        self.error = error

    async def _check_revision(self) -> None:
        """Behind a lost connection there may be another server now, or a restored one, whose revisions are lower.

        A watch from a revision of the future would wait in silence until it comes.
        """
        page = await self._client.page(self._informer.resource, self._namespace, limit=1)
        if number(page.revision) < number(self._revision):
            self._revision = ""
        self._doubtful = False

    async def _follow(self) -> None:
        if self._doubtful and self._revision:
            await self._check_revision()
        initial = not self._revision and self._watch_list
        if not self._revision and not self._watch_list:
            await self._list()
        began = self._clock.monotonic()
        try:
            events = await self._watch(initial)
        except ApiError as error:
            if not initial or error.status_code not in _NO_WATCH_LIST:
                raise
            self._watch_list = False
            return
        finally:
            self._deadline = None
            self._disconnected()
        if not events and self._clock.monotonic() - began < _SHORT_WATCH:
            raise TransportError("the watch ended at once without an event")

    def _alive(self) -> None:
        self.connected, self.error = True, None
        self._attempts.succeeded()

    def _disconnected(self) -> None:
        if self.connected:
            self.connected = False
            self.last_contact = self._clock.monotonic()

    async def _list(self) -> None:
        """The current state in pages."""
        informer, objects, continue_ = self._informer, [], ""
        while True:
            page = await self._client.page(
                informer.resource, self._namespace, labels=informer.labels, continue_=continue_
            )
            for raw in page.items:
                obj = self._decoded(orjson.dumps(raw))
                if obj is not None:
                    objects.append(obj)
            continue_ = page.continue_
            if not continue_:
                break
        informer.replace(objects, number(page.revision))
        self._revision = page.revision

    def _query(self, initial: bool, seconds: int) -> Query:
        query = [("watch", "true"), ("allowWatchBookmarks", "true"), ("timeoutSeconds", str(seconds))]
        if self._informer.labels:
            query.append(("labelSelector", self._informer.labels))
        if initial:
            query += [("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan")]
        else:
            query.append(("resourceVersion", self._revision))
        return tuple(query)

    async def _watch(self, initial: bool) -> int:
        """Follow one stream to its end; the number of events. Raises for its errors, and TransportError when it is dead."""
        seconds = random.randint(*LIFETIME)
        try:
            async with asyncio.timeout(GRACE if initial else seconds + GRACE) as self._deadline:
                async with self._client.lines(self._path, self._query(initial, seconds), self._accept) as lines:
                    events = 0
                    if initial:
                        events = await self._initial(lines)
                    self._alive()
                    self._extend(seconds + GRACE)
                    return events + await self._changes(lines)
        except msgspec.DecodeError as error:
            raise TransportError(f"the watch sent what is not an event: {error}") from error
        except TimeoutError as error:
            raise TransportError("the watch is silent; its connection may be dead") from error

    async def _initial(self, lines: AsyncIterator[bytes]) -> int:
        """Collect the initial state up to its closing bookmark."""
        objects: dict[Key, Any] = {}
        count = 0
        async for line in lines:
            count += 1
            if count % _BURST == 0:
                self._extend(GRACE)
                await asyncio.sleep(0)
            event = decode_event(line)
            if event.type == "BOOKMARK":
                metadata = _decode_bookmark(event.object).metadata
                if metadata.annotations.get(_INITIAL_END) == "true":
                    self._informer.replace(objects.values(), number(metadata.resource_version))
                    self._revision = metadata.resource_version
                    return count
                continue
            obj = self._checked(event.type, event.object)
            if obj is None and event.type == "DELETED":
                metadata = _decode_bookmark(event.object).metadata
                objects.pop(Key(metadata.namespace, metadata.name), None)
            elif obj is not None:
                if event.type == "DELETED":
                    objects.pop(obj.key, None)
                else:
                    objects[obj.key] = obj
        raise TransportError("the watch ended before the initial objects were complete")

    async def _changes(self, lines: AsyncIterator[bytes]) -> int:
        informer, count = self._informer, 0
        async for line in lines:
            count += 1
            if count % _BURST == 0:
                await asyncio.sleep(0)
            event = decode_event(line)
            if event.type == "BOOKMARK":
                self._revision = _decode_bookmark(event.object).metadata.resource_version
                informer.reached(number(self._revision))
                continue
            obj = self._checked(event.type, event.object)
            if obj is None:
                self._passed(event.type, event.object)
                continue
            self._revision = obj.metadata.resource_version
            if event.type == "DELETED":
                informer.deleted(obj.key, number(self._revision))
            else:
                informer.changed(obj, number(self._revision))
        return count

    def _passed(self, type_: str, data: msgspec.Raw) -> None:
        """The event of an object that nobody can read: what is cached of it stays, until it is deleted."""
        metadata = _decode_bookmark(data).metadata
        self._revision = metadata.resource_version
        if type_ == "DELETED":
            self._informer.deleted(Key(metadata.namespace, metadata.name), number(self._revision))
        else:
            self._informer.reached(number(self._revision))

    def _checked(self, type_: str, data: msgspec.Raw) -> Any:
        if type_ == "ERROR":
            raise from_status(orjson.loads(bytes(data)))
        return self._decoded(data)

    def _decoded(self, data: Any) -> Any:
        """The object; None for one that breaks its kind's shape: the others must not suffer, and what is cached stays."""
        try:
            return self._informer.decode(data)
        except msgspec.DecodeError as error:
            extra = {"kind": self._informer.resource.kind, "error": str(error), "object": bytes(data)[:300]}
            logger.warning("Ignoring an object of unexpected shape", extra=extra)
            return None
