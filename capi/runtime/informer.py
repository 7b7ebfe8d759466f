"""An informer: the cached objects of one kind, kept fresh by a reflector, and those who want to know of changes.

Handlers run synchronously, in the order of the server's revisions, right after the cache has changed; they must be cheap
and must not raise (what they raise is logged). A handler that comes late is shown every cached object as new.
"""

import asyncio
import heapq
import itertools
import logging
from collections.abc import Callable, Iterable
from typing import Any

from capi.kube.objects import Resource
from capi.kube.types import Key, ResourceType
from capi.runtime.decode import decoder
from capi.runtime.store import Store

logger = logging.getLogger(__name__)

INDEXED_LABELS = ("cluster.x-k8s.io/cluster-name", "cluster.x-k8s.io/pool-name")
Handler = Callable[[Any, Any], None]
"""Called with the old object (None: new) and the new one (None: deleted)."""


class Informer:
    """Cache of one kind (typed, or Unstructured for a ResourceType) under an optional label selector.

    `keep` drops objects nobody wants before they are stored.
    """

    def __init__(
        self,
        kind: type[Resource] | ResourceType,
        labels: str = "",
        keep: Callable[[Any], bool] | None = None,
    ) -> None:
        self.kind = kind
        self.resource = kind if isinstance(kind, ResourceType) else kind.resource
        self.labels = labels
        self.store: Store[Any] = Store(INDEXED_LABELS)
        self.decode = decoder(kind)
        self.synced = asyncio.Event()
        self.revision = 0
        """Every change up to this revision has been seen; 0 before the first sync."""
        self.on_suspicion: Callable[[], None] = lambda: None
        """Set by the reflector: look whether the watch is still alive."""
        self._keep = keep
        self._handlers: list[Handler] = []
        self._waiting: list[tuple[int, int, Callable[[], None]]] = []
        self._leaving: dict[Key, list[Callable[[], None]]] = {}
        self._ticket = itertools.count()

    @property
    def complete(self) -> bool:
        """True when every object of the kind is cached, so that one that is not there does not exist."""
        return not self.labels and self._keep is None

    def subscribe(self, handler: Handler) -> Callable[[], None]:
        """Tell `handler` of every change; the returned function ends it. Cached objects are reported as new at once."""
        for obj in list(self.store.values()):
            self._tell(handler, None, obj)
        self._handlers.append(handler)
        return lambda: self._handlers.remove(handler) if handler in self._handlers else None

    # The reflector's side.

    def changed(self, obj: Any, revision: int) -> None:
        """An object was added or modified at `revision`."""
        key = obj.key
        if self._keep is not None and not self._keep(obj):
            self._dropped(key)
        else:
            old = self.store.put(key, obj)
            if old is None or old.metadata.resource_version != obj.metadata.resource_version:
                self._emit(old, obj)
            if old is not None and old.metadata.uid != obj.metadata.uid:
                self._left(key)
        self.reached(revision)

    def deleted(self, key: Key, revision: int) -> None:
        self._dropped(key)
        self.reached(revision)

    def replace(self, objects: Iterable[Any], revision: int) -> None:
        """The whole current state, after a list: objects that are not in it were deleted unseen."""
        seen = set()
        for obj in objects:
            seen.add(obj.key)
            self.changed(obj, 0)
        for key in sorted(set(self.store.keys()) - seen):
            self._dropped(key)
        if revision < self.revision:
            self.revision = 0  # a restored or another server counts anew
        self.reached(revision)
        self.synced.set()

    def reached(self, revision: int) -> None:
        """Every change up to `revision` has been told."""
        if revision <= self.revision:
            return
        self.revision = revision
        while self._waiting and self._waiting[0][0] <= revision:
            heapq.heappop(self._waiting)[2]()

    # Waiting for one's own writes.

    def when_reached(self, revision: int, callback: Callable[[], None]) -> None:
        """Call once the cache has seen `revision`."""
        heapq.heappush(self._waiting, (revision, next(self._ticket), callback))

    def when_gone(self, key: Key, callback: Callable[[], None]) -> None:
        """Call once the object that has this key now has left the cache."""
        self._leaving.setdefault(key, []).append(callback)

    def _dropped(self, key: Key) -> None:
        old = self.store.drop(key)
        if old is not None:
            self._emit(old, None)
            self._left(key)

    def _left(self, key: Key) -> None:
        for callback in self._leaving.pop(key, ()):
            callback()

    def _emit(self, old: Any, new: Any) -> None:
        for handler in tuple(self._handlers):
            self._tell(handler, old, new)

    def _tell(self, handler: Handler, old: Any, new: Any) -> None:
        try:
            handler(old, new)
        except Exception:
            about = new if new is not None else old
            logger.exception("Mapping an event failed", extra={"kind": self.resource.kind, "object": str(about.key)})
