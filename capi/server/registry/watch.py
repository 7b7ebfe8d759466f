"""Watches: what happened to the objects of one resource, one JSON line per event, in revision order.

An event is encoded once for all watchers that see it in the same way. Nothing is queued for a sink that is full: its watch
pauses, and catches up from the store's history when there is room again, or ends with 410 when the history no longer
reaches back so far. Everything up to a bookmark's revision has been sent before it.

Upstream: apiserver pkg/storage/cacher (watch cache), pkg/endpoints/handlers/watch.go; KEP-3157 for initial events.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import orjson

from capi.kube.errors import ApiError, InternalError
from capi.kube.messages import Sink
from capi.kube.types import Object
from capi.server.registry import refusals
from capi.server.registry.interface import ListOptions, Representation
from capi.server.registry.reads import parse_revision
from capi.server.registry.selection import Selection
from capi.server.registry.served import Served
from capi.server.store.interface import Compacted, Entry, Store, StoreEvent

_log = logging.getLogger(__name__)

BOOKMARK_SECONDS = 60.0
_LAST_BOOKMARK_SECONDS = 2.0
"""So long before its timeout a watch sends a last bookmark."""
_MIN_TIMEOUT, _MAX_TIMEOUT = 1_800, 3_600
_LONGEST = 366 * 86_400
"""Timers take no more than this; clients that ask for more mean "for ever"."""
_CHUNK_BYTES = 64 * 1024
"""Events that are known already are written together until there is so much of them."""
_END_OF_INITIAL = {"k8s.io/initial-events-end": "true"}

_Memo: TypeAlias = "dict[tuple[str, bool, str, int], bytes]"
"""Lines of one event by type, old or new state, version and representation."""


class WatchHub:
    """All running watches. Costs nothing for resources that nobody watches."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._running: dict[str, dict[Watch, None]] = {}
        self._subscriptions: dict[str, Callable[[], None]] = {}

    def watch(
        self, served: Served, namespace: str, options: ListOptions, representation: Representation | None
    ) -> "Watch":
        """A watch that has not started. Raises for options that make no sense."""
        _check_options(options)
        return Watch(self, served, Selection(served, namespace, options), options, representation)

    def add(self, table: str, watch: "Watch") -> None:
        if table not in self._running:
            self._running[table] = {}
            self._subscriptions[table] = self.store.subscribe(table, self._publish)
        self._running[table][watch] = None

    def drop(self, table: str, watch: "Watch") -> None:
        watches = self._running.get(table)
        if watches is None:
            return
        watches.pop(watch, None)
        if not watches:
            del self._running[table]
            self._subscriptions.pop(table)()

    def close(self, table: str) -> None:
        """End all watches of a resource: its definition changed."""
        for watch in list(self._running.get(table, ())):
            watch.end()

    def close_all(self) -> None:
        for table in list(self._running):
            self.close(table)

    def count(self) -> int:
        return sum(map(len, self._running.values()))

    def _publish(self, event: StoreEvent) -> None:
        memo: _Memo = {}
        for watch in list(self._running.get(event.resource, ())):
            try:
                watch.offer(event, memo)
            except Exception as error:  # an object that one watch cannot show must not hold up the commit
                watch.fail(error)


class Watch:
    """One watch; see interface.Watcher."""

    def __init__(
        self,
        hub: WatchHub,
        served: Served,
        selection: Selection,
        options: ListOptions,
        representation: Representation | None,
    ) -> None:
        self._hub, self._served, self._selection = hub, served, selection
        self._options, self._representation = options, representation
        self._sink: Sink | None = None
        self._timers: list[asyncio.TimerHandle] = []
        self._lines: Iterator[bytes] = iter(())
        """What precedes the live events and has not been written."""
        self._sent = 0
        """Events up to this revision are written, in `_lines`, or were not wanted."""
        self._paused = False

    def start(self, sink: Sink) -> None:
        self._sink = sink
        self._sent = self._hub.store.revision
        try:
            self._lines = self._beginning()
        except ApiError as error:
            self.fail(error)
            return
        self._hub.add(self._served.table, self)
        self._arm()
        self._pump()

    def resume(self) -> None:
        if not self._paused:
            return
        self._paused = False
        self._pump()
        while not self._paused and self._sink is not None and self._fall_in():
            self._pump()

    def stop(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        self._hub.drop(self._served.table, self)
        self._lines = iter(())
        self._sink = None

    def end(self) -> None:
        """Close the stream cleanly."""
        sink = self._sink
        self.stop()
        if sink is not None:
            sink.end()

    def fail(self, error: Exception) -> None:
        """Close the stream with an ERROR event."""
        if not isinstance(error, ApiError):
            _log.error("A watch of %s failed", self._served.table, exc_info=error)
            error = InternalError(f"Internal error occurred: {type(error).__name__}")
        if self._sink is not None:
            self._sink.write(_line("ERROR", orjson.dumps(error.status)))
        self.end()

    def offer(self, event: StoreEvent, memo: _Memo) -> None:
        """Show a new event if it concerns this watch, unless it comes to it later by itself."""
        if self._paused or event.revision <= self._sent:
            return
        self._sent = event.revision
        if line := self._event_line(event, memo):
            self._write(line)

    # -- content ------------------------------------------------------------------------------------------------

    def _beginning(self) -> Iterator[bytes]:
        """Lines before the first live event. Raises Expired and Timeout, which become ERROR events."""
        options = self._options
        wanted = parse_revision(options.resource_version)
        initial = options.send_initial_events
        if initial:
            if wanted > self._sent:
                raise refusals.too_large_version(wanted, self._sent)
            return self._initial(bookmark=options.allow_bookmarks)
        if wanted == 0:
            if initial is False:
                return iter(())
            return self._initial(bookmark=options.allow_bookmarks and not options.resource_version)
        if wanted > self._sent:  # a watch may wait for a revision that is not there yet
            self._sent = wanted
            return iter(())
        return self._replay(wanted)

    def _initial(self, *, bookmark: bool) -> Iterator[bytes]:
        """The objects of now, however long it takes to write them."""
        entries = [entry for _, entry in self._hub.store.scan(self._served.table, self._selection.namespace)]
        return self._initial_lines(entries, bookmark)

    def _initial_lines(self, entries: Sequence[Entry], bookmark: bool) -> Iterator[bytes]:
        selection = self._selection
        for entry in entries:
            if selection.everything or selection.matches(entry):
                yield self._object_line("ADDED", entry)
        if bookmark:
            yield self._bookmark(self._sent, _END_OF_INITIAL)

    def _replay(self, after: int) -> Iterator[bytes]:
        """Lines of the events after a revision. Raises Expired."""
        try:
            events = self._hub.store.events(self._served.table, after)
        except Compacted as compacted:
            raise refusals.too_old_version(after, compacted.oldest) from compacted
        return (line for event in events if (line := self._event_line(event, {})))

    def _event_line(self, event: StoreEvent, memo: _Memo) -> bytes | None:
        selection, deleted = self._selection, event.type == "DELETED"
        if selection.namespace and event.key.namespace != selection.namespace:
            return None
        if selection.everything:
            return self._shared_line(event.type, event.new, event, memo)
        before = event.old is not None and selection.matches(event.old)
        after = not deleted and selection.matches(event.new)
        if after:
            return self._shared_line("MODIFIED" if before else "ADDED", event.new, event, memo)
        if not before:
            return None
        if deleted:
            return self._shared_line("DELETED", event.new, event, memo)
        assert event.old is not None  # `before` says so
        return self._shared_line("DELETED", event.old, event, memo)

    def _shared_line(self, kind: str, entry: Entry, event: StoreEvent, memo: _Memo) -> bytes:
        old = entry is not event.new
        key = (kind, old, self._served.type.version + self._served.type.group, id(self._representation))
        if (line := memo.get(key)) is None:
            if old:  # it left the selection: its last selected state, at this event's revision
                meta = {**entry.object["metadata"], "resourceVersion": str(event.revision)}
                obj = {**entry.object, "metadata": meta}
                entry = Entry(event.revision, orjson.dumps(obj), obj)
            line = memo[key] = self._object_line(kind, entry)
        return line

    def _object_line(self, kind: str, entry: Entry) -> bytes:
        encoded = self._served.encoded(entry)
        if self._representation is not None:
            encoded = self._representation.encode(self._served.from_storage(entry.object), encoded)
        return _line(kind, encoded)

    def _bookmark(self, revision: int, annotations: dict[str, str] | None = None) -> bytes:
        kind = self._served.type
        meta: Object = {"resourceVersion": str(revision)}
        if annotations:
            meta["annotations"] = annotations
        obj = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": meta}
        encoded = orjson.dumps(obj)
        return _line("BOOKMARK", self._representation.encode(obj, encoded) if self._representation else encoded)

    # -- output -------------------------------------------------------------------------------------------------

    def _write(self, data: bytes) -> None:
        if self._sink is not None and not self._sink.write(data):
            self._paused = True

    def _pump(self) -> None:
        """Write what precedes the live events while there is room."""
        try:
            while not self._paused and (chunk := _chunk(self._lines)):
                self._write(chunk)
        except Exception as error:
            self.fail(error)

    def _fall_in(self) -> bool:
        """Take up what happened during a pause; False if that is nothing."""
        before, self._sent = self._sent, max(self._sent, self._hub.store.revision)
        if before == self._sent:
            return False
        try:
            self._lines = self._replay(before)
        except ApiError as error:
            self.fail(error)
            return False
        return True

    def _arm(self) -> None:
        """Start the timers: the end of the watch and its bookmarks."""
        if self._sink is None:
            return
        loop = asyncio.get_running_loop()
        limit = min(self._options.timeout_seconds or random.randint(_MIN_TIMEOUT, _MAX_TIMEOUT), _LONGEST)
        self._timers.append(loop.call_later(limit, self.end))
        if self._options.allow_bookmarks:
            if limit > _LAST_BOOKMARK_SECONDS:
                self._timers.append(loop.call_later(limit - _LAST_BOOKMARK_SECONDS, self._write_bookmark))
            self._timers.append(loop.call_later(BOOKMARK_SECONDS, self._regular_bookmark, len(self._timers)))

    def _write_bookmark(self) -> None:
        if not self._paused:
            self._write(self._bookmark(max(self._sent, self._hub.store.revision)))

    def _regular_bookmark(self, slot: int) -> None:
        self._write_bookmark()
        if self._sink is not None:
            self._timers[slot] = asyncio.get_running_loop().call_later(BOOKMARK_SECONDS, self._regular_bookmark, slot)


def _chunk(lines: Iterator[bytes]) -> bytes:
    """The next lines, together; b"" if there are none."""
    taken: list[bytes] = []
    size = 0
    for line in lines:
        taken.append(line)
        size += len(line)
        if size >= _CHUNK_BYTES:
            break
    return b"".join(taken)


def _line(kind: str, encoded: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), encoded)


def _check_options(options: ListOptions) -> None:
    try:
        parse_revision(options.resource_version)
    except ValueError as error:
        raise refusals.plain(str(error)) from None
    initial, match = options.send_initial_events, options.resource_version_match
    if initial is not None and match != "NotOlderThan":
        if not match:
            text = "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            raise refusals.invalid_options("ListOptions", "resourceVersionMatch", text, "FieldValueForbidden")
        text = f'Unsupported value: "{match}": supported values: "NotOlderThan"'
        raise refusals.invalid_options("ListOptions", "resourceVersionMatch", text, "FieldValueNotSupported")
    if initial is None and match:
        text = "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        raise refusals.invalid_options("ListOptions", "resourceVersionMatch", text, "FieldValueForbidden")
    if options.continue_:
        raise refusals.invalid_options(
            "ListOptions", "continue", "Forbidden: continue is forbidden for watch", "FieldValueForbidden"
        )
