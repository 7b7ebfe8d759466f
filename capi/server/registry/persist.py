"""The last step of every write: into the store, or out of it when a deletion is complete.

Upstream: apiserver pkg/registry/generic/registry/store.go (deleteWithoutFinalizers, shouldDeleteDuringUpdate).
"""

import orjson

from capi.kube import smd
from capi.kube.errors import RequestEntityTooLarge
from capi.kube.types import Key, Object
from capi.server.store.interface import Entry, Store

NAMESPACES = "namespaces"
MAX_BYTES = 1536 * 1024
"""JSON of one object; etcd's default limit of a request, so that what is stored here can be stored anywhere."""


def deletion_complete(table: str, obj: Object) -> bool:
    """Marked for deletion, its grace period over, and nobody has anything left to do."""
    meta = obj["metadata"]
    if not meta.get("deletionTimestamp") or meta.get("finalizers") or meta.get("deletionGracePeriodSeconds"):
        return False
    return table != NAMESPACES or not (obj.get("spec") or {}).get("finalizers")


def check_size(obj: Object, before: int = 0) -> None:
    """Raises RequestEntityTooLarge if the JSON of `obj` is too long; one that had `before` bytes may stay as long."""
    size = len(orjson.dumps(obj))
    if size > max(MAX_BYTES, before):
        raise RequestEntityTooLarge(f"the object would have {size} bytes: limit is {MAX_BYTES}")


def replace(store: Store, table: str, key: Key, obj: Object) -> Entry:
    """Store a new state of an existing object (in its stored form); removes it if that completes its deletion."""
    if deletion_complete(table, obj):
        return store.remove(table, key, obj)
    return store.put(table, key, obj)


def same(old: Object, new: Object) -> bool:
    """Whether `new` differs from `old` by nothing or by the times of managedFields alone."""
    return smd.keep_times(old, new) is old
