"""Background work that is not garbage collection: emptying namespaces and definitions under deletion, expiring Events.

Upstream: kubernetes pkg/controller/namespace, apiextensions-apiserver pkg/controller/finalizer.
"""

import contextlib
from collections import Counter
from datetime import timedelta

from capi.aio.clock import Clock
from capi.kube import times
from capi.kube.errors import ApiError, InternalError
from capi.kube.types import Key, Object
from capi.server.registry import crd, namespaces, persist
from capi.server.registry.definitions import TABLE as DEFINITIONS
from capi.server.registry.definitions import Definitions
from capi.server.registry.deletes import Deleter, background
from capi.server.registry.pending import Pending, work_off
from capi.server.registry.persist import NAMESPACES
from capi.server.registry.served import Catalog, Served
from capi.server.store.interface import Store, StoreEvent

_EXPIRY_SECONDS = 60.0


class NamespaceSweeper:
    """Deletes what is in a terminating namespace, then lets the namespace go."""

    def __init__(self, store: Store, catalog: Catalog, deleter: Deleter, clock: Clock) -> None:
        self._store, self._catalog, self._deleter, self._clock = store, catalog, deleter, clock
        self._terminating: set[str] = set()
        self.pending: Pending[str] = Pending()

    def start(self) -> None:
        for key, entry in self._store.scan(NAMESPACES):
            self._look(key.name, entry.object)
        self._store.subscribe("", self._follow)
        self._catalog.on_change(lambda: self.pending.update(self._terminating))

    async def run(self) -> None:
        await work_off(self.pending, self.process, self._store, self._clock)

    def _follow(self, event: StoreEvent) -> None:
        if event.resource == NAMESPACES:
            if event.type == "DELETED":
                self._terminating.discard(event.key.name)
            else:
                self._look(event.key.name, event.new.object)
        elif event.key.namespace in self._terminating:
            self.pending.add(event.key.namespace)

    def _look(self, name: str, namespace: Object) -> None:
        if namespace["metadata"].get("deletionTimestamp"):
            self._terminating.add(name)
            self.pending.add(name)

    def process(self, name: str) -> None:
        """One pass over a namespace."""
        key = Key("", name)
        entry = self._store.head(NAMESPACES, key)
        if entry is None or not entry.object["metadata"].get("deletionTimestamp"):
            return
        tables = sorted((s for s in self._catalog.tables() if s.type.namespaced), key=lambda s: s.table != "pods")
        for served in tables:
            _delete_all(self._store, self._deleter, served, name)
        remaining, finalizers = self._remaining(tables, name)
        if remaining:
            changed = namespaces.remaining_conditions(
                entry.object, remaining.items(), finalizers.items(), self._clock.now()
            )
        elif namespaces.FINALIZER in ((entry.object.get("spec") or {}).get("finalizers") or ()):
            changed = namespaces.finalized(entry.object)
        else:
            return
        if not persist.same(entry.object, changed):
            persist.replace(self._store, NAMESPACES, key, changed)

    def _remaining(self, tables: list[Served], name: str) -> tuple[Counter[str], Counter[str]]:
        remaining: Counter[str] = Counter()
        finalizers: Counter[str] = Counter()
        for served in tables:
            for key in self._store.head_keys(served.table, name):
                entry = self._store.head(served.table, key)
                if entry is not None:
                    remaining[served.table] += 1
                    finalizers.update(entry.object["metadata"].get("finalizers") or ())
        return remaining, finalizers


class DefinitionSweeper:
    """Deletes the objects of a definition under deletion, then lets the definition go."""

    def __init__(self, store: Store, definitions: Definitions, deleter: Deleter, clock: Clock) -> None:
        self._store, self._definitions, self._deleter, self._clock = store, definitions, deleter, clock
        self._dying: set[str] = set()
        self.pending: Pending[None] = Pending()

    def start(self) -> None:
        self._store.subscribe("", self._follow)
        self._look()

    async def run(self) -> None:
        await work_off(self.pending, self.process, self._store, self._clock)

    def _follow(self, event: StoreEvent) -> None:
        if event.resource == DEFINITIONS:
            self._look(changed=event.type == "DELETED")
        elif event.resource in self._dying and event.type == "DELETED":
            self.pending.add(None)

    def _look(self, *, changed: bool = False) -> None:
        self._dying = {served.table for served in self._definitions.dying()}
        if self._dying or changed:
            self.pending.add(None)

    def process(self, _: None = None) -> None:
        """One pass over all definitions under deletion, and those that wait for a name to become free."""
        for served in self._definitions.dying():
            _delete_all(self._store, self._deleter, served, "")
        for key in self._definitions.emptied():
            entry = self._store.head(DEFINITIONS, key)
            if entry is None:
                continue
            meta = entry.object["metadata"]
            left = [name for name in meta.get("finalizers") or () if name != crd.FINALIZER]
            if left != meta.get("finalizers"):
                kept = {name: value for name, value in meta.items() if name != "finalizers"}
                changed = {**entry.object, "metadata": {**kept, "finalizers": left} if left else kept}
                persist.replace(self._store, DEFINITIONS, key, changed)
        for key, obj in self._definitions.conflicted():
            self._store.put(DEFINITIONS, key, obj)


class Expiry:
    """Removes objects of short-lived kinds (Events) when their time is over."""

    def __init__(self, store: Store, catalog: Catalog, clock: Clock) -> None:
        self._store, self._catalog, self._clock = store, catalog, clock

    async def run(self) -> None:
        while True:
            await self._clock.sleep(_EXPIRY_SECONDS)
            self.process()
            with contextlib.suppress(InternalError):  # undone; the next round does it again
                await self._store.durable(self._store.head_revision)

    def process(self) -> None:
        for served in self._catalog.tables():
            if served.rules.max_life is None:
                continue
            oldest = times.format(self._clock.now() - timedelta(seconds=served.rules.max_life))
            for key in self._store.head_keys(served.table):
                entry = self._store.head(served.table, key)
                if entry is not None and _last_touched(entry.object) < oldest:
                    self._store.remove(served.table, key)


def _last_touched(obj: Object) -> str:
    """RFC 3339 of the last sign of life; comparable as text."""
    managed = (entry.get("time") or "" for entry in obj["metadata"].get("managedFields") or ())
    return max([str(obj["metadata"].get("creationTimestamp") or ""), *managed])


def _delete_all(store: Store, deleter: Deleter, served: Served, namespace: str) -> None:
    for key in store.head_keys(served.table, namespace):
        entry = store.head(served.table, key)
        if entry is None or entry.object["metadata"].get("deletionTimestamp"):
            continue
        with contextlib.suppress(ApiError):  # what is refused is counted as remaining
            deleter.delete(served, key, background(entry.object["metadata"]["uid"]))
