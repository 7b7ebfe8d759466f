"""Garbage collection by ownerReferences.

An index from owners to dependents is kept by events, O(1) each. Every decision is taken on the head view, with the uid and
revision it was taken for, in one step with its write: there is no stale cache to delete by mistake, also not after a restart.

Upstream: kubernetes pkg/controller/garbagecollector. Differs: no discovery, no monitors, no absent-owner cache.
"""

from typing import NamedTuple, TypeAlias

from capi.aio.clock import Clock
from capi.kube.errors import ApiError
from capi.kube.types import GroupKind, Key, Object
from capi.server.registry import persist
from capi.server.registry.deletes import FOREGROUND, ORPHAN, Deleter
from capi.server.registry.interface import DeleteOptions
from capi.server.registry.pending import Pending, work_off
from capi.server.registry.served import Catalog
from capi.server.store.interface import Entry, Store, StoreEvent

Ident: TypeAlias = "tuple[str, Key]"
"""Table and key of an object."""


class _Verdict(NamedTuple):
    """Uids of an object's owners by their state."""

    solid: frozenset[str]
    waiting: frozenset[str]
    """Being deleted in the foreground: they wait for this object to go."""
    dangling: frozenset[str]
    unknown: bool
    """A kind of owner that is not served: nothing may be concluded."""


class GarbageCollector:
    """Collects what has lost its owners; see `run`."""

    def __init__(self, store: Store, catalog: Catalog, deleter: Deleter, clock: Clock) -> None:
        self._store, self._catalog, self._deleter, self._clock = store, catalog, deleter, clock
        self._dependents: dict[str, dict[Ident, None]] = {}
        self._idents: dict[str, Ident] = {}
        """Of objects that own something or are being deleted, by uid."""
        self._unresolved: dict[Ident, None] = {}
        self.pending: Pending[Ident] = Pending()

    def start(self) -> None:
        """Index what is stored and follow changes."""
        for table in self._store.resources():
            for key, entry in self._store.scan(table):
                self._added((table, key), entry.object["metadata"], {})
        self._store.subscribe("", self._follow)
        self._catalog.on_change(self._retry_unresolved)

    async def run(self) -> None:
        """Collect until cancelled."""
        await work_off(self.pending, self.process, self._store, self._clock)

    # -- the index ----------------------------------------------------------------------------------------------

    def _follow(self, event: StoreEvent) -> None:
        ident = (event.resource, event.key)
        meta = event.new.object["metadata"]
        old = event.old.object["metadata"] if event.old is not None else {}
        if event.type == "DELETED":
            self._deleted(ident, meta, old)
        else:
            self._added(ident, meta, old)

    def _added(self, ident: Ident, meta: Object, old: Object) -> None:
        refs, before = meta.get("ownerReferences") or (), old.get("ownerReferences") or ()
        if refs != before or not old:
            self._reindex(ident, before, refs)
            if refs:
                self.pending.add(ident)
        if meta.get("deletionTimestamp") and meta.get("finalizers"):
            finalizers = meta["finalizers"]
            if FOREGROUND in finalizers or ORPHAN in finalizers:
                self._idents[meta["uid"]] = ident
                self.pending.add(ident)
                if FOREGROUND in finalizers and FOREGROUND not in (old.get("finalizers") or ()):
                    self.pending.update(self._dependents.get(meta["uid"], ()))

    def _deleted(self, ident: Ident, meta: Object, old: Object) -> None:
        uid = meta["uid"]
        self._reindex(ident, old.get("ownerReferences") or (), ())
        self._idents.pop(uid, None)
        self._unresolved.pop(ident, None)
        self.pending.update(self._dependents.get(uid, ()))

    def _reindex(
        self, ident: Ident, before: tuple[Object, ...] | list[Object], after: tuple[Object, ...] | list[Object]
    ) -> None:
        for ref in before:
            dependents = self._dependents.get(ref["uid"])
            if dependents is not None:
                dependents.pop(ident, None)
                if not dependents:
                    del self._dependents[ref["uid"]]
            if (owner := self._idents.get(ref["uid"])) is not None:
                self.pending.add(owner)
        for ref in after:
            self._dependents.setdefault(ref["uid"], {})[ident] = None

    def _retry_unresolved(self) -> None:
        unresolved, self._unresolved = self._unresolved, {}
        self.pending.update(unresolved)

    # -- decisions ----------------------------------------------------------------------------------------------

    def process(self, ident: Ident) -> None:
        """Do what one object needs now, if anything."""
        table, key = ident
        entry = self._store.head(table, key)
        if entry is None:
            return
        meta = entry.object["metadata"]
        if meta.get("deletionTimestamp"):
            finalizers = meta.get("finalizers") or ()
            if ORPHAN in finalizers:
                self._orphan_dependents(ident, entry)
            elif FOREGROUND in finalizers:
                self._finish_foreground(ident, entry)
            return
        if meta.get("ownerReferences"):
            self._check_owners(ident, entry)

    def _check_owners(self, ident: Ident, entry: Entry) -> None:
        meta = entry.object["metadata"]
        verdict = self._verdict(ident[1].namespace, meta["ownerReferences"])
        if verdict.unknown:
            self._unresolved[ident] = None
            return
        if verdict.solid:
            if lost := verdict.dangling | verdict.waiting:
                self._strip(ident, entry, lost)
            return
        if verdict.waiting and meta["uid"] in self._dependents:
            self._unblock_cycle(meta["uid"])
            self._delete(ident, entry, "Foreground")
            return
        finalizers = meta.get("finalizers") or ()
        self._delete(
            ident,
            entry,
            "Orphan" if ORPHAN in finalizers else "Foreground" if FOREGROUND in finalizers else "Background",
        )

    def _verdict(self, namespace: str, refs: list[Object]) -> _Verdict:
        states: dict[str, set[str]] = {"solid": set(), "waiting": set(), "dangling": set()}
        unknown = False
        for ref in refs:
            group = ref["apiVersion"].rpartition("/")[0]
            served = self._catalog.by_kind(GroupKind(group, ref["kind"]))
            if served is None:
                unknown = True
                continue
            if served.type.namespaced and not namespace:
                states["solid"].add(ref["uid"])  # an impossible reference proves nothing
                continue
            owner = self._store.head(served.table, Key(namespace if served.type.namespaced else "", ref["name"]))
            states[_owner_state(owner, ref["uid"])].add(ref["uid"])
        return _Verdict(
            frozenset(states["solid"]), frozenset(states["waiting"]), frozenset(states["dangling"]), unknown
        )

    def _finish_foreground(self, ident: Ident, entry: Entry) -> None:
        """Let the owner go when no dependent blocks it any more."""
        uid = entry.object["metadata"]["uid"]
        for table, key in self._dependents.get(uid, ()):
            dependent = self._store.head(table, key)
            refs = dependent.object["metadata"].get("ownerReferences") or () if dependent is not None else ()
            if any(ref["uid"] == uid and ref.get("blockOwnerDeletion") for ref in refs):
                return
        self._drop_finalizer(ident, entry, FOREGROUND)

    def _orphan_dependents(self, ident: Ident, entry: Entry) -> None:
        uid = entry.object["metadata"]["uid"]
        for dependent in list(self._dependents.get(uid, ())):
            current = self._store.head(*dependent)
            if current is not None:
                self._strip(dependent, current, frozenset((uid,)))
        self._drop_finalizer(ident, entry, ORPHAN)

    def _unblock_cycle(self, uid: str) -> None:
        """Dependents that are being deleted in the foreground themselves must not block their owner for ever."""
        for ident in list(self._dependents.get(uid, ())):
            entry = self._store.head(*ident)
            if entry is None or FOREGROUND not in (entry.object["metadata"].get("finalizers") or ()):
                continue
            meta = entry.object["metadata"]
            refs = [
                {**ref, "blockOwnerDeletion": False} if ref["uid"] == uid else ref
                for ref in meta.get("ownerReferences") or ()
            ]
            if refs != meta.get("ownerReferences"):
                self._replace(ident, {**entry.object, "metadata": {**meta, "ownerReferences": refs}})

    # -- writes -------------------------------------------------------------------------------------------------

    def _delete(self, ident: Ident, entry: Entry, policy: str) -> None:
        served = self._catalog.by_table(ident[0])
        if served is None:
            self._unresolved[ident] = None
            return
        options = DeleteOptions(
            propagation=policy,  # type: ignore[arg-type]  # one of the three literals above
            uid=entry.object["metadata"]["uid"],
            resource_version=str(entry.revision),
        )
        try:
            self._deleter.delete(served, ident[1], options)
        except ApiError:
            self._unresolved[ident] = None  # refused (a protected namespace): looked at again when the kinds change

    def _strip(self, ident: Ident, entry: Entry, uids: frozenset[str]) -> None:
        meta = entry.object["metadata"]
        refs = [ref for ref in meta.get("ownerReferences") or () if ref["uid"] not in uids]
        kept = {name: value for name, value in meta.items() if name != "ownerReferences"}
        self._replace(ident, {**entry.object, "metadata": {**kept, "ownerReferences": refs} if refs else kept})

    def _drop_finalizer(self, ident: Ident, entry: Entry, name: str) -> None:
        meta = entry.object["metadata"]
        left = [finalizer for finalizer in meta["finalizers"] if finalizer != name]
        kept = {member: value for member, value in meta.items() if member != "finalizers"}
        self._replace(ident, {**entry.object, "metadata": {**kept, "finalizers": left} if left else kept})

    def _replace(self, ident: Ident, obj: Object) -> None:
        persist.replace(self._store, *ident, obj)


def _owner_state(owner: Entry | None, uid: str) -> str:
    if owner is None or owner.object["metadata"]["uid"] != uid:
        return "dangling"
    meta = owner.object["metadata"]
    if meta.get("deletionTimestamp") and FOREGROUND in (meta.get("finalizers") or ()):
        return "waiting"
    return "solid"
