"""The revision log in memory: head overlay, committed tables, history and listeners. Both stores are built on it.

A change goes `put`/`remove` (head) → queued by the store → `commit` (tables, history, listeners) or `rollback`.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import orjson

from capi.kube.types import Key, Object
from capi.server.store.history import History
from capi.server.store.interface import Entry, Listener, StoreEvent
from capi.server.store.tables import Tables

_log = logging.getLogger(__name__)

MAX_PARSED = 5_000
"""Objects, the last ones written, whose parsed form is kept; a parsed Machine takes about 15 KB."""


class Change(NamedTuple):
    """A change of the head view that waits for its commit."""

    resource: str
    key: Key
    entry: Entry
    """The new state; of a removal, what its event shows."""
    removed: bool


class RevisionLog:
    """State of a store. Not thread-safe: only the event loop's thread touches it."""

    def __init__(self, revision: int = 0) -> None:
        self.revision = self.head_revision = revision
        self._tables = Tables()
        self._parsed: deque[Entry] = deque()
        self._overlay: dict[tuple[str, Key], Change] = {}
        self._history = History(time.monotonic, revision)
        self._listeners: dict[str, tuple[Listener, ...]] = {}

    def load(self, resource: str, key: Key, entry: Entry) -> None:
        """Take over an object that is committed already; for start-up only."""
        self._tables.set(resource, key, entry)

    # -- head ---------------------------------------------------------------------------------------------------

    def head(self, resource: str, key: Key) -> Entry | None:
        change = self._overlay.get((resource, key))
        if change is not None:
            return None if change.removed else change.entry
        return self._tables.get(resource, key)

    def head_keys(self, resource: str, namespace: str = "") -> list[Key]:
        keys = dict.fromkeys(key for key, _ in self._tables.scan(resource, namespace))
        for (name, key), change in self._overlay.items():
            if name != resource or (namespace and key.namespace != namespace):
                continue
            if change.removed:
                keys.pop(key, None)
            else:
                keys[key] = None
        return list(keys)

    def put(self, resource: str, key: Key, obj: Object) -> Change:
        return self._change(resource, key, obj, removed=False)

    def remove(self, resource: str, key: Key, last: Object | None) -> Change:
        if last is None:
            current = self.head(resource, key)
            assert current is not None, f"{resource} {key} is not in the store"
            last = current.object
        return self._change(resource, key, last, removed=True)

    def _change(self, resource: str, key: Key, obj: Object, *, removed: bool) -> Change:
        self.head_revision += 1
        stamped = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.head_revision)}}
        change = Change(resource, key, Entry(self.head_revision, orjson.dumps(stamped), stamped), removed)
        self._overlay[resource, key] = change
        return change

    # -- commit -------------------------------------------------------------------------------------------------

    def commit(self, change: Change) -> None:
        """Make a change visible and tell the listeners. Must be called in revision order."""
        resource, key, entry, removed = change
        old = self._tables.get(resource, key)
        if removed:
            self._tables.drop(resource, key)
        else:
            self._tables.set(resource, key, entry)
        if self._overlay.get((resource, key)) is change:
            del self._overlay[resource, key]
        self.revision = entry.revision
        event = StoreEvent(
            entry.revision, "DELETED" if removed else "MODIFIED" if old else "ADDED", resource, key, old, entry
        )
        self._history.add(event)
        self._tell(event)
        if old is not None:
            old.fold()
        if removed:
            entry.fold()
        else:
            self._parsed.append(entry)
            if len(self._parsed) > MAX_PARSED:
                self._parsed.popleft().fold()

    def _tell(self, event: StoreEvent) -> None:
        """Every listener hears of a commit; the fault of one must keep neither the others nor the writers waiting."""
        for listener in (*self._listeners.get(event.resource, ()), *self._listeners.get("", ())):
            try:
                listener(event)
            except Exception:
                _log.exception("A listener failed at revision %d: %s %s", event.revision, event.resource, event.key)

    def rollback(self, changes: Sequence[Change]) -> None:
        """Forget queued changes whose commit failed. Their revisions are not used again."""
        for change in changes:
            if self._overlay.get((change.resource, change.key)) is change:
                del self._overlay[change.resource, change.key]

    # -- committed ----------------------------------------------------------------------------------------------

    def get(self, resource: str, key: Key) -> Entry | None:
        return self._tables.get(resource, key)

    def scan(self, resource: str, namespace: str = "", after: Key | None = None) -> Iterator[tuple[Key, Entry]]:
        return self._tables.scan(resource, namespace, after)

    def scan_at(
        self, resource: str, revision: int, namespace: str = "", after: Key | None = None
    ) -> Iterator[tuple[Key, Entry]]:
        before: dict[Key, Entry | None] = {}
        for event in reversed(self._history.after(resource, revision)):
            before[event.key] = event.old
        if not before:
            return self._tables.scan(resource, namespace, after)
        return iter(self._merged(resource, before, namespace, after))

    def _merged(
        self, resource: str, before: dict[Key, Entry | None], namespace: str, after: Key | None
    ) -> list[tuple[Key, Entry]]:
        entries = [(key, entry) for key, entry in self._tables.scan(resource, namespace, after) if key not in before]
        entries += [
            (key, entry)
            for key, entry in before.items()
            if entry is not None and (not namespace or key.namespace == namespace) and (after is None or key > after)
        ]
        entries.sort(key=lambda item: item[0])
        return entries

    def count(self, resource: str, namespace: str = "") -> int:
        return self._tables.count(resource, namespace)

    def resources(self) -> list[str]:
        return self._tables.resources()

    def events(self, resource: str, after: int) -> list[StoreEvent]:
        return self._history.after(resource, after)

    def compact(self, revision: int) -> None:
        """Forget history up to `revision`; older watches and lists then get Compacted."""
        self._history.compact(revision)

    def subscribe(self, resource: str, listener: Listener) -> Callable[[], None]:
        self._listeners[resource] = (*self._listeners.get(resource, ()), listener)

        def unsubscribe() -> None:
            left = tuple(known for known in self._listeners.get(resource, ()) if known is not listener)
            if left:
                self._listeners[resource] = left
            else:
                self._listeners.pop(resource, None)

        return unsubscribe
