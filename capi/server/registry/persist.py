"""The last step of every write: into the store, or out of it when a deletion is complete.

Upstream: apiserver pkg/registry/generic/registry/store.go (deleteWithoutFinalizers, shouldDeleteDuringUpdate).
"""

from capi.kube.types import Key, Object
from capi.server.store.interface import Entry, Store

NAMESPACES = "namespaces"


def deletion_complete(table: str, obj: Object) -> bool:
    """Marked for deletion, its grace period over, and nobody has anything left to do."""
    meta = obj["metadata"]
    if not meta.get("deletionTimestamp") or meta.get("finalizers") or meta.get("deletionGracePeriodSeconds"):
        return False
    return table != NAMESPACES or not (obj.get("spec") or {}).get("finalizers")


def replace(store: Store, table: str, key: Key, obj: Object) -> Entry:
    """Store a new state of an existing object (in its stored form); removes it if that completes its deletion."""
    if deletion_complete(table, obj):
        return store.remove(table, key, obj)
    return store.put(table, key, obj)


def same(left: Object, right: Object) -> bool:
    """Equal apart from resourceVersion and the times of managedFields."""
    if left.keys() != right.keys():
        return False
    return all(value == right[name] for name, value in left.items() if name != "metadata") and _same_meta(
        left["metadata"], right["metadata"]
    )


def _same_meta(left: Object, right: Object) -> bool:
    skipped = ("resourceVersion", "managedFields")
    if {k: v for k, v in left.items() if k not in skipped} != {k: v for k, v in right.items() if k not in skipped}:
        return False
    mine, theirs = left.get("managedFields") or (), right.get("managedFields") or ()
    if mine is theirs:
        return True
    return len(mine) == len(theirs) and all(map(_same_entry, mine, theirs))


def _same_entry(left: Object, right: Object) -> bool:
    return {**left, "time": None} == {**right, "time": None}
