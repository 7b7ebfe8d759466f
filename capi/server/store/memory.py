"""A store without a disk: a change is durable when it is made. For tests, `--ephemeral` and simulated workload clusters."""

from capi.kube.types import Key, Object
from capi.server.store.interface import Entry
from capi.server.store.log import RevisionLog


class MemoryStore:
    """Implements `store.interface.Store`; head and committed view are always the same."""

    def __init__(self, revision: int = 0) -> None:
        """`revision`: where to begin; what is older counts as forgotten."""
        self._log = log = RevisionLog(revision)
        self.get, self.head, self.scan, self.scan_at = log.get, log.head, log.scan, log.scan_at
        self.count, self.head_keys, self.resources = log.count, log.head_keys, log.resources
        self.events, self.subscribe, self.compact = log.events, log.subscribe, log.compact

    @property
    def revision(self) -> int:
        return self._log.revision

    @property
    def head_revision(self) -> int:
        return self._log.head_revision

    def put(self, resource: str, key: Key, obj: Object) -> Entry:
        change = self._log.put(resource, key, obj)
        self._log.commit(change)
        return change.entry

    def remove(self, resource: str, key: Key, last: Object | None = None) -> Entry:
        change = self._log.remove(resource, key, last)
        self._log.commit(change)
        return change.entry

    async def durable(self, revision: int) -> None:
        return

    async def close(self) -> None:
        return
