"""The port of a store: one revision log of API objects.

There are two views. *Head* holds every accepted change at once; writers check against it and change it synchronously.
*Committed* follows when a change is durable; reads, events and answers show only that. Revisions are decimal counters of
the whole store: they rise with every change and are never used twice, also not after a crash.

Implementations: `store.memory.MemoryStore` (durable at once), `store.sqlite.SqliteStore`.
Upstream: k8s.io/apiserver/pkg/storage/interfaces.go (etcd3 store and watch cache).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias

import orjson

from capi.kube.errors import CapiError
from capi.kube.types import Key, Object


class StoreError(CapiError):
    """The store cannot be used; see the message for its path and the reason."""


class Compacted(CapiError):
    """Events after the asked revision are no longer kept."""

    def __init__(self, oldest: int) -> None:
        super().__init__()
        self.oldest = oldest
        """The oldest revision from which events are still complete."""


class Entry:
    """One object at one revision. Shared and immutable; `encoded` is the truth.

    The parsed form costs several times as much memory: a store keeps it for objects that are in use and folds the others,
    whose parsed form is then made anew whenever it is asked for.
    """

    __slots__ = ("_labels", "_object", "encoded", "revision")

    def __init__(self, revision: int, encoded: bytes, obj: Object | None = None) -> None:
        self.revision = revision
        self.encoded = encoded
        self._object = obj
        self._labels: Mapping[str, str] | None = _labels(obj) if obj is not None else None

    @property
    def labels(self) -> Mapping[str, str]:
        """`metadata.labels`, kept apart so that selecting by labels needs no parsed object."""
        if self._labels is None:
            self._labels = _labels(self.object)
        return self._labels

    @property
    def object(self) -> Object:
        """The parsed object, with `metadata.resourceVersion`."""
        if self._object is not None:
            return self._object
        parsed: Object = orjson.loads(self.encoded)
        return parsed

    def fold(self) -> None:
        """Give the parsed form back."""
        self._object = None


def _labels(obj: Object) -> Mapping[str, str]:
    labels: Mapping[str, str] = obj["metadata"].get("labels") or {}
    return labels


class StoreEvent(NamedTuple):
    """One committed change. For a deletion `new` is the last state stamped with the deletion's revision."""

    revision: int
    type: Literal["ADDED", "MODIFIED", "DELETED"]
    resource: str
    key: Key
    old: Entry | None
    new: Entry


Listener: TypeAlias = Callable[[StoreEvent], None]
"""Called in revision order, synchronously, as soon as a change is committed; must not write to the store."""


class Store(Protocol):
    """See the module's text. `resource` is a qualified plural such as "machines.cluster.x-k8s.io" or "pods"."""

    @property
    def revision(self) -> int:
        """Newest committed revision."""
        ...

    @property
    def head_revision(self) -> int:
        """Newest revision given out."""
        ...

    def get(self, resource: str, key: Key) -> Entry | None:
        """Committed state. O(1)."""
        ...

    def head(self, resource: str, key: Key) -> Entry | None:
        """State including changes that are not durable yet. O(1)."""
        ...

    def scan(self, resource: str, namespace: str = "", after: Key | None = None) -> Iterator[tuple[Key, Entry]]:
        """Committed entries ordered by (namespace, name), of one namespace or all, strictly after a key. O(result)."""
        ...

    def scan_at(
        self, resource: str, revision: int, namespace: str = "", after: Key | None = None
    ) -> Iterator[tuple[Key, Entry]]:
        """The same as of an earlier revision. Raises Compacted."""
        ...

    def count(self, resource: str, namespace: str = "") -> int:
        """Number of committed entries. O(1) within a namespace, else O(namespaces)."""
        ...

    def head_keys(self, resource: str, namespace: str = "") -> list[Key]:
        """Keys of the head view; for sweeps that must not overlook a change under way."""
        ...

    def resources(self) -> Sequence[str]:
        """Names that have committed entries."""
        ...

    def put(self, resource: str, key: Key, obj: Object) -> Entry:
        """Create or replace in the head view and queue for commit; stamps `metadata.resourceVersion` on a copy.

        `obj` must have a `metadata` dict and is not changed. Await `durable(entry.revision)` before telling anyone.
        """
        ...

    def remove(self, resource: str, key: Key, last: Object | None = None) -> Entry:
        """Delete from the head view and queue for commit; returns the last state with the deletion's revision.

        `last` replaces the state that the deletion event shows.
        """
        ...

    async def durable(self, revision: int) -> None:
        """Return when everything up to `revision` is committed. Raises InternalError if its commit failed."""
        ...

    def events(self, resource: str, after: int) -> Sequence[StoreEvent]:
        """Committed events of a resource with a revision > `after`. Raises Compacted."""
        ...

    def subscribe(self, resource: str, listener: Listener) -> Callable[[], None]:
        """Call `listener` for every later event of a resource ("" = of all); returns the unsubscriber."""
        ...

    async def close(self) -> None:
        """Commit what is queued and release files. Idempotent."""
        ...
