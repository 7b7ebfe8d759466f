"""The last step of every write: into the store, or out of it when a deletion is complete.

Upstream: apiserver pkg/registry/generic/registry/store.go (deleteWithoutFinalizers, shouldDeleteDuringUpdate).
"""

from capi.kube import smd
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


def same(old: Object, new: Object) -> bool:
    """Whether `new` differs from `old` by nothing or by the times of managedFields alone."""
    return smd.keep_times(old, new) is old
